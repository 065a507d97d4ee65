"""The questions that a run put to models, and what they answered, read from its pages."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from agent_run.contract.budget import Spend
from agent_run.errors import ContractError
from agent_run.ledger import events as happened
from agent_run.ledger.pages import Page
from agent_run.models.questions import read_question
from agent_run.ports.model import ModelAnswer, ModelRequest


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One question that was answered."""

    task_id: str
    key: str
    model: str
    """Who was asked, as it was configured then."""
    request: ModelRequest
    answer: ModelAnswer
    unusable: str
    """Why the answer could not be used even then. Empty means that it could."""
    spent: Spend
    seconds: float


@dataclass(frozen=True, slots=True)
class Recorded:
    """What can be asked again of a run, and what cannot."""

    calls: tuple[RecordedCall, ...]
    without_question: tuple[str, ...]
    """Answered calls whose question nobody wrote down, as `task/key`."""


@dataclass(slots=True)
class _Reading:
    calls: list[RecordedCall] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    questions: dict[str, dict[str, ModelRequest]] = field(default_factory=dict)
    """By task, then by key."""
    begun: dict[tuple[str, str], tuple[str, datetime]] = field(default_factory=dict)

    def reserved(self, event: happened.SpendReserved) -> None:
        self.begun[event.task_id, event.key] = event.purpose, event.at
        if event.question is None:
            return
        known = self.questions.setdefault(event.task_id, {})
        request = read_question(event.question, known)
        if request is not None:
            known[event.key] = request

    def settled(self, event: happened.SpendSettled) -> None:
        result = event.result
        if not isinstance(result, Mapping) or "answer" not in result:
            return  # A tool, or a try without an answer: nobody to compare with.
        request = self.questions.get(event.task_id, {}).get(event.key)
        if request is None:
            self.silent.append(f"{event.task_id}/{event.key}")
            return
        model, at = self.begun[event.task_id, event.key]
        answer = ModelAnswer.model_validate(result["answer"])
        self.calls.append(
            RecordedCall(
                task_id=event.task_id,
                key=event.key,
                model=model,
                request=request,
                answer=answer,
                unusable=str(result.get("unusable") or "; ".join(answer.faults)),
                spent=event.spent,
                seconds=(event.at - at).total_seconds(),
            )
        )


def recorded_calls(pages: Iterable[Page]) -> Recorded:
    """Return every answered call of a run, in the order of the answers.

    Raises:
        ContractError: A page holds something else where a question should be.
    """
    reading = _Reading()
    for page in pages:
        event = page.event()
        try:
            match event:
                case happened.SpendReserved():
                    reading.reserved(event)
                case happened.SpendSettled():
                    reading.settled(event)
                case _:
                    continue
        except ContractError as error:
            msg = f"page {page.seq} of run {page.run_id!r}: {error}"
            raise ContractError(msg) from error
    return Recorded(tuple(reading.calls), tuple(reading.silent))
