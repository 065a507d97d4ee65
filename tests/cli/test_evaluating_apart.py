"""Evaluating plans that change files: the user's repository stays as it was."""

import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import Ask
from tests.support.projects import commit_all, git, put

PLAN = """\
steps:
- task_id: write
  objective: Write the word of the case into the file
  executor: writer
  allowed_paths: [words.txt]
  verification: [grep -q quiet words.txt]
  budget: {max_attempts: 1}
"""
SETTINGS = """\
[executors.writer]
command = '''python3 -c "
import json, os
word = json.load(open(os.environ['AGENT_RUN_MANIFEST']))['input']
old = open('words.txt').read()
open('words.txt', 'w').write(old + word + chr(10))
print(json.dumps(dict(status='done', confidence=0.9, files_changed=['words.txt'])))
"'''
"""
RUN = ("eval", "run", "d.jsonl", "--plan", "plan.yaml", "--out", "one", "--at-once", "1")
LOOK = """\
steps:
- {task_id: write, objective: Look, executor: looker, budget: {max_attempts: 1}}
"""
LOOKS = """
if [ -e one ] || [ -e before ]
then echo '{"status": "failed", "confidence": 0.9}'
else echo '{"status": "passed", "confidence": 0.9}'
fi"""
PATIENT = """
from pathlib import Path
from time import sleep

from agent_run import Brief, Record, executor


@executor("patient")
def patient(brief: Brief) -> Record:
    while Path(brief.input["hold"]).exists():
        Path(brief.input["started"]).touch()
        sleep(0.01)
    return Record(status="passed", confidence=0.95)
"""
pytestmark = pytest.mark.slow


def case(name: str, word: str, outcome: str) -> str:
    told = {"case_id": name, "input": word, "expected": {"steps": {"write": outcome}}}
    return json.dumps(told) + "\n"


@pytest.fixture
def project(folder: Path) -> Path:
    put(folder, "agent-run.toml", SETTINGS)
    put(folder, "plan.yaml", PLAN)
    put(folder, "words.txt", "first\n")
    put(folder, "d.jsonl", case("calm", "quiet", "pass") + case("soft", "very quiet", "pass"))
    put(folder, ".gitignore", "/one/\n/two/\n/.agent-run/\n")
    git(folder, "init", "-q", "-b", "main")
    commit_all(folder, "first")
    return folder


def everything(project: Path) -> tuple[str, str, str, int]:
    """Return all that git knows of the project: refs, state of the files, objects."""
    objects = sum(1 for _ in (project / ".git" / "objects").rglob("*"))
    refs = git(project, "for-each-ref")
    return refs, git(project, "status", "--porcelain"), git(project, "reflog"), objects


def test_accepted_changes_leave_no_trace_in_the_users_repository(
    project: Path, start: Ask
) -> None:
    before = everything(project)

    told = start(*RUN, "--json")

    assert told.code == 0, told.err
    assert told.json["scores"]["step_accuracy"]["value"] == 1
    assert told.json["scores"]["errors"]["value"] == 0
    assert everything(project) == before
    assert not (project / ".agent-run").exists()
    copy = project / "one" / "copy" / "project"
    assert "refs/agent-run/write" in git(copy, "for-each-ref")


def test_many_cases_at_once_do_not_get_in_each_others_way(project: Path, start: Ask) -> None:
    put(project, "d.jsonl", "".join(case(f"c{n}", "quiet", "pass") for n in range(12)))
    commit_all(project, "many")
    before = everything(project)

    told = start(*RUN, "--at-once", "6", "--json")

    assert told.json["scores"]["errors"]["value"] == 0, told.err
    assert everything(project) == before


