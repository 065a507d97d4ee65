"""Tables for people at a terminal; the only room that knows rich."""

from collections.abc import Mapping, Sequence
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

_STYLES: Final[Mapping[str, str]] = {
    "accepted": "green",
    "ok": "green",
    "claimed": "cyan",
    "submitted": "cyan",
    "asked": "yellow",
    "escalated": "yellow",
    "note": "yellow",
    "failed": "red",
    "missing": "red",
    "cancelled": "dim",
    "skipped": "dim",
    "waiting": "dim",
}


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, no_color: bool) -> None:
    """Draw a table on stdout; cells are taken as they are, never as markup."""
    # `None` leaves it to rich, which knows NO_COLOR and what the terminal can do.
    console = Console(no_color=True if no_color else None, highlight=False)
    drawn = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in head:
        drawn.add_column(name, overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    console.print(drawn)
