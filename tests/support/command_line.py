"""What a test gets back from one command line, and the documents it hands in."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

MANIFEST = """\
task_id: repo-142
objective: Add rate-limit backoff to the GitHub sync worker
allowed_paths:
- src/github_sync.py
- tests/test_github_sync.py
verification:
- pytest tests/test_github_sync.py -q
"""
RECORD = """\
{"task_id": "repo-142", "status": "needs_review", "files_changed": ["src/github_sync.py"],
 "commands_run": ["pytest tests/test_github_sync.py -q"], "risks": ["none known"]}
"""


AGENTS_RECORD: dict[str, Any] = {
    "status": "done",
    "files_changed": ["app.py"],
    "commands_run": ["python3 check.py"],
    "risks": [],
    "next_step": "",
    "notes": "changed the constant",
    "confidence_percent": 90,
    "next_action": "continue",
    "wider_scope": [],
}
"""What the built-in agent is told to hand in."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back from one command line."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Ask: TypeAlias = Callable[..., Answer]


def agent_run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command line in a process of its own, in `folder`."""
    return subprocess.run(
        [sys.executable, "-m", "agent_run", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
