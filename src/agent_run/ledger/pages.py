"""Pages: events as they are written, each sealed with the digest of the one before it.

A changed, missing, added or reordered page breaks the chain at a place that can be named.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from agent_run.contract.base import RunId
from agent_run.ledger.events import KINDS, AnyEvent

FIRST: Final = "0" * 64
"""What stands for the digest before the first page."""


class Page(NamedTuple):
    """One page of a run's book, exactly as written.

    A tuple, because stores make pages by the ten thousand and a frozen dataclass takes three
    times as long to make.
    """

    run_id: RunId
    seq: int
    task_id: str
    kind: str
    trace_id: str
    body: str
    """The event as JSON. These very characters are what the digest covers."""
    digest: str

    def event(self) -> AnyEvent:
        """Return what happened."""
        return KINDS[self.kind].model_validate_json(self.body)


Entry: TypeAlias = tuple[int, str, str, str]
"""Number, task, kind and body of a page: enough to count, too little to prove."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A place where the book is not what was once written."""

    run_id: RunId
    seq: int
    problem: str


def seal(run_id: RunId, seq: int, trace_id: str, event: AnyEvent, *, previous: str) -> Page:
    """Return `event` as page `seq`, chained to the page whose digest is `previous`."""
    # What equals a default is left out: defaults are part of the shape and never change.
    body = event.model_dump_json(exclude_defaults=True, exclude_computed_fields=True)
    digest = _digest(previous, run_id, seq, event.kind, trace_id, body)
    return Page(run_id, seq, event.task_id, event.kind, trace_id, body, digest)


def breaks(pages: Iterable[Page]) -> Iterator[Broken]:
    """Yield every place where the pages of one run, in order, do not follow each other."""
    previous, expected = FIRST, 1
    for page in pages:
        if page.seq != expected:
            missing = f"page {expected}" + (
                f" to {page.seq - 1}" if page.seq > expected + 1 else ""
            )
            yield Broken(page.run_id, expected, f"{missing} is missing")
        elif page.digest != _digest(
            previous, page.run_id, page.seq, page.kind, page.trace_id, page.body
        ):
            yield Broken(page.run_id, page.seq, "does not follow from the page before it")
        elif page.event().task_id != page.task_id:
            yield Broken(page.run_id, page.seq, "is filed under another task")
        previous, expected = page.digest, page.seq + 1


def _digest(*parts: str | int) -> str:
    # Names and ids hold no line feed, and the body comes last, so no two pages look alike.
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()
