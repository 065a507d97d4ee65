"""Faults of a document: where each stands, which key it is about, what was expected.

A reader gathers faults and goes on, so that one look at the report mends the whole file.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final, NoReturn, TypeAlias

from agent_run.errors import InvalidDocument

Place: TypeAlias = tuple[int, int]
"""Line and column, both counted from 1."""

_LONGEST_SHOWN: Final = 60


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with a document, in one sentence."""

    source: str
    """The file as its reader was told it."""
    line: int | None
    column: int | None
    """Counted from 1. `None` means that the fault belongs to no place in the text."""
    key: str
    """Dotted path such as `steps[2].id`. Empty means the whole document."""
    message: str

    def __str__(self) -> str:
        where = self.source if self.line is None else f"{self.source}:{self.line}"
        return ": ".join(part for part in (where, self.key, self.message) if part)


class Broken(ValueError):
    """The parts of a value do not fit together; `faults` names each key and what is wrong."""

    def __init__(self, faults: Iterable[tuple[str, str]]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(f"{key}: {message}" for key, message in self.faults))


@dataclass(slots=True)
class Findings:
    """The faults of one document while it is being read."""

    source: str
    most: int
    """After so many faults the reading stops, and the last fault says so."""
    faults: list[Fault] = field(default_factory=list)

    @property
    def full(self) -> bool:
        """Whether reading stopped because nobody would read on."""
        return len(self.faults) > self.most

    def add(self, place: Place | None, *, key: str, message: str) -> None:
        """Write one fault down.

        Raises:
            InvalidDocument: There are so many that nobody would read on.
        """
        line, column = place or (None, None)
        self.faults.append(Fault(self.source, line, column, key, message))
        if len(self.faults) >= self.most:
            told = f"has {self.most} faults up to here, the rest was not looked at"
            self.faults.append(Fault(self.source, line, column, "", told))
            raise refusal(self.faults)

    def stop(self, place: Place | None, *, key: str, message: str) -> NoReturn:
        """Write down a fault that nothing can be read beyond, and refuse the document."""
        self.add(place, key=key, message=message)
        raise refusal(self.faults)

    def settle(self) -> None:
        """Refuse the document if anything was found."""
        if self.faults:
            raise refusal(self.faults)


def refusal(faults: Iterable[Fault]) -> InvalidDocument:
    """Return the error that carries `faults`, in the order of the text."""
    # Two passes over a text find faults out of order; those without a place come first.
    ordered = tuple(sorted(faults, key=lambda fault: (fault.line or 0, fault.column or 0)))
    return InvalidDocument("\n".join(str(fault) for fault in ordered), ordered)


def in_line(fault: object, number: int) -> Fault:
    """Return a fault of one line, read by itself, as a fault of the file it stands in."""
    if not isinstance(fault, Fault):
        return Fault("", number, None, "", str(fault))
    return replace(fault, line=number)


def shown(value: object) -> str:
    """Return `value` as a message shows it: short, on one line, nothing invisible."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str() if len(value) > _LONGEST_SHOWN:
            return f"{value[:_LONGEST_SHOWN]!r}... ({len(value)} characters)"
        case dict():
            return "a mapping" if value else "an empty mapping"
        case list() | tuple():
            return "a list" if value else "an empty list"
        case _:
            return repr(value)
