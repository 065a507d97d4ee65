"""Reads what coding agents print. All of it is hostile until it has passed through here."""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Final

from pydantic import JsonValue

from agent_run.executors.presets.record import parsed
from agent_run.executors.presets.shapes import Output

_MOST: Final = 10**12
_CONTROL: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
_REASON_LENGTH: Final = 2_000

Event = Mapping[str, JsonValue]
NOTHING: Final[Event] = {}


def events(stdout: str) -> Iterator[Event]:
    """Yield the JSON objects of a stream with one in each line; other lines are no events."""
    # Only the newline ends a line: JSON text may hold the other separators unescaped.
    for line in stdout.split("\n"):
        if line.startswith("{") and isinstance(event := parsed(line), dict):
            yield event


def inner(event: Event, *keys: str) -> Event:
    """Return the object found by following `keys`, or an empty one."""
    for key in keys:
        value = event.get(key)
        if not isinstance(value, dict):
            return NOTHING
        event = value
    return event


def objects(value: JsonValue) -> tuple[Event, ...]:
    """Return the objects in `value` where it is a list."""
    return (
        tuple(one for one in value if isinstance(one, dict)) if isinstance(value, list) else ()
    )


def text(value: JsonValue) -> str:
    """Return `value` where it is text, without what would confuse a terminal or a store."""
    return clean(value) if isinstance(value, str) else ""


def clean(value: str) -> str:
    """Return `value` with control characters and half surrogates made visible."""
    return _CONTROL.sub("\ufffd", value)


def count(value: JsonValue) -> int:
    """Return `value` where it is a believable number of things, else 0."""
    believable = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST
    return int(value) if believable and isinstance(value, int) else 0


def money(value: JsonValue) -> Decimal | None:
    """Return `value` as dollars. 0 is unknown too: no vendor gives work away."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= _MOST:
        return None
    return Decimal(str(value))


def code(value: JsonValue) -> int | None:
    """Return `value` where it is an exit code."""
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and isinstance(value, int) and abs(value) <= _MOST else None


def reason(said: str, output: Output, name: str) -> str:
    """Return one sentence on why an agent did not finish, with what it said about it."""
    how = "was stopped" if output.exit_code is None else f"exited with {output.exit_code}"
    told = " ".join(clean(said or _last_words(output)).split())
    if len(told) > _REASON_LENGTH:
        told = f"{told[:_REASON_LENGTH]}... ({len(told)} characters)"
    return f"{name} {how} before it finished" + (f": {told}" if told else "")


def _last_words(output: Output) -> str:
    for stream in (output.stderr, output.stdout):
        lines = [line for line in stream.split("\n") if line.strip()]
        if lines:
            return lines[-1]
    return ""
