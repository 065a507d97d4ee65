"""The handoff by hand: check, post, claim, heartbeat, release, submit."""

import os
from pathlib import Path

import pytest

from tests.support.command_line import MANIFEST, RECORD, Ask


def _write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return name


def _manifest(task_id: str, *needs: str, more: str = "") -> str:
    return f"task_id: {task_id}\nobjective: Do {task_id}\nneeds: [{', '.join(needs)}]\n{more}"


def test_every_fault_of_every_file_is_reported_in_one_go(ask: Ask, folder: Path) -> None:
    _write(folder, "a.yaml", "task_id: a b\nobjektive: x\n")
    _write(folder, "b.json", '{"task_id": "b", "task_id": "b", "objective": "x"}')

    answer = ask("check", "a.yaml", "b.json", "repo-142.yaml", "nowhere.yaml")

    assert answer.code == 2
    assert answer.out == "repo-142.yaml: manifest repo-142, ok\n"
    lines = answer.err.splitlines()
    assert all(line.startswith("agent-run: ") for line in lines)
    assert {line.split(":")[1].strip() for line in lines} == {
        "a.yaml",
        "b.json",
        "nowhere.yaml",
    }
    assert "a.yaml:1: task_id" in answer.err
    assert "a.yaml:2: objektive" in answer.err


def test_an_input_that_breaks_its_own_schema_is_a_fault(ask: Ask, folder: Path) -> None:
    (folder / "plan.yaml").write_text("""\
steps:
- task_id: a
  objective: x
  input_schema: {type: object, properties: {n: {type: integer}}}
  input: {n: five}
- task_id: b
  objective: x
  output_schema: {type: nothing}
""")

    answer = ask("check", "plan.yaml")

    assert answer.code == 2
    first, second = answer.err.splitlines()
    assert "plan.yaml:5: steps[0].input: ['n']: \"five\" is not of type" in first
    assert "plan.yaml:8: steps[1].output_schema: the schema is not one" in second
    assert ask("post", "plan.yaml").code == 2


@pytest.mark.timeout(60)
def test_what_is_no_file_is_refused_at_once(ask: Ask, folder: Path) -> None:
    os.mkfifo(folder / "pipe.yaml")
    (folder / "docs").mkdir()
    os.mkfifo(folder / "docs" / "x.yaml")
    (folder / "list.yaml").write_text("- No known misspelling\n- Required phrases\n- Tone\n")
    (folder / "cases.jsonl").write_text('{"case_id": "a", "input": 1}\n')

    for arguments in (
        ("check", "pipe.yaml"),
        ("check", "docs"),
        ("post", "pipe.yaml"),
        ("execute", "pipe.yaml", "--command", "true"),
        ("submit", "repo-142", "--claim", "1", "--record", "pipe.yaml"),
        ("run", "pipe.yaml"),
        ("qa", "record.json", "--checklist", "pipe.yaml"),
        ("qa", "record.json", "--checklist", "list.yaml", "--key", "pipe.yaml"),
        ("qa", "record.json", "--checklist", "list.yaml", "--lexicon", "pipe.yaml"),
        ("eval", "check", "pipe.yaml"),
        ("eval", "run", "pipe.yaml", "--plan", "list.yaml", "--out", "out"),
        ("eval", "run", "cases.jsonl", "--plan", "pipe.yaml", "--out", "out"),
        ("eval", "rubric", "summary", "pipe.yaml"),
        ("eval", "canary", "judge", "pipe.yaml"),
        ("eval", "canary", "assign", "pipe.yaml", "pipe.yaml"),
        ("plan", "x", "--model", "scripted:pipe.yaml"),
    ):
        answer = ask(*arguments)

        assert answer.code == 2, (arguments, answer)
        assert answer.err.count("is a pipe, expected a file") == 1, (arguments, answer.err)


