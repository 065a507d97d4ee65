"""The ground every contract stands on: frozen models, names, durations.

A contract is complete, checked once at the door, and never changed afterwards.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Annotated, ClassVar, Final, Self, TypeAlias, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PlainSerializer,
    Strict,
    StringConstraints,
    WithJsonSchema,
)

NAME_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*$"
_LONGEST_NAME: Final = 100
_DURATION: Final = re.compile(
    r"(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m)?(?:(\d{1,9}(?:\.\d{1,6})?)s)?", re.ASCII
)
_LONGEST_DURATION: Final = timedelta(days=365)
DURATION_BOUNDS: Final = "more than 0s and at most 365d"
_UNITS: Final = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def _usable_as_ref(name: str) -> str:
    # Names become git refs and folder names, where this ending is reserved.
    if name.endswith(".lock"):
        msg = f"name {name!r} ends in '.lock', which git reserves"
        raise ValueError(msg)
    return name


Name: TypeAlias = Annotated[
    str,
    StringConstraints(pattern=NAME_PATTERN, max_length=_LONGEST_NAME),
    AfterValidator(_usable_as_ref),
]
"""Letters, digits, `-` and `_`, in parts joined by single dots."""


def is_name(text: str) -> bool:
    """Say whether `text` can name a run or a task."""
    fits = re.fullmatch(NAME_PATTERN, text) is not None and not text.endswith(".lock")
    return fits and len(text) <= _LONGEST_NAME


RunId: TypeAlias = Name
TaskId: TypeAlias = Name
Line: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=4_000)]
Text: TypeAlias = Annotated[str, StringConstraints(max_length=200_000)]
Whole: TypeAlias = Annotated[int, Strict()]
"""A whole number; neither `"3"` nor `3.0` nor `true` is one."""
Flag: TypeAlias = Annotated[bool, Strict()]
"""`true` or `false`; neither `1` nor `"yes"` is one."""
Share: TypeAlias = Annotated[float, Strict(), Field(ge=0, le=1, allow_inf_nan=False)]
"""A number from 0 to 1."""
Digest: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


def parse_duration(value: object) -> object:
    """Return the `timedelta` that `20m`, `1h30m`, `45s` or a number of seconds stands for."""
    match value:
        case timedelta():
            return value
        case int() | float() if not isinstance(value, bool):
            return _seconds(value)
        case str() if value and (found := _DURATION.fullmatch(value)):
            amounts = zip(found.groups(), (seconds for _, seconds in _UNITS), strict=True)
            return _seconds(sum(float(n) * seconds for n, seconds in amounts if n))
        case str() | bool():
            msg = f"duration {value!r} is not like '20m', '1h30m' or '45s'"
            raise ValueError(msg)
        case _:
            return value


def _seconds(amount: float) -> timedelta:
    if not 0 <= amount <= _LONGEST_DURATION.total_seconds():
        msg = f"duration of {amount:g} seconds is not {DURATION_BOUNDS}"
        raise ValueError(msg)
    return timedelta(seconds=amount)


def format_duration(value: timedelta) -> str:
    """Return the shortest form that `parse_duration` reads back: `20m`, `1h30m`, `0s`."""
    left = value.total_seconds()
    parts: list[str] = []
    for unit, seconds in _UNITS[:-1]:
        whole, left = divmod(left, seconds)
        if whole:
            parts.append(f"{int(whole)}{unit}")
    if left or not parts:
        parts.append(f"{left:.3f}".rstrip("0").rstrip(".") + "s")
    return "".join(parts)


def _sensible(value: timedelta) -> timedelta:
    if not timedelta() < value <= _LONGEST_DURATION:
        msg = f"duration {format_duration(value)} is not {DURATION_BOUNDS}"
        raise ValueError(msg)
    return value


Duration: TypeAlias = Annotated[
    timedelta,
    BeforeValidator(parse_duration),
    AfterValidator(_sensible),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "number"}]}),
]
"""A length of time, written `20m`, `1h30m`, `45s`, or as a number of seconds."""


def as_tuple(value: object) -> object:
    """Let one string stand where a list of strings is expected."""
    return (value,) if isinstance(value, str) else value


Lines: TypeAlias = Annotated[
    tuple[Line, ...],
    BeforeValidator(as_tuple, json_schema_input_type=Line | tuple[Line, ...]),
]


class Contract(BaseModel):
    """A value agreed between two parties: complete, checked, and never changed."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="null")

    OTHER_NAMES: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Field -> keys that are read in its place; a fault is told by the key that is there."""

    @classmethod
    def load(cls, file: str | Path) -> Self:
        """Return what the YAML or JSON document in `file` says.

        Raises:
            InvalidDocument: It does not; every fault is named with its line.
        """
        # The reader is loaded when there is something to read: most commands have nothing.
        reading = import_module("agent_run.contract.reading")
        loaded: Self = reading.load_file(cls, Path(file))
        return loaded


ItemT = TypeVar("ItemT")


def first_repeated(items: Iterable[ItemT]) -> ItemT | None:
    """Return the first item that stands twice, or None."""
    seen: set[ItemT] = set()
    for item in items:
        if item in seen:
            return item
        seen.add(item)
    return None


__all__ = [
    "DURATION_BOUNDS",
    "NAME_PATTERN",
    "Contract",
    "Digest",
    "Duration",
    "Flag",
    "JsonValue",
    "Line",
    "Lines",
    "Name",
    "RunId",
    "Share",
    "TaskId",
    "Text",
    "Whole",
    "as_tuple",
    "first_repeated",
    "format_duration",
    "is_name",
    "parse_duration",
]
