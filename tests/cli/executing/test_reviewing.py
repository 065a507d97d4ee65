"""The person's side: what waits, what it looks like, and what each decision leads to."""

import pytest

from tests.cli.executing.conftest import RIGHT, WRONG, Git, Write, saying
from tests.support.command_line import Ask


def escalated(ask: Ask, manifest: Write, command: str = RIGHT, **more: object) -> None:
    file = manifest(**({"review": "human", "budget": {"max_attempts": 1}} | more))
    assert ask("execute", file, "--command", command).code in {4, 7}


def test_the_inbox_is_empty_at_first(ask: Ask, manifest: Write) -> None:
    ask("post", manifest())

    assert ask("inbox", "--json").json == {"items": []}
    assert "nothing waits for a person" in ask("inbox").err


def test_the_inbox_says_what_waits_and_what_to_type(ask: Ask, manifest: Write) -> None:
    wider = {"text": "May I?", "wider_scope": ["b.py"]}
    asks = saying("true", task_id="t2", question=wider)
    escalated(ask, manifest)
    ask("execute", manifest("t2", answer_within="1h"), "--command", asks, "--owner", "bob")
    ask("post", manifest("t3", approve_before_claim=True))

    items = {item["task_id"]: item for item in ask("inbox", "--json").json["items"]}
    table = ask("inbox").out

    assert {name: item["kind"] for name, item in items.items()} == {
        "t1": "decision",
        "t2": "scope",
        "t3": "approval",
    }
    assert items["t1"]["reason"] == "verified"
    assert items["t2"]["owner"] == "bob"
    assert items["t2"]["deadline"] is not None
    assert items["t2"]["next"] == "agent-run review t2 --widen 'b.py'"
    assert items["t3"]["next"] == "agent-run review t3 --approve"
    lines = table.splitlines()
    assert "  next   agent-run review t1" in lines
    assert "  path   b.py" in lines
    assert '  asks   "May I?"' in lines
    assert "  why    every gate passed; the manifest asks for a person's review" in lines
    assert "  about  Set x to 2" in lines
    assert any(line.startswith("t2  scope, waits ") and "until 20" in line for line in lines)


def test_a_review_shows_findings_diff_and_transcript(ask: Ask, manifest: Write) -> None:
    escalated(ask, manifest, f"{RIGHT}; printf 'hello \\033[31mred\\n'")

    shown = ask("review", "t1")
    told = ask("review", "t1", "--json").json

    assert shown.code == 0
    assert "commands pass: verified grep -q 'x = 2' a.py" in shown.out
    assert "\n-x = 1\n+x = 2\n" in shown.out
    assert "hello \\x1b[31mred" in shown.out
    assert "\x1b" not in shown.out
    assert "next        agent-run review t1 --approve" in shown.out
    assert "+x = 2" in told["diff"]
    assert "hello" in told["transcript"]
    assert ask("show", "t1", "--diff").out.splitlines()[-1] == "+x = 2"
    assert ask("show", "t1", "--transcript", "--json").json["transcript"] == told["transcript"]


def test_there_is_no_diff_before_there_is_work(ask: Ask, manifest: Write) -> None:
    ask("post", manifest())

    answer = ask("show", "t1", "--diff")

    assert (answer.code, answer.err) == (2, "agent-run: task 't1' has no diff\n")


def test_approved_work_becomes_a_commit(ask: Ask, manifest: Write, git: Git) -> None:
    escalated(ask, manifest)

    answer = ask("review", "t1", "--approve", "--as", "grace", "--json")

    assert (answer.code, answer.json["status"], answer.json["by"]) == (0, "accepted", "grace")
    assert git("show", "refs/agent-run/t1:a.py") == "x = 2"
    assert answer.json["verdict"]["findings"][-1]["evidence"] == "approved by grace"
    assert ask("inbox", "--json").json == {"items": []}


def test_a_person_may_accept_what_the_gates_refused_and_the_ledger_says_so(
    ask: Ask, manifest: Write, git: Git
) -> None:
    escalated(ask, manifest, WRONG, review="auto")

    answer = ask("review", "t1", "--approve", "--json")

    evidence = answer.json["verdict"]["findings"][-1]["evidence"]
    assert (answer.code, answer.json["status"]) == (0, "accepted")
    assert evidence.startswith(
        "approved by ada in spite of: a check failed: grep -q 'x = 2' a.py"
    )
    assert git("show", "refs/agent-run/t1:a.py") == "x = 3"


