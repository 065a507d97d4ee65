"""`plan` through the door: a scripted model plans, files are written for review."""

import json
from pathlib import Path

import pytest

from tests.support.command_line import agent_run

DRAFT = {
    "steps": [
        {
            "task_id": "add-backoff",
            "objective": "Wait longer after each refusal",
            "allowed_paths": ["src/sync.py"],
            "new_files": [],
            "constraints": ["Keep the delay under 30 seconds"],
            "verification": ["python3 -m unittest discover"],
            "handoff_notes": [],
            "needs": [],
            "unsure_of": ["which refusals count"],
            "confidence_percent": 80,
        }
    ],
    "open_questions": [],
    "confidence_percent": 80,
    "reasoning": "One file, one purpose.",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "agent-run.toml").write_text("")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "sync.py").write_text("x = 1\n")
    return tmp_path


def script(project: Path, *drafts: object) -> str:
    file = project / "script.json"
    file.write_text(json.dumps([{"output": draft} for draft in drafts]))
    return f"scripted:{file}"


def test_a_plan_is_written_for_review_and_nothing_is_posted(project: Path) -> None:
    done = agent_run(
        project, "plan", "Add backoff", "--model", script(project, DRAFT), "--json"
    )

    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["run_id"] is None
    assert told["confidence"] == 0.8
    assert "unsure: add-backoff: which refusals count" in done.stderr
    assert (project / "tasks" / "add-backoff.yaml").is_file()
    assert agent_run(project, "check", "tasks").returncode == 0
    assert "no tasks" in agent_run(project, "status").stderr


def test_a_draft_with_an_invented_path_is_said_back_and_corrected(project: Path) -> None:
    step = {**DRAFT["steps"][0], "allowed_paths": ["src/ghost.py"]}  # type: ignore[index]
    invented = {**DRAFT, "steps": [step]}

    done = agent_run(
        project, "plan", "Add backoff", "--model", script(project, invented, DRAFT), "--json"
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["plan"]["steps"][0]["allowed_paths"] == ["src/sync.py"]


def test_without_a_model_there_is_a_sentence(project: Path) -> None:
    done = agent_run(project, "plan", "Add backoff")

    assert done.returncode == 2
    assert "no model is named" in done.stderr
