"""Calls are told apart by what their pages say, as those who make them really write it."""

import anyio
import pytest
from pydantic import JsonValue

from agent_run.contract.budget import Spend
from agent_run.ledger.calls import Usage, answered_by, called, fault_of, usage_of
from agent_run.models import BytesMeter, MemoryPurse, ScriptedModel, Turn, paid
from agent_run.ports.model import ModelRequest


class Noting(MemoryPurse):
    """A purse that lets one see what was written into it."""

    def __init__(self) -> None:
        super().__init__()
        self.begun: list[tuple[str, str]] = []
        self.results: list[JsonValue] = []

    def reserve(
        self, key: str, amount: Spend, *, purpose: str = "", question: JsonValue = None
    ) -> None:
        self.begun.append((key, purpose))
        super().reserve(key, amount, purpose=purpose, question=question)

    def settle(self, key: str, spent: Spend, result: JsonValue = None) -> None:
        self.results.append(result)
        super().settle(key, spent, result)


def test_a_question_that_was_really_paid_for_is_known_as_one() -> None:
    purse = Noting()
    model = ScriptedModel([Turn(text="hi", tokens_in=7, tokens_out=2)])
    question = ModelRequest.model_validate(
        {"messages": [{"kind": "prompt", "text": "hello"}], "step": "a:b"}
    )

    anyio.run(paid(model, purse, BytesMeter()).ask, question)

    ((key, purpose),) = purse.begun
    assert called(key, purpose) == ("chat", model.name)
    assert usage_of(purse.results[0]) == Usage(7, 2)
    assert answered_by(purse.results[0]) == model.name
    assert fault_of(purse.results[0]) is None


@pytest.mark.parametrize(
    ("key", "purpose", "expected"),
    [
        ("step-1.2", "tool edit", ("execute_tool", "edit")),
        ("look-up", "", ("execute_tool", "look-up")),
        ("k", "search the web", ("execute_tool", "search the web")),
        ("k", "chat acme:m1", ("chat", "acme:m1")),
        ("s:acme:m1:2:0123456789abcdef", "acme:m1", ("chat", "acme:m1")),
        ("s:acme:m1:2:too-short", "acme:m1", ("execute_tool", "acme:m1")),
        ("acme:m1", "acme:m1", ("execute_tool", "acme:m1")),
    ],
)
def test_other_calls_are_tools(key: str, purpose: str, expected: tuple[str, str]) -> None:
    assert called(key, purpose) == expected


@pytest.mark.parametrize(
    ("result", "fault"),
    [
        (None, None),
        ("failed", None),
        ({"text": "done"}, None),
        ({"text": "no such file", "failed": True}, "failed"),
        ({"failed": "no answer"}, "failed"),
        ({"answer": {}, "unusable": "it was cut"}, "unusable"),
    ],
)
def test_a_call_that_gave_nothing_says_so_in_one_word(
    result: JsonValue, fault: str | None
) -> None:
    assert fault_of(result) == fault


@pytest.mark.parametrize(
    "result", [None, [], {"answer": 3}, {"answer": {"usage": {"tokens_in": "many"}}}]
)
def test_what_nobody_counted_is_not_zero(result: JsonValue) -> None:
    assert usage_of(result) is None
    assert answered_by(result) is None
