"""The work of `plan`: a planner model writes manifests for review; nothing runs by itself."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict, Unpack

import anyio
import yaml

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Json, Speech
from agent_run.cli.work.door import Door, opened
from agent_run.cli.work.outputs import make_folder, write_output
from agent_run.cli.work.posting import Posting, run_for
from agent_run.contract.base import RunId
from agent_run.contract.manifest import Manifest
from agent_run.contract.plan import Plan
from agent_run.errors import AgentRunError, ContractError
from agent_run.executors.planner.ground import ground_at
from agent_run.executors.planner.planner import Planned, plan_for
from agent_run.ledger.commands import OpenRun, Post
from agent_run.models import MemoryPurse, paid
from agent_run.wiring.models import named_model, usual_meter
from agent_run.wiring.settings import Settings
from agent_run.wiring.site import tools_of


class Wish(TypedDict):
    """What else may be said about the plan."""

    model: str | None
    into: str
    post: bool
    run_id: RunId | None
    dry_run: bool


def plan(speech: Speech, *, objective: str, **wish: Unpack[Wish]) -> int:
    """Ask for a plan, write it down for review, and post it only if that was asked for."""
    post, dry_run = wish["post"], wish["dry_run"]
    with opened(speech, writes=post, dry_run=dry_run) as door:
        found = _asked(speech, door.settings, objective, wish["model"])
        for question in found.open_questions:
            speech.tell(f"open question: {question}")
        for guess in found.unsure:
            speech.tell(f"unsure: {guess}")
        if found.plan is None:
            speech.answer(_as_json(found, {}, None), ())
            return Exit.FOR_A_PERSON
        folder = door.settings.root / wish["into"]
        files = _written(found.plan, folder, dry_run=dry_run)
        posted = _posted(door, found.plan, wish["run_id"]) if post else None
    lines = [f"[plan]    {name}: {step.objective}" for name, step in files.items()]
    if not post:
        lines.append(f"review them, then: agent-run run {folder / 'plan.yaml'}")
    speech.answer(_as_json(found, files, posted), lines)
    return Exit.DONE


def _asked(speech: Speech, settings: Settings, objective: str, model: str | None) -> Planned:
    asked = paid(named_model(model or settings.model), MemoryPurse(), usual_meter())
    ground = ground_at(settings.root, search_path=tools_of(settings).path)
    speech.tell(f"asking {asked.name} for a plan over {len(ground.files)} files")
    found: list[Planned] = []

    async def main() -> None:
        found.append(await plan_for(asked, objective, ground))

    anyio.run(main)
    return found[0]


def _written(found: Plan, folder: Path, *, dry_run: bool) -> Mapping[str, Manifest]:
    """Write one file for each task and one for the whole; never over a file that is there."""
    files = {str(folder / f"{step.task_id}.yaml"): step for step in found.steps}
    whole = folder / "plan.yaml"
    taken = [name for name in (*files, str(whole)) if Path(name).exists()]
    if taken:
        msg = f"{taken[0]!r} is there already; move it, or write elsewhere with --into"
        raise ContractError(msg)
    if not dry_run:
        make_folder(folder)
        for name, step in files.items():
            write_output(name, _yaml(step))
        write_output(str(whole), _yaml(found))
    return files


def _yaml(document: Manifest | Plan) -> str:
    plain: Any = document.model_dump(mode="json", exclude_defaults=True)
    return yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=96)


def _posted(door: Door, found: Plan, run_id: RunId | None) -> RunId:
    manifests = found.manifests()
    name = run_id or run_for(Posting(manifests, found), door.desk)
    document = found.model_dump(mode="json", exclude_defaults=True)
    opening = OpenRun(
        actor=door.settings.owner,
        intent=found.objective,
        budget=found.budget,
        plan={"plan": document, "replanning": None},
    )
    posts = (Post(actor=door.settings.owner, manifest=manifest) for manifest in manifests)
    try:
        door.handle(name, opening, *posts)
    except AgentRunError as error:
        msg = f"the plan is written, but could not be posted: {error}"
        raise ContractError(msg) from error
    return name


def _as_json(found: Planned, files: Mapping[str, Manifest], run_id: RunId | None) -> Json:
    whole = found.plan.model_dump(mode="json", exclude_defaults=True) if found.plan else None
    return {
        "plan": whole,
        "files": list(files),
        "run_id": run_id,
        "confidence": found.confidence,
        "open_questions": list(found.open_questions),
        "unsure": list(found.unsure),
    }
