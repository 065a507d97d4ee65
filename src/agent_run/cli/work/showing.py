"""The work of `show`: everything about one task."""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pydantic import JsonValue

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Json, Speech
from agent_run.cli.work.door import opened
from agent_run.cli.work.exhibits import Exhibit, demanded
from agent_run.cli.work.judgements import Judgement, judged_json, judgements
from agent_run.cli.work.wording import dumped, handed
from agent_run.contract.base import RunId
from agent_run.contract.manifest import Manifest
from agent_run.contract.record import Record
from agent_run.ledger.inbox import about, in_executors_words
from agent_run.ledger.state import MAY_LAPSE, Status, TaskState
from agent_run.ledger.views import spend_of
from agent_run.ledger.words import MEANINGS, moment, stamp

_EXHIBITS: Final[tuple[Exhibit, ...]] = ("diff", "transcript")


def show(speech: Speech, *, task: str, diff: bool, transcript: bool) -> int:
    """Show what was asked, where it stands, what was handed in and what the gates found."""
    with opened(speech) as door:
        run_id, task_id = door.desk.locate(task)
        now = door.desk.run(run_id).tasks[task_id]
        trace_id = door.desk.trace_id(run_id)
        asked = zip(_EXHIBITS, (diff, transcript), strict=True)
        wanted = [which for which, is_asked in asked if is_asked]
        found = demanded(door.desk, now, wanted) if wanted else {}
        judged = judgements(door.desk, run_id, task_id)
    if found:
        shown: Json = {"task_id": task_id, "run_id": run_id, "trace_id": trace_id}
        speech.answer({**shown, **found}, _exhibited(found))
        for which in (one for one, text in found.items() if not text):
            speech.warn(f"task {task_id!r} has no {which}")
        return Exit.DONE
    told = as_json(run_id, now, trace_id=trace_id) | judged_json(judged)
    speech.answer(told, lines_of(run_id, now, trace_id, judged))
    return Exit.DONE


def _exhibited(found: dict[str, str]) -> Iterator[str]:
    """Yield what was found; where it is more than one thing, each under its name."""
    for which, text in found.items():
        if len(found) > 1 and text:
            yield f"== {which}"
        yield from text.splitlines()


def as_json(run_id: RunId, task: TaskState, *, trace_id: str) -> dict[str, JsonValue]:
    """Return everything about a task as one object."""
    waits = task.status in MAY_LAPSE
    return {
        "task_id": task.manifest.task_id,
        "run_id": run_id,
        "trace_id": trace_id,
        "status": task.status.value,
        "attempt": task.attempt,
        "attempts": task.granted,
        "claim": task.claim,
        "owner": task.owner,
        "expires_at": stamp(task.expires_at),
        "needs": [*sorted(task.unmet)],
        "reason": task.reason,
        "note": task.note,
        "question": dumped(task.question),
        "deadline": stamp(task.deadline if waits else None),
        "overdue": waits and task.overdue,
        "about": about(task.manifest),
        "record": dumped(task.record),
        "observed": task.observed,
        "verdict": dumped(task.verdict),
        "result": task.result,
        "rollback": task.rollback,
        "applied": task.applied,
        "spent": dumped(task.spent),
        **handed(task),
    }


def lines_of(
    run_id: RunId, task: TaskState, trace_id: str, judged: Sequence[Judgement]
) -> Iterator[str]:
    """Yield everything about a task, a line each."""
    yield from _fields(
        ("task", task.manifest.task_id),
        ("run", run_id),
        ("trace", trace_id),
        ("about", about(task.manifest)),
        ("status", _status(task)),
        ("why" if task.status is Status.ESCALATED else "note", _note(task)),
        ("question", task.question.text if task.question else ""),
        ("attempt", f"{task.attempt} of {task.granted}"),
        ("claim", "" if task.claim is None else str(task.claim)),
        ("owner", task.owner or ""),
        ("until", moment(task.expires_at)),
        ("answer by", _deadline(task)),
        ("spent", spend_of(task.spent)),
    )
    if task.status is Status.ASKED and task.question:
        yield from _several("asks for", task.question.wider_scope)
    yield from _manifest(task.manifest)
    if task.record is not None:
        yield from _record(task.record)
    for judgement in judged:
        yield from _verdict(judgement)
    if task.result is not None:
        yield from _fields(("result", json.dumps(task.result)), ("rollback", task.rollback))


def _manifest(manifest: Manifest) -> Iterator[str]:
    yield from _several("objective", manifest.objective.splitlines())
    yield from _several("allowed", manifest.allowed_paths)
    yield from _several("protected", manifest.protected_paths)
    yield from _several("constraint", manifest.constraints)
    yield from _several("verify", (check.run for check in manifest.verification))
    yield from _several("note", manifest.handoff_notes)
    yield from _several("needs", manifest.needs)
    yield from _fields(("executor", manifest.executor or ""))


def _record(record: Record) -> Iterator[str]:
    yield from _fields(("record", record.status))
    yield from _several("  changed", record.files_changed)
    yield from _several("  ran", record.commands_run)
    yield from _several("  risk", record.risks)
    yield from _several("  warning", record.warnings)
    yield from _fields(("  next", record.next_step), ("  error", record.error))


def _status(task: TaskState) -> str:
    meaning = f": {MEANINGS[task.reason]}" if task.reason else ""
    returned = ", returned" if task.status is Status.READY and task.returned else ""
    return f"{task.status}{returned}{meaning}"


def _note(task: TaskState) -> str:
    """Return the note; what the executor said stands in quotes, for it is only its word."""
    theirs = task.status is Status.ESCALATED and in_executors_words(task)
    return f'"{task.note}"' if theirs else task.note


def _deadline(task: TaskState) -> str:
    if task.status not in MAY_LAPSE or task.deadline is None:
        return ""
    return moment(task.deadline) + (", OVERDUE" if task.overdue else "")


def _verdict(judgement: Judgement) -> Iterator[str]:
    yield from _fields(("verdict", judgement.sentence()))
    for finding in judgement.verdict.findings:
        named = ", ".join((*finding.paths, *finding.commands))
        said = f"{finding.gate} {finding.outcome}: {finding.reason}"
        yield from _fields(("  gate", f"{said} {named}".rstrip()))
        yield from _several("    said", finding.evidence.splitlines())


def _several(name: str, values: Iterable[str]) -> Iterator[str]:
    return _fields(*((name, value) for value in values))


def _fields(*fields: tuple[str, str]) -> Iterator[str]:
    return (f"{name:<11} {value}" for name, value in fields if value)
