"""From what was seen to what the ledger keeps: the observation, and the record if none came."""

from collections.abc import Mapping
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from pydantic import JsonValue

from agent_run.contract.base import TaskId
from agent_run.contract.manifest import Manifest
from agent_run.contract.payload import payload_faults
from agent_run.contract.record import Record
from agent_run.ports.executor import Work
from agent_run.ports.fence import FenceReport
from agent_run.ports.workspace import Base, Candidate

_MOST_NAMED: Final = 100


def observation(
    work: Work, candidate: Candidate | None, *, executor: str, kept: Mapping[str, str]
) -> dict[str, JsonValue]:
    """Return what the worker saw, as a page can hold it.

    `kept` are the digests of transcript and diff among the blobs.
    """
    seen = work.seen
    changes = candidate.changes if candidate else ()
    return {
        "executor": executor,
        "files_changed": [change.path for change in changes],
        "commands_run": None if seen.commands_run is None else list(seen.commands_run),
        "exit_code": seen.exit_code,
        "ended": seen.ended,
        "elapsed_ms": seen.elapsed_ms,
        "error": seen.error,
        "invalid_record": work.invalid,
        "record_built": work.record is None or bool(work.invalid),
        "tokens_used": seen.tokens_used,
        "requests_made": seen.requests_made,
        "cost_usd": None if seen.cost_usd is None else str(seen.cost_usd),
        "model": seen.model,
        "refused_hosts": list(seen.refused_hosts),
        "tree": candidate.tree if candidate else None,
        "dropped": _some(candidate.dropped) if candidate else [],
        "fence": fence_summary(seen.fence),
        **kept,
    }


def _some(names: tuple[str, ...]) -> list[JsonValue]:
    more = len(names) - _MOST_NAMED
    return [*names[:_MOST_NAMED], *([f"and {more} more"] if more > 0 else [])]


def fence_summary(report: FenceReport | None) -> JsonValue:
    """Return what held the executor, short enough for every record."""
    if report is None:
        return None
    return {"kind": report.kind, "abi": report.abi, "lacks": list(report.lacks)}


def settled_record(work: Work, candidate: Candidate | None, task_id: TaskId) -> Record:
    """Return the executor's record, or one built from what was observed."""
    seen = work.seen
    given = work.record
    if given is None or work.invalid:
        return _built(work, candidate, task_id)
    spent = {
        "tokens_used": max(given.tokens_used, seen.tokens_used),
        "requests_made": max(given.requests_made, seen.requests_made),
        "elapsed_ms": max(given.elapsed_ms, seen.elapsed_ms),
        "cost_usd": _dearer(given.cost_usd, seen.cost_usd),
    }
    # Only we may say that a record was built from what was seen.
    return given.model_copy(update={"task_id": task_id, "observed_only": False, **spent})


def base_as_json(base: Base) -> dict[str, JsonValue]:
    """Return the base as a note can hold it."""
    plain: dict[str, Any] = asdict(base)
    return {
        **plain,
        "root": str(base.root),
        "carried": list(base.carried),
        "notes": list(base.notes),
    }


def base_from_json(value: Mapping[str, Any]) -> Base:
    """Return the base that a note holds."""
    return Base(
        commit=value["commit"],
        tree=value["tree"],
        root=Path(value["root"]),
        prefix=value["prefix"],
        carried=tuple(value["carried"]),
        notes=tuple(value["notes"]),
    )


def _built(work: Work, candidate: Candidate | None, task_id: TaskId) -> Record:
    seen = work.seen
    said = "the executor gave no record; this one is built from what was observed"
    if work.invalid:
        said = "the executor's record is not valid; this one is built from what was observed"
    return Record(
        task_id=task_id,
        status="failed" if seen.error else "needs_review",
        files_changed=tuple(change.path for change in candidate.changes) if candidate else (),
        commands_run=seen.commands_run or (),
        notes=said,
        error=seen.error,
        tokens_used=seen.tokens_used,
        requests_made=seen.requests_made,
        cost_usd=seen.cost_usd,
        elapsed_ms=seen.elapsed_ms,
        observed_only=True,
    )


def invalid_because(work: Work, manifest: Manifest) -> str:
    """Return why the record that was given cannot count, if it cannot.

    An output that breaks its own schema is found here, before anything is written.
    """
    record = work.record
    if record is None or work.invalid:
        return work.invalid
    if record.task_id not in (None, manifest.task_id):
        return f"the record is about task {record.task_id!r}, expected {manifest.task_id!r}"
    if manifest.output_schema is None:
        return ""
    faults = payload_faults(record.output, manifest.output_schema)
    return "; ".join(f"output {fault}" for fault in faults)


def _dearer(one: Decimal | None, other: Decimal | None) -> Decimal | None:
    known = [cost for cost in (one, other) if cost is not None]
    return max(known, default=None)