def test_check_as_json_names_each_fault_and_the_canonical_form(ask: Ask, folder: Path) -> None:
    _write(folder, "a.yaml", "task_id: a\nobjective: x\ncolour: red\n")

    answer = ask("check", "a.yaml", "repo-142.yaml", "--json")

    assert answer.code == 2
    bad, good = answer.json["files"]
    assert (bad["kind"], bad["ok"], bad["faults"][0]["line"]) == ("manifest", False, 3)
    assert good["canonical"]["task_id"] == "repo-142"
    assert answer.json["error"]["faults"][0]["key"] == "colour"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("manifest", MANIFEST),
        ("record", RECORD),
        ("plan", '{"steps": [{"tool": "search", "arg": "x"}]}'),
        ("plan", '{"subtasks": [{"id": "a", "description": "x", "priority": 1}]}'),
        ("envelope", '{"source": "a", "target": "b", "payload": {}, "trace_id": "t"}'),
        ("notes", '{"requirements": ["x"], "open_questions": []}'),
        (
            "claim",
            '{"task_id": "a", "owner": "b", "expires_at": "2026-11-16T12:20:00", "attempt": 1}',
        ),
        ("verdict", '{"findings": [{"gate": "g", "outcome": "pass", "reason": "verified"}]}'),
    ],
)
def test_what_a_document_is_shows_in_its_keys(ask: Ask, kind: str, text: str) -> None:
    answer = ask("check", "-", "--json", stdin=text)

    assert answer.code == 0, answer.err
    assert answer.json["files"][0]["kind"] == kind


def test_a_document_that_is_nothing_we_know_is_a_fault(ask: Ask) -> None:
    assert ask("check", "-", stdin="[1, 2]").code == 2
    answer = ask("check", "-", stdin="colour: red")

    assert answer.code == 2
    assert "--as" in answer.err


def test_what_a_document_should_be_can_be_said(ask: Ask) -> None:
    assert ask("check", "-", "--as", "record", stdin=RECORD).code == 0
    assert ask("check", "-", "--as", "plan", stdin=RECORD).code == 2


def test_a_folder_stands_for_the_documents_in_it(ask: Ask, folder: Path) -> None:
    (folder / "tasks").mkdir()
    assert ask("check", "tasks").code == 2
    _write(folder, "tasks/b.yaml", _manifest("b"))
    _write(folder, "tasks/a.yaml", _manifest("a"))

    answer = ask("check", "tasks")

    assert answer.out.splitlines() == [
        "tasks/a.yaml: manifest a, ok",
        "tasks/b.yaml: manifest b, ok",
    ]


def test_a_task_goes_from_post_to_submitted(ask: Ask) -> None:
    assert ask("post", "repo-142.yaml").out == (
        "[post]    task=repo-142 run=repo-142 status=ready\n"
    )
    assert ask("claim", "repo-142", "--owner", "executor-3").out == (
        "[claim]   task=repo-142 owner=executor-3 ttl=20m attempt=1 claim=2\n"
    )
    assert ask("heartbeat", "repo-142", "--claim", "2", "--ttl", "1h").code == 0
    answer = ask("submit", "repo-142", "--claim", "2", "--record", "record.json")
    assert answer.out == "[summary] status=needs_review files=1 risks=1 -> submitted\n"
    assert answer.code == 0

    pages = ask("ledger", "--json").json["pages"]

    assert [(page["kind"], page["event"]["actor"]) for page in pages] == [
        ("task_posted", "ada"),
        ("task_claimed", "executor-3"),
        ("claim_extended", "executor-3"),
        ("record_submitted", "executor-3"),
    ]


def test_a_claim_as_json_holds_all_the_worker_must_know(ask: Ask) -> None:
    ask("post", "repo-142.yaml")

    claim = ask("claim", "--next", "--owner", "bob", "--ttl", "45s", "--json").json

    assert (claim["task_id"], claim["run_id"], claim["owner"]) == (
        "repo-142",
        "repo-142",
        "bob",
    )
    assert (claim["claim"], claim["attempt"]) == (2, 1)
    assert claim["manifest"]["allowed_paths"][0] == "src/github_sync.py"
    assert len(claim["trace_id"]) == 32


def test_a_claim_that_is_held_is_refused_with_5(ask: Ask) -> None:
    ask("post", "repo-142.yaml")
    ask("claim", "repo-142", "--owner", "bob")

    answer = ask("claim", "repo-142", "--json")

    assert answer.code == 5
    assert answer.json["error"]["kind"] == "NotClaimable"
    assert "'bob'" in answer.err


