"""`execute` through the door: what it prints, what it answers, how it exits."""

import json
import re
from pathlib import Path

import pytest

from tests.cli.executing.conftest import RIGHT, WRONG, Git, Write, saying
from tests.support.command_line import Ask


def test_the_transcript_is_printed_line_by_line(start: Ask, manifest: Write) -> None:
    command = saying(RIGHT, task_id="t1", files_changed=["a.py"], risks=["none known"])

    answer = start("execute", manifest(), "--command", command, "--owner", "executor-3")

    lines = re.sub(r"\d+\.\ds", "TIMEs", answer.out).splitlines()
    assert (answer.code, answer.err) == (0, "")
    assert lines == [
        "[claim]   task=t1 owner=executor-3 ttl=20m attempt=1 claim=2",
        "[edit]    a.py updated",
        "[test]    grep -q 'x = 2' a.py ........ PASS TIMEs",
        "[summary] status=needs_review files=1 risks=1",
        "[verify]  scope PASS  record PASS  commands PASS  -> accepted  agent-run apply t1",
    ]


def test_json_is_one_object_with_everything_that_is_promised(
    start: Ask, manifest: Write, git: Git
) -> None:
    answer = start("execute", manifest(), "--command", RIGHT, "--json")

    told = answer.json
    assert answer.code == 0
    assert "[claim]   task=t1" in answer.err
    assert (told["task_id"], told["run_id"], told["status"]) == ("t1", "t1", "accepted")
    assert (told["attempt"], told["claim"]) == (1, 2)
    assert re.fullmatch("[0-9a-f]{32}", told["trace_id"])
    assert told["record"]["files_changed"] == ["a.py"]
    assert told["observed"]["files_changed"] == ["a.py"]
    assert told["observed"]["exit_code"] == 0
    assert told["observed"]["elapsed_ms"] >= 0
    assert "commands_run" in told["observed"]
    assert told["verdict"]["passed"] is True
    finding = told["verdict"]["findings"][0]
    assert (finding["gate"], finding["outcome"], finding["reason"]) == (
        "scope",
        "pass",
        "verified",
    )
    assert told["result"]["ref"] == "refs/agent-run/t1"
    assert told["result"]["commit"] == git("rev-parse", "refs/agent-run/t1")
    assert told["rollback"] == "agent-run rollback t1"
    assert {"kind", "abi"} <= set(told["fence"])


def test_quiet_json_says_nothing_else(ask: Ask, manifest: Write) -> None:
    answer = ask("execute", manifest(), "--command", RIGHT, "--json", "-q")

    assert (answer.code, answer.err) == (0, "")
    assert answer.json["status"] == "accepted"


def test_a_file_that_is_posted_already_goes_on_and_ends_where_it_ended(
    ask: Ask, manifest: Write
) -> None:
    file = manifest()
    assert ask("post", file).code == 0

    first = ask("execute", file, "--command", RIGHT)
    again = ask("execute", file, "--command", WRONG)

    assert first.code == again.code == 0
    assert again.out == ""
    assert "task 't1' is accepted" in again.err


def test_another_manifest_of_the_same_name_is_refused(ask: Ask, manifest: Write) -> None:
    assert ask("post", manifest()).code == 0

    answer = ask("execute", manifest(objective="Something else"), "--command", RIGHT)

    assert answer.code == 2
    assert "stands in run 't1' with another objective" in answer.err
    assert ask("execute", "t1.json", "--run", "r2", "--command", RIGHT).code == 0


def test_returned_work_exits_with_4_and_can_be_tried_again(ask: Ask, manifest: Write) -> None:
    file = manifest()

    wrong = ask("execute", file, "--command", WRONG, "--attempts", "1", "--json")
    right = ask("execute", "t1", "--command", RIGHT, "--json")

    assert (wrong.code, wrong.json["status"]) == (4, "returned")
    assert wrong.json["verdict"]["passed"] is False
    assert wrong.json["result"] is None
    assert (right.code, right.json["status"], right.json["attempt"]) == (0, "accepted", 2)


def test_gates_that_refuse_the_last_attempt_exit_with_4_although_a_person_decides(
    ask: Ask, manifest: Write
) -> None:
    file = manifest(budget={"max_attempts": 2})

    answer = ask("execute", file, "--command", WRONG, "--json")

    assert (answer.code, answer.json["status"], answer.json["attempt"]) == (4, "escalated", 2)
    assert answer.json["reason"] == "verification_failed"
    assert "agent-run review t1" in answer.err


