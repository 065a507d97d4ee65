"""A draft: decoded text with its prose, read once and handed to every checker.

Whatever cannot be read as text is refused here with one sentence, so that no checker ever
meets a binary, a broken encoding or a text too large to look at.
"""

import codecs
import re
import stat
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

from agent_run.errors import InvalidDocument
from agent_run.executors.content.hypertext import read_html, read_plain
from agent_run.executors.content.markdown import read_markdown
from agent_run.executors.content.prose import Prose, Segment
from agent_run.executors.content.remarks import Remark, Severity, digest_of, quoted

Format: TypeAlias = Literal["markdown", "html", "plain"]

MOST_BYTES: Final = 2_000_000
"""About 300,000 words; a larger draft is refused, not read in part."""
_FORMATS: Final[dict[str, Format]] = {
    ".md": "markdown",
    ".markdown": "markdown",
    ".mdx": "markdown",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
}
_READERS: Final[dict[Format, Callable[[str], Prose]]] = {
    "markdown": read_markdown,
    "html": read_html,
    "plain": read_plain,
}
_LONE_RETURN: Final = re.compile(r"\r(?!\n)")
_MARKS: Final = (
    # The mark of UTF-32 begins with that of UTF-16, so it is looked for first.
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True, slots=True)
class Draft:
    """A text to be checked, with its prose and the starts of its lines."""

    name: str
    text: str
    format: Format
    path: Path | None
    """Where it lies. `None` means that it is no file, and relative links lead nowhere."""
    digest: str
    prose: Prose
    line_starts: tuple[int, ...]

    def place(self, at: int) -> tuple[int, int]:
        """Return line and column, from 1, of the character at `at`."""
        at = max(0, min(at, len(self.text)))
        line = bisect_right(self.line_starts, at)
        return line, at - self.line_starts[line - 1] + 1

    def remark(
        self, rule: str, severity: Severity, *, start: int, end: int, message: str
    ) -> Remark:
        """Return a remark about the source between `start` and `end`."""
        line, column = self.place(start)
        return Remark(rule, severity, line, column, quoted(self.text[start:end]), message)

    def span(self, segment: Segment, start: int, end: int) -> tuple[int, int]:
        """Return where the words from `start` to `end` of `segment` stand in the source."""
        first = segment.origin(start)
        last = segment.origin(end - 1) + 1 if end > start else first
        return first, max(first, min(last, len(self.text)))


def nothing_in(draft: Draft) -> str:
    """Return the sentence that says that there is nothing to check; empty if there is."""
    if draft.prose.segments or draft.prose.links:
        return ""
    held = "no words and no links" if draft.text.strip() else "nothing"
    return f"there is nothing to check: draft {draft.name!r} holds {held}"


def draft_of(text: str, name: str = "draft.md", path: Path | None = None) -> Draft:
    """Return `text` as a draft; the ending of `name` tells its format."""
    form = _FORMATS.get(Path(name).suffix.lower(), "plain")
    prose = _READERS[form](text)
    return Draft(name, text, form, path, digest_of(form, text), prose, _line_starts(text))


def read_draft(path: Path, *, most_bytes: int = MOST_BYTES) -> Draft:
    """Return the draft at `path`.

    Raises:
        InvalidDocument: It is not there, not a file, too large, or no text.
    """
    try:
        found = path.stat()
    except (OSError, ValueError) as error:
        msg = f"draft {path.name!r} cannot be read: {error}"
        raise InvalidDocument(msg) from error
    if not stat.S_ISREG(found.st_mode):
        msg = f"draft {path.name!r} is not a regular file"
        raise InvalidDocument(msg)
    if found.st_size > most_bytes:
        raise _too_large(path.name, found.st_size, most_bytes)
    try:
        with path.open("rb") as file:
            raw = file.read(most_bytes + 1)
    except OSError as error:
        msg = f"draft {path.name!r} cannot be read: {error}"
        raise InvalidDocument(msg) from error
    text = decode(raw, path.name, most_bytes=most_bytes)
    return draft_of(text, path.name, path)


def decode(raw: bytes, name: str, *, most_bytes: int = MOST_BYTES) -> str:
    """Return the text that `raw` spells in UTF-8, or in what its byte-order mark names.

    Raises:
        InvalidDocument: It is too large, binary, or not in that encoding.
    """
    if len(raw) > most_bytes:
        raise _too_large(name, len(raw), most_bytes)
    encoding = next((known for mark, known in _MARKS if raw.startswith(mark)), "utf-8")
    if encoding == "utf-8" and 0 in raw:
        at = raw.index(0)
        msg = f"draft {name!r} looks binary: byte {at} is NUL, expected text in UTF-8"
        raise InvalidDocument(msg)
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        byte = raw[error.start]
        msg = f"draft {name!r} is not {encoding.upper()}: byte {error.start} is 0x{byte:02x}"
        raise InvalidDocument(msg) from error
    if "\0" in text:
        msg = f"draft {name!r} looks binary: character {text.index(chr(0))} is NUL"
        raise InvalidDocument(msg)
    return text


def _too_large(name: str, size: int, most: int) -> InvalidDocument:
    told = f"draft {name!r} is {size / 1e6:.1f} MB, expected at most {most / 1e6:.1f} MB"
    return InvalidDocument(told)


def _line_starts(text: str) -> tuple[int, ...]:
    starts = [0]
    at = text.find("\n")
    while at >= 0:
        starts.append(at + 1)
        at = text.find("\n", at + 1)
    if "\r" in text:
        lone = (found.end() for found in _LONE_RETURN.finditer(text))
        starts = sorted({*starts, *lone})
    return tuple(starts)