def test_killed_and_resumed_it_still_leaves_none(project: Path, start: Ask) -> None:
    before = everything(project)
    program = Path(sys.executable).parent / "agent-run"
    with subprocess.Popen(
        [program, *RUN], cwd=project, env=os.environ, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stderr is not None
        assert any("1/2" in line for line in running.stderr)
        running.send_signal(signal.SIGKILL)
    assert everything(project) == before

    told = start(*RUN, "--json")

    assert told.json["scores"]["step_accuracy"]["value"] == 1
    assert "2/2" in told.err
    assert everything(project) == before


def test_half_a_copy_is_made_anew(project: Path, start: Ask) -> None:
    put(project, "one/copy/project/words.txt", "torn")
    put(project, "one/copy/copy.new", "{")

    told = start(*RUN, "--json")

    assert told.json["scores"]["step_accuracy"]["value"] == 1


def test_all_cases_start_from_one_state_and_it_is_said_when_the_project_moved_on(
    project: Path, start: Ask
) -> None:
    put(project, "d.jsonl", case("calm", "quiet", "pass"))
    commit_all(project, "one case")
    start(*RUN)
    put(project, "d.jsonl", case("calm", "quiet", "pass") + case("soft", "quiet", "pass"))
    put(project, "words.txt", "second\n")
    commit_all(project, "second")

    told = start(*RUN)

    copy = project / "one" / "copy" / "project"
    assert "all work here starts from commit" in told.err
    for ref in git(copy, "for-each-ref", "--format=%(refname)", "refs/agent-run").split():
        assert git(copy, "show", f"{ref}:words.txt").startswith("first\n")


def test_uncommitted_work_is_refused_or_carried_as_elsewhere(project: Path, start: Ask) -> None:
    put(project, "words.txt", "not committed\n")
    before = everything(project)

    refused = start(*RUN)
    carried = start(*RUN, "--json", env={"AGENT_RUN_DIRTY": "carry"})

    assert refused.code == 3
    assert "uncommitted changes in 'words.txt'" in refused.err
    assert carried.json["scores"]["step_accuracy"]["value"] == 1
    assert everything(project) == before
    copy = project / "one" / "copy" / "project"
    assert (copy / "words.txt").read_text() == "not committed\n"


def test_a_project_below_the_top_of_its_repository_is_copied_with_it(
    project: Path, start: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = project / "inner"
    for name in ("agent-run.toml", "plan.yaml", "words.txt", "d.jsonl"):
        put(inner, name, (project / name).read_text())
    put(project, ".gitignore", "one/\n.agent-run/\n")
    commit_all(project, "inner")
    before = everything(project)
    monkeypatch.chdir(inner)
    program = Path(sys.executable).parent / "agent-run"

    done = subprocess.run(
        [program, *RUN, "--json"], cwd=inner, capture_output=True, text=True, check=False
    )

    assert json.loads(done.stdout)["scores"]["step_accuracy"]["value"] == 1, done.stderr
    assert everything(project) == before
    assert (inner / "one" / "copy" / "project" / "inner" / "words.txt").exists()


def test_a_code_fix_is_measured_by_its_name(project: Path, start: Ask) -> None:
    settings = SETTINGS.replace("['input']", ".get('input') or 'quiet'")
    put(project, "agent-run.toml", 'executor = "writer"\n' + settings)
    command = ["grep -q quiet words.txt", "words.txt"]
    told = {"case_id": "fix", "input": command, "expected": {"steps": {"fix-1": "pass"}}}
    put(project, "d.jsonl", json.dumps(told) + "\n")
    commit_all(project, "a fix")
    before = everything(project)

    done = start("eval", "run", "d.jsonl", "--recipe", "code-fix", "--out", "two", "--json")

    assert done.json["scores"]["step_accuracy"]["value"] == 1, done.err
    assert everything(project) == before


def test_the_same_cases_into_another_folder_are_done_anew(project: Path, start: Ask) -> None:
    put(project, "d.jsonl", case("loud", "BUY NOW", "fail"))
    commit_all(project, "a case that a person must look at")
    again = [word if word != "one" else "two" for word in RUN]

    first, second = start(*RUN, "--json"), start(*again, "--json")

    assert (first.code, second.code) == (0, 0), second.err
    assert second.json["scores"]["errors"]["value"] == 0
    assert first.json["scores"]["step_accuracy"] == second.json["scores"]["step_accuracy"]


def test_two_evaluations_do_not_write_to_one_folder(project: Path, start: Ask) -> None:
    (project / "one").mkdir()
    with (project / "one" / ".lock").open("wb") as busy:
        fcntl.flock(busy, fcntl.LOCK_EX)

        told = start(*RUN)

    assert told.code == 2
    assert "another process is evaluating into 'one'" in told.err


def test_the_project_itself_is_no_result_folder(project: Path, start: Ask) -> None:
    told = start("eval", "run", "d.jsonl", "--plan", "plan.yaml", "--out", ".")

    assert told.code == 2
    assert "--out '.' holds the project itself" in told.err
    assert (project / ".gitignore").read_text() != "*\n"


def test_what_a_kill_broke_off_is_done_anew_and_not_held_against_the_plan(
    folder: Path, start: Ask
) -> None:
    hold, started = folder / "hold", folder / "started"
    step = "{task_id: write, objective: x, executor: patient, budget: {max_attempts: 1}}"
    put(folder, "plan.yaml", f"steps:\n- {step}\n")
    put(folder, "waiting.py", PATIENT)
    put(folder, "agent-run.toml", '[executors.patient]\nfunction = "waiting:patient"\n')
    waits = {"hold": str(hold), "started": str(started)}
    told = {"case_id": "slow", "input": waits, "expected": {"steps": {"write": "pass"}}}
    put(folder, "d.jsonl", json.dumps(told) + "\n")
    hold.touch()
    program = Path(sys.executable).parent / "agent-run"
    with subprocess.Popen([program, *RUN], cwd=folder, env=os.environ) as running:
        while not started.exists():
            assert running.poll() is None
        running.send_signal(signal.SIGKILL)
    hold.unlink()

    again = start(*RUN, "--json")

    assert again.code == 0, again.err
    assert again.json["scores"]["step_accuracy"]["value"] == 1


def test_executors_do_not_find_results_in_a_folder_without_git(
    folder: Path, start: Ask
) -> None:
    put(folder, "agent-run.toml", "[executors.looker]\ncommand = '''" + LOOKS + "'''\n")
    put(folder, "plan.yaml", LOOK)
    put(folder, "d.jsonl", case("a", "x", "pass") + case("b", "y", "pass"))
    start("eval", "run", "d.jsonl", "--plan", "plan.yaml", "--out", "before")

    told = start(*RUN, "--at-once", "4", "--json")

    assert told.code == 0, told.err
    assert told.json["scores"]["step_accuracy"]["value"] == 1, told.err
