"""The work of `schema`: JSON Schemas of all documents that cross a border."""

import json
from collections.abc import Mapping
from typing import Final

from pydantic import BaseModel

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Json, Speech
from agent_run.contract.budget import Budget, Spend
from agent_run.contract.claim import ClaimCheck
from agent_run.contract.envelope import Envelope
from agent_run.contract.manifest import Manifest
from agent_run.contract.notes import Notes
from agent_run.contract.plan import Plan
from agent_run.contract.record import Evidence, Question, Record
from agent_run.contract.verdict import Finding, Verdict

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
MODELS: Final[Mapping[str, type[BaseModel]]] = {
    "manifest": Manifest,
    "plan": Plan,
    "notes": Notes,
    "envelope": Envelope,
    "claim": ClaimCheck,
    "record": Record,
    "verdict": Verdict,
    "finding": Finding,
    "budget": Budget,
    "spend": Spend,
    "evidence": Evidence,
    "question": Question,
}


def schema(speech: Speech, *, name: str | None) -> int:
    """Print one schema, or the names of all."""
    if name is None:
        about = {known: first_line(model) for known, model in MODELS.items()}
        if speech.as_json:
            speech.object({"schemas": about})
        else:
            speech.table(("NAME", "WHAT IT IS"), list(about.items()))
        return Exit.DONE
    told = schema_of(name)
    if speech.as_json:
        speech.object(told)
    else:
        speech.show(*json.dumps(told, indent=2).splitlines())
    return Exit.DONE


def schema_of(name: str) -> Json:
    """Return the JSON Schema of the document called `name`."""
    return {"$schema": DIALECT, **MODELS[name].model_json_schema()}


def first_line(model: type[BaseModel]) -> str:
    """Return what a contract says about itself in one line."""
    return (model.__doc__ or "").strip().partition("\n")[0]
