"""Paid before asked, settled after, remembered for good."""

from decimal import Decimal
from functools import partial
from pathlib import Path

import anyio
import pytest

from agent_run.contract.budget import Budget, Spend
from agent_run.errors import (
    AnswerUnusable,
    ModelUnreachable,
    OutcomeUnknown,
    OverBudget,
)
from agent_run.models import BytesMeter, MemoryPurse, Price, ScriptedModel, Terms, Turn, paid
from agent_run.models.paying import _key
from agent_run.models.weighing import at_most
from agent_run.ports.model import ModelAnswer, ModelRequest, Prompt, Usage

METER = BytesMeter()


def asks(text: str = "hello", **more: int | str) -> ModelRequest:
    return ModelRequest.model_validate(
        {"messages": [{"kind": "prompt", "text": text}], "max_output_tokens": 50, **more}
    )


def says(text: str = "hi", *, tokens: int = 10, rate: Price | None = None) -> ScriptedModel:
    turn = Turn(text=text, tokens_in=tokens, tokens_out=tokens)
    return ScriptedModel([turn], rate=rate or Price(Decimal(1), Decimal(2)))


class Flaky:
    """Fails some times, then answers."""

    name = "flaky"

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.asked = 0

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        self.asked += 1
        if self.errors:
            raise self.errors.pop(0)
        return ModelAnswer(model=self.name, text="at last", usage=Usage(tokens_in=5))

    def price(self, usage: Usage) -> Decimal | None:
        return None


def test_a_call_takes_what_it_really_took() -> None:
    purse = MemoryPurse()

    answer = anyio.run(paid(says(), purse, METER).ask, asks())

    assert answer.text == "hi"
    assert purse.spent == Spend(tokens=20, requests=1, cost_usd=Decimal("0.00003"))
    assert purse.reserved == Spend()


def test_nothing_is_asked_that_cannot_be_paid_for() -> None:
    model = says()

    with pytest.raises(OverBudget, match="tokens"):
        anyio.run(paid(model, MemoryPurse(Budget(max_tokens=60)), METER).ask, asks())

    assert model.asked == []


def test_a_finished_call_is_read_back_and_never_paid_twice(tmp_path: Path) -> None:
    file = tmp_path / "purse"
    first, second = says("one"), says("two")

    anyio.run(paid(first, MemoryPurse(file=file), METER).ask, asks(step="3"))
    again = anyio.run(paid(second, MemoryPurse(file=file), METER).ask, asks(step="3"))

    assert (again.text, again.replayed) == ("one", True)
    assert second.asked == []
    assert MemoryPurse(file=file).spent.requests == 1


@pytest.mark.parametrize("other", [asks(step="4"), asks("bye", step="3"), asks(step="")])
def test_another_step_or_question_is_another_call(other: ModelRequest) -> None:
    purse, model = MemoryPurse(), says()

    anyio.run(paid(model, purse, METER).ask, asks(step="3"))
    anyio.run(paid(model, purse, METER).ask, other)

    assert len(model.asked) == 2


def begun_and_lost(file: Path, request: ModelRequest) -> None:
    MemoryPurse(file=file).reserve(_key(says(), request, 1), Spend(tokens=70, requests=1))


def test_a_call_begun_before_a_crash_is_asked_again_and_counts_as_paid(tmp_path: Path) -> None:
    told: list[str] = []
    begun_and_lost(tmp_path / "purse", asks())
    purse = MemoryPurse(file=tmp_path / "purse")
    terms = Terms(tell=lambda _topic, text: told.append(text))

    anyio.run(paid(says(), purse, METER, terms).ask, asks())

    assert "never settled" in told[0]
    assert purse.spent.tokens == 70 + 20


def test_a_call_begun_before_a_crash_goes_to_a_person_if_so_agreed(tmp_path: Path) -> None:
    model = says()
    begun_and_lost(tmp_path / "purse", asks())
    purse = MemoryPurse(file=tmp_path / "purse")

    with pytest.raises(OutcomeUnknown, match="never settled"):
        anyio.run(paid(model, purse, METER, Terms(on_unknown="escalate")).ask, asks())

    assert model.asked == []


def test_a_retry_is_told_and_stands_in_the_answer() -> None:
    told: list[str] = []
    model = Flaky(ModelUnreachable("busy"), ModelUnreachable("still busy"))
    terms = Terms(pause_sec=0, tell=lambda _topic, text: told.append(text))

    answer = anyio.run(paid(model, MemoryPurse(), METER, terms).ask, asks())

    assert answer.warnings == ("busy", "still busy")
    assert ["busy" in line for line in told] == [True, True]


