"""Regular expressions that users bring: compiled with care, run against a clock.

A pattern may be slow on purpose or by accident. The engine of the `regex` package stops at a
time limit, which the standard one cannot.
"""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import regex

LONGEST_PATTERN: Final = 100_000
_MOST_COPIES: Final = 100_000
"""Counted repeats inside counted repeats are unrolled; beyond this they eat the memory."""
_PIECE: Final = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[()]|\{(\d{0,9})(?:(,)(\d{0,9}))?\}"
)
_LATE_FLAGS: Final = re.compile(r"(?<!^)\(\?[a-zA-Z]*-?[a-zA-Z]+\)")


@dataclass(frozen=True, slots=True)
class Stopwatch:
    """How long matching may still go on."""

    until: float
    """In seconds of the monotonic clock."""

    @classmethod
    def of(cls, seconds: float) -> "Stopwatch":
        """Return a stopwatch that starts now and runs for `seconds`."""
        return cls(time.monotonic() + seconds)

    def left(self) -> float:
        """Return the seconds that are left.

        Raises:
            TimeoutError: None are left.
        """
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def no_later_than(self, seconds: float) -> "Stopwatch":
        """Return a stopwatch for `seconds` from now, or for less if less is left."""
        return Stopwatch(min(self.until, time.monotonic() + seconds))


def compiled(pattern: str, *, ignorecase: bool = False) -> regex.Pattern[str]:
    """Return `pattern`, compiled.

    Raises:
        ValueError: It is no regular expression, or one too large to compile safely.
    """
    if len(pattern) > LONGEST_PATTERN:
        msg = f"the pattern has {len(pattern)} characters, expected at most {LONGEST_PATTERN}"
        raise ValueError(msg)
    if _copies(pattern) > _MOST_COPIES:
        msg = f"the pattern repeats a part more than {_MOST_COPIES} times"
        raise ValueError(msg)
    flags = regex.MULTILINE | (regex.IGNORECASE if ignorecase else 0)
    # Only version 1 ends a flag set in the middle at the end of its group, as rule authors
    # expect; version 0 keeps the meaning of brackets that they expect.
    flags |= regex.VERSION1 if _LATE_FLAGS.search(pattern) else regex.VERSION0
    try:
        return regex.compile(pattern, flags)
    except (regex.error, RecursionError, OverflowError, IndexError, KeyError) as error:
        msg = f"the pattern does not compile: {str(error) or type(error).__name__}"
        raise ValueError(msg) from error


def matches(
    pattern: regex.Pattern[str], text: str, watch: Stopwatch
) -> Iterator[regex.Match[str]]:
    """Yield what `pattern` finds in `text`.

    Raises:
        TimeoutError: The time ran out.
    """
    for found in pattern.finditer(text, timeout=watch.left()):
        if found.end() > found.start():
            yield found


def _copies(pattern: str) -> int:
    """Return how often the most repeated part of `pattern` is unrolled."""
    open_groups: list[int] = [1]
    last = most = 1
    for piece in _PIECE.finditer(pattern):
        match piece.group()[0]:
            case "(":
                open_groups.append(1)
                last = 1
            case ")":
                last = open_groups.pop() if len(open_groups) > 1 else 1
            case "{" if piece.group() != "{}":
                last *= max(1, int(piece[3] or piece[1] or 1))
                open_groups[-1] = max(open_groups[-1], last)
            case _:
                last = 1
        open_groups[-1] = max(open_groups[-1], last)
        most = max(most, last)
    return most
