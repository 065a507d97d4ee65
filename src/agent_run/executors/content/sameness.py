"""Words as a reader sees them: the many ways of writing one phrase become one.

Capitals, typographic quotes, full-width forms, invisible characters and letters borrowed from
another alphabet do not hide a phrase.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_LOOKALIKES: Final = str.maketrans(
    # Cyrillic and Greek letters that look Latin, in lower case.
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u051b\u0432\u043a\u043c"
    "\u043d\u0442\u03b1\u03b5\u03b9\u03ba\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7\u0131\u0261\u03f2",
    "aeopcyxijsdqbkmhtaeiknoptuxigc",
)
_QUOTES: Final = str.maketrans("\u2018\u2019\u201b\u2032\u02bc\u0060\u00b4", "'''''''")
_WORD: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_JOINT: Final = re.compile(r"[\s'\"\u201c\u201d*_/\u2010-\u2015\u2212-]*\Z")
"""What may stand between the words of one phrase: no mark that ends a thought."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word as it sounds, and where it stands in its text."""

    same: str
    start: int
    end: int
    joined: bool
    """It follows the word before without a mark that parts them."""


def words_of(text: str) -> tuple[Word, ...]:
    """Return the words of `text`, each in its one form."""
    clear, origins = _clear(text)
    words: list[Word] = []
    last = 0
    for found in _WORD.finditer(clear):
        joined = bool(words) and _JOINT.match(clear[last : found.start()]) is not None
        start, end = origins[found.start()], origins[found.end() - 1] + 1
        words.append(Word(found.group(), start, end, joined))
        last = found.end()
    return tuple(words)


def _clear(text: str) -> tuple[str, list[int]]:
    parts: list[str] = []
    origins: list[int] = []
    for at, char in enumerate(text):
        same = _same(char)
        parts.append(same)
        origins.extend([at] * len(same))
    return "".join(parts), origins


@lru_cache(maxsize=8_192)
def _same(char: str) -> str:
    # A soft hyphen, a joiner or a direction mark is seen by nobody.
    if unicodedata.category(char) in {"Cf", "Cc"} and not char.isspace():
        return ""
    plain = unicodedata.normalize("NFKD", char).casefold()
    plain = "".join(one for one in plain if not unicodedata.combining(one))
    return plain.translate(_QUOTES).translate(_LOOKALIKES)
