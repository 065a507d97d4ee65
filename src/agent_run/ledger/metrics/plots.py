"""Small pictures of numbers for pages, as SVG."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from agent_run.ledger.metrics.sparks import thinned
from agent_run.ledger.sheet.parts import Markup, words

_WIDTH: Final = 320
_HEIGHT: Final = 120
_LEFT: Final = 30
"""Room for the names of the scale."""
_TOP: Final = 8
_BOTTOM: Final = 100
_MOST_POINTS: Final = 160


@dataclass(frozen=True, slots=True)
class Plot:
    """Shares from 0 to 1 in the order of time, and how to speak of them."""

    anchor: str
    """An id that the page has once."""
    title: str
    description: str
    values: Sequence[float]
    first: str
    """When the first value is from, in words; `last` likewise."""
    last: str
    recent: int = 0
    """How many of the newest values are marked."""


def line_plot(plot: Plot) -> Markup:
    """Return shares as a line with its scale, oldest on the left."""
    drawn = thinned(plot.values, _MOST_POINTS)
    step = (_WIDTH - _LEFT) / max(1, len(drawn) - 1)
    points = [
        f"{_LEFT + place * step:.1f},{_y(value):.1f}" for place, value in enumerate(drawn)
    ]
    dots = _dot(points[0]) if len(points) == 1 else ""
    foot = _HEIGHT - 4
    return Markup(
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-labelledby="{plot.anchor}t {plot.anchor}d">'
        f'<title id="{plot.anchor}t">{words(plot.title)}</title>'
        f'<desc id="{plot.anchor}d">{words(plot.description)}</desc>'
        f'{_marked(plot)}{_scale()}<polyline class="line" points="{" ".join(points)}"/>{dots}'
        f'<text x="{_LEFT}" y="{foot}">{words(plot.first)}</text>'
        f'<text x="{_WIDTH}" y="{foot}" text-anchor="end">{words(plot.last)}</text></svg>'
    )


def bar(share: float) -> Markup:
    """Return a share from 0 to 1 as a bar, for beside the number itself."""
    return Markup(
        '<svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="bar" width="{100 * share:.1f}" height="8"/></svg>'
    )


def _marked(plot: Plot) -> str:
    if not plot.recent or not plot.values:
        return ""
    width = (_WIDTH - _LEFT) * plot.recent / len(plot.values)
    return (
        f'<rect class="fell" x="{_WIDTH - width:.1f}" y="{_TOP}" width="{width:.1f}" '
        f'height="{_BOTTOM - _TOP}"/><text class="fall" x="{_WIDTH - 4}" y="{_BOTTOM - 5}" '
        f'text-anchor="end">last {plot.recent}</text>'
    )


def _scale() -> str:
    return "".join(
        f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH}" y1="{_y(at):.1f}" y2="{_y(at):.1f}"/>'
        f'<text x="{_LEFT - 5}" y="{_y(at) + 4:.1f}" text-anchor="end">{at:g}</text>'
        for at in (0.0, 0.5, 1.0)
    )


def _dot(point: str) -> str:
    x, _, y = point.partition(",")
    return f'<circle class="dot" cx="{x}" cy="{y}" r="3"/>'


def _y(value: float) -> float:
    return _TOP + (1 - min(1.0, max(0.0, value))) * (_BOTTOM - _TOP)
