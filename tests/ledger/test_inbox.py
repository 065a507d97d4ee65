"""An item of the inbox says what it is about, what was found, and what to type."""

import shlex
from typing import Any, get_args

import pytest

from agent_run.contract.record import Question
from agent_run.contract.verdict import Reason, Verdict
from agent_run.ledger import commands as wished
from agent_run.ledger.inbox import InboxRow, inbox_rows, item_json
from agent_run.ledger.state import RunState
from agent_run.ledger.words import MEANINGS, against, first_line
from tests.support.stories import (
    FAILED,
    NOON,
    PASSED,
    TASK,
    UNDECIDED,
    claim,
    finding,
    given,
    judge,
    post,
    submit,
)


def item(run: RunState) -> InboxRow:
    (row,) = inbox_rows("run", run)
    return row


def test_the_inbox_holds_questions_decisions_and_approvals() -> None:
    question = Question(text="May I?", wider_scope=("docs/**",))
    run = given(
        post(),
        post("b"),
        post("c", approve_before_claim=True),
        post("d"),
        claim(),
        wished.Ask(task_id=TASK, actor="ada", claim=5, question=question),
        wished.Escalate(task_id="b", actor="ada", reason="timeout", note="stuck"),
    )

    asked, decide, approve = inbox_rows("run-1", run)

    assert (asked.kind, asked.text, asked.wider_scope) == ("scope", "May I?", ("docs/**",))
    assert asked.next == f"agent-run review run-1/{TASK} --widen 'docs/**'"
    assert (decide.kind, decide.task_id, decide.text) == ("decision", "b", "stuck")
    assert (approve.kind, approve.task_id) == ("approval", "c")


@pytest.mark.parametrize(
    ("manifest", "about"),
    [
        ({"labels": {"about": "x/a.md"}, "input": {"draft": "/p/x/a.md"}}, "x/a.md"),
        ({"input": {"draft": "/p/x/a.md", "digest": "0"}}, "/p/x/a.md"),
        ({"input": {"n": 1}}, ""),
        ({"input": ["draft"]}, ""),
        ({}, ""),
    ],
)
def test_an_item_names_what_it_is_about(manifest: dict[str, Any], about: str) -> None:
    row = item(given(post(**manifest, approve_before_claim=True)))

    assert (row.about, row.objective) == (about, "fix it")


def test_what_an_executor_says_stands_without_a_prefix_and_is_known_as_its_words() -> None:
    evidence = [{"type": "quote", "content": "4:52 'nope.md' is not there\nmore"}]
    said = submit(status="failed", next_action="escalate", notes="1 link", evidence=evidence)
    row = item(given(post(), claim(), said))

    assert (row.text, row.said_by) == ("1 link", "executor")
    assert row.found == "4:52 'nope.md' is not there"


@pytest.mark.parametrize("notes", ["it looks binary", "1 remark; 1:1 it looks binary"])
def test_what_is_said_already_is_not_said_again(notes: str) -> None:
    evidence = [{"content": "1:1 error: it looks binary"}]
    said = submit(status="blocked", notes=notes, evidence=evidence)

    assert item(given(post(), claim(), said)).found == ""


def test_the_words_of_the_rules_are_their_own() -> None:
    row = item(given(post(review="human"), claim(), submit(notes="all is well"), judge(PASSED)))

    assert row.said_by == "rules"
    assert row.text == "every gate passed; the manifest asks for a person's review"
    assert row.found == "all is well"


@pytest.mark.parametrize(
    ("verdict", "text"),
    [
        (FAILED, "the last attempt did not pass: a check failed: seen"),
        (
            Verdict(
                findings=(
                    finding("fail", "low_confidence", "confidence").model_copy(
                        update={"evidence": "confidence 0.6, wanted at least 0.7"}
                    ),
                )
            ),
            "the executor is not sure enough of its work: confidence 0.6, wanted at least 0.7",
        ),
        (
            Verdict(
                findings=(
                    finding("fail", "timeout", "record").model_copy(
                        update={"evidence": "took longer than 45 s"}
                    ),
                    finding("fail", "out_of_scope", "scope").model_copy(
                        update={"evidence": "", "paths": ("b.py", "c.py")}
                    ),
                )
            ),
            (
                "the last attempt did not pass: it took too long: took longer than 45 s;"
                " it changed what it may not change: b.py, c.py"
            ),
        ),
    ],
)
def test_why_a_person_is_asked_reads_like_a_sentence(verdict: Verdict, text: str) -> None:
    run = given(post(budget={"max_attempts": 1}), claim(), submit(), judge(verdict))

    assert item(run).text == text


def test_undecided_gates_say_so() -> None:
    again = [judge(UNDECIDED)] * 3

    row = item(given(post(), claim(), submit(), *again))

    assert row.text == "the gates cannot decide: it took too long: seen"


def test_no_word_of_a_reason_is_an_internal_one() -> None:
    assert set(MEANINGS) == set(get_args(Reason))
    for reason, meaning in MEANINGS.items():
        assert "_" not in meaning
        failed = Verdict(findings=(finding("fail", reason),))
        assert "_" not in against(failed)


def test_the_same_is_said_once_and_what_is_long_shows_that_it_was_cut() -> None:
    twice = Verdict(findings=(finding("fail", "no_change"),) * 2)

    assert against(twice) == "nothing was changed: seen"
    assert first_line(f"\n {'x' * 300}\nmore") == "x" * 200 + "..."


def test_an_item_as_json_has_every_key_whatever_it_is_about() -> None:
    told = item_json(item(given(post(approve_before_claim=True))), NOON)

    assert told == {
        "run_id": "run",
        "task_id": TASK,
        "kind": "approval",
        "about": "",
        "objective": "fix it",
        "reason": None,
        "text": "fix it",
        "said_by": "rules",
        "found": "",
        "wider_scope": [],
        "since": "2026-11-15T12:00:00Z",
        "deadline": None,
        "overdue": False,
        "owner": None,
        "next": f"agent-run review run/{TASK} --approve",
    }


def test_a_command_is_safe_to_copy_whatever_an_executor_asked_for() -> None:
    hostile = Question(text="May I?", wider_scope=("a'; touch hacked; '",))
    ask = wished.Ask(task_id=TASK, actor="ada", claim=2, question=hostile)

    words = shlex.split(item(given(post(), claim(), ask)).next)

    assert words == ["agent-run", "review", f"run/{TASK}", "--widen", "a'; touch hacked; '"]
