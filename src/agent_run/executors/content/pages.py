"""The parts of a web page that links point at: `#part`, looked for among its anchors.

Only the beginning of a page is ever read, and only if it is HTML. A page with scripts may make
anchors that its text does not hold, so that a part is only missing for sure where none runs.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote

import httpcore

from agent_run.executors.content.inline import attributes_of

MOST_BYTES: Final = 1_000_000
"""A page that is longer is not read, and its parts are reported as not checked."""
_HTML: Final = frozenset({"text/html", "application/xhtml+xml"})
_TAG: Final = re.compile(r"<[A-Za-z][^<>]{0,8000}>")
_SCRIPT: Final = re.compile(r"<script\b", re.IGNORECASE)
_DIRECTIVE: Final = ":~:"
_ALWAYS_THERE: Final = frozenset({"", "top"})
_ROUTES: Final = ("/", "!")
"""How the places begin that a script, and no anchor, leads to."""
_PREFIXES: Final = ("", "user-content-")
"""What hosts of documents put before the anchors of their authors."""


@dataclass(frozen=True, slots=True)
class Page:
    """What came of reading a page."""

    text: str = ""
    unread: str = ""
    """Why it was not read. Empty means that it was."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What is known about the parts of one page that a draft points at."""

    missing: frozenset[str] = frozenset()
    scripted: bool = False
    """The page runs scripts, which may make what is missing."""
    unread: str = ""
    """Why none of them was looked for. Empty means that they were."""


NO_PARTS: Final = Parts()


def part_of(fragment: str) -> str:
    """Return the anchor that `fragment` names; empty if it is always there, or is none."""
    name = fragment.partition(_DIRECTIVE)[0]
    return "" if name.lower() in _ALWAYS_THERE or name.startswith(_ROUTES) else name


def parts_in(page: Page, wanted: frozenset[str]) -> Parts:
    """Return which of the `wanted` anchors `page` does not hold."""
    if page.unread:
        return Parts(unread=page.unread)
    held = {name for tag in _TAG.finditer(page.text) for name in attributes_of(tag[0]).anchors}
    missing = frozenset(one for one in wanted if not _stands(one, held))
    return Parts(missing, scripted=_SCRIPT.search(page.text) is not None)


async def read_page(response: httpcore.Response, headers: Mapping[str, str]) -> Page:
    """Return the page if it is HTML of a sensible length; no more than that is read."""
    kind, _, rest = headers.get("content-type", "").partition(";")
    if kind.strip().lower() not in _HTML:
        return Page(unread=f"the page is {kind.strip()[:100]!r} and not HTML")
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        return Page(unread="the page comes compressed, which was not asked for")
    length = headers.get("content-length", "").strip()
    if length.isdecimal() and (len(length) > 9 or int(length) > MOST_BYTES):  # noqa: PLR2004
        return _too_long()
    read = bytearray()
    async for piece in response.aiter_stream():
        read += piece
        if len(read) > MOST_BYTES:
            return _too_long()
    return Page(_decoded(bytes(read), rest))


def _too_long() -> Page:
    return Page(unread=f"the page is longer than {MOST_BYTES / 1e6:g} MB")


def _decoded(raw: bytes, parameters: str) -> str:
    _, _, said = parameters.lower().partition("charset=")
    name = said.partition(";")[0].strip().strip("\"'") or "utf-8"
    try:
        return raw.decode(name, "replace")
    except (LookupError, ValueError):  # an encoding that nobody knows
        return raw.decode("utf-8", "replace")


def _stands(part: str, held: set[str]) -> bool:
    names = {part, unquote(part)}
    return any(f"{prefix}{name}" in held for name in names for prefix in _PREFIXES)