def test_rejected_work_fails_or_is_tried_again(ask: Ask, manifest: Write) -> None:
    escalated(ask, manifest)
    again = ask("review", "t1", "--reject", "x should be named", "--again", "--json").json
    assert again["status"] == "returned"

    ask("execute", "t1", "--command", f"grep 'x should be named' $AGENT_RUN_BRIEF && {RIGHT}")
    failed = ask("review", "t1", "--reject", "still not", "--json").json

    assert (failed["status"], failed["reason"]) == ("failed", "review_rejected")
    assert ask("execute", "t1", "--command", RIGHT).code == 1


def test_a_reviewer_asks_and_the_next_attempt_reads_it(ask: Ask, manifest: Write) -> None:
    escalated(ask, manifest)

    asked = ask("review", "t1", "--ask", "Why two?", "--json").json
    command = f"grep -q 'ada asks: Why two?' $AGENT_RUN_BRIEF && {RIGHT}"
    done = ask("execute", "t1", "--command", command, "--json").json

    assert asked["status"] == "returned"
    assert (done["status"], done["verdict"]["passed"]) == ("escalated", True)


def test_a_question_is_answered_by_text_or_json(ask: Ask, manifest: Write) -> None:
    question = {"text": "Which?", "answer_schema": {"type": "object", "required": ["x"]}}
    asks = saying("true", task_id="t1", question=question)
    file = manifest()
    assert ask("execute", file, "--command", asks).code == 7

    wrong = ask("review", "t1", "--answer", "two")
    right = ask("review", "t1", "--answer", '{"x": 2}')
    command = f"grep -q '\"x\": *2' $AGENT_RUN_BRIEF && {RIGHT}"
    done = ask("execute", file, "--command", command)

    assert wrong.code == 2
    assert "the answer is not what was asked for" in wrong.err
    assert (right.code, done.code) == (0, 0)


def test_a_wider_scope_is_granted_and_holds(ask: Ask, manifest: Write) -> None:
    question = {"text": "b.py too?", "wider_scope": ["b.py"]}
    asks = saying("true", task_id="t1", question=question)
    file = manifest()
    ask("execute", file, "--command", asks)

    widened = ask("review", "t1", "--widen", "b.py")
    done = ask("execute", file, "--command", f"{RIGHT}; echo 'y = 2' > b.py", "--json")

    assert widened.code == 0
    assert (done.code, done.json["observed"]["files_changed"]) == (0, ["a.py", "b.py"])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--approve", "--reject", "no"], "one decision at a time"),
        (["--approve", "--again"], "--again goes with --reject"),
        (["--widen", "../b.py"], "../b.py"),
        (["--widen", "/etc/passwd"], "/etc/passwd"),
        (["--answer", "x" * 5_000], "5000 characters"),
        (["--reject", ""], "--reject is empty, expected a reason"),
        (["--reject", "  "], "--reject is empty, expected a reason"),
        (["--ask", ""], "--ask is empty, expected a question"),
        (["--answer", ""], "--answer is empty, expected an answer"),
    ],
)
def test_a_decision_that_cannot_be_meant_gets_a_sentence(
    ask: Ask, manifest: Write, words: list[str], says: str
) -> None:
    ask("post", manifest())

    answer = ask("review", "t1", *words)

    assert answer.code == 2
    assert says in answer.err


def test_what_does_not_wait_cannot_be_decided(ask: Ask, manifest: Write) -> None:
    ask("post", manifest())

    for words in (["--approve"], ["--reject", "no"], ["--answer", "yes"], ["--widen", "b.py"]):
        answer = ask("review", "t1", *words)

        assert answer.code == 1
        assert "task 't1' is ready" in answer.err
    assert "nothing to decide: it is ready" in ask("review", "t1").out


