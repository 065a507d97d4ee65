"""Every question is paid for before it is asked, and its answer is written down whole.

A call is named by its step and a hash of the question. A run that is taken up again finds the
answers of finished calls under those names and pays for nothing twice. A call that was begun
and never settled is unknown: it is tried again under a new name, or goes to a person.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Final, TypeVar

import anyio
from pydantic import JsonValue

from agent_run.contract.budget import Spend
from agent_run.contract.manifest import OnCrash
from agent_run.errors import (
    AnswerUnusable,
    ModelRefused,
    ModelUnreachable,
    OutcomeUnknown,
    OverBudget,
)
from agent_run.models.answering import whole
from agent_run.models.questions import Questions
from agent_run.models.weighing import at_most, safety, words_of
from agent_run.ports.meter import Meter
from agent_run.ports.model import (
    Model,
    ModelAnswer,
    ModelRequest,
    Purse,
    Usage,
)

_LONGEST_WAIT: Final = 60.0
_MOST_TRIES_EVER: Final = 1_000
_ONE_REQUEST: Final = Spend(requests=1)

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class Terms:
    """How calls are paid for, tried again, and what happens when the money ends."""

    retries: int = 2
    """How often a question without an answer is asked again; each try is paid for by itself."""
    pause_sec: float = 1.0
    """Before the first retry; it doubles for each one after."""
    on_unknown: OnCrash = "retry"
    """What follows a call that was begun before a crash: ask again, or ask a person."""
    cheaper: tuple[Model, ...] = ()
    """Whom to ask instead, in this order, when the budget does not allow the first."""
    needs_price: bool = False
    """Whether a question whose price nobody knows is refused, as under a limit in dollars."""
    factor: float | None = None
    """By how much counted tokens are raised. `None` is what is known of the model."""
    tell: Callable[[str, str], None] = lambda _topic, _text: None
    """Called with a topic and a line for people, as things happen."""


USUAL: Final = Terms()


@dataclass(frozen=True, slots=True)
class PaidModel:
    """A model whose every answer is paid for and remembered."""

    model: Model
    purse: Purse
    meter: Meter
    terms: Terms = USUAL
    questions: Questions = field(default_factory=Questions)

    @property
    def name(self) -> str:
        return self.model.name

    def price(self, usage: Usage) -> Decimal | None:
        """Return what `usage` costs with the model that is asked first."""
        return self.model.price(usage)

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        """Return the answer, from the purse's memory if it was paid for before.

        Raises:
            OverBudget: Neither this model nor a cheaper one can be paid for.
            OutcomeUnknown: It was begun before a crash, and the terms want a person to decide.
        """
        models = (self.model, *self.terms.cheaper)
        places = [await _aside(partial(self._looked_up, one, request)) for one in models]
        for place in places:
            if isinstance(place, ModelAnswer):
                return place
        refused: OverBudget | None = None
        for model, place in zip(models, places, strict=True):
            if not isinstance(place, int):
                continue
            try:
                return await self._tried(model, request, place)
            except OverBudget as error:
                self.terms.tell("budget", f"{model.name} cannot be paid for: {error}")
                refused = refused or error
        raise refused or OverBudget("no model is left to ask")

    def _looked_up(self, model: Model, request: ModelRequest) -> ModelAnswer | int:
        """Return the answer that was paid for before, or the number of the next try."""
        for number in range(1, _MOST_TRIES_EVER):
            key = _key(model, request, number)
            known = self.purse.recall(key)
            if known is None:
                return number
            if known.finished:
                answer = _answer_in(known.result, request)
                if answer is not None:
                    self.questions.asked(key, request)
                    return answer
                continue
            msg = f"call {key!r} was begun and never settled"
            if self.terms.on_unknown == "escalate":
                raise OutcomeUnknown(msg)
            self.terms.tell("model", f"{msg}; it counts as paid for and is asked again")
        msg = f"call {_key(model, request, 1)!r} was tried {_MOST_TRIES_EVER} times"
        raise ModelRefused(msg)

    async def _tried(self, model: Model, request: ModelRequest, first: int) -> ModelAnswer:
        amount = self._amount(model, request)
        failures: list[str] = []
        while True:
            key = _key(model, request, first + len(failures))
            question = self.questions.written(request)
            await _aside(
                partial(self.purse.reserve, key, amount, purpose=model.name, question=question)
            )
            self.questions.asked(key, request)
            try:
                answer = await self._settled(model, request, key, amount)
            except ModelUnreachable as error:
                failures.append(str(error))
                if len(failures) > self.terms.retries:
                    raise
                pause = self._pause(error, len(failures), key)
                self.terms.tell(
                    "model", f"try {len(failures)}: {error}; again in {pause:.1f} s"
                )
                await anyio.sleep(pause)
            else:
                warnings = (*answer.warnings, *failures)
                return answer.model_copy(update={"warnings": warnings}) if failures else answer

    async def _settled(
        self, model: Model, request: ModelRequest, key: str, amount: Spend
    ) -> ModelAnswer:
        """Ask once, and settle whatever came of it before anything else happens."""
        spent = _ONE_REQUEST
        result: dict[str, JsonValue] | None = None
        try:
            answer = self._counted(await model.ask(request), request, amount)
            spent, result = answer.spend, {"answer": answer.model_dump(mode="json")}
        except ModelUnreachable as error:
            spent = amount if error.may_have_cost else _ONE_REQUEST
            result = {"failed": str(error)}
            raise
        except ModelRefused as error:
            result = {"failed": str(error)}
            raise
        except AnswerUnusable as error:
            if isinstance(error.answer, ModelAnswer):
                cut = self._counted(error.answer, request, amount)
                spent = cut.spend
                result = {"answer": cut.model_dump(mode="json"), "unusable": str(error)}
            raise
        finally:
            if result is not None:  # otherwise nobody knows what came of it
                with anyio.CancelScope(shield=True):
                    await _aside(partial(self.purse.settle, key, spent, result))
        return answer

    def _amount(self, model: Model, request: ModelRequest) -> Spend:
        factor = safety(model) if self.terms.factor is None else self.terms.factor
        amount = at_most(request, model, self.meter, factor)
        if self.terms.needs_price and amount.unpriced_requests:
            msg = (
                f"there is a limit in dollars, and nobody knows the price of {model.name!r}; "
                "configure a price, or limit tokens instead"
            )
            raise OverBudget(msg)
        return amount

    def _counted(
        self, answer: ModelAnswer, request: ModelRequest, amount: Spend
    ) -> ModelAnswer:
        """Return the answer with usage that somebody counted, and a word if it was too much."""
        warnings = list(answer.warnings)
        usage = answer.usage
        if not usage.tokens:
            usage = Usage(
                tokens_in=self.meter.count(words_of(request)),
                tokens_out=self.meter.count(answer.as_reply().model_dump_json()),
                counter=self.meter.name,
            )
            warnings.append(f"the provider counted no tokens; {self.meter.name} did")
        if usage.tokens > amount.tokens:
            warnings.append(f"took {usage.tokens} tokens, {amount.tokens} were set aside")
        if usage is answer.usage and len(warnings) == len(answer.warnings):
            return answer
        return answer.model_copy(update={"usage": usage, "warnings": tuple(warnings)})

    def _pause(self, error: ModelUnreachable, failures: int, key: str) -> float:
        """Return how long to wait; many who failed together do not come back together."""
        if error.wait_sec is not None:
            return min(error.wait_sec, _LONGEST_WAIT)
        spread = 1 + int(key[-4:], 16) / 0xFFFF
        doubled: float = self.terms.pause_sec * 2 ** (failures - 1)
        return min(doubled * spread, _LONGEST_WAIT)


def paid(model: Model, purse: Purse, meter: Meter, terms: Terms = USUAL) -> PaidModel:
    """Return `model` so that every question is reserved, settled and remembered."""
    return PaidModel(model, purse, meter, terms)


def _key(model: Model, request: ModelRequest, number: int) -> str:
    step = request.step or "ask"
    return f"{step}:{model.name}:{number}:{request.digest()[:16]}"


def _answer_in(result: JsonValue, request: ModelRequest) -> ModelAnswer | None:
    """Return the answer that was written down; None if that try had failed.

    Raises:
        AnswerUnusable: It was cut or withheld then, and so it is now.
    """
    if not isinstance(result, Mapping) or "answer" not in result:
        return None
    answer = ModelAnswer.model_validate(result["answer"])
    return whole(answer.model_copy(update={"replayed": True}), request)


async def _aside(work: Callable[[], ResultT]) -> ResultT:
    """Return what `work` gives; it blocks, so it is done in a thread, and to its end."""
    return await anyio.to_thread.run_sync(work)