@pytest.mark.parametrize(
    "arguments", [("heartbeat",), ("release",), ("submit", "--record", "record.json")]
)
def test_an_old_claim_is_refused_with_5(ask: Ask, arguments: tuple[str, ...]) -> None:
    command, *options = arguments
    ask("post", "repo-142.yaml")
    ask("claim", "repo-142")

    answer = ask(command, "repo-142", "--claim", "1", *options)

    assert answer.code == 5
    assert "claim 1 on task 'repo-142' is not held" in answer.err


def test_a_released_task_can_be_claimed_again_and_lost_no_attempt(ask: Ask) -> None:
    ask("post", "repo-142.yaml")
    ask("claim", "repo-142")

    answer = ask("release", "repo-142", "--claim", "2", "--reason", "lunch", "--json")

    assert answer.json["status"] == "ready"
    assert ask("claim", "repo-142", "--json").json["claim"] == 4


def test_nothing_to_claim_is_5_and_a_sentence(ask: Ask) -> None:
    answer = ask("claim", "--next")

    assert (answer.code, answer.out) == (5, "")
    assert "no task is ready to be claimed" in answer.err


def test_next_takes_only_what_is_for_this_executor(ask: Ask, folder: Path) -> None:
    _write(folder, "a.yaml", _manifest("a", more="executor: claude\n"))
    ask("post", "a.yaml")

    assert ask("claim", "--next", "--executor", "codex").code == 5
    assert ask("claim", "--next", "--executor", "claude").code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("claim",),
        ("claim", "repo-142", "--next"),
        ("claim", "repo-142", "--executor", "claude"),
        ("claim", "repo-142", "--ttl", "soon"),
        ("claim", "repo-142", "--ttl", "0s"),
        ("claim", "repo-142", "--owner", ""),
        ("claim", "repo-142", "--owner", "x" * 201),
        ("claim", "nothing"),
        ("claim", "other/repo-142"),
        ("claim", "--next", "--run", "nothing"),
        ("claim", "--next", "--run", "a b"),
        ("submit", "repo-142", "--claim", "0", "--record", "record.json"),
        ("submit", "repo-142", "--claim", "2", "--record", "nowhere.json"),
        ("submit", "repo-142", "--claim", "2", "--record", "repo-142.yaml"),
        ("heartbeat", "repo-142"),
        ("post",),
        ("post", "record.json"),
        ("post", "repo-142.yaml"),
        ("check", "repo-142.yaml", "--as", "poem"),
        ("nonsense",),
        ("status", "--nonsense"),
        ("status", "nothing"),
        ("show", "nothing"),
        ("ledger", "nothing"),
        ("ledger", "verify", "nothing"),
        ("ledger", "repo-142", "more"),
        ("schema", "poem"),
        ("status", "--store", "redis://x"),
        ("status", "--store", "nonsense"),
    ],
)
def test_a_users_mistake_is_2_and_one_sentence(ask: Ask, arguments: tuple[str, ...]) -> None:
    ask("post", "repo-142.yaml")

    answer = ask(*arguments)

    assert answer.code == 2
    assert answer.out == ""
    assert answer.err.startswith("agent-run: ")
    assert "Traceback" not in answer.err
    told = ask(*arguments, "--json")
    assert told.code == 2
    assert told.json["error"]["message"]


def test_files_are_posted_in_the_order_of_their_needs(ask: Ask, folder: Path) -> None:
    files = [
        _write(folder, "c.yaml", _manifest("c", "b", "a")),
        _write(folder, "b.yaml", _manifest("b", "a")),
        _write(folder, "a.yaml", _manifest("a")),
    ]

    answer = ask("post", *files, "--json")

    assert answer.json["run_id"] == "a"
    assert answer.json["tasks"] == [
        {"task_id": "a", "status": "ready"},
        {"task_id": "b", "status": "waiting"},
        {"task_id": "c", "status": "waiting"},
    ]


