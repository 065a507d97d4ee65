"""Recorded questions before another model: compared where something was chosen."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_run.contract.budget import Budget, Spend
from agent_run.desk import Desk
from agent_run.engine.purse import DeskPurse
from agent_run.evals.answers import Compared, compare
from agent_run.evals.asking_again import Again, ask_again, by_field, reask_scores
from agent_run.evals.interview import Interview
from agent_run.evals.recorded import Recorded, recorded_calls
from agent_run.models import BytesMeter, MemoryPurse, Price, ScriptedModel, Terms, Turn, paid
from agent_run.models.scripted import Script, ScriptedCall
from agent_run.ports.model import (
    ModelAnswer,
    ModelRequest,
    Observation,
    Prompt,
    Reply,
    ToolCall,
    ToolOffer,
)
from agent_run.wiring import open_desk
from tests.support.stories import TASK, claim, post

RUN = "run"
METER = BytesMeter()
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["verdict"],
    "properties": {
        "verdict": {"$ref": "#/$defs/Verdict"},
        "why": {"type": "string"},
        "findings": {
            "type": "array",
            "items": {"properties": {"serious": {"anyOf": [{"type": "boolean"}]}}},
        },
    },
    "$defs": {"Verdict": {"enum": ["pass", "fail"]}},
}
JUDGE = ModelRequest(
    messages=(Prompt(text="Is it kind?"),), output_schema=SCHEMA, step="opinion"
)
TOOLS = (ToolOffer(name="look", parameters={}), ToolOffer(name="edit", parameters={}))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = open_desk(f"sqlite:///{tmp_path / 'ledger.db'}")
    made.handle(RUN, post(), claim())
    yield made
    made.close()


def _verdict(verdict: str, why: str = "") -> Turn:
    return Turn(output={"verdict": verdict, "why": why})


def _model(script: Script, name: str = "other:new") -> ScriptedModel:
    return ScriptedModel(script, name=name, rate=Price(Decimal(1), Decimal(1)))


def _record(desk: Desk, script: Script, *requests: ModelRequest) -> Recorded:
    """Put questions to a model as the work of a claimed task, and read them from the pages."""
    model = paid(_model(script, "scripted:old"), DeskPurse(desk, RUN, TASK, 2, "ada"), METER)

    async def talk() -> None:
        for request in requests:
            await model.ask(request)

    anyio.run(talk)
    return recorded_calls(desk.pages(RUN))


def _ask(
    recorded: Recorded, model: ScriptedModel, purse: MemoryPurse | None = None
) -> list[Again]:
    interview = Interview(model, purse or MemoryPurse(), METER, Terms(retries=0))

    async def main() -> list[Again]:
        return await ask_again(interview, recorded.calls, lambda *_: None)

    return anyio.run(main)


def _answer(**said: Any) -> ModelAnswer:
    return ModelAnswer(model="m", **said)


def test_other_words_for_the_same_choice_are_the_same_answer(desk: Desk) -> None:
    recorded = _record(desk, [_verdict("pass", "it is warm")], JUDGE)

    (one,) = _ask(recorded, _model([_verdict("pass", "friendly")]))

    assert one.outcome == "same"
    assert by_field([one])["output.verdict"].value == 1


def test_another_choice_is_named_with_both_sides(desk: Desk) -> None:
    recorded = _record(desk, [_verdict("pass")], JUDGE)

    (one,) = _ask(recorded, _model([_verdict("fail")]))

    assert one.outcome == "differs"
    assert one.differing == (Compared("output.verdict", '"pass"', '"fail"'),)


def test_an_answer_that_breaks_the_schema_is_unusable(desk: Desk) -> None:
    recorded = _record(desk, [_verdict("pass")], JUDGE)

    (one,) = _ask(recorded, _model([_verdict("perhaps")]))

    assert one.outcome == "unusable"
    assert "perhaps" in one.fault
    assert reask_scores([one])["usable"].value == 0


def test_a_model_that_gets_right_what_was_unusable_is_said_to_do_so(desk: Desk) -> None:
    recorded = _record(desk, [_verdict("perhaps")], JUDGE)

    (one,) = _ask(recorded, _model([_verdict("pass")]))

    assert one.outcome == "usable now"
    assert reask_scores([one])["same"].counted == 0


def test_each_turn_is_asked_on_the_course_that_was_taken(desk: Desk) -> None:
    first = ModelRequest(messages=(Prompt(text="fix it"),), tools=TOOLS, step="step-1")
    looked = Reply(calls=(ToolCall(call_id="call-0-0", name="look"),), opaque=None)
    seen = Observation(call_id="call-0-0", name="look", text="41")
    second = first.model_copy(
        update={"messages": (*first.messages, looked, seen), "step": "step-2"}
    )
    look, edit = (
        Turn(calls=(ScriptedCall(name="look"),)),
        Turn(calls=(ScriptedCall(name="edit"),)),
    )
    recorded = _record(desk, [look, edit], first, second)
    hasty = _model([edit, edit])

    again = _ask(recorded, hasty)

    assert [one.outcome for one in again] == ["differs", "same"]
    assert again[0].differing == (Compared("tools", "look", "edit"),)
    assert {len(asked.messages) for asked in hasty.asked} == {1, 3}


def test_what_only_the_provider_of_then_understands_is_not_sent_to_another(desk: Desk) -> None:
    signed = Reply(text="hm", opaque=[{"signature": "of the old one"}])
    talk = ModelRequest(messages=(Prompt(text="and?"), signed), step="a")
    recorded = _record(desk, [Turn(text="yes")], talk)
    other, kin = _model([Turn(text="yes")]), _model([Turn(text="yes")], "scripted:newer")

    _ask(recorded, other)
    _ask(recorded, kin)

    assert other.asked[0].messages[1] == signed.model_copy(update={"opaque": None})
    assert kin.asked[0].messages[1] == signed


def test_answers_that_were_kept_are_not_paid_for_again(desk: Desk, tmp_path: Path) -> None:
    recorded = _record(desk, [_verdict("pass")], JUDGE)
    kept = tmp_path / "kept.jsonl"
    first = _ask(recorded, _model([_verdict("fail")]), MemoryPurse(file=kept))
    silent = _model([])

    again = _ask(recorded, silent, MemoryPurse(file=kept))

    assert silent.asked == []
    assert [one.outcome for one in again] == [one.outcome for one in first]
    assert again[0].seconds is None


def test_what_cannot_be_paid_for_is_not_asked_and_said(desk: Desk) -> None:
    recorded = _record(desk, [_verdict("pass")], JUDGE)
    model = _model([_verdict("pass")])

    again = _ask(recorded, model, MemoryPurse(Budget(max_tokens=10)))

    assert model.asked == []
    assert again[0].outcome == "not asked"
    assert reask_scores(again)["asked"].value == 0


def test_answers_without_a_recorded_question_are_counted(desk: Desk) -> None:
    purse = DeskPurse(desk, RUN, TASK, 2, "ada")
    purse.reserve("old", Spend(tokens=5), purpose="scripted:old")
    purse.settle("old", Spend(tokens=5), {"answer": _answer(text="hi").model_dump(mode="json")})
    purse.reserve("tool", Spend(), purpose="tool look")
    purse.settle("tool", Spend(), {"text": "41"})

    recorded = recorded_calls(desk.pages(RUN))

    assert recorded.calls == ()
    assert recorded.without_question == (f"{TASK}/old",)


def test_lists_of_choices_are_compared_place_by_place() -> None:
    then = _answer(output={"verdict": "pass", "findings": [{"serious": True}]})
    now = _answer(output={"verdict": "pass", "findings": []})

    differing = [one for one in compare(JUDGE, then, now) if not one.same]

    assert differing == [Compared("output.findings[].serious", "true", "(nothing)")]


def test_an_answer_without_any_choice_is_compared_whole() -> None:
    request = ModelRequest(messages=(Prompt(text="?"),), output_schema={"type": "integer"})

    (one,) = compare(request, _answer(output=4), _answer(output=5))

    assert (one.then, one.now) == ("4", "5")


def test_text_is_compared_without_the_space_around_it() -> None:
    request = ModelRequest(messages=(Prompt(text="?"),))

    (one,) = compare(request, _answer(text="yes\n"), _answer(text=" yes"))

    assert one.same


def test_arguments_of_the_same_tool_are_compared() -> None:
    request = ModelRequest(messages=(Prompt(text="?"),), tools=TOOLS)
    then = _answer(calls=(ToolCall(call_id="a", name="edit", arguments={"new": "42"}),))
    now = _answer(calls=(ToolCall(call_id="b", name="edit", arguments={"new": "43"}),))

    differing = [one.field for one in compare(request, then, now) if not one.same]

    assert differing == ["edit"]


def test_a_schema_that_names_itself_is_walked_to_the_end_of_the_value() -> None:
    tree: dict[str, Any] = {
        "$ref": "#/$defs/Node",
        "$defs": {
            "Node": {
                "anyOf": [
                    {"$ref": "#/$defs/Node"},
                    {"$ref": "#/$defs/Node"},
                    {
                        "properties": {
                            "leaf": {"type": "boolean"},
                            "next": {"$ref": "#/$defs/Node"},
                        }
                    },
                ]
            }
        },
    }
    request = ModelRequest(messages=(Prompt(text="?"),), output_schema=tree)
    value = {"leaf": False, "next": {"leaf": True}}

    compared = compare(request, _answer(output=value), _answer(output=value))

    assert [one.field for one in compared] == ["output.leaf", "output.next.leaf"]