def test_a_dry_run_decides_nothing(ask: Ask, manifest: Write, git: Git) -> None:
    escalated(ask, manifest)

    answer = ask("review", "t1", "--approve", "--dry-run")

    assert answer.code == 0
    assert ask("show", "t1", "--json").json["status"] == "escalated"
    assert git("for-each-ref", "refs/agent-run") == ""


def test_every_verdict_is_shown_with_its_attempt_and_none_is_dropped(
    ask: Ask, manifest: Write
) -> None:
    ask("execute", manifest(budget={"max_attempts": 3}), "--command", WRONG)

    shown = ask("show", "t1")
    told = ask("show", "t1", "--json").json["verdicts"]

    lines = [line for line in shown.out.splitlines() if line.startswith("verdict ")]
    assert [line.split(", ")[:2] for line in lines] == [
        ["verdict     fail on attempt 1", "returned by judge"],
        ["verdict     fail on attempt 2", "returned by judge"],
        ["verdict     fail on attempt 3", "to a person by judge"],
    ]
    assert [one["attempt"] for one in told] == [1, 2, 3]
    assert ask("review", "t1", "--json").json["verdicts"] == told


def test_after_a_rejection_the_task_says_so(ask: Ask, manifest: Write) -> None:
    escalated(ask, manifest)
    ask("review", "t1", "--reject", "x should be named", "--again")

    shown = ask("show", "t1").out

    assert "status      ready, returned\n" in shown
    assert "note        a reviewer rejected it: x should be named\n" in shown
    assert "verdict     fail on attempt 1, returned by ada, " in shown
    assert "verified" not in shown.split("verdict")[0]
    assert "returned: a reviewer rejected it: x should be named" in ask("status").out


def test_the_paths_of_a_scope_request_stand_in_lines_of_their_own(
    ask: Ask, manifest: Write
) -> None:
    wider = {"text": "May I?", "wider_scope": ["b.py", "docs/**"]}
    ask("execute", manifest(), "--command", saying("true", task_id="t1", question=wider))

    shown = ask("review", "t1")

    assert "asks for    b.py\nasks for    docs/**\n" in shown.out


def test_diff_and_transcript_are_shown_together_and_what_is_missing_is_said(
    ask: Ask, manifest: Write
) -> None:
    escalated(ask, manifest, f"{RIGHT}; echo hello")
    ask("execute", manifest("t2"), "--command", "echo hello")

    both = ask("show", "t1", "--diff", "--transcript")
    one = ask("show", "t2", "--diff", "--transcript")
    none = ask("show", "t2", "--diff")

    assert (both.code, one.code, none.code) == (0, 0, 2)
    assert "\n+x = 2\n== transcript\n" in both.out
    assert both.out.startswith("== diff\n")
    assert "hello" in one.out
    assert "task 't2' has no diff" in one.err


@pytest.mark.parametrize("manner", ["review", "approval"])
@pytest.mark.parametrize(("policy", "ends"), [("fail", "failed"), ("skip", "skipped")])
def test_a_judge_acts_on_silence_about_whatever_waits(
    ask: Ask, manifest: Write, manner: str, policy: str, ends: str
) -> None:
    within = {"answer_within": 0.001, "on_silence": policy}
    if manner == "review":
        ask("execute", manifest(review="human", **within), "--command", RIGHT)
    else:
        ask("post", manifest(approve_before_claim=True, **within))
    (item,) = ask("inbox", "--json").json["items"]
    assert item["overdue"]
    assert "OVERDUE since 20" in ask("inbox").out

    ask("judge", "--once")

    assert ask("inbox", "--json").json == {"items": []}
    shown = ask("show", "t1", "--json").json
    assert (shown["status"], shown["note"][:7]) == (ends, "nobody ")


def test_what_stays_with_people_is_marked_overdue_and_stays_decidable(
    ask: Ask, manifest: Write
) -> None:
    ask("execute", manifest(review="human", answer_within=0.001), "--command", RIGHT)
    ask("judge", "--once")
    pages = len(ask("ledger", "--jsonl").out.splitlines())
    ask("judge", "--once")

    assert len(ask("ledger", "--jsonl").out.splitlines()) == pages, "noted once"
    assert "answer by   20" in ask("show", "t1").out
    assert ask("review", "t1", "--approve").code == 0
