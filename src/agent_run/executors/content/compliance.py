"""The compliance checker: a lexicon that is certain, and a classifier that knows its doubts.

The lexicon fails a draft. The classifier fails it only when it is very sure; below that it
lowers the confidence of the check, so that a person looks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from anyio import to_thread

from agent_run.executors.content.classifier import Classifier
from agent_run.executors.content.drafts import Draft
from agent_run.executors.content.lexicon import Forbidden, Found, Lexicon, PhraseIndex
from agent_run.executors.content.prose import Segment
from agent_run.executors.content.remarks import (
    Check,
    Remark,
    Severity,
    digest_of,
    in_order,
    quoted,
    status_of,
    tally,
)
from agent_run.executors.content.unseen import unseen
from agent_run.ledger.words import counted

VERSION: Final = "compliance-2"
_SURE_OF_PHRASES: Final = 0.97
_SURE_WITHOUT_MODEL: Final = 0.9
_DOUBTFUL: Final = 0.5


@dataclass(frozen=True, slots=True)
class ComplianceChecker:
    """Looks for phrases that must, must not, or should not stand in a draft."""

    lexicon: Lexicon
    model: Classifier | None = None
    """`None` means that the lexicon alone decides."""
    fail_at: float = 0.95
    """A sentence fails the draft when the model is at least so sure of the objection."""
    base_rate: float | None = 0.1
    """The share of sentences people object to in drafts like these, which is far less than
    among examples collected for training. `None` means the same share."""
    name: str = "compliance"

    def cache_key(self, draft: Draft) -> str:
        """Return the key under which a check of `draft` may be kept."""
        model = self.model.digest if self.model else ""
        return digest_of(VERSION, self.lexicon.digest, model, self._limits, draft.digest)

    @property
    def _limits(self) -> tuple[float, float | None]:
        return self.fail_at, self.base_rate

    async def check(self, draft: Draft, *, seconds: float | None = None) -> Check:
        """Return what the lexicon and the model say about `draft`."""
        return await to_thread.run_sync(check_compliance, draft, self)


def check_compliance(draft: Draft, checker: ComplianceChecker) -> Check:
    """Return what the lexicon and the model of `checker` say about `draft`."""
    phrases = list(_phrases(draft, checker.lexicon))
    guesses, highest = _guesses(draft, checker)
    remarks = in_order([*phrases, *guesses, *unseen(draft)])
    status = status_of(remarks)
    if status_of(phrases) == "failed":
        confidence = _SURE_OF_PHRASES
    elif status == "failed":
        confidence = highest
    elif checker.model is None:
        confidence = _SURE_WITHOUT_MODEL
    else:
        confidence = min(_SURE_OF_PHRASES, 1 - highest)
    found = [counted(len(phrases), "phrase")] if phrases else []
    if guesses:
        found.append(counted(len(guesses), "sentence in doubt", "sentences in doubt"))
    notes = ": ".join(filter(None, (", ".join(found), tally(remarks))))
    return Check(status, round(confidence, 4), notes, remarks, checker.cache_key(draft))


def _phrases(draft: Draft, lexicon: Lexicon) -> Iterator[Remark]:
    index = PhraseIndex()
    forbidden = {entry.id: entry for entry in lexicon.forbidden}
    for entry in lexicon.forbidden:
        index.add(f"no {entry.id}", entry.phrases)
        index.add(f"unless {entry.id}", entry.unless)
    for demand in lexicon.required:
        index.add(f"when {demand.id}", demand.when)
        index.add(f"has {demand.id}", demand.phrases)
    found: dict[str, list[Found]] = {}
    for one in index.find(draft.prose):
        found.setdefault(one.key, []).append(one)
    for name, entry in forbidden.items():
        excuses = found.get(f"unless {name}", [])
        for one in found.get(f"no {name}", []):
            if not any(_covers(excuse, one) for excuse in excuses):
                yield _forbidden(draft, entry, one)
    yield from _missing(draft, lexicon, found)


def _covers(excuse: Found, found: Found) -> bool:
    same = excuse.segment is found.segment
    return same and excuse.start <= found.start and found.end <= excuse.end


def _forbidden(draft: Draft, entry: Forbidden, found: Found) -> Remark:
    start, end = draft.span(found.segment, found.start, found.end)
    line, column = draft.place(start)
    return Remark(
        f"lexicon.{entry.id}",
        entry.severity,
        line,
        column,
        quoted(draft.text[start:end]),
        entry.message,
        entry.suggestion,
    )


def _missing(draft: Draft, lexicon: Lexicon, found: dict[str, list[Found]]) -> Iterator[Remark]:
    for demand in lexicon.required:
        triggers = found.get(f"when {demand.id}", [])
        if found.get(f"has {demand.id}") or (demand.when and not triggers):
            continue
        line, column, quote = 1, 1, ""
        if triggers:
            start, end = draft.span(triggers[0].segment, triggers[0].start, triggers[0].end)
            line, column = draft.place(start)
            quote = quoted(draft.text[start:end])
        advice = demand.phrases[0]
        name = f"lexicon.{demand.id}"
        yield Remark(name, demand.severity, line, column, quote, demand.message, advice)


def _guesses(draft: Draft, checker: ComplianceChecker) -> tuple[list[Remark], float]:
    remarks: list[Remark] = []
    highest = 0.0
    if checker.model is None:
        return remarks, highest
    for segment, start, end in _sentences(draft):
        probability = checker.model.probability(segment.text[start:end], checker.base_rate)
        highest = max(highest, probability)
        if probability < _DOUBTFUL:
            continue
        first, last = draft.span(segment, start, end)
        said = f"reads like pressure on the reader ({probability:.0%} sure)"
        severity: Severity = "error" if probability >= checker.fail_at else "warning"
        remarks.append(
            draft.remark("compliance.pressure", severity, start=first, end=last, message=said)
        )
    return remarks, highest


def _sentences(draft: Draft) -> Iterator[tuple[Segment, int, int]]:
    for segment in draft.prose.segments:
        for start, end in segment.sentences():
            yield segment, start, end
