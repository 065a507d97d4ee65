"""HTML and plain text to prose. Scripts, styles and code are no prose; block tags part it.

A scanner of tags, not a tree: a draft is read as far as its words go, however broken it is.
"""

import html
import re
from dataclasses import dataclass, field
from typing import Final

from agent_run.executors.content.inline import attributes_of, end_of_silence, tag_name
from agent_run.executors.content.prose import GAP, Kind, Link, Loom, Prose, Segment

_TOKEN: Final = re.compile(
    r"(?P<comment><!--)"
    r"|(?P<other><[!?][^<>]{0,8000}>)"
    r"|(?P<tag></?[A-Za-z][^<>]{0,8000}>)"
    r"|(?P<entity>&(?:\#\d{1,7}|\#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});)"
    r"|(?P<space>\s+)"
)
_BARE_URL: Final = re.compile(r"\bhttps?://[^\s<>\"'`]{1,4000}")
_BLANK_LINE: Final = re.compile(r"(?:\r\n|\r|\n)[ \t]*+(?:\r\n|\r|\n)\s*+")
_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
_INLINE_WORDS: Final = (
    "a abbr b bdi bdo big cite data dfn em font i img ins label mark q s small span "
    "strike strong sub sup time u var wbr"
)
_INLINE: Final = frozenset(_INLINE_WORDS.split())
_KINDS: Final[dict[str, Kind]] = {
    "li": "list",
    "dt": "list",
    "dd": "list",
    "td": "table",
    "th": "table",
    "blockquote": "quote",
}


def read_html(text: str) -> Prose:
    """Return the prose of an HTML `text`."""
    reader = _Reader(text)
    reader.read()
    return Prose(tuple(reader.segments), tuple(reader.links), frozenset(reader.anchors))


def read_plain(text: str) -> Prose:
    """Return the prose of a `text` without markup: paragraphs between blank lines."""
    segments: list[Segment] = []
    links: list[Link] = []
    start = 0
    while start < len(text):
        gap = _BLANK_LINE.search(text, start)
        end = gap.start() if gap else len(text)
        loom = Loom()
        links.extend(_without_urls(text, start, end, loom))
        segment = loom.segment("paragraph")
        if segment is not None:
            segments.append(segment)
        start = gap.end() if gap else len(text)
    return Prose(tuple(segments), tuple(links))


def _without_urls(text: str, start: int, end: int, loom: Loom) -> list[Link]:
    links: list[Link] = []
    at = start
    for found in _BARE_URL.finditer(text, start, end):
        loom.copy(_one_line(text[at : found.start()]), at)
        url = found.group().rstrip(".,;:!?)")
        links.append(Link(url, found.start()))
        loom.put(GAP, found.start())
        at = found.start() + len(url)
    loom.copy(_one_line(text[at:end]), at)
    return links


def _one_line(text: str) -> str:
    return text.replace("\r", " ").replace("\n", " ")


@dataclass(slots=True)
class _Reader:
    text: str
    segments: list[Segment] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    _loom: Loom = field(default_factory=Loom)
    _kind: Kind = "paragraph"
    _level: int = 0
    _unclosed: set[str] = field(default_factory=set)

    def read(self) -> None:
        at = 0
        while (found := _TOKEN.search(self.text, at)) is not None:
            self._loom.copy(self.text[at : found.start()], at)
            match found.lastgroup:
                case "comment":
                    end = self.text.find("-->", found.end())
                    at = end + 3 if end >= 0 else len(self.text)
                case "tag":
                    at = self._tag(found)
                case "space":
                    self._space(found.start())
                    at = found.end()
                case "entity":
                    self._entity(found)
                    at = found.end()
                case _:
                    at = found.end()
        self._loom.copy(self.text[at:], at)
        self._flush()

    def _flush(self) -> None:
        segment = self._loom.segment(self._kind, self._level)
        if segment is not None:
            self.segments.append(segment)
        self._loom = Loom()
        self._kind, self._level = "paragraph", 0

    def _space(self, at: int) -> None:
        if self._loom.length and not self._loom.parts[-1].isspace():
            self._loom.put(" ", at)

    def _entity(self, found: re.Match[str]) -> None:
        char = html.unescape(found.group())
        if len(char) == 1:
            self._loom.put(char, found.start())
        else:
            self._loom.copy(found.group(), found.start())

    def _tag(self, found: re.Match[str]) -> int:
        tag = found.group()
        name = tag_name(tag)
        said = attributes_of(tag)
        self.links.extend(Link(target, found.start() + at) for target, at in said.links)
        self.anchors.update(said.anchors)
        closing = tag.startswith("</")
        silence = (
            None if closing else end_of_silence(name, self.text, found.end(), self._unclosed)
        )
        if silence is not None:
            self._loom.put(GAP, found.start())
            return silence
        if name not in _INLINE and name not in {"code", "kbd", "samp"}:
            self._flush()
            if not closing:
                self._kind, self._level = self._kind_of(name)
        return found.end()

    def _kind_of(self, name: str) -> tuple[Kind, int]:
        if name in _HEADINGS:
            return "heading", _HEADINGS[name]
        return _KINDS.get(name, "paragraph"), 0
