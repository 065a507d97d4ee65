"""Markdown inside one block: links out, code out, emphasis off, every word in its place.

One pass from left to right; every pattern stops at the character that could start it again,
so that the work stays linear however the text was made.
"""

import html
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from agent_run.executors.content.prose import GAP, Link, Loom, Span

_DEST: Final = (
    r"\(\s*+(?P<dest><[^<>\n]{0,4000}>|[^\s()]{0,4000}+(?:\([^\s()]{0,1000}\)[^\s()]{0,1000}+)*+)"
    r"(?:\s++(?:\"[^\"]{0,1000}\"|'[^']{0,1000}'|\([^()]{0,1000}\)))?+\s*+\)"
)
_TOKEN: Final = re.compile(
    r"(?P<escape>\\[!-/:-@\[-`{-~])"
    r"|(?P<code>`+)"
    r"|(?P<comment><!--)"
    r"|(?P<auto><(?:https?|ftp|mailto):[^\s<>]{0,4000}>)"
    r"|(?P<tag></?[A-Za-z][^<>]{0,8000}>)"
    r"|(?P<bare>\bhttps?://[^\s<>\"`\]|]{1,4000})"
    r"|(?P<open>!?\[)"
    rf"|(?P<close>\](?:{_DEST}|\[[^\[\]]{{0,999}}\])?)"
    r"|(?P<entity>&(?:\#\d{1,7}|\#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});)"
    r"|(?P<mark>\*+|~~|(?<![^\W_])_+|_+(?![^\W_]))"
)
_TICKS: Final = re.compile(r"`+")
_ATTRIBUTE: Final = re.compile(
    r"\s(href|src|id|name)\s{0,9}=\s{0,9}(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE
)
_TAG_NAME: Final = re.compile(r"</?([A-Za-z][A-Za-z0-9-]*)")
_SILENT: Final = {
    name: re.compile(rf"</{name}\b[^<>]{{0,100}}>", re.IGNORECASE)
    for name in ("script", "style", "code", "kbd", "samp", "pre", "textarea", "template", "svg")
}
"""Elements whose content is no prose, with the end of each."""
_SWALLOWS: Final = frozenset({"script", "style", "textarea", "template"})

Readers: TypeAlias = dict[str, Callable[[re.Match[str]], int]]


@dataclass(frozen=True, slots=True)
class Raw:
    """The text of one block as its lines spell it, and where each line stood."""

    text: str
    runs: Sequence[Span]

    def origin(self, at: int) -> int:
        index = max(0, bisect_right(self.runs, at, key=lambda run: run[0]) - 1)
        here, there = self.runs[index]
        return there + at - here


@dataclass(frozen=True, slots=True)
class Attributes:
    """What a tag names: where it points and which anchors it sets."""

    links: tuple[tuple[str, int], ...]
    """Target and its offset inside the tag."""
    anchors: tuple[str, ...]


def attributes_of(tag: str) -> Attributes:
    """Return the targets and anchors that `tag` carries."""
    links: list[tuple[str, int]] = []
    anchors: list[str] = []
    for found in _ATTRIBUTE.finditer(tag):
        group = next(index for index in (2, 3, 4) if found.group(index) is not None)
        value = html.unescape(found.group(group)).strip()
        if found.group(1).lower() in {"href", "src"}:
            links.append((value, found.start(group)))
        elif value:
            anchors.append(value)
    return Attributes(tuple(links), tuple(anchors))


def tag_name(tag: str) -> str:
    """Return the lower-case name of `tag`."""
    found = _TAG_NAME.match(tag)
    return found.group(1).lower() if found else ""


def end_of_silence(name: str, text: str, start: int, unclosed: set[str]) -> int | None:
    """Return where the element `name` that holds no prose ends; None: it holds prose.

    What is never closed is added to `unclosed`, so that nobody looks for its end again.
    """
    ending = _SILENT.get(name)
    if ending is None or name in unclosed:
        return None
    found = ending.search(text, start)
    if found is not None:
        return found.end()
    # A browser swallows the rest after an open script, but shows what follows an open <code>.
    unclosed.add(name)
    return len(text) if name in _SWALLOWS else None


