"""Small pictures of numbers for terminals: a line of blocks."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

_BLOCKS: Final = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], *, width: int = 24) -> str:
    """Return shares from 0 to 1 as a line of blocks, the newest on the right.

    More values than fit are drawn as means of equal stretches of time.
    """
    return "".join(
        _BLOCKS[min(len(_BLOCKS) - 1, int(max(0.0, value) * len(_BLOCKS)))]
        for value in thinned(values, width)
    )


def thinned(values: Sequence[float], width: int) -> list[float]:
    """Return at most `width` values: means of equal stretches where there are more."""
    if len(values) <= width:
        return list(values)
    edges = [place * len(values) // width for place in range(width + 1)]
    return [sum(values[start:end]) / (end - start) for start, end in pairwise(edges)]
