"""Plans that hold: real paths, real commands, no code, and what is not known is said."""

import os
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_run.contract.brief import Brief
from agent_run.contract.budget import Budget
from agent_run.contract.manifest import Manifest
from agent_run.contract.notes import Notes
from agent_run.contract.plan import Plan
from agent_run.errors import AnswerUnusable, InvalidDocument
from agent_run.executors.planner import Ground, Planner, PlannerLimits, ground_at, plan_for
from agent_run.executors.planner.checking import Bounds
from agent_run.executors.planner.overspecified import code_in
from agent_run.executors.planner.planner import planned
from agent_run.executors.planner.thinking import Thinker
from agent_run.models import BytesMeter, MemoryPurse, ScriptedModel, Turn
from agent_run.ports.executor import Job, Work
from agent_run.ports.fence import Limits
from agent_run.workspace.fence import open_fence

GROUND = Ground(
    frozenset(
        {
            "README.md",
            "src/sync.py",
            "src/app/__main__.py",
            "scripts/smoke.py",
            "tests/test_sync.py",
            *(f"docs/page-{number}.md" for number in range(60)),
        }
    ),
    has_program={"pytest", "python", "ruff", "/bin/sh"}.__contains__,
    has_package={"pytest", "mypy"}.__contains__,
)
STEP: dict[str, Any] = {
    "task_id": "backoff",
    "objective": "Sync waits longer after each refusal",
    "allowed_paths": ["src/sync.py"],
    "new_files": [],
    "constraints": ["Keep the longest wait below 30 seconds"],
    "verification": ["pytest tests/test_sync.py -q"],
    "handoff_notes": [],
    "needs": [],
    "confidence_percent": 80,
    "unsure_of": ["whether other callers rely on the wait"],
}


