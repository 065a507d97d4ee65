"""What people decide after the report is out: it counts, it is saved, nothing is checked twice.

Where it matters that nothing is remembered, every command is a process of its own.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Answer, Ask

CHECKLIST = "- No known misspelling\n- Would a passenger understand it\n- Is it true\n"
DRAFT = "# What changed\n\nFrom May the late tram runs again.\n"
REQUEST = ("qa", "letter.md", "--checklist", "checklist.yaml", "--offline")
pytestmark = pytest.mark.slow


@pytest.fixture
def desk(folder: Path) -> Path:
    (folder / "checklist.yaml").write_text(CHECKLIST)
    (folder / "letter.md").write_text(DRAFT)
    return folder


def run_of(answer: Answer) -> str:
    run_id: str = answer.json["drafts"][0]["run_id"]
    return run_id


def saved(desk: Path, run_id: str) -> Any:
    return json.loads((desk / ".agent-run" / "qa" / f"{run_id}.json").read_text())


def tasks(start: Ask) -> dict[str, dict[str, Any]]:
    return {one["task_id"]: one for one in start("status", "--json").json["tasks"]}


def test_after_the_last_decision_everything_that_was_saved_tells_it(
    desk: Path, start: Ask
) -> None:
    reports = ("--report", "r.md", "--report", "r.html", "--report", "r.json")
    first = start(*REQUEST, *reports, "--json")
    run_id = run_of(first)
    assert first.code == 7
    start("review", f"{run_id}/goal-2", "--approve", "--as", "ada")

    half = start("resume", run_id)

    assert half.code == 7
    assert "approved by ada" in half.out
    assert "goal-3 of letter.md waits for a person: agent-run inbox" in half.err
    assert f"then agent-run resume {run_id} for the new report" in half.err
    assert saved(desk, run_id)["status"] == "person"
    start("review", f"{run_id}/goal-3", "--approve", "--as", "bob")
    whole = start("resume", run_id, "--json")
    assert whole.code == 0
    assert saved(desk, run_id)["status"] == "pass"
    assert json.loads((desk / "r.json").read_text())["status"] == "pass"
    assert (desk / "r.md").read_text().startswith("# Content QA: pass\n")
    assert "Content QA: pass" in (desk / "r.html").read_text()
    assert "ada and bob decided in part" in saved(desk, run_id)["summary"]


def test_the_report_says_who_decided_when_and_why(desk: Path, ask: Ask) -> None:
    run_id = run_of(ask(*REQUEST, "--report", "r.md", "--report", "r.html", "--json"))
    ask("review", f"{run_id}/goal-2", "--reject", "too <b>terse</b>", "--as", "ada")

    told = ask("resume", run_id, "--json")

    assert told.code == 1
    step = told.json["drafts"][0]["steps"][1]
    assert (step["outcome"], step["decided_by"], step["waits"]) == ("failed", "ada", False)
    assert (
        step["decision"].items()
        >= {"outcome": "rejected", "reason": "too <b>terse</b>"}.items()
    )
    assert step["decision"]["at"].endswith("Z")
    assert "rejected by ada on 2" in (desk / "r.md").read_text()
    assert "too &lt;b&gt;terse&lt;/b&gt;" in (desk / "r.html").read_text()
    assert saved(desk, run_id)["steps"][1]["decision"]["by"] == "ada"


def test_an_approval_may_have_its_reason_as_well(desk: Path, ask: Ask) -> None:
    run_id = run_of(ask(*REQUEST, "--json"))
    approve = ("review", f"{run_id}/goal-2", "--approve", "--as", "ada")
    ask(*approve, "--because", "the tests with readers went well")

    told = ask("resume", run_id, "--json").json["drafts"][0]["steps"][1]

    assert told["decision"]["reason"] == "the tests with readers went well"
    assert told["why"].endswith("UTC: the tests with readers went well")
    assert ask("review", f"{run_id}/goal-3", "--reject", "x", "--because", "y").code == 2


def test_nothing_is_checked_again_and_no_news_writes_nothing(desk: Path, ask: Ask) -> None:
    run_id = run_of(ask(*REQUEST, "--json"))
    before = tasks(ask)
    ask("review", f"{run_id}/goal-2", "--approve", "--as", "ada")

    ask("resume", run_id)
    after = tasks(ask)
    pages = ask("ledger", "--json").out
    ask("resume", run_id)
    ask(*REQUEST)

    assert set(after) - set(before) == {"qa.save.2", "qa.summarize.2"}
    assert all(after[name]["claim"] == before[name]["claim"] for name in before)
    assert ask("ledger", "--json").out == pages


def test_a_rejected_step_leaves_the_inbox_without_another_attempt(desk: Path, ask: Ask) -> None:
    run_id = run_of(ask(*REQUEST, "--json"))
    ask("review", f"{run_id}/goal-2", "--reject", "too terse", "--as", "ada")

    ask("resume", run_id)

    assert [item["task_id"] for item in ask("inbox", "--json").json["items"]] == ["goal-3"]
    step = tasks(ask)["goal-2"]
    assert (step["status"], step["attempt"]) == ("failed", 1)


def test_the_same_command_again_tells_the_decision_as_well(desk: Path, ask: Ask) -> None:
    run_id = run_of(ask(*REQUEST, "--report", "r.md", "--json"))
    for step in ("goal-2", "goal-3"):
        ask("review", f"{run_id}/{step}", "--approve", "--as", "ada")

    again = ask(*REQUEST)

    assert again.code == 0
    assert saved(desk, run_id)["status"] == "pass"
    assert (desk / "r.md").read_text().startswith("# Content QA: pass\n")
    assert "r.md was written again" in again.err


def test_a_report_on_several_drafts_keeps_them_all(desk: Path, ask: Ask) -> None:
    (desk / "other.md").write_text(DRAFT.replace("tram", "bus"))
    first = ask(*REQUEST, "other.md", "--report", "r.json", "--json").json
    run_id = first["drafts"][1]["run_id"]
    ask("review", f"{run_id}/goal-2", "--approve", "--as", "ada")

    ask("resume", run_id)

    told = json.loads((desk / "r.json").read_text())
    assert [draft["draft"] for draft in told["drafts"]] == ["letter.md", "other.md"]
    assert [draft["steps"][1]["outcome"] for draft in told["drafts"]] == ["person", "passed"]


def test_a_report_that_somebody_changed_is_theirs(desk: Path, ask: Ask) -> None:
    run_id = run_of(ask(*REQUEST, "--report", "r.md", "--report", "gone.md", "--json"))
    (desk / "r.md").write_text("my own words")
    (desk / "gone.md").unlink()
    ask("review", f"{run_id}/goal-2", "--approve", "--as", "ada")

    told = ask("resume", run_id)

    assert (desk / "r.md").read_text() == "my own words"
    assert "r.md was left as it is: it was changed by somebody else" in told.err
    assert not (desk / "gone.md").exists()


def test_review_says_how_the_new_report_is_made(desk: Path, ask: Ask) -> None:
    run_id = run_of(ask(*REQUEST, "--json"))

    told = ask("review", f"{run_id}/goal-2", "--approve")
    as_data = ask("review", f"{run_id}/goal-3", "--approve", "--json")

    assert f"agent-run resume {run_id}" in told.err
    assert as_data.json["next"] == [f"agent-run resume {run_id}"]


def test_checks_of_a_draft_that_changed_are_not_resumed(desk: Path, ask: Ask) -> None:
    run_id = run_of(ask(*REQUEST, "--json"))
    (desk / "letter.md").write_text(DRAFT + "\nMore.\n")
    newer = run_of(ask(*REQUEST, "--json"))

    told = ask("resume", run_id)

    assert told.code == 1
    assert f"the draft is checked again as {newer}" in told.err


KILLED = """
import os, signal, sys
from agent_run.recipes.qa import ending
from agent_run.cli.app import run
ending.write_json = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
run(sys.argv[1:])
"""


def test_killed_while_it_saves_the_decision_it_goes_on(desk: Path, start: Ask) -> None:
    run_id = run_of(start(*REQUEST, "--json"))
    start("review", f"{run_id}/goal-2", "--reject", "too terse", "--as", "ada")
    dead = subprocess.run(
        [sys.executable, "-c", KILLED, "resume", run_id],
        cwd=desk,
        env=os.environ,
        check=False,
        capture_output=True,
        timeout=60,
    )
    assert dead.returncode == -signal.SIGKILL
    assert saved(desk, run_id)["status"] == "person"

    told = start("resume", run_id)

    assert told.code == 1
    assert saved(desk, run_id)["status"] == "fail"
    assert tasks(start)["qa.save.2"]["attempt"] == 2
