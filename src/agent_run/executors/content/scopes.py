"""Which part of a draft a brand rule looks at: Vale's scopes over our segments.

A scope is a list of terms joined by `&`, each perhaps turned round by `~`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from agent_run.executors.content.drafts import Draft
from agent_run.executors.content.prose import Segment

_KINDS: Final = {
    "paragraph": "paragraph",
    "list": "list",
    "table": "table",
    "table.cell": "table",
    "blockquote": "quote",
    "heading": "heading",
}
_WHOLE: Final = frozenset({"text", "summary"})
_LEVELS: Final = {f"heading.h{level}": level for level in range(1, 7)}
_UNITS: Final = frozenset({"sentence", "raw"})
KNOWN: Final = frozenset({*_KINDS, *_WHOLE, *_LEVELS, *_UNITS})


@dataclass(frozen=True, slots=True)
class Unit:
    """The stretch of a segment that one application of a rule sees."""

    segment: Segment
    start: int
    text: str


def fault_of_scope(scope: str) -> str:
    """Return why `scope` cannot be applied, or nothing."""
    for term in _terms(scope):
        if term.removeprefix("~") not in KNOWN:
            return f"scope {scope!r} is not known, expected one of {', '.join(sorted(KNOWN))}"
        if term in {"~raw", "~sentence"}:
            return f"scope {scope!r} cannot be turned round"
    return ""


def units(draft: Draft, scope: str) -> Iterator[Unit]:
    """Yield every stretch of `draft` that `scope` selects."""
    terms = _terms(scope)
    if "raw" in terms:
        whole = Segment("paragraph", 0, draft.text, ((0, 0),))
        yield Unit(whole, 0, draft.text)
        return
    for segment in draft.prose.segments:
        if not all(_selects(term, segment) for term in terms):
            continue
        if "sentence" not in terms:
            yield Unit(segment, 0, segment.text)
            continue
        for start, end in segment.sentences():
            yield Unit(segment, start, segment.text[start:end])


def _terms(scope: str) -> tuple[str, ...]:
    return tuple(term.strip().replace("~ ", "~") for term in scope.split("&"))


def _selects(term: str, segment: Segment) -> bool:
    bare = term.removeprefix("~")
    if bare in _WHOLE or bare in _UNITS:
        chosen = True
    elif bare in _LEVELS:
        chosen = segment.kind == "heading" and segment.level == _LEVELS[bare]
    else:
        chosen = segment.kind == _KINDS[bare]
    return chosen != term.startswith("~")
