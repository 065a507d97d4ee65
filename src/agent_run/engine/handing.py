"""What an accepted task hands to those that wait for it: checked, measured, never cut."""

from dataclasses import dataclass

from pydantic import JsonValue

from agent_run.contract.envelope import UNCOUNTED, Envelope
from agent_run.contract.manifest import Manifest
from agent_run.contract.payload import canonical, fingerprint, payload_faults
from agent_run.contract.record import Record
from agent_run.ledger.commands import Misfit
from agent_run.ledger.state import RunState
from agent_run.ports.meter import Meter


@dataclass(frozen=True, slots=True)
class Handing:
    """Envelopes for the tasks that wait, and which of those tasks cannot use theirs."""

    envelopes: tuple[Envelope, ...] = ()
    misfits: tuple[Misfit, ...] = ()


def handing(
    run: RunState, task_id: str, record: Record, *, trace_id: str, meter: Meter | None
) -> Handing:
    """Return what `task_id` hands over if it is accepted with `record`."""
    waiting = run.dependents.get(task_id, ())
    if record.output is None or not waiting:
        return Handing()
    tokens = None if meter is None else meter.count(canonical(record.output))
    giver = run.tasks[task_id].manifest
    envelopes: list[Envelope] = []
    misfits: list[Misfit] = []
    for target in waiting:
        receiver = run.tasks[target].manifest
        schema = _expected(receiver, task_id)
        described = schema or giver.output_schema
        envelopes.append(
            Envelope(
                source=task_id,
                target=target,
                payload=record.output,
                intent=receiver.intent or giver.intent or run.intent,
                trace_id=trace_id,
                confidence=record.confidence,
                warnings=record.warnings,
                tokens=tokens,
                counter=meter.name if meter else UNCOUNTED,
                schema_id=_schema_id(described, task_id),
                fingerprint=fingerprint(described) if described else "",
            )
        )
        misfit = _misfit(receiver, task_id, record.output, schema, tokens)
        if misfit:
            misfits.append(misfit)
    return Handing(tuple(envelopes), tuple(misfits))


def _expected(receiver: Manifest, source: str) -> dict[str, JsonValue] | None:
    """Return the schema for what `source` hands over: the whole input, or its part of it."""
    schema = receiver.input_schema
    if schema is None or len(receiver.needs) == 1:
        return schema
    parts = schema.get("properties")
    part = parts.get(source) if isinstance(parts, dict) else None
    return part if isinstance(part, dict) else None


def _misfit(
    receiver: Manifest,
    source: str,
    payload: JsonValue,
    schema: dict[str, JsonValue] | None,
    tokens: int | None,
) -> Misfit | None:
    limit = receiver.max_input_tokens
    if limit is not None and tokens is not None and tokens > limit:
        takes = f"{receiver.task_id!r} takes at most {limit}"
        note = f"the payload of {source!r} has {tokens} tokens, and {takes}"
        return Misfit(receiver.task_id, "over_budget", note)
    faults = payload_faults(payload, schema) if schema else []
    if faults:
        note = f"the payload of {source!r} does not fit: " + "; ".join(faults)
        return Misfit(receiver.task_id, "invalid_record", note)
    return None


def _schema_id(schema: dict[str, JsonValue] | None, source: str) -> str:
    named = schema.get("$id") or schema.get("title") if schema else None
    return named if isinstance(named, str) else f"{source}.output"
