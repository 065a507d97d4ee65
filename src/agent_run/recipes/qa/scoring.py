"""How good the checks were, against a key that a careful person wrote.

The key is JSONL: `draft`, `step`, the right `status`, and `defects` with line and quote.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from agent_run.contract.base import Contract, Text, Whole
from agent_run.contract.faults import Fault, in_line, refusal
from agent_run.contract.files import text_of
from agent_run.contract.reading import load, read_document
from agent_run.errors import InvalidDocument
from agent_run.recipes.qa.reporting import Report, StepReport


class Defect(Contract):
    """Something that is wrong in a draft, and where."""

    line: Whole
    quote: Text


class Truth(Contract):
    """What a careful person says about one step for one draft."""

    draft: str
    step: str
    status: Literal["passed", "failed"]
    defects: tuple[Defect, ...] = ()


@dataclass(frozen=True, slots=True)
class Score:
    """The checks beside the key. A step that went to a person undecided is neither."""

    steps: int
    caught: int
    """Failed, and rightly so."""
    wronged: int
    """Failed, though the key says it is fine."""
    missed: int
    """Passed, though the key says it is not."""
    undecided: int
    undecided_defective: int
    """Of the undecided, those that the key says are not fine."""
    defects: int
    defects_found: int
    remarks: int
    remarks_right: int
    cache_hits: int

    @property
    def precision(self) -> float | None:
        """Of what failed, the share that should; `None` if nothing failed."""
        return _share(self.caught, self.caught + self.wronged)

    @property
    def recall(self) -> float | None:
        """Of what should fail, the share that did; what went to a person did not."""
        return _share(self.caught, self.caught + self.missed + self.undecided_defective)

    @property
    def escalated(self) -> int:
        """Steps that were put before a person: those that failed, and the undecided."""
        return self.caught + self.wronged + self.undecided


def read_key(path: Path) -> dict[tuple[str, str], Truth]:
    """Return the key in the file at `path`, by draft and step.

    Raises:
        InvalidDocument: It cannot be read, or a line is none of a key.
    """
    lines = text_of(path).split("\n")
    truths: dict[tuple[str, str], Truth] = {}
    faults: list[Fault] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            truth = load(Truth, read_document(line, source=str(path), format="json"))
        except InvalidDocument as error:
            faults += [in_line(fault, number) for fault in error.faults]
            continue
        truths[truth.draft, truth.step] = truth
    if faults:
        raise refusal(faults)
    if not truths:
        msg = f"key {str(path)!r} is empty, expected a line for each draft and step"
        raise InvalidDocument(msg)
    return truths


def score(report: Report, key: Mapping[tuple[str, str], Truth]) -> Score:
    """Return how the report compares with the key; steps that the key lacks do not count."""
    pairs = list(_pairs(report, key))
    defects = [_found(step, truth) for step, truth in pairs]
    remarks = [_right(step, truth) for step, truth in pairs]
    return Score(
        steps=len(pairs),
        caught=_count(pairs, "failed", "failed"),
        wronged=_count(pairs, "failed", "passed"),
        missed=_count(pairs, "passed", "failed"),
        undecided=sum(step.outcome == "person" for step, _ in pairs),
        undecided_defective=_count(pairs, "person", "failed"),
        defects=sum(len(truth.defects) for _, truth in pairs),
        defects_found=sum(defects),
        remarks=sum(len(step.remarks) for step, _ in pairs),
        remarks_right=sum(remarks),
        cache_hits=sum(step.cached for step, _ in pairs),
    )


def score_json(told: Score) -> dict[str, JsonValue]:
    """Return the score as data."""
    return {
        "steps": told.steps,
        "precision": told.precision,
        "recall": told.recall,
        "caught": told.caught,
        "wronged": told.wronged,
        "missed": told.missed,
        "undecided": told.undecided,
        "escalation_rate": _share(told.escalated, told.steps),
        "undecided_rate": _share(told.undecided, told.steps),
        "defects": told.defects,
        "defects_found": told.defects_found,
        "remarks": told.remarks,
        "remarks_right": told.remarks_right,
        "cache_hits": told.cache_hits,
    }


def score_rows(told: Score) -> Iterator[tuple[str, str, str]]:
    """Yield the name of each number, the number, and what it was counted from."""
    should = told.caught + told.missed + told.undecided_defective
    failed = told.caught + told.wronged
    yield "precision", _shown(told.precision), f"{told.caught} of {failed} failed rightly"
    yield "recall", _shown(told.recall), f"{told.caught} of {should} that should fail"
    escalated = f"{told.escalated} of {told.steps} steps"
    yield (
        "escalation rate",
        _shown(_share(told.escalated, told.steps)),
        f"{escalated}: {failed} failed, {told.undecided} undecided",
    )
    cached = _shown(_share(told.cache_hits, told.steps))
    yield "cache hits", cached, f"{told.cache_hits} of {told.steps} steps"
    found = _shown(_share(told.defects_found, told.defects))
    yield "defects found", found, f"{told.defects_found} of {told.defects} planted"


def score_lines(told: Score) -> Iterator[str]:
    """Yield the score as people read it at a terminal."""
    for name, value, basis in score_rows(told):
        yield f"{name:15}  {value}  {basis}"


def _pairs(
    report: Report, key: Mapping[tuple[str, str], Truth]
) -> Iterator[tuple[StepReport, Truth]]:
    for draft in report.drafts:
        for step in draft.steps:
            truth = key.get((Path(draft.name).name, step.step.id))
            if truth is not None:
                yield step, truth


def _count(pairs: Sequence[tuple[StepReport, Truth]], outcome: str, status: str) -> int:
    return sum(step.outcome == outcome and truth.status == status for step, truth in pairs)


def _found(step: StepReport, truth: Truth) -> int:
    lines = {remark["line"] for remark in step.remarks}
    return sum(defect.line in lines for defect in truth.defects)


def _right(step: StepReport, truth: Truth) -> int:
    lines = {defect.line for defect in truth.defects}
    return sum(remark["line"] in lines for remark in step.remarks)


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _shown(share: float | None) -> str:
    return "   - " if share is None else f"{share:5.3f}"
