"""What a test gets back from one command line, and the documents it hands in."""

import json
from collections.abc import Callable
from dataclasses import dataclass
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
