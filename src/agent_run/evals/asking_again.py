"""Putting the recorded questions of a run to another model, and comparing what it says.

Each question is asked as it was asked then, with what tools had said by then; nothing is
executed. So every turn of a conversation is compared on the course that was really taken.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Final, TypeAlias

from agent_run.errors import ModelError, OverBudget
from agent_run.evals.answers import Compared, compare
from agent_run.evals.interview import Interview
from agent_run.evals.recorded import RecordedCall
from agent_run.evals.scoring import Score, wilson_score
from agent_run.evals.side_by_side import each_of
from agent_run.ledger.metrics.statistics import Proportion, mean, share_of
from agent_run.ports.model import Model, ModelAnswer, ModelRequest, Reply

Progress: TypeAlias = Callable[[int, int, "Again"], None]
"""Told how many are done, of how many, and which was the last."""

_NOT_ASKED: Final = "not asked"


@dataclass(frozen=True, slots=True)
class Again:
    """One recorded call, and what came of asking it again."""

    call: RecordedCall
    answer: ModelAnswer | None
    """`None` means that no answer came."""
    fault: str
    """Why there is no usable answer. Empty means that there is one."""
    seconds: float | None
    """`None` means that the answer was there from an earlier replay."""
    compared: tuple[Compared, ...] = ()
    refused: bool = False
    """Whether it was not asked because it could not be paid for."""

    @property
    def differing(self) -> tuple[Compared, ...]:
        """What the new answer says otherwise."""
        return tuple(one for one in self.compared if not one.same)

    @property
    def outcome(self) -> str:
        if self.refused:
            return _NOT_ASKED
        if self.fault:
            return "unusable" if self.answer else "no answer"
        if self.call.unusable:
            return "usable now"
        return "differs" if self.differing else "same"


async def ask_again(
    interview: Interview, calls: Sequence[RecordedCall], progress: Progress
) -> list[Again]:
    """Return what the model says to each recorded question."""
    return await each_of(
        calls, partial(_again, interview), at_once=interview.at_once, progress=progress
    )


def reask_scores(again: Sequence[Again]) -> dict[str, Score]:
    """Return how the model did, by the names that limits are set for."""
    asked = [one for one in again if not one.refused]
    both = [one for one in asked if not one.fault and not one.call.unusable]
    answers = [one.answer for one in asked if one.answer is not None]
    return {
        "asked": wilson_score(
            "asked",
            Proportion(len(asked), len(again)),
            "higher",
            "recorded questions that could be paid for",
        ),
        "usable": wilson_score(
            "usable",
            share_of(not one.fault for one in asked),
            "higher",
            "answers that are whole and keep the schema",
        ),
        "same": wilson_score(
            "same",
            share_of(not one.differing for one in both),
            "higher",
            "answers that choose the same as then",
        ),
        "tokens": _mean(
            "tokens",
            [one.usage.tokens for one in answers],
            [one.call.spent.tokens for one in asked if one.answer],
            "tokens of a call",
        ),
        "cost_usd": _mean(
            "cost_usd",
            [float(one.cost_usd) for one in answers if one.cost_usd is not None],
            [float(one.call.spent.cost_usd) for one in asked if _priced(one)],
            "cost of a call whose price is known",
        ),
        "seconds": _mean(
            "seconds",
            [one.seconds for one in asked if one.seconds is not None and one.answer],
            [one.call.seconds for one in asked if one.seconds is not None and one.answer],
            "time of a call that was asked now",
        ),
    }


def by_field(again: Iterable[Again]) -> dict[str, Proportion]:
    """Return for each field that chooses how often both answers choose the same."""
    found: dict[str, Proportion] = {}
    for one in again:
        for each in one.compared:
            seen = found.get(each.field, Proportion(0, 0))
            found[each.field] = seen + Proportion(int(each.same), 1)
    return found


async def _again(interview: Interview, call: RecordedCall) -> Again:
    model = interview.paying(call.task_id)
    request = _for(interview.model, call)
    started = monotonic()
    try:
        answer = await model.ask(request)
    except OverBudget as error:
        return Again(call, None, str(error), None, refused=True)
    except ModelError as error:
        cut = getattr(error, "answer", None)
        kept = cut if isinstance(cut, ModelAnswer) else None
        return Again(call, kept, str(error), monotonic() - started)
    seconds = None if answer.replayed else monotonic() - started
    if answer.faults:
        return Again(call, answer, "; ".join(answer.faults), seconds)
    if call.unusable:
        return Again(call, answer, "", seconds)
    return Again(call, answer, "", seconds, compare(request, call.answer, answer))


def _for(model: Model, call: RecordedCall) -> ModelRequest:
    """Return the question without what only the provider of then would understand."""
    if model.name.partition(":")[0] == call.model.partition(":")[0]:
        return call.request
    messages = tuple(
        one.model_copy(update={"opaque": None}) if isinstance(one, Reply) else one
        for one in call.request.messages
    )
    return call.request.model_copy(update={"messages": messages})


def _priced(one: Again) -> bool:
    return one.answer is not None and not one.call.spent.unpriced_requests


def _mean(name: str, now: Sequence[float], then: Sequence[float], says: str) -> Score:
    before = mean(then)
    said = says if before is None else f"{says}; {before:.4g} then"
    return Score(name, mean(now), None, None, len(now), "lower", said)
