"""The judge: undecided is not no, findings are kept, and every kind of project works."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_run.contract.verdict import Finding
from agent_run.engine.execute import Ordered, execute
from agent_run.ledger.commands import Post
from agent_run.ledger.state import Status
from agent_run.ports.gate import Case
from tests.engine.executors import SYNC, Fake, fixing, writing
from tests.support.projects import (
    FILES,
    TASK,
    Project,
    Stage,
    commit_all,
    git,
    manifest,
    new_project,
    put,
)

RIGHT = "python -m scripts.smoke_github_sync"


def kinds(stage: Stage) -> list[str]:
    return [page.kind for page in stage.open().desk.pages(TASK)]


@pytest.mark.parametrize(
    ("check", "reason", "said"),
    [
        ({"run": "sleep 30", "timeout": "1s"}, "timeout", "ran longer than 1"),
        ({"run": "no-such-program --check"}, "no_evidence", "could not be run"),
        ({"run": "./README.md"}, "no_evidence", "could not be run"),
        ({"run": "kill -9 $$"}, "crashed", "signal 9"),
        ({"run": "sh -c 'kill -15 $$'; exit $?"}, "crashed", "signal 15"),
        (
            {"run": "python -c 'raise SystemExit(\"No module named pytest\")' # pytest"},
            "no_evidence",
            "not installed",
        ),
        ({"run": "yes | head -c 40000000"}, "no_evidence", "bytes of output"),
    ],
)
def test_what_says_nothing_about_the_work_is_tried_again_and_then_goes_to_a_person(
    stage: Stage, check: Mapping[str, Any], reason: str, said: str
) -> None:
    stage.limits = replace(stage.limits, output_bytes=1 << 20)

    came = stage.perform(Fake(fixing), verification=[check], budget={"max_attempts": 2})

    assert came.task.status is Status.ESCALATED
    assert came.reasons == {reason}
    assert {one.outcome for one in came.findings if one.gate == "commands"} == {"inconclusive"}
    assert said in came.said
    assert kinds(stage).count("verdict_deferred") == 2
    assert came.task.attempts_left == 1


def test_a_command_that_only_the_work_made_impossible_is_a_failure(stage: Stage) -> None:
    came = stage.perform(
        Fake(lambda workspace: (workspace / SYNC).unlink()),
        verification=[f"test -f {SYNC} || exit 127"],
    )

    assert came.reasons == {"verification_failed"}
    assert "which did not happen on the base" in came.said


def test_a_crash_of_the_work_is_a_failure(stage: Stage) -> None:
    deed = writing(SYNC, "import os\nos.abort()\n")

    came = stage.perform(Fake(deed), verification=["python src/github_sync.py"])

    assert came.reasons == {"verification_failed"}


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (RIGHT, "exit 0; failed on the base"),
        ("true", "exit 0; passed on the base too"),
        (f"! grep -q range {SYNC}", "exit 1; passed on the base"),
        ("false", "exit 1; failed on the base too"),
    ],
)
def test_a_finding_says_how_it_was_on_the_base(stage: Stage, command: str, words: str) -> None:
    came = stage.perform(Fake(fixing), verification=[command])

    assert words in came.said


def test_an_invariant_that_never_held_says_nothing(stage: Stage) -> None:
    came = stage.perform(Fake(fixing), invariants=[RIGHT])

    assert came.task.status is Status.ESCALATED
    assert "did not hold before the work" in came.said


def test_the_same_tree_is_not_judged_twice_with_the_same_tools(tmp_path: Path) -> None:
    cache, answers = tmp_path / "cache", list[list[bool]]()
    for environment in ("one", "one", "two"):
        place = tmp_path / f"{len(answers)}"
        with Stage(new_project(place), cache=cache) as one:
            site = replace(one.open(), environment=environment)
            site.desk.handle(
                TASK, Post(actor="planner", manifest=manifest(verification=[RIGHT]))
            )
            run = anyio.run(execute, site, TASK, TASK, Ordered(Fake(fixing), "ada"))
            verdict = run.tasks[TASK].verdict
            assert verdict is not None
            answers.append([one.cached for one in verdict.findings if one.commands])

    assert answers == [[False], [True], [False]]


def test_a_gate_that_breaks_leaves_it_to_a_person(stage: Stage) -> None:
    class Broken:
        name = "broken"

        async def check(self, case: Case) -> tuple[Finding, ...]:
            msg = "no space left on device"
            raise OSError(msg)

    site = stage.open()
    site = replace(site, gates=(*site.gates, Broken()))
    site.desk.handle(TASK, Post(actor="planner", manifest=manifest()))

    run = anyio.run(execute, site, TASK, TASK, Ordered(Fake(fixing), "ada"))

    assert run.tasks[TASK].status is Status.ESCALATED
    assert "the gates cannot decide" in run.tasks[TASK].note


def test_a_site_without_gates_accepts_nothing(stage: Stage) -> None:
    site = replace(stage.open(), gates=())
    site.desk.handle(TASK, Post(actor="planner", manifest=manifest()))

    run = anyio.run(execute, site, TASK, TASK, Ordered(Fake(fixing), "ada"))

    assert run.tasks[TASK].status is Status.ESCALATED


def test_a_plain_folder_is_worked_on_as_well(tmp_path: Path) -> None:
    project = Project(tmp_path, tmp_path / "repo", tmp_path / "home", tmp_path / "outside")
    for path, content in FILES.items():
        put(project.root, path, content)
    with Stage(project) as stage:
        came = stage.perform("fix(); record()", verification=[RIGHT])

        assert came.accepted, came.said
        assert came.changes() == {SYNC: "M"}
        assert came.touched == ()


def test_uncommitted_work_can_be_carried_along(stage: Stage, project: Project) -> None:
    # Of the same size, and at the very moment at which git looked last.
    moment = (project.root / ".git" / "index").stat().st_mtime_ns
    os.utime(put(project.root, "src/other.py", "VALUE = 2\n"), ns=(moment, moment))
    put(project.root, "src/untracked.py", "NEW = 1\n")
    stage.dirty = "carry"

    came = stage.perform("fix(); record()", verification=["grep -q 2 src/other.py"])

    assert came.accepted, came.said
    assert came.changes() == {SYNC: "M"}
    assert came.touched == ()
    assert "uncommitted work is part of the base: src/other.py, src/untracked.py" in came.said


def test_a_project_below_the_top_of_its_repository_sees_and_commits_to_the_whole(
    tmp_path: Path,
) -> None:
    repo, outside = tmp_path / "repo", tmp_path / "outside"
    for path, content in FILES.items():
        put(repo, f"services/sync/{path}", content)
    put(repo, "shared.txt", "shared\n")
    git(repo, "init", "-q", "-b", "main")
    commit_all(repo, "first")
    project = Project(tmp_path, repo / "services" / "sync", tmp_path / "home", outside)
    work = """
    assert Path("../../shared.txt").read_text() == "shared\\n"
    fix(); subprocess.run(["git", "commit", "-qam", "x"], check=True); record()
    """
    with Stage(project) as stage:
        came = stage.perform(work, verification=[RIGHT])

        assert came.accepted, f"{came.said}{came.transcript}"
        assert came.changes() == {f"services/sync/{SYNC}": "M"}


def test_nothing_above_the_project_may_be_changed(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    put(repo, f"inner/{SYNC}", "x = 1\n")
    put(repo, "shared.txt", "shared\n")
    git(repo, "init", "-q", "-b", "main")
    commit_all(repo, "first")
    project = Project(tmp_path, repo / "inner", tmp_path / "home", tmp_path / "outside")
    with Stage(project) as stage:
        came = stage.perform(
            'fix(); Path("../shared.txt").write_text("x"); record()', allowed_paths=["**"]
        )

    assert came.reasons == {"out_of_scope"}
    assert "'../shared.txt' was changed" in came.said


def test_what_is_installed_from_the_project_is_imported_from_the_copy(
    stage: Stage, project: Project
) -> None:
    venv = project.root / ".venv"
    command = [sys.executable, "-m", "venv", "--without-pip", str(venv)]
    subprocess.run(command, check=True)
    (packages,) = venv.glob("lib/python3*/site-packages")
    put(packages, "project.pth", f"{project.root / 'src'}\n")
    put(project.root, ".git/info/exclude", ".venv\n")
    ask = "python -c 'import github_sync as g; assert max(g.delays(9)) <= 30, g.__file__'"
    work = f"fix(); subprocess.run({ask!r}, shell=True, check=True, cwd='/'); record()"

    came = stage.perform(work, verification=[f"cd / && {ask}"])

    assert came.accepted, f"{came.said}{came.transcript}"
    assert "failed on the base" in came.said


def test_rooms_are_gone_when_the_verdict_is_given(stage: Stage, project: Project) -> None:
    stage.perform(Fake(fixing), verification=["mkdir -p a/b && chmod 0 a/b a", RIGHT])

    assert list((project.state / "work" / "rooms").iterdir()) == []
    homes = project.state / "workspaces" / "runs"
    assert [one.name for one in homes.iterdir()] == [".lock"]
