"""A small real repository, and short ways to work on it through the door."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

Git: TypeAlias = Callable[..., str]
Write: TypeAlias = Callable[..., str]

RIGHT = "sed -i 's/x = 1/x = 2/' a.py"
WRONG = "sed -i 's/x = 1/x = 3/' a.py"


def saying(work: str, **record: Any) -> str:
    """Return a command that does `work` and hands a record in."""
    return f"{work} && printf %s '{json.dumps(record)}' > $AGENT_RUN_RECORD"


@pytest.fixture
def git(folder: Path) -> Git:
    """Git in the project, with nothing of the user's own configuration."""
    names = {"NAME": "Ada", "EMAIL": "ada@example.invalid"}
    env = {f"GIT_{who}_{k}": v for who in ("AUTHOR", "COMMITTER") for k, v in names.items()}
    env |= {"PATH": "/usr/bin:/bin:/usr/local/bin", "GIT_CONFIG_GLOBAL": "/dev/null"}

    def run(*words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=folder, env=env, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    return run


@pytest.fixture
def project(folder: Path, git: Git) -> Path:
    """A repository in which everything is committed."""
    (folder / "repo-142.yaml").unlink()
    (folder / "record.json").unlink()
    (folder / "a.py").write_text("x = 1\n")
    (folder / "b.py").write_text("y = 1\n")
    (folder / ".gitignore").write_text("*.yaml\n*.json\n")
    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-q", "-m", "start")
    return folder


@pytest.fixture
def manifest(project: Path) -> Write:
    """Write the manifest of task `t1`, or of another, and return the file's name."""

    def write(task_id: str = "t1", **more: Any) -> str:
        told = {
            "task_id": task_id,
            "objective": "Set x to 2",
            "allowed_paths": ["a.py"],
            "verification": ["grep -q 'x = 2' a.py"],
            **more,
        }
        name = f"{task_id}.json"
        (project / name).write_text(json.dumps(told))
        return name

    return write