def test_a_task_joins_the_run_of_the_tasks_it_needs(ask: Ask, folder: Path) -> None:
    _write(folder, "next.yaml", _manifest("next", "repo-142"))
    ask("post", "repo-142.yaml", "--run", "monday")

    assert ask("post", "next.yaml", "--json").json["run_id"] == "monday"


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        ((_manifest("a", "b"), _manifest("b", "a")), "circle"),
        ((_manifest("a"), _manifest("a")), "holds already"),
        ((_manifest("a", "elsewhere"),), "neither posted here nor in the ledger"),
    ],
)
def test_files_that_do_not_fit_together_are_refused(
    ask: Ask, folder: Path, texts: tuple[str, ...], sentence: str
) -> None:
    files = [_write(folder, f"{n}.yaml", text) for n, text in enumerate(texts)]

    answer = ask("post", *files)

    assert answer.code == 2
    assert sentence in answer.err
    assert ask("status", "--json").json["tasks"] == []


def test_a_plan_opens_a_run_with_its_budget_and_keeps_its_final_steps(
    ask: Ask, folder: Path
) -> None:
    plan = """\
plan_id: launch
objective: Ship it
budget: {max_tokens: 1000}
steps:
- {task_id: one, objective: First}
- {task_id: two, objective: Second, needs: [one]}
final:
- {task_id: clean, objective: Clean up}
"""
    _write(folder, "plan.yaml", plan)

    answer = ask("post", "plan.yaml", "--json")

    assert answer.json["run_id"] == "launch"
    assert [task["task_id"] for task in answer.json["tasks"]] == ["one", "two"]
    assert "1 final step not posted yet" in answer.err
    opened = ask("ledger", "launch/", "--json").json["pages"][0]
    assert opened["event"]["budget"] == {"max_tokens": 1000}
    assert opened["event"]["plan"]["final"][0]["task_id"] == "clean"


def test_a_plan_whose_id_names_no_run_is_named_after_its_first_task(ask: Ask) -> None:
    plan = '{"plan_id": "my plan", "steps": [{"task_id": "one", "objective": "x"}]}'

    assert ask("post", "-", "--json", stdin=plan).json["run_id"] == "one"


def test_settled_work_is_posted_again_only_under_a_new_run(ask: Ask, folder: Path) -> None:
    _write(
        folder,
        "stop.yaml",
        _manifest("stop", more="budget: {max_tokens: 1, on_budget: stop}\n"),
    )
    ask("post", "stop.yaml")
    ask("claim", "stop")
    over = ask("submit", "stop", "--claim", "2", "--record", "-", stdin='{"tokens_used": 5}')
    assert over.code == 6

    again = ask("post", "stop.yaml")

    assert again.code == 2
    assert "--run" in again.err
    assert ask("post", "stop.yaml", "--run", "second").code == 0


def test_a_record_with_a_question_waits_for_a_person(ask: Ask) -> None:
    ask("post", "repo-142.yaml")
    ask("claim", "repo-142")

    answer = ask(
        "submit",
        "repo-142",
        "--claim",
        "2",
        "--record",
        "-",
        stdin='{"question": "Which cap?"}',
    )

    assert answer.code == 7
    assert "Which cap?" in answer.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("post", "other.yaml"),
        ("claim", "repo-142"),
        ("claim", "--next"),
        ("claim", "--next", "--run", "repo-142"),
    ],
)
def test_a_dry_run_says_the_same_and_writes_nothing(
    ask: Ask, folder: Path, arguments: tuple[str, ...]
) -> None:
    _write(folder, "other.yaml", _manifest("other"))
    ask("post", "repo-142.yaml")
    before = ask("ledger", "--json").json

    dry = ask(*arguments, "--dry-run")

    assert "nothing was written" in dry.err
    assert ask("ledger", "--json").json == before
    assert ask(*arguments).out == dry.out


@pytest.mark.parametrize(
    "arguments",
    [
        ("heartbeat", "repo-142", "--claim", "2"),
        ("release", "repo-142", "--claim", "2"),
        ("submit", "repo-142", "--claim", "2", "--record", "record.json"),
    ],
)
def test_a_dry_run_under_a_claim_writes_nothing(ask: Ask, arguments: tuple[str, ...]) -> None:
    ask("post", "repo-142.yaml")
    ask("claim", "repo-142")
    before = ask("ledger", "--json").json

    assert ask(*arguments, "--dry-run").code == 0
    assert ask("ledger", "--json").json == before


def test_a_dry_run_leaves_no_ledger_behind(ask: Ask, folder: Path) -> None:
    assert ask("post", "repo-142.yaml", "--dry-run").code == 0
    assert not (folder / ".agent-run").exists()
