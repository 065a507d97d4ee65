"""Looking: status, show, ledger and its verification change nothing and hide nothing."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.support.command_line import Ask


def _work(ask: Ask) -> None:
    ask("post", "repo-142.yaml")
    ask("claim", "repo-142", "--owner", "bob")
    ask("submit", "repo-142", "--claim", "2", "--record", "record.json")


def test_without_a_ledger_there_are_no_tasks_and_none_is_made(ask: Ask, folder: Path) -> None:
    answer = ask("status", "--json")

    assert (answer.code, answer.json) == (0, {"runs": [], "tasks": [], "older_runs": 0})
    assert "no ledger yet" in answer.err
    assert not (folder / ".agent-run").exists()


def test_status_tells_who_holds_what(ask: Ask) -> None:
    ask("post", "repo-142.yaml")
    ask("claim", "repo-142", "--owner", "bob")

    task = ask("status", "--json").json["tasks"][0]

    assert (task["task_id"], task["status"], task["owner"]) == ("repo-142", "claimed", "bob")
    assert (task["claim"], task["attempt"], task["attempts"]) == (2, 1, 3)
    head, row = ask("status").out.splitlines()
    assert head.split()[:2] == ["TASK", "STATUS"]
    assert row.split()[:5] == ["repo-142", "claimed", "1/3", "2", "bob"]


def test_status_of_one_run_shows_only_that_run(ask: Ask) -> None:
    ask("post", "repo-142.yaml", "--run", "monday")
    ask("post", "repo-142.yaml", "--run", "tuesday")

    assert len(ask("status", "--json").json["runs"]) == 2
    assert [run["run_id"] for run in ask("status", "monday", "--json").json["runs"]] == [
        "monday"
    ]
    assert "monday/repo-142" in ask("status", "monday").out


def test_a_task_name_stands_for_its_run(ask: Ask) -> None:
    ask("post", "repo-142.yaml", "--run", "monday")

    assert ask("status", "repo-142", "--json").json["runs"][0]["run_id"] == "monday"


def test_older_runs_are_counted_and_shown_on_demand(ask: Ask) -> None:
    for number in range(22):
        ask("post", "repo-142.yaml", "--run", f"run-{number}")

    answer = ask("status")

    assert "2 older runs not shown" in answer.err
    assert ask("status", "--json").json["older_runs"] == 2
    assert len(ask("status", "--all", "--json").json["runs"]) == 22


def test_many_tasks_are_cut_aloud(ask: Ask, folder: Path) -> None:
    steps = [{"task_id": f"t{number}", "objective": "x"} for number in range(60)]
    (folder / "plan.json").write_text(json.dumps({"plan_id": "big", "steps": steps}))
    ask("post", "plan.json")

    answer = ask("status")

    assert len(answer.out.splitlines()) == 51
    assert "10 more tasks" in answer.err
    assert len(ask("status", "big").out.splitlines()) == 61


def test_show_tells_what_was_asked_and_what_came_back(ask: Ask) -> None:
    _work(ask)

    shown = ask("show", "repo-142").out
    told = ask("show", "repo-142/repo-142", "--json").json

    assert "objective   Add rate-limit backoff" in shown
    assert "risk      none known" in shown
    assert (told["status"], told["record"]["status"]) == ("submitted", "needs_review")
    assert told["manifest"]["task_id"] == told["task_id"] == "repo-142"


def test_the_ledger_reads_page_by_page(ask: Ask) -> None:
    _work(ask)

    lines = ask("ledger", "repo-142").out.splitlines()
    pages = [json.loads(line) for line in ask("ledger", "--jsonl").out.splitlines()]

    assert [page["page"] for page in pages] == [1, 2, 3]
    assert len(lines) == 3
    assert "task_claimed" in lines[1]
    assert "attempt 1 by bob" in lines[1]


def test_the_pages_of_one_task_leave_out_the_others(ask: Ask, folder: Path) -> None:
    (folder / "b.yaml").write_text("task_id: b\nobjective: x\nneeds: [repo-142]\n")
    ask("post", "repo-142.yaml")
    ask("post", "b.yaml")

    assert len(ask("ledger", "b", "--json").json["pages"]) == 1
    assert len(ask("ledger", "repo-142/", "--json").json["pages"]) == 2


def test_a_whole_ledger_verifies(ask: Ask) -> None:
    _work(ask)

    answer = ask("ledger", "verify", "--json")

    assert (answer.code, answer.json) == (0, {"ok": True, "runs": 1, "broken": []})


def test_a_changed_page_is_found_and_exits_with_1(ask: Ask, folder: Path) -> None:
    _work(ask)
    with closing(sqlite3.connect(folder / ".agent-run" / "ledger.db")) as db:
        names = db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for (name,) in names:
            db.execute(f"DROP TRIGGER {name}")
        db.execute("UPDATE pages SET body = replace(body, 'bob', 'eve') WHERE seq = 2")
        db.commit()

    answer = ask("ledger", "verify")

    assert answer.code == 1
    assert "run 'repo-142', page 2" in answer.err
    assert ask("ledger", "verify", "repo-142", "--json").json["broken"][0]["page"] == 2
    assert ask("doctor").code == 3
