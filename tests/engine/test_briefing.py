"""From the state of a task to its brief: inputs, what is left to spend, what was said."""

from decimal import Decimal

from pydantic import JsonValue

from agent_run.contract.brief import Brief, Exchange
from agent_run.contract.envelope import Envelope
from agent_run.contract.record import Question
from agent_run.engine.briefing import brief_for
from agent_run.ledger.commands import Ask, HandOver
from agent_run.ledger.state import RunState
from tests.support.stories import FAILED, answer, claim, given, judge, post, submit, when

TRACE = "a" * 32


def handed(source: str, payload: JsonValue) -> HandOver:
    envelope = Envelope(source=source, target="repo-142", payload=payload, trace_id=TRACE)
    return HandOver(task_id="repo-142", actor="desk", envelope=envelope)


def told(run: RunState) -> Brief:
    return brief_for("run", run, "repo-142", trace_id=TRACE)


def test_one_envelope_is_the_input_and_several_are_told_apart() -> None:
    one = given(post(), handed("a", {"n": 1}), claim())
    two = given(post(), handed("a", 1), handed("b", 2), claim())

    assert told(one).input == {"n": 1}
    assert told(two).input == {"a": 1, "b": 2}


def test_the_manifests_own_input_comes_first() -> None:
    run = given(post(input={"own": True}), handed("a", 1), claim())

    assert told(run).input == {"own": True}


def test_what_was_said_before_is_in_the_next_brief() -> None:
    run = given(
        post(budget={"max_attempts": 5, "max_tokens": 100, "max_cost_usd": "2"}), claim()
    )
    run = when(
        run, submit(tokens_used=30, cost_usd=Decimal("0.5"), requests_made=1), judge(FAILED)
    )
    run = when(run, claim())
    question = Question(text="Which?")
    run = when(run, Ask(task_id="repo-142", actor="ada", claim=run.seq, question=question))
    run = when(run, answer("both"), claim())

    brief = told(run)

    assert brief.attempt == 3
    assert brief.claim == run.tasks["repo-142"].claim
    assert brief.earlier == (FAILED,)
    assert brief.answers == (Exchange(question="Which?", answer="both"),)
    assert brief.remaining.max_tokens == 70
    assert brief.remaining.max_cost_usd == Decimal("1.5")