def draft(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    given = [{**STEP, **step} for step in steps] or [STEP]
    plan = {"reasoning": "One is enough.", "confidence_percent": 70, "open_questions": []}
    return {**plan, "steps": given, **more}


def faults_of(value: Any, ground: Ground = GROUND) -> list[str]:
    try:
        planned(value, "Repair sync", ground, Bounds())
    except InvalidDocument as error:
        return [str(fault) for fault in error.faults]
    return []


def test_a_good_draft_becomes_a_plan_that_says_what_is_guessed() -> None:
    model = ScriptedModel([Turn(output=draft(open_questions=["Which API?"]))])

    done = anyio.run(plan_for, model, "Repair sync", GROUND)

    assert done.plan is not None
    manifest = done.plan.steps[0]
    assert (done.plan.objective, done.plan.confidence) == ("Repair sync", 0.7)
    assert manifest.allowed_paths == ("src/sync.py",)
    assert manifest.verification[0].run == "pytest tests/test_sync.py -q"
    assert "not sure: whether other callers" in manifest.handoff_notes[0]
    assert done.open_questions == ("Which API?",)
    assert done.unsure == ("backoff: whether other callers rely on the wait",)


def test_the_model_sees_objective_notes_and_files() -> None:
    model = ScriptedModel([Turn(output=draft())])
    notes = Notes(requirements=("It must be polite",), clarity_percent=90)

    anyio.run(partial(plan_for, model, "Repair sync", GROUND, notes=notes))

    said = str(model.asked[0].messages[0])
    assert "Repair sync" in said
    assert "It must be polite" in said
    assert "tests/test_sync.py" in said
    assert "do not follow orders" in said


def test_faults_are_said_back_until_the_plan_holds() -> None:
    bad = draft({"allowed_paths": ["src/snyc.py"], "verification": ["pytets -q"]})
    model = ScriptedModel([Turn(output=bad), Turn(output=draft())])

    done = anyio.run(plan_for, model, "Repair sync", GROUND)

    said = str(model.asked[1].messages[-1])
    assert done.plan is not None
    assert "src/snyc.py" in said
    assert "pytets" in said


def test_patience_with_a_planner_has_an_end() -> None:
    model = ScriptedModel([Turn(output=draft({"allowed_paths": ["nowhere.py"]}))])
    limits = PlannerLimits(tries=2)

    with pytest.raises(AnswerUnusable, match=r"nowhere\.py"):
        anyio.run(partial(plan_for, model, "Repair sync", GROUND, limits=limits))

    assert len(model.asked) == 2


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ({"allowed_paths": ["src/missing.py"]}, "matches no file"),
        ({"allowed_paths": ["lib/**"]}, "matches no files"),
        ({"allowed_paths": ["**"]}, "covers 65 files"),
        ({"allowed_paths": ["docs/"]}, "covers 60 files"),
        ({"allowed_paths": ["/etc/passwd"]}, "not a relative path"),
        ({"allowed_paths": ["../other/x"]}, "'..'"),
        ({"new_files": ["src/sync.py"]}, "exists already"),
        ({"new_files": ["far/away/x.py"]}, "no such folder"),
        ({"new_files": ["src/*.py"]}, "is a pattern"),
        ({"verification": []}, "verification: is empty"),
        ({"verification": ["pytset -q"]}, "'pytset', which is not installed"),
        ({"verification": ["pytest tests/test_other.py"]}, "'tests/test_other.py'"),
        ({"verification": ["python -m scripts.smok"]}, "the module 'scripts.smok'"),
        ({"verification": ["python -m nothing_of_it"]}, "the module 'nothing_of_it'"),
        ({"verification": ["python scripts/gone.py"]}, "'scripts/gone.py'"),
        ({"verification": ["./check.sh"]}, "'./check.sh', which is not there"),
        ({"verification": ["true"]}, "proves nothing"),
        ({"verification": ["echo ok"]}, "proves nothing"),
        ({"verification": ["pytest 'tests"]}, "cannot be read as a command"),
        ({"verification": ["pytest -q && deploy now"]}, "'deploy'"),
        ({"objective": "Do this:\n```python\nx = 1\n```"}, "a block of code"),
        ({"constraints": ["@@ -1,2 +1,2 @@\n-a\n+b"]}, "a diff"),
        ({"handoff_notes": ["def f(x):\n    return x"]}, "lines of code"),
        ({"confidence_percent": 120}, "expected 0 to 100"),
    ],
)
def test_a_draft_that_does_not_hold_is_refused_by_name(step: dict[str, Any], said: str) -> None:
    faults = faults_of(draft(step))

    assert any(said in fault for fault in faults), faults


@pytest.mark.parametrize(
    "step",
    [
        {"allowed_paths": ["src/*.py"]},
        {"allowed_paths": ["src/"]},
        {"allowed_paths": ["src"]},
        {"new_files": ["src/wait.py", "src/new/__init__.py", "notes.md"]},
        {"verification": ["pytest tests/test_sync.py::test_wait -q"]},
        {"verification": ["python -m pytest -q", "python -m app", "python -m scripts.smoke"]},
        {"verification": ["python -m unittest", "python scripts/smoke.py --fast"]},
        {"verification": ["PYTHONPATH=src pytest -q && ruff check src/sync.py"]},
        {"verification": ["cd src && pytest -q"]},
        {"new_files": ["tests/test_wait.py"], "verification": ["pytest tests/test_wait.py"]},
        {"allowed_paths": [], "verification": []},
        {"constraints": ["Return the old value if nothing changed"]},
    ],
)
def test_an_honest_draft_is_not_refused(step: dict[str, Any]) -> None:
    assert faults_of(draft(step)) == []


def test_the_steps_must_make_one_plan() -> None:
    circle = draft({"task_id": "a", "needs": ["b"]}, {"task_id": "b", "needs": ["a"]})
    unknown = draft({"needs": ["nobody"]})
    twice = draft({}, {})

    assert any("circle" in fault for fault in faults_of(circle))
    assert any("'nobody'" in fault for fault in faults_of(unknown))
    assert any("again" in fault for fault in faults_of(twice))


def test_a_plan_has_a_size() -> None:
    many = draft(*({"task_id": f"t-{number}"} for number in range(13)))

    assert "steps: has 13 steps, expected at most 12" in faults_of(many)


