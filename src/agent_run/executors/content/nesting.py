"""A guard before the YAML reader, whose work grows with the square of open brackets."""

from typing import Final

MOST_OPEN: Final = 1_000
_STEPS: Final = {"[": 1, "{": 1, "]": -1, "}": -1}


def refuse_deep_nesting(text: str) -> None:
    """Let pass what the YAML reader can read in sensible time.

    Raises:
        ValueError: More brackets are open at once than any honest file has.
    """
    open_now = 0
    for char in text:
        # Brackets in quotes count as well: patterns hold some, but never so many more of one.
        open_now = max(0, open_now + _STEPS.get(char, 0))
        if open_now > MOST_OPEN:
            msg = f"more than {MOST_OPEN} brackets are open at once"
            raise ValueError(msg)
