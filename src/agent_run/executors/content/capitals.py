"""Whether a heading follows a way of capitalizing: title, sentence, lower or upper case."""

import re
from collections.abc import Sequence
from typing import Final

from agent_run.executors.content.prose import GAP

_WORD: Final = re.compile(r"[^\W_](?:[\w'\u2019.-]*\w)?")
_SMALL_WORDS: Final = (
    "a an and as at but by en for if in nor of on or per the to v via vs with from into"
)
_SMALL: Final = frozenset(_SMALL_WORDS.split())
CASES: Final = frozenset({"$title", "$sentence", "$lower", "$upper"})


def follows_case(
    text: str, case: str, exceptions: Sequence[str] = (), *, threshold: float = 0.8
) -> bool:
    """Return whether `text` is written in `case`; `exceptions` may be written as they are.

    Raises:
        ValueError: There is no such case.
    """
    if case not in CASES:
        msg = f"match {case!r} is not one of {', '.join(sorted(CASES))} or a pattern"
        raise ValueError(msg)
    bare = text.replace(GAP, " ")
    for phrase in sorted(exceptions, key=len, reverse=True):
        bare = bare.replace(phrase, " ")
    if case == "$lower":
        return bare == bare.lower()
    if case == "$upper":
        return bare == bare.upper()
    words = _WORD.findall(bare)
    if not words:
        return True
    judge = _in_title if case == "$title" else _in_sentence
    first = text.lstrip().startswith(words[0])
    right = sum(judge(word, first=first and i == 0) for i, word in enumerate(words))
    return right / len(words) > threshold


def _in_title(word: str, *, first: bool) -> bool:
    if word.lower() in _SMALL:
        return not first or word[0].isupper()
    return not word[0].islower()


def _in_sentence(word: str, *, first: bool) -> bool:
    if first:
        return not word[0].islower()
    # A word in capitals throughout is an abbreviation, not a slip.
    return word == word.lower() or (len(word) > 1 and word == word.upper())
