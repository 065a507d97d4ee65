"""The waterfall: strips of time as bars of text, each below what it belongs to."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from agent_run.ledger.strips import Strip

_BAR: Final = "█"
_MOMENT: Final = "▏"
_GOES_ON: Final = "▒"
_INDENT: Final = "  "
_CUT: Final = "…"
_NARROWEST: Final = 12
"""Fewer cells than this say nothing, neither as a bar nor as a name."""
_WIDEST: Final = 100
_VISIBLE: Final = 0.5
"""What lasts for less than this part of a cell is drawn as a moment."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the waterfall."""

    strip: Strip
    depth: int
    offset: timedelta
    """From the beginning of all that is shown."""
    lasted: timedelta
    """So far, if it still goes on."""


def rows(found: Sequence[Strip], *, task_id: str | None = None) -> list[Row]:
    """Return the strips as a tree, of one task or of the whole run."""
    if task_id is not None:
        found = [strip for strip in found if strip.task_id == task_id]
    if not found:
        return []
    begin = min(strip.start for strip in found)
    now = max(strip.end or strip.start for strip in found)
    return list(_tree(found, begin, now))


def drawn(
    found: Sequence[Row], *, width: int = 40, longest: int | None = None
) -> Iterator[tuple[str, str, str, str]]:
    """Yield name, bar, duration and outcome of each row.

    A name beyond `longest` loses its middle, and shows it; `None` means that none does.
    """
    whole = max((row.offset + row.lasted for row in found), default=timedelta())
    for row in found:
        name = _name(row)
        yield (
            name if longest is None else _shortened(name, longest),
            _bar(row, whole, width),
            _took(row),
            row.strip.outcome,
        )


def fitted(found: Sequence[Row], room: int) -> tuple[int, int]:
    """Return how wide bars and names may be, if all four columns have `room` together."""
    left = room - max((len(_took(row)) + len(row.strip.outcome) for row in found), default=0)
    longest = max((len(_name(row)) for row in found), default=0)
    width = min(_WIDEST, max(_NARROWEST, left - longest))
    return width, max(_NARROWEST, left - width)


def shown(lasted: timedelta) -> str:
    """Return a length of time in the unit a person would use."""
    seconds = lasted.total_seconds()
    if seconds < 1:
        return f"{seconds * 1_000:.0f}ms"
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f}{unit}"
    return f"{seconds:.1f}s"


def _tree(found: Iterable[Strip], begin: datetime, now: datetime) -> Iterator[Row]:
    strips = list(found)
    known = {strip.key for strip in strips}
    children: dict[str | None, list[Strip]] = {}
    for strip in strips:
        parent = strip.parent if strip.parent in known else None
        children.setdefault(parent, []).append(strip)
    # A stack of our own: a plan may be deeper than Python's.
    stack = [(strip, 0) for strip in reversed(children.get(None, []))]
    while stack:
        strip, depth = stack.pop()
        yield Row(strip, depth, strip.start - begin, (strip.end or now) - strip.start)
        inside = sorted(children.get(strip.key, ()), key=lambda one: one.start)
        stack += [(one, depth + 1) for one in reversed(inside)]


def _name(row: Row) -> str:
    strip = row.strip
    kind: str = strip.kind
    if kind == "call":
        kind = "chat" if strip.details.get("operation") == "chat" else "tool"
    return _INDENT * row.depth + f"{kind} {strip.name}"


def _took(row: Row) -> str:
    return shown(row.lasted) + ("" if row.strip.end else "+")


def _shortened(name: str, longest: int) -> str:
    # The end of a name tells more than its middle: names of a family begin alike.
    if len(name) <= longest:
        return name
    end = (longest - 1) // 3
    return name[: longest - 1 - end] + _CUT + name[len(name) - end :]


def _bar(row: Row, whole: timedelta, width: int) -> str:
    if not whole:
        return _MOMENT.ljust(width)
    left = min(width - 1, int(row.offset / whole * width))
    right = min(width, round((row.offset + row.lasted) / whole * width))
    if right <= left or row.lasted / whole * width < _VISIBLE:
        return (" " * left + _MOMENT).ljust(width)
    mark = _BAR if row.strip.end else _GOES_ON
    return (" " * left + mark * (right - left)).ljust(width)
