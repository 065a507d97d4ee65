"""The record as the model gives it: the arguments of the tool that ends the work."""

import copy
from collections.abc import Mapping
from typing import Any, Final

from pydantic import JsonValue

from agent_run.contract.payload import payload_faults
from agent_run.contract.record import Record
from agent_run.errors import InvalidDocument
from agent_run.executors.agent.tools import FINAL
from agent_run.executors.handing_over import record_from
from agent_run.executors.presets.record import RECORD_SCHEMA
from agent_run.ports.model import ToolCall, ToolOffer

_SAYS: Final = (
    "End the work with its record. Tell only what you really did. Use status 'blocked' and "
    "'wider_scope' where the task cannot be done within its bounds."
)
_OPTIONAL: Final = frozenset({"next_step", "notes", "wider_scope", "question", "output"})


def final_offer(output_schema: Mapping[str, JsonValue] | None) -> ToolOffer:
    """Return the tool that ends the work; it asks for the task's output where it has one."""
    schema: dict[str, Any] = copy.deepcopy(dict(RECORD_SCHEMA))
    fields: dict[str, Any] = schema["properties"]
    fields["question"] = {"type": "string", "description": "For a person. Usually empty."}
    if output_schema is not None:
        inner = _moved(copy.deepcopy(dict(output_schema)))
        schema |= {"$defs": inner.pop("$defs")} if "$defs" in inner else {}
        fields["output"] = inner
    needed = set(fields) - _OPTIONAL | ({"output"} if output_schema is not None else set())
    schema["required"] = sorted(needed)
    return ToolOffer(name=FINAL, description=_SAYS, parameters=schema)


def record_in(call: ToolCall, output_schema: Mapping[str, JsonValue] | None) -> Record:
    """Return the record that the model gave.

    Raises:
        InvalidDocument: It is not one, or its output breaks the schema; every fault is named.
    """
    if call.fault:
        raise InvalidDocument(call.fault)
    given = {key: value for key, value in call.arguments.items() if value not in ("", [])}
    record = record_from(given)
    if output_schema is not None:
        faults = payload_faults(record.output, output_schema)
        if faults:
            msg = "; ".join(f"output: {fault}" for fault in faults)
            raise InvalidDocument(msg, tuple(faults))
    return record


def _moved(schema: Any) -> Any:
    """Return the schema with references to itself as they are one floor below the root."""
    if isinstance(schema, list):
        return [_moved(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    moved = {key: _moved(value) for key, value in schema.items()}
    if moved.get("$ref") == "#":
        moved["$ref"] = "#/properties/output"
    return moved
