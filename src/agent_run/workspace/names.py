"""Names that deceive: git's own folder in disguise, text that hides, two names for one file.

Pure. A name that the base already has is never judged here, only new ones.
"""

import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final

# Code points that some file systems drop from names, so that they spell `.git`.
_DROPPED: Final = dict.fromkeys(
    [*range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF]
)
_TURNING: Final = frozenset(map(chr, [*range(0x202A, 0x202F), *range(0x2066, 0x206A)]))
_BREAKING: Final = frozenset("\u0085\u2028\u2029")
_GIT: Final = frozenset({".git", "git~1"})
_LONGEST: Final = 4_000


def is_gits_own(name: bytes) -> bool:
    """Say whether some file system would take `name` for git's own folder."""
    if name.isascii() and b"git" not in name.lower():
        return False
    text = name.decode("utf-8", "surrogateescape").translate(_DROPPED)
    folded = unicodedata.normalize("NFKC", text).casefold()
    spellings = (part for piece in folded.split("\\") for part in (piece, piece.split(":")[0]))
    return any(spelling.rstrip(" .") in _GIT for spelling in spellings)


def name_fault(path: bytes) -> str | None:
    """Say what is wrong with the new path `path`, or None if nothing is."""
    try:
        text = path.decode()
    except UnicodeDecodeError:
        return "has a name that is not UTF-8"
    if any(map(is_gits_own, path.split(b"/"))):
        return "has a name that git or a file system takes for git's own folder"
    if any(letter < " " or letter == "\x7f" for letter in text) or _BREAKING & set(text):
        return "has a control character in its name"
    if _TURNING & set(text):
        return "has a character in its name that turns the direction of text"
    if "\\" in text:
        return "has a backslash in its name"
    return "has a name that is too long" if len(path) > _LONGEST else None


def printable(path: bytes) -> str:
    """Return `path` as text that any terminal and any database can hold."""
    text = path.decode("utf-8", "backslashreplace")
    hidden = _TURNING | _BREAKING
    return "".join(
        letter.encode("unicode_escape").decode()
        if letter < " " or letter == "\x7f" or letter in hidden
        else letter
        for letter in text
    )


def colliding(new: Iterable[bytes], everything: Iterable[bytes]) -> dict[bytes, bytes]:
    """Return each new path with another one that some file systems take for the same.

    `everything` is the whole result, the new paths included.
    """
    new = set(new)
    if not new:
        return {}
    wanted = {_folded(part) for path in new for part in _steps(path)}
    spellings: dict[str, set[bytes]] = {}
    for part in {part for path in everything for part in _steps(path)}:
        key = _folded(part)
        if key in wanted:
            spellings.setdefault(key, set()).add(part)
    found: dict[bytes, bytes] = {}
    for path in new:
        for part in _steps(path):
            others = spellings.get(_folded(part), set()) - {part}
            if others:
                found[path] = min(others)
    return found


def _steps(path: bytes) -> Iterator[bytes]:
    """Yield `a`, `a/b` and `a/b/c` for `a/b/c`."""
    place = path.find(b"/")
    while place >= 0:
        yield path[:place]
        place = path.find(b"/", place + 1)
    yield path


def _folded(path: bytes) -> str:
    if path.isascii():
        return path.lower().decode()
    text = unicodedata.normalize("NFD", path.decode("utf-8", "surrogateescape"))
    return unicodedata.normalize("NFC", text.casefold())
