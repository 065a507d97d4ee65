"""Markdown to prose: which lines are words, and what kind of block they belong to.

A reader of lines, not a renderer: it needs to know what is prose and where, so an odd nesting
may be read as a plainer block than a browser would show, but no word is lost.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from agent_run.executors.content.inline import Inline, Raw
from agent_run.executors.content.prose import Kind, Link, Prose, Segment, Span

_LINE: Final = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_QUOTE: Final = re.compile(r"(?: {0,3}> ?)+")
_FENCE: Final = re.compile(r"[ \t]*(`{3,}|~{3,})([^`]*)$")
_HEADING: Final = re.compile(r" {0,3}(#{1,6})(?:[ \t]+|$)")
_CLOSING_HASHES: Final = re.compile(r"(?:^|[ \t])#+[ \t]*$")
_HEADING_ID: Final = re.compile(r"\{#([\w.:-]{1,200})\}[ \t]*$")
_UNDERLINE: Final = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_BREAK: Final = re.compile(r" {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$")
_ITEM: Final = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])(?:[ \t]+|$)(?:\[[ xX]\][ \t]+)?")
_DEFINITION: Final = re.compile(r" {0,3}\[[^\[\]]{1,999}\]:[ \t]*<?([^\s<>]{1,4000})")
_RULER: Final = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-*:?[ \t]*)*$")
_SILENT_BLOCK: Final = re.compile(
    r" {0,3}<(?:(script|style|pre|textarea|template|svg)\b|(!--))", re.IGNORECASE
)
_CELL: Final = re.compile(r"(?:[^|\\]|\\.|\\$)+")
_FRONT: Final = {"---": ("---", "..."), "+++": ("+++",)}
_NO_SLUG: Final = re.compile(r"[^\w\- ]")


def slug_of(heading: str) -> str:
    """Return the anchor that a heading gets on the usual code hosts."""
    return _NO_SLUG.sub("", heading.strip().lower()).replace(" ", "-")


def read_markdown(text: str) -> Prose:
    """Return the prose of a Markdown `text`."""
    reader = _Blocks()
    for start, end in _body(text):
        reader.line(text[start:end].rstrip("\r\n"), start)
    reader.flush()
    return Prose(tuple(reader.segments), tuple(reader.links), frozenset(reader.anchors))


def _lines(text: str) -> Iterator[Span]:
    at = 0
    while at < len(text):
        found = _LINE.match(text, at)
        end = found.end() if found else len(text)
        yield at, end
        at = end


def _body(text: str) -> Iterator[Span]:
    lines = _lines(text)
    first = next(lines, None)
    if first is None:
        return
    endings = _FRONT.get(text[slice(*first)].strip())
    if endings is None:
        yield first
        yield from lines
        return
    held = [first]
    for span in lines:
        held.append(span)
        if text[slice(*span)].strip() in endings:
            held.clear()
            break
    # Front matter that never ends is no front matter.
    yield from held
    yield from lines


@dataclass(slots=True)
class _Blocks:
    segments: list[Segment] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    _kind: Kind = "paragraph"
    _pieces: list[tuple[str, int]] = field(default_factory=list)
    _until: re.Pattern[str] | None = None
    """The end of the code or silent block that is open. None means none is."""
    _table: bool = False
    _list: bool = False
    _slugs: dict[str, int] = field(default_factory=dict)

    def line(self, line: str, start: int) -> None:
        if self._until is not None:
            if self._until.search(line):
                self._until = None
            return
        prefix = _QUOTE.match(line)
        quote = prefix is not None
        if prefix is not None:
            line, start = line[prefix.end() :], start + prefix.end()
        if not line.strip():
            self.flush()
            self._table = False
            return
        if not (self._opens_silence(line) or self._structure(line, start)):
            self._words(line, start, quote=quote)

    def flush(self, kind: Kind | None = None, level: int = 0) -> None:
        """Close the block that is open and keep what it says."""
        pieces, self._pieces = self._pieces, []
        if pieces:
            self._keep(pieces, kind or self._kind, level)
        self._kind = "paragraph"

    def _keep(self, pieces: list[tuple[str, int]], kind: Kind, level: int) -> None:
        runs: list[Span] = []
        length = 0
        for piece, start in pieces:
            runs.append((length, start))
            length += len(piece) + 1
        raw = Raw("\n".join(piece for piece, _ in pieces), runs)
        inline = Inline(raw).read()
        self.links.extend(inline.links)
        self.anchors.update(inline.anchors)
        segment = inline.loom.segment(kind, level)
        if segment is not None:
            self.segments.append(segment)
        if kind == "heading":
            self._anchor("".join(Inline(raw, keep_code=True).read().loom.parts))

    def _anchor(self, heading: str) -> None:
        slug = slug_of(heading)
        seen = self._slugs.get(slug, 0)
        self._slugs[slug] = seen + 1
        self.anchors.add(f"{slug}-{seen}" if seen else slug)

    def _opens_silence(self, line: str) -> bool:
        fence = _FENCE.match(line)
        if fence is not None:
            self.flush()
            mark = fence.group(1)
            self._until = re.compile(rf"^[ \t>]*{re.escape(mark[0])}{{{len(mark)},}}[ \t]*$")
            return True
        silent = _SILENT_BLOCK.match(line)
        if silent is not None and not self._pieces:
            name = silent.group(1)
            until = re.compile(rf"</{name}\b" if name else "-->", re.IGNORECASE)
            self._until = None if until.search(line, silent.end()) else until
            # A block that ends on its own line may have words after it.
            return self._until is not None
        indented = line.startswith(("    ", "\t"))
        return indented and not self._pieces and not self._list

    def _structure(self, line: str, start: int) -> bool:
        heading = _HEADING.match(line)
        if heading is not None:
            self._heading(line, start, heading)
            return True
        if self._pieces and self._setext(line):
            return True
        if _BREAK.match(line):
            self.flush()
            self._list = False
            return True
        definition = _DEFINITION.match(line)
        if definition is not None and not self._pieces:
            self.links.append(Link(definition.group(1), start + definition.start(1)))
            return True
        return self._row(line, start)

    def _heading(self, line: str, start: int, heading: re.Match[str]) -> None:
        self.flush()
        self._list = False
        body = line[heading.end() :]
        body = body[: len(body) - _trailing(_CLOSING_HASHES, body)]
        named = _HEADING_ID.search(body)
        if named is not None:
            self.anchors.add(named.group(1))
            body = body[: named.start()]
        self._pieces.append((body.rstrip(), start + heading.end()))
        self.flush("heading", len(heading.group(1)))

    def _setext(self, line: str) -> bool:
        underline = _UNDERLINE.match(line)
        if underline is None or self._kind != "paragraph":
            return False
        if "|" in self._pieces[-1][0] and underline.group(1)[0] == "-":
            return False
        self.flush("heading", 1 if underline.group(1)[0] == "=" else 2)
        return True

    def _row(self, line: str, start: int) -> bool:
        if self._table and "|" in line:
            self._cells(line, start)
            return True
        self._table = False
        if "|" not in line or not self._pieces or not _RULER.match(line):
            return False
        head, at = self._pieces.pop()
        self.flush()
        self._table = True
        self._cells(head, at)
        return True

    def _cells(self, line: str, start: int) -> None:
        self.flush()
        for cell in _CELL.finditer(line):
            if cell.group().strip():
                self._pieces.append((cell.group(), start + cell.start()))
                self.flush("table")

    def _words(self, line: str, start: int, *, quote: bool) -> None:
        item = _ITEM.match(line)
        if item is not None:
            self.flush()
            self._kind, self._list = "list", True
            line, start = line[item.end() :], start + item.end()
        elif not self._pieces:
            self._list = self._list and line.startswith((" ", "\t"))
            self._kind = "quote" if quote else "list" if self._list else "paragraph"
        bare = line.lstrip()
        if bare:
            self._pieces.append((bare.rstrip(), start + len(line) - len(bare)))


def _trailing(pattern: re.Pattern[str], text: str) -> int:
    tail = text[-200:]
    found = pattern.search(tail)
    return len(tail) - found.start() if found else 0