@dataclass(slots=True)
class Inline:
    """Reads one block; afterwards holds its words, links and anchors."""

    raw: Raw
    keep_code: bool = False
    """Code counts as words: so headings become anchors."""
    loom: Loom = field(default_factory=Loom)
    links: list[Link] = field(default_factory=list)
    anchors: list[str] = field(default_factory=list)
    _ticks: dict[int, list[int]] = field(default_factory=dict)
    _unclosed: set[str] = field(default_factory=set)

    def read(self) -> "Inline":
        """Read the block to its end."""
        text = self.raw.text
        for ticks in _TICKS.finditer(text):
            self._ticks.setdefault(len(ticks.group()), []).append(ticks.start())
        dropped = self._dropped_brackets()
        readers: Readers = {
            "escape": self._escape,
            "code": self._code,
            "comment": self._comment,
            "auto": self._auto,
            "tag": self._tag,
            "bare": self._bare,
            "entity": self._entity,
            "open": lambda found: self._bracket(found, dropped),
        }
        at = 0
        while (found := _TOKEN.search(text, at)) is not None:
            self._copy(at, found.start())
            at = self._token(found, readers, dropped)
        self._copy(at, len(text))
        return self

    def _dropped_brackets(self) -> frozenset[int]:
        # Only brackets that belong to a link are markup; "[sic]" stays as it is.
        dropped: set[int] = set()
        opened: list[int] = []
        at = 0
        while (found := _TOKEN.search(self.raw.text, at)) is not None:
            at = found.end()
            if found.lastgroup == "code":
                at = self._end_of_code(found)
            elif found.lastgroup == "open":
                opened.append(found.start())
            elif found["close"] is not None and opened:
                start = opened.pop()
                if len(found["close"]) > 1:
                    dropped.update((start, found.start()))
        return frozenset(dropped)

    def _token(self, found: re.Match[str], readers: Readers, dropped: frozenset[int]) -> int:
        if found["close"] is not None:
            return self._close(found, dropped)
        reader = readers.get(found.lastgroup or "")
        return found.end() if reader is None else reader(found)

    def _bracket(self, found: re.Match[str], dropped: frozenset[int]) -> int:
        if found.start() not in dropped:
            self._copy(found.start(), found.end())
        return found.end()

    def _copy(self, start: int, end: int) -> None:
        text, runs = self.raw.text, self.raw.runs
        while start < end:
            index = bisect_right(runs, start, key=lambda run: run[0])
            stop = min(end, runs[index][0]) if index < len(runs) else end
            piece = text[start:stop].replace("\n", " ").replace("\r", " ")
            self.loom.copy(piece, self.raw.origin(start))
            start = stop

    def _escape(self, found: re.Match[str]) -> int:
        self._copy(found.start() + 1, found.end())
        return found.end()

    def _end_of_code(self, found: re.Match[str]) -> int:
        starts = self._ticks.get(len(found.group()), [])
        index = bisect_right(starts, found.start())
        return starts[index] + len(found.group()) if index < len(starts) else found.end()

    def _code(self, found: re.Match[str]) -> int:
        end = self._end_of_code(found)
        if end == found.end():
            self._copy(found.start(), end)
        elif self.keep_code:
            self._copy(found.end(), end - len(found.group()))
        else:
            self.loom.put(GAP, self.raw.origin(found.start()))
        return end

    def _comment(self, found: re.Match[str]) -> int:
        end = self.raw.text.find("-->", found.end())
        return end + 3 if end >= 0 else len(self.raw.text)

    def _auto(self, found: re.Match[str]) -> int:
        self._link(found.group()[1:-1], found.start() + 1)
        self.loom.put(GAP, self.raw.origin(found.start()))
        return found.end()

    def _tag(self, found: re.Match[str]) -> int:
        tag = found.group()
        said = attributes_of(tag)
        for target, offset in said.links:
            self._link(target, found.start() + offset)
        self.anchors.extend(said.anchors)
        if tag.startswith("</"):
            return found.end()
        silence = end_of_silence(tag_name(tag), self.raw.text, found.end(), self._unclosed)
        if silence is not None or tag_name(tag) in {"br", "img"}:
            self.loom.put(" ", self.raw.origin(found.start()))
        return silence or found.end()

    def _bare(self, found: re.Match[str]) -> int:
        url = found.group().rstrip(".,;:!?'*_~")
        closers = len(url) - len(url.rstrip(")"))
        surplus = min(closers, max(0, url.count(")") - url.count("(")))
        url = url[: len(url) - surplus]
        self._link(url, found.start())
        self.loom.put(GAP, self.raw.origin(found.start()))
        return found.start() + len(url)

    def _entity(self, found: re.Match[str]) -> int:
        char = html.unescape(found.group())
        if len(char) == 1:
            self.loom.put(char, self.raw.origin(found.start()))
        else:
            self._copy(found.start(), found.end())
        return found.end()

    def _close(self, found: re.Match[str], dropped: frozenset[int]) -> int:
        if found.start() not in dropped:
            self._copy(found.start(), found.start() + 1)
            return found.start() + 1
        dest = found["dest"]
        if dest is not None:
            bare = dest[1:-1] if dest.startswith("<") else dest
            self._link(html.unescape(bare), found.start("dest"))
        return found.end()

    def _link(self, target: str, at: int) -> None:
        self.links.append(Link(target.strip(), self.raw.origin(at)))
