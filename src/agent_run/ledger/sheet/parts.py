"""The parts of a page: its frame, tables, tiles, pills, and the words of strangers.

What a page says may have been chosen by a stranger. `Markup` can only be made from text by
`words` and `prose`, which escape it, or on purpose.
"""

import base64
import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final, Literal, NewType, TypeAlias

from agent_run.ledger.sheet.style import STYLE

Markup = NewType("Markup", str)
Mood: TypeAlias = Literal["good", "bad", "warn", ""]

_JOINERS: Final = "\u200c\u200d"
"""Emoji and several scripts are not readable without these two."""
_NOTHING: Final = "&ndash;"
_LONGEST_TITLE: Final = 200
_LONG: Final = 20
"""A table of more rows scrolls by itself."""
_BRAND: Final = (
    '<header class="brand"><svg viewBox="0 0 20 20" aria-hidden="true"><rect width="20" '
    'height="20" rx="5"/><path d="M5 10h6m-3-3 3 3-3 3M14 6v8"/></svg>agent-run</header>'
)


@dataclass(frozen=True, slots=True)
class Tile:
    """One number that stands for much."""

    name: str
    value: str
    basis: str = ""
    """What the number was counted from."""
    mood: Mood = ""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: what it shows, its columns, and rows of as many cells."""

    anchor: str
    """An id that the page has once."""
    caption: Markup
    head: Sequence[str]
    rows: Sequence[Sequence[Markup]]
    numbers: Collection[int] = ()
    """The columns that hold numbers."""


def whole_page(title: str, body: Iterable[Markup]) -> str:
    """Return a page that fetches nothing and runs nothing, and tells the browser so."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    inside = "\n".join(body)
    named = words(title, longest=_LONGEST_TITLE)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{named}</title>\n<style>{STYLE}</style></head>\n"
        f"<body>{_BRAND}\n<main>\n{inside}\n</main></body></html>\n"
    )


def words(text: str, *, longest: int | None = None) -> Markup:
    """Return text of strangers as one line of markup that can be seen and does nothing.

    A text over `longest` is cut, and says so; `None` cuts nothing.
    """
    told = text
    if longest is not None and len(text) > longest:
        told = f"{text[:longest]}… ({len(text):,} characters)"
    return Markup(escape(_seen(told)))


def prose(text: str) -> Markup:
    """Return text of strangers with its line ends."""
    return Markup("\n".join(words(line) for line in text.strip().splitlines()))


def pill(text: str, mood: Mood = "", *, to: str = "") -> Markup:
    """Return a word that stands out; with `to`, a link to that id."""
    tag, where = ("a", f' href="#{to}"') if to else ("span", "")
    return Markup(f'<{tag} class="{f"pill {mood}".strip()}"{where}>{words(text)}</{tag}>')


def tiles(these: Iterable[Tile]) -> Markup:
    """Return numbers side by side."""
    items = "\n".join(
        f'<li class="{f"tile {one.mood}".strip()}"><b>{words(one.value)}</b>'
        f"<span>{words(one.name)}</span>"
        + (f"<small>{words(one.basis)}</small>" if one.basis else "")
        + "</li>"
        for one in these
    )
    return Markup(f'<ul class="tiles">\n{items}\n</ul>')


def table(grid: Grid) -> Markup:
    """Return a table that scrolls by itself where it is too wide or too long."""
    right = dict.fromkeys(grid.numbers, ' class="n"')
    head = "".join(
        f'<th scope="col"{right.get(place, "")}>{words(cell)}</th>'
        for place, cell in enumerate(grid.head)
    )
    rows = "\n".join(f"<tr>{_row(row, right)}</tr>" for row in grid.rows)
    kind = "scroll long" if len(grid.rows) > _LONG else "scroll"
    return Markup(
        f'<div class="{kind}" role="region" aria-labelledby="{grid.anchor}" tabindex="0">'
        f'<table><caption id="{grid.anchor}">{grid.caption}</caption>\n'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>"
    )


def _row(cells: Sequence[Markup], right: dict[int, str]) -> str:
    first = f'<th scope="row"{right.get(0, "")}>{cells[0] or "&ndash;"}</th>'
    rest = (
        f"<td{right.get(place, '')}>{cell or '&ndash;'}</td>"
        for place, cell in enumerate(cells[1:], start=1)
    )
    return first + "".join(rest)


def _seen(text: str) -> str:
    """Return text with everything that cannot be seen written as an escape."""
    if text.isprintable():
        return text
    return "".join(
        char
        if char.isprintable() or char in _JOINERS
        else char.encode("unicode_escape").decode()
        for char in text
    )