def test_failures_of_an_earlier_process_do_not_use_up_the_tries(tmp_path: Path) -> None:
    file = tmp_path / "purse"
    terms = Terms(retries=1, pause_sec=0)
    dead = Flaky(*[ModelUnreachable("dead")] * 9)
    with pytest.raises(ModelUnreachable):
        anyio.run(paid(dead, MemoryPurse(file=file), METER, terms).ask, asks())

    answer = anyio.run(paid(Flaky(), MemoryPurse(file=file), METER, terms).ask, asks())

    assert dead.asked == 2
    assert answer.text == "at last"


def test_a_try_that_may_have_cost_is_counted_in_full() -> None:
    purse = MemoryPurse()
    model = Flaky(ModelUnreachable("timed out", may_have_cost=True))

    anyio.run(paid(model, purse, METER, Terms(pause_sec=0)).ask, asks())

    assert purse.spent.tokens == at_most(asks(), model, METER, 2.0).tokens + 5
    assert purse.spent.unpriced_requests == 2


def test_a_cut_answer_is_loud_and_paid_for() -> None:
    purse = MemoryPurse()
    model = ScriptedModel([Turn(text="only ha", ended="length", tokens_in=9, tokens_out=50)])

    with pytest.raises(AnswerUnusable, match="cut"):
        anyio.run(paid(model, purse, METER).ask, asks())

    assert purse.spent.tokens == 59


def test_an_unknown_price_is_refused_under_a_limit_in_dollars() -> None:
    model = Flaky()

    with pytest.raises(OverBudget, match="nobody knows the price of 'flaky'"):
        anyio.run(paid(model, MemoryPurse(), METER, Terms(needs_price=True)).ask, asks())

    assert model.asked == 0


def test_a_cheaper_model_is_asked_when_the_first_is_too_dear() -> None:
    told: list[str] = []
    dear, cheap = says("dear", rate=Price(Decimal(900), Decimal(900))), says("cheap")
    cheap.name = "cheap"
    terms = Terms(cheaper=(cheap,), tell=lambda _topic, text: told.append(text))
    purse = MemoryPurse(Budget.model_validate({"max_cost_usd": "0.01"}))

    answer = anyio.run(paid(dear, purse, METER, terms).ask, asks())
    again = anyio.run(paid(dear, purse, METER, terms).ask, asks())

    assert (answer.text, again.text, again.replayed) == ("cheap", "cheap", True)
    assert dear.asked == []
    assert "cannot be paid for" in told[0]


def test_a_provider_that_counts_nothing_is_counted_by_our_meter() -> None:
    model = ScriptedModel([Turn(text="hi", tokens_in=0, tokens_out=0)])

    answer = anyio.run(paid(model, MemoryPurse(), METER).ask, asks())

    assert answer.usage.counter == "utf8-bytes"
    assert answer.usage.tokens_in >= len("hello")
    assert "counted no tokens" in answer.warnings[0]


def test_taking_more_than_was_set_aside_is_said() -> None:
    answer = anyio.run(paid(says(tokens=500), MemoryPurse(), METER).ask, asks())

    assert "1000 tokens" in answer.warnings[0]


class Slow:
    """Answers when all who could pay have asked, and counts what it was paid for."""

    name = "slow"

    def __init__(self) -> None:
        self.answered = 0
        self.tokens = 0

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        await anyio.sleep(0.01)
        self.answered += 1
        usage = Usage(tokens_in=100, tokens_out=request.max_output_tokens)
        self.tokens += usage.tokens
        return ModelAnswer(model=self.name, text=f"answer {self.answered}", usage=usage)

    def price(self, usage: Usage) -> Decimal | None:
        return None


async def _agent(model: Slow, purse: MemoryPurse, number: int, kept: list[str]) -> None:
    """Ask three times, as an agent with three steps, and keep every answer that was paid."""
    ours = paid(model, purse.of(f"agent-{number}"), METER, Terms(factor=1.0))
    for step in range(3):
        request = ModelRequest(
            messages=(Prompt(text="x" * 60),), max_output_tokens=30, step=str(step)
        )
        try:
            kept.append((await ours.ask(request)).text)
        except OverBudget:
            return


async def _eight(model: Slow, purse: MemoryPurse, kept: list[str]) -> None:
    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(_agent, model, purse, number, kept)


def test_eight_agents_never_spend_more_than_their_one_budget() -> None:
    model, purse, kept = Slow(), MemoryPurse(Budget(max_tokens=1_000)), list[str]()

    anyio.run(partial(_eight, model, purse, kept))

    assert model.tokens == purse.spent.tokens <= 1_000
    assert purse.spent.tokens > 1_000 - 2 * 130  # and the budget was put to use
    assert len(kept) == model.answered  # nothing was paid for and thrown away
    assert purse.reserved == Spend()
