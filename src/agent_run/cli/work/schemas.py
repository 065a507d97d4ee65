"""The work of `schema`: JSON Schemas of all documents that cross a border."""

import json
from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel

from agent_run.cli.declaring import loaded
from agent_run.cli.exits import Exit
from agent_run.cli.speech import Json, Speech
from agent_run.errors import Unfit

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_CONTRACT: Final = "agent_run.contract"
_CONTENT: Final = "agent_run.executors.content"
MODELS: Final[Mapping[str, str]] = {
    "manifest": f"{_CONTRACT}.manifest:Manifest",
    "plan": f"{_CONTRACT}.plan:Plan",
    "orchestration": f"{_CONTRACT}.shapes:Orchestration",
    "routing": f"{_CONTRACT}.shapes:Routing",
    "notes": f"{_CONTRACT}.notes:Notes",
    "envelope": f"{_CONTRACT}.envelope:Envelope",
    "claim": f"{_CONTRACT}.claim:ClaimCheck",
    "record": f"{_CONTRACT}.record:Record",
    "verdict": f"{_CONTRACT}.verdict:Verdict",
    "finding": f"{_CONTRACT}.verdict:Finding",
    "budget": f"{_CONTRACT}.budget:Budget",
    "spend": f"{_CONTRACT}.budget:Spend",
    "evidence": f"{_CONTRACT}.record:Evidence",
    "question": f"{_CONTRACT}.record:Question",
    "checklist": "agent_run.recipes.qa.checklist:Checklist",
    "lexicon": f"{_CONTENT}.lexicon:Lexicon",
    "rule": f"{_CONTENT}.rule_file:RuleFile",
    "dataset": "agent_run.evals.cases:EvalCase",
    "rubric": "agent_run.evals.rubric:Rubric",
    "canary": "agent_run.topology.canary:Canary",
}
"""Document -> the model that reads it, loaded when it is asked for."""
ABOUT: Final[Mapping[str, str]] = {
    "dataset": "One line of a dataset: one input, and what is known about it.",
}
"""What is to be said of a document in place of what its model says about itself."""


def schema(speech: Speech, *, name: str | None) -> int:
    """Print one schema, or the names of all."""
    if name is None:
        about = {known: described(known) for known in MODELS}
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
    """Return the JSON Schema of the document called `name`.

    Raises:
        Unfit: What reads it is not installed.
    """
    told: dict[str, Any] = {"$schema": DIALECT, **_model(name).model_json_schema()}
    return _with_short_forms(told) if name == "checklist" else told


def described(name: str) -> str:
    """Return what a document is, in one line; what is not installed says that."""
    if name in ABOUT:
        return ABOUT[name]
    try:
        return first_line(_model(name))
    except Unfit as unfit:
        return str(unfit)


def first_line(model: type[BaseModel]) -> str:
    """Return what a contract says about itself in one line."""
    return (model.__doc__ or "").strip().partition("\n")[0]


def _model(name: str) -> type[BaseModel]:
    try:
        model: type[BaseModel] = loaded(MODELS[name])
    except ModuleNotFoundError as error:
        msg = f"{name} needs {error.name!r}, which is not installed; install 'agent-run[qa]'"
        raise Unfit(msg) from error
    return model


def _with_short_forms(told: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a checklist that is also a list, with goals and single checks."""
    step = told["$defs"]["Step"]
    check = step["properties"]["check"]
    one = next(form["items"] for form in check["anyOf"] if "items" in form)
    checks = {**check, "anyOf": [*check["anyOf"], one]}
    longer = {**step, "properties": {**step["properties"], "check": checks}}
    steps = told["properties"]["steps"]
    items = {"anyOf": [{"type": "string", "minLength": 1}, steps["items"]]}
    return {
        **told,
        "$defs": {**told["$defs"], "Step": longer},
        "type": ["object", "array"],
        "properties": {**told["properties"], "steps": {**steps, "items": items}},
        "items": items,
    }
