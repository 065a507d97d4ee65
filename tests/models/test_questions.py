"""Questions are written down so that they can be asked again, and only what is new of them."""

from datetime import timedelta

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from agent_run.contract.budget import Spend
from agent_run.contract.payload import canonical
from agent_run.errors import ContractError
from agent_run.models import BytesMeter, MemoryPurse, ScriptedModel, Turn, paid
from agent_run.models.questions import Questions, read_question
from agent_run.ports.model import (
    Message,
    ModelRequest,
    Observation,
    Prompt,
    Remembered,
    Reply,
    ToolOffer,
)

WORDS = st.text(max_size=20)
MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(Prompt, text=WORDS),
    st.builds(Reply, text=WORDS),
    st.builds(Observation, call_id=WORDS, name=WORDS, text=WORDS, failed=st.booleans()),
)
TURNS = st.lists(st.lists(MESSAGES, max_size=3), min_size=1, max_size=6)


class Witness:
    """A purse that keeps what it was told about each call."""

    def __init__(self) -> None:
        self.purse = MemoryPurse()
        self.questions: dict[str, JsonValue] = {}

    def recall(self, key: str) -> Remembered | None:
        return self.purse.recall(key)

    def reserve(
        self, key: str, amount: Spend, *, purpose: str = "", question: JsonValue = None
    ) -> None:
        self.questions[key] = question
        self.purse.reserve(key, amount, purpose=purpose)

    def settle(self, key: str, spent: Spend, result: JsonValue = None) -> None:
        self.purse.settle(key, spent, result)


def _talk(turns: list[list[Message]]) -> list[ModelRequest]:
    said: tuple[Message, ...] = (Prompt(text="begin"),)
    requests = []
    for number, turn in enumerate(turns):
        said = (*said, *turn)
        requests.append(ModelRequest(messages=said, step=f"step-{number}"))
    return requests


@given(TURNS)
def test_every_turn_of_a_conversation_is_read_back_as_it_was_asked(
    turns: list[list[Message]],
) -> None:
    questions = Questions()
    read: dict[str, ModelRequest] = {}

    for number, request in enumerate(_talk(turns)):
        written = questions.written(request)
        questions.asked(str(number), request)
        again = read_question(written, read)
        assert again == request
        read[str(number)] = again


def test_a_long_conversation_is_written_down_once() -> None:
    talk = _talk([[Reply(text="x" * 1_000)] for _ in range(50)])
    questions, size = Questions(), 0

    for number, request in enumerate(talk):
        size += len(canonical(questions.written(request)))
        questions.asked(str(number), request)

    assert size < 2 * len(talk[-1].model_dump_json())


def test_a_question_with_other_tools_is_written_whole() -> None:
    questions = Questions()
    request = ModelRequest(messages=(Prompt(text="hi"),), timeout=timedelta(seconds=90))
    questions.asked("first", request)
    other = request.model_copy(update={"tools": (ToolOffer(name="look", parameters={}),)})

    written = questions.written(other)

    assert read_question(written, {}) == other


def test_a_turn_after_an_unknown_question_is_not_guessed() -> None:
    request = ModelRequest(messages=(Prompt(text="hi"),))
    questions = Questions()
    questions.asked("lost", request)

    assert read_question(questions.written(request), {}) is None


def test_what_is_no_question_is_refused() -> None:
    with pytest.raises(ContractError, match="no question"):
        read_question({"messages": "hi"}, {})


def test_a_paid_model_hands_every_question_to_its_purse() -> None:
    witness = Witness()
    model = paid(ScriptedModel([Turn(text="hi")]), witness, BytesMeter())
    first = ModelRequest(messages=(Prompt(text="one"),), step="a")
    second = ModelRequest(
        messages=(*first.messages, Reply(text="hi"), Prompt(text="two")), step="b"
    )

    async def talk() -> None:
        await model.ask(first)
        await model.ask(second)

    anyio.run(talk)

    keys = list(witness.questions)
    asked = read_question(witness.questions[keys[0]], {})
    assert asked == first
    assert read_question(witness.questions[keys[1]], {keys[0]: first}) == second


def test_a_conversation_taken_up_again_goes_on_from_answers_that_were_read_back() -> None:
    witness = Witness()
    first = ModelRequest(messages=(Prompt(text="one"),), step="a")
    second = ModelRequest(messages=(*first.messages, Reply(text="hi")), step="b")
    model = ScriptedModel([Turn(text="hi")])
    anyio.run(paid(model, witness, BytesMeter()).ask, first)
    resumed = paid(model, witness, BytesMeter())

    async def talk() -> None:
        await resumed.ask(first)
        await resumed.ask(second)

    anyio.run(talk)

    (begun, went_on) = witness.questions
    written = witness.questions[went_on]
    assert isinstance(written, dict)
    assert written["after"] == begun