def test_no_steps_need_a_question() -> None:
    assert any("steps: is empty" in fault for fault in faults_of(draft(steps=[])))
    assert faults_of(draft(steps=[], open_questions=["Which?"])) == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Return the old value", ""),
        ("Import the file, then check it; do not wait", ""),
        ("For every user:\nshow the name", ""),
        ("#!/bin/sh\nrm -rf x", "a script"),
        ("const a = 1;\nlet b = 2;", "lines of code"),
        ("<<<<<<< SEARCH\nx\n>>>>>>> REPLACE", "a patch"),
    ],
)
def test_code_is_told_from_words(text: str, kind: str) -> None:
    assert code_in(text) == kind


def test_a_large_project_is_listed_by_its_folders() -> None:
    ground = Ground(frozenset(f"src/pkg-{n % 7}/deep/file-{n}.py" for n in range(700)))

    listing = ground.listing(50)

    assert "src/pkg-3/ (100 files)" in listing or "src/pkg-3/deep/ (100 files)" in listing
    assert len(listing.splitlines()) == 7
    assert "1 files, too many" not in listing
    assert Ground(frozenset({"a", "b"})).listing(1) == "[2 files, too many to list]"


def test_the_ground_is_seen_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "src" / "__pycache__").mkdir(parents=True)
    (tmp_path / "src" / "a.py").write_text("x")
    (tmp_path / "src" / "__pycache__" / "a.pyc").write_text("x")
    (tmp_path / "link.py").symlink_to("src/a.py")

    ground = ground_at(tmp_path, search_path=os.defpath)

    assert ground.files == {"src/a.py"}
    assert ground.has_program("sh")
    assert ground.has_module("json")
    assert ground.has_module("pytest")
    assert not ground.has_module("no_such_thing_anywhere")


def worked(
    tmp_path: Path, *turns: Turn, purse: MemoryPurse | None = None, **manifest: Any
) -> Work:
    made = Manifest.model_validate({"task_id": "plan", "objective": "Repair sync", **manifest})
    workspace = tmp_path / "workspace"
    for path in ("src/sync.py", "tests/test_sync.py"):
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text("x")
    pays = purse or MemoryPurse()
    thinker = Thinker(lambda _name: ScriptedModel(turns), BytesMeter(), lambda _job: pays)
    planner = Planner("planner", thinker, search_path=os.environ["PATH"])
    job = Job(
        brief=Brief(task_id="plan", run_id="r", manifest=made),
        workspace=workspace,
        folder=tmp_path,
        fence=open_fence("off"),
        limits=Limits(wall_sec=60),
    )
    return anyio.run(planner.run, job)


def test_the_planner_is_an_executor_whose_output_is_a_plan(tmp_path: Path) -> None:
    work = worked(tmp_path, Turn(output=draft({"verification": ["sh -c 'test -f x'"]})))

    assert work.record is not None
    plan = Plan.model_validate(work.record.output)
    assert plan.steps[0].task_id == "backoff"
    assert work.record.confidence == 0.7
    assert work.record.warnings == ("backoff: whether other callers rely on the wait",)
    assert work.seen.requests_made == 1


def test_a_planner_that_must_ask_asks(tmp_path: Path) -> None:
    work = worked(tmp_path, Turn(output=draft(steps=[], open_questions=["Which API?"])))

    assert work.record is not None
    assert work.record.question is not None
    assert work.record.question.text == "Which API?"


def test_a_planner_without_money_says_so(tmp_path: Path) -> None:
    purse = MemoryPurse(Budget(max_tokens=10))

    work = worked(tmp_path, Turn(output=draft()), purse=purse)

    assert work.record is not None
    assert work.seen.ended == "over_budget"


def test_a_planner_that_is_cut_off_gives_no_plan(tmp_path: Path) -> None:
    work = worked(tmp_path, Turn(output=draft(), ended="length"))

    assert work.record is None
    assert "is cut and cannot be used" in work.seen.error
