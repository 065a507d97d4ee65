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


def drawn(found: Sequence[Row], *, width: int = 40) -> Iterator[tuple[str, str, str, str]]:
    """Yield name, bar, duration and outcome of each row."""
    whole = max((row.offset + row.lasted for row in found), default=timedelta())
    for row in found:
        yield (
            _INDENT * row.depth + f"{row.strip.kind} {row.strip.name}",
            _bar(row, whole, width),
            shown(row.lasted) + ("" if row.strip.end else "+"),
            row.strip.outcome,
        )


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


def _bar(row: Row, whole: timedelta, width: int) -> str:
    if not whole:
        return _MOMENT.ljust(width)
    left = min(width - 1, int(row.offset / whole * width))
    right = min(width, round((row.offset + row.lasted) / whole * width))
    if right <= left:
        return (" " * left + _MOMENT).ljust(width)
    mark = _BAR if row.strip.end else _GOES_ON
    return (" " * left + mark * (right - left)).ljust(width)