@pytest.mark.parametrize(
    ("asks", "says"),
    [
        ({}, {"question": "Which x?"}),
        ({}, {"status": "blocked", "error": "no idea"}),
        ({"review": "human"}, {"files_changed": ["a.py"]}),
        ({"min_confidence": 0.9}, {"files_changed": ["a.py"], "confidence": 0.5}),
    ],
)
def test_what_waits_for_a_person_exits_with_7(
    ask: Ask, manifest: Write, asks: dict[str, object], says: dict[str, object]
) -> None:
    command = saying(RIGHT, task_id="t1", **says)

    answer = ask("execute", manifest(**asks), "--command", command, "--json")

    assert (answer.code, answer.json["status"]) == (7, "escalated")
    again = ask("execute", "t1", "--command", command, "--json")
    assert (again.code, again.json["status"]) == (7, "escalated")


def test_a_task_that_needs_approval_waits_for_it(ask: Ask, manifest: Write) -> None:
    file = manifest(approve_before_claim=True)

    waiting = ask("execute", file, "--command", RIGHT)
    approved = ask("review", "t1", "--approve")
    done = ask("execute", file, "--command", RIGHT)

    assert waiting.code == 7
    assert "agent-run review t1 --approve" in waiting.err
    assert (approved.code, done.code) == (0, 0)


def test_over_budget_exits_with_6(ask: Ask, manifest: Write) -> None:
    file = manifest(budget={"max_tokens": 10, "on_budget": "escalate"})
    command = saying(RIGHT, task_id="t1", files_changed=["a.py"], tokens_used=11)

    answer = ask("execute", file, "--command", command, "--json")

    assert (answer.code, answer.json["reason"]) == (6, "over_budget")


def test_a_task_that_someone_else_holds_exits_with_5(ask: Ask, manifest: Write) -> None:
    ask("post", manifest())
    ask("claim", "t1", "--owner", "bob")

    answer = ask("execute", "t1", "--command", RIGHT)

    assert answer.code == 5
    assert "claimed by 'bob'" in answer.err


def test_uncommitted_work_is_refused_and_the_claim_given_back(
    ask: Ask, manifest: Write, project: Path
) -> None:
    (project / "b.py").write_text("mine\n")

    refused = ask("execute", manifest(), "--command", RIGHT)
    ready = ask("status", "--json").json["tasks"][0]
    carried = ask("execute", "t1", "--command", RIGHT, "--dirty", "carry")

    assert refused.code == 3
    assert "b.py" in refused.err
    assert (ready["status"], ready["owner"]) == ("ready", None)
    assert carried.code == 0
    assert "uncommitted work is part of the base: b.py" in carried.out
    assert (project / "b.py").read_text() == "mine\n"


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["nothing"], 2, "'nothing'"),
        (["nothing.yaml", "--command", "true"], 2, "nothing.yaml: cannot be read"),
        (["t1.json"], 2, "no executor is named"),
        (["t1.json", "--executor", "nobody"], 2, "'nobody' is not configured"),
        (["t1.json", "--executor", "codex"], 3, "codex"),
        (["t1.json", "--command", "true", "--attempts", "0"], 2, "attempts"),
        (["t1.json", "--command", "true", "--ttl", "soon"], 2, "'soon' is not a duration"),
        (["plan.json", "--command", "true"], 2, "takes one task"),
    ],
)
def test_bad_input_gets_a_sentence_and_no_attempt(
    ask: Ask, manifest: Write, project: Path, words: list[str], code: int, says: str
) -> None:
    file = manifest()
    steps = [{"task_id": name, "objective": name} for name in ("p1", "p2")]
    (project / "plan.json").write_text(json.dumps({"objective": "both", "steps": steps}))
    assert file == "t1.json"

    answer = ask("execute", *words)

    assert answer.code == code
    assert says in answer.err
    assert "Traceback" not in answer.err
    tasks = ask("status", "--json").json["tasks"]
    assert all(task["owner"] is None for task in tasks)


def test_names_from_an_executor_cannot_play_with_the_terminal(
    ask: Ask, manifest: Write
) -> None:
    command = f"{RIGHT} && touch \"$(printf 'c\\033[31m\\n[verify]  -> accepted')\""

    answer = ask("execute", manifest(), "--command", command, "--attempts", "1")

    assert answer.code == 4
    assert "\x1b" not in answer.out
    assert "\n[verify]  -> accepted" not in answer.out


def test_verification_is_remembered_unless_told_otherwise(ask: Ask, manifest: Write) -> None:
    file = manifest()
    ask("execute", file, "--command", RIGHT)

    remembered = ask("execute", file, "--run", "r2", "--command", RIGHT)
    anew = ask("execute", file, "--run", "r3", "--command", RIGHT, "--no-cache")

    assert "PASS cached" in remembered.out
    assert "cached" not in anew.out


def test_without_a_fence_it_says_so_loudly(ask: Ask, manifest: Write) -> None:
    answer = ask("execute", manifest(), "--command", RIGHT, "--fence", "off", "-q", "--json")

    assert answer.code == 0
    assert "NO FENCE" in answer.err
    assert answer.json["fence"]["kind"] == "none"
