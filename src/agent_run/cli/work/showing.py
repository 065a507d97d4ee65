"""The work of `show`: everything about one task."""

import json
from collections.abc import Iterable, Iterator

from agent_run.cli.exits import Exit
from agent_run.cli.speech import Json, Speech
from agent_run.cli.work.door import opened
from agent_run.cli.work.exhibits import Exhibit, demanded
from agent_run.cli.work.wording import dumped, handed, moment, stamp
from agent_run.contract.base import RunId
from agent_run.contract.manifest import Manifest
from agent_run.contract.record import Record
from agent_run.contract.verdict import Verdict
from agent_run.ledger.state import TaskState
from agent_run.ledger.views import spend_of


def show(speech: Speech, *, task: str, whole: Exhibit | None) -> int:
    """Show what was asked, where it stands, what was handed in and what the gates found."""
    with opened(speech) as door:
        run_id, task_id = door.desk.locate(task)
        now = door.desk.run(run_id).tasks[task_id]
        trace_id = door.desk.trace_id(run_id)
        text = demanded(door.desk, now, whole) if whole else ""
    if whole:
        told = {"task_id": task_id, "run_id": run_id, "trace_id": trace_id, whole: text}
        speech.answer(told, text.splitlines())
        return Exit.DONE
    speech.answer(as_json(run_id, now, trace_id=trace_id), lines_of(run_id, now, trace_id))
    return Exit.DONE


def as_json(run_id: RunId, task: TaskState, *, trace_id: str) -> Json:
    """Return everything about a task as one object."""
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
        "needs": sorted(task.unmet),
        "reason": task.reason,
        "note": task.note,
        "question": dumped(task.question),
        "deadline": stamp(task.deadline),
        "record": dumped(task.record),
        "observed": task.observed,
        "verdict": dumped(task.verdict),
        "result": task.result,
        "rollback": task.rollback,
        "applied": task.applied,
        "spent": dumped(task.spent),
        **handed(task),
    }


def lines_of(run_id: RunId, task: TaskState, trace_id: str) -> Iterator[str]:
    """Yield everything about a task, a line each."""
    yield from _fields(
        ("task", task.manifest.task_id),
        ("run", run_id),
        ("trace", trace_id),
        ("status", task.status + (f", {task.reason}" if task.reason else "")),
        ("note", task.note),
        ("question", task.question.text if task.question else ""),
        ("attempt", f"{task.attempt} of {task.granted}"),
        ("claim", "" if task.claim is None else str(task.claim)),
        ("owner", task.owner or ""),
        ("until", moment(task.expires_at)),
        ("spent", spend_of(task.spent)),
    )
    yield from _manifest(task.manifest)
    if task.record is not None:
        yield from _record(task.record)
    last = task.verdict
    for verdict in (*task.returned, *((last,) if last and last not in task.returned else ())):
        yield from _verdict(verdict)
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


def _verdict(verdict: Verdict) -> Iterator[str]:
    yield from _fields(("verdict", verdict.outcome))
    for finding in verdict.findings:
        named = ", ".join((*finding.paths, *finding.commands))
        said = f"{finding.gate} {finding.outcome}: {finding.reason}"
        yield from _fields(("  gate", f"{said} {named}".rstrip()))
        yield from _several("    said", finding.evidence.splitlines())


def _several(name: str, values: Iterable[str]) -> Iterator[str]:
    return _fields(*((name, value) for value in values))


def _fields(*fields: tuple[str, str]) -> Iterator[str]:
    return (f"{name:<11} {value}" for name, value in fields if value)
