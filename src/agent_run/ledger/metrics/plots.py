"""Small pictures of numbers: a line of blocks for terminals, SVG for pages."""

from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import Final

_BLOCKS: Final = "▁▂▃▄▅▆▇█"
_WIDTH: Final = 320
_HEIGHT: Final = 72
_PAD: Final = 6
_BAR: Final = 18
_NAMES: Final = 210


def sparkline(values: Sequence[float], *, width: int = 24) -> str:
    """Return shares from 0 to 1 as a line of blocks, the newest on the right.

    More values than fit are drawn as means of equal stretches of time.
    """
    return "".join(
        _BLOCKS[min(len(_BLOCKS) - 1, int(max(0.0, value) * len(_BLOCKS)))]
        for value in _thinned(values, width)
    )


def line_plot(values: Sequence[float], *, title: str, recent: int = 0) -> str:
    """Return shares from 0 to 1 as an SVG line; the last `recent` of them are marked."""
    drawn = _thinned(values, _WIDTH // 2)
    step = (_WIDTH - 2 * _PAD) / max(1, len(drawn) - 1)
    points = [f"{_PAD + place * step:.1f},{_y(value):.1f}" for place, value in enumerate(drawn)]
    marked = ""
    if recent and values:
        width = (_WIDTH - 2 * _PAD) * recent / len(values)
        left = _WIDTH - _PAD - width
        marked = (
            f'<rect class="fell" x="{left:.1f}" y="0" width="{width:.1f}" height="{_HEIGHT}"/>'
        )
    middle = f'<line class="grid" x1="0" x2="{_WIDTH}" y1="{_y(0.5):.1f}" y2="{_y(0.5):.1f}"/>'
    dots = _dots(points) if len(points) == 1 else ""
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img">'
        f"<title>{escape(seen(title))}</title>{marked}{middle}"
        f'<polyline class="line" points="{" ".join(points)}"/>{dots}</svg>'
    )


def bar_plot(rows: Sequence[tuple[str, float, str]], *, title: str) -> str:
    """Return named amounts as SVG bars; each row is a name, an amount and how to show it."""
    most = max((amount for _, amount, _ in rows), default=0) or 1
    height = _BAR * len(rows) + _PAD
    parts: list[str] = []
    for place, (name, amount, shown) in enumerate(rows):
        top = place * _BAR + 3
        width = _WIDTH * amount / most
        base = top + _BAR - 7
        parts.append(
            f'<text x="{_NAMES - 6}" y="{base}" text-anchor="end">'
            f"{escape(_short(seen(name)))}</text>"
            f'<rect class="bar" x="{_NAMES}" y="{top}" width="{width:.1f}" '
            f'height="{_BAR - 5}"/>'
            f'<text x="{_NAMES + width + 5:.1f}" y="{base}">{escape(seen(shown))}</text>'
        )
    whole = _NAMES + _WIDTH + 110
    return (
        f'<svg viewBox="0 0 {whole} {height}" width="{whole}" height="{height}" role="img">'
        f"<title>{escape(seen(title))}</title>{''.join(parts)}</svg>"
    )


def seen(text: str) -> str:
    """Return text of strangers with everything that cannot be seen written as an escape."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def _dots(points: Sequence[str]) -> str:
    x, _, y = points[0].partition(",")
    return f'<circle class="dot" cx="{x}" cy="{y}" r="2.5"/>'


def _short(name: str, longest: int = 32) -> str:
    return name if len(name) <= longest else f"{name[: longest - 1]}…"


def _y(value: float) -> float:
    return _PAD + (1 - min(1.0, max(0.0, value))) * (_HEIGHT - 2 * _PAD)


def _thinned(values: Sequence[float], width: int) -> list[float]:
    if len(values) <= width:
        return list(values)
    edges = [place * len(values) // width for place in range(width + 1)]
    return [sum(values[start:end]) / (end - start) for start, end in pairwise(edges)]
