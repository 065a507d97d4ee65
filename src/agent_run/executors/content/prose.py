"""The words of a draft, apart from its markup, each with its place in the source.

Checkers read segments and never the source, so that no rule fires on code, a URL or a tag.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

import regex

Kind: TypeAlias = Literal["heading", "paragraph", "list", "table", "quote"]
Span: TypeAlias = tuple[int, int]
"""Start and end offset, the end not included."""

GAP: Final = "\ufffc"
"""Stands in a segment where code or a URL was taken out: no word, no space."""
_SENTENCE_END: Final = regex.compile(r"[.!?\u2026]+[\"'\u2019\u201d)\]]*+(?=\s)")
_ABBREVIATIONS_WORDS: Final = (
    "approx cf co corp dept dr e.g ed eds eg est etc fig i.e ie inc jr ltd mr mrs ms "
    "p pp prof rev sr st vol vs"
)
_ABBREVIATIONS: Final = frozenset(_ABBREVIATIONS_WORDS.split())


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of prose that belongs together: one heading, paragraph, list item or cell."""

    kind: Kind
    level: int
    """1 to 6 for a heading, else 0."""
    text: str
    runs: tuple[Span, ...]
    """Offset in `text` and offset in the source of each run that was copied unchanged."""

    def origin(self, at: int) -> int:
        """Return the place in the source of the character at `at`."""
        index = bisect_right(self.runs, at, key=lambda run: run[0]) - 1
        here, there = self.runs[max(index, 0)]
        return there + at - here

    def sentences(self) -> Iterator[Span]:
        """Yield where each sentence starts and ends."""
        start = 0
        for found in _SENTENCE_END.finditer(self.text):
            if found.group()[0] == "." and _abbreviated(self.text, found.start()):
                continue
            if self.text[start : found.end()].strip():
                yield (_skip_space(self.text, start), found.end())
            start = found.end()
        if self.text[start:].strip():
            yield (_skip_space(self.text, start), len(self.text.rstrip()))


@dataclass(frozen=True, slots=True)
class Link:
    """Something the draft points at."""

    target: str
    start: int
    """Offset in the source."""


@dataclass(frozen=True, slots=True)
class Prose:
    """All segments, links and anchors of one draft, in the order of the source."""

    segments: tuple[Segment, ...] = ()
    links: tuple[Link, ...] = ()
    anchors: frozenset[str] = frozenset()


@dataclass(slots=True)
class Loom:
    """Weaves a text from pieces of a source and remembers where each came from."""

    parts: list[str] = field(default_factory=list)
    runs: list[Span] = field(default_factory=list)
    length: int = 0

    def copy(self, text: str, source: int) -> None:
        """Add `text`, which stands at `source` letter by letter."""
        if not text:
            return
        self.runs.append((self.length, source))
        self.parts.append(text)
        self.length += len(text)

    def put(self, char: str, source: int) -> None:
        """Add one `char` that stands for what begins at `source`."""
        self.copy(char[:1], source)

    def segment(self, kind: Kind, level: int = 0) -> Segment | None:
        """Return what was woven, or None when it holds no word."""
        text = "".join(self.parts)
        if not text.strip(GAP + " \t\r\n\f\v"):
            return None
        return Segment(kind, level, text, tuple(self.runs))


def _abbreviated(text: str, dot: int) -> bool:
    word = text[max(0, dot - 8) : dot].split()[-1:] or [""]
    bare = word[0].lstrip("([\"'\u2018\u201c").casefold()
    return bare in _ABBREVIATIONS or (len(bare) == 1 and bare.isalpha())


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at
