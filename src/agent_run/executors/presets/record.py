"""The record as a coding agent is asked for it, and as it is found in what the agent said.

Numbers have no bounds here: constrained decoders drop them. The caller checks the record again.
"""

import json
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from pydantic import JsonValue

_LIST: Final[JsonValue] = {"type": "array", "items": {"type": "string"}}
_TEXT: Final[JsonValue] = {"type": "string"}
_FIELDS: Final[dict[str, JsonValue]] = {
    "status": {"type": "string", "enum": ["needs_review", "done", "failed", "blocked"]},
    "files_changed": _LIST,
    "commands_run": _LIST,
    "risks": _LIST,
    "next_step": _TEXT,
    "notes": _TEXT,
    "confidence_percent": {"type": "integer", "description": "From 0 to 100."},
    "next_action": {"type": "string", "enum": ["continue", "revise", "escalate"]},
    "wider_scope": {
        "type": "array",
        "items": {"type": "string"},
        "description": "Globs you would need to write but may not. Usually empty.",
    },
}

RECORD_SCHEMA: Final[Mapping[str, JsonValue]] = MappingProxyType(
    {
        "type": "object",
        "properties": _FIELDS,
        "required": list(_FIELDS),
        "additionalProperties": False,
    }
)
"""JSON Schema of a record; every field is required, as strict decoders want it."""

SCHEMA_TEXT: Final = json.dumps(dict(RECORD_SCHEMA))

_FENCED: Final = re.compile(r"^```(?:json)?[ \t]*\n(.*?)^```", re.DOTALL | re.MULTILINE)


def record_in(text: str) -> dict[str, JsonValue] | None:
    """Return the record `text` is, or ends with; `None` where there is none.

    An object counts as a record only where it has a `status`: agents print other JSON too.
    """
    for candidate in _candidates(text):
        found = parsed(candidate)
        if isinstance(found, dict) and isinstance(found.get("status"), str):
            return found
    return None


def parsed(text: str) -> JsonValue:
    """Return the JSON value in `text`, or `None` where it is no JSON that we can keep."""
    try:
        value: JsonValue = json.loads(text, parse_constant=_no_constant)
        # Half a surrogate pair parses, but can be neither stored nor shown.
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return value


def _candidates(text: str) -> Iterator[str]:
    stripped = text.strip()
    if stripped.startswith("{"):
        yield stripped
    yield from reversed(_FENCED.findall(stripped + "\n"))
    yield stripped.rpartition("\n")[2]


def _no_constant(name: str) -> float:
    msg = f"{name} is no JSON"
    raise ValueError(msg)
