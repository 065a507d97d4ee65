"""The scratch repository of the demo: a GitHub sync worker that cannot handle a 429."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agent_run.workspace.plumbing import find_git

MANIFEST: Final = """\
task_id: repo-142
objective: Add rate-limit backoff to the GitHub sync worker
allowed_paths:
- src/github_sync.py
- tests/test_github_sync.py
protected_paths:
- tests/test_rate_limit.py
- scripts/**
constraints:
- Do not change API response schemas
- Keep max retry delay under 30 seconds
verification:
- python3 -m unittest discover -q
- python3 -m scripts.smoke_github_sync
handoff_notes:
- Existing failures come from 429 handling
- Prefer jittered exponential backoff
budget:
  max_attempts: 6
"""

_WORKER: Final = '''\
"""Keeps a local list of issues in step with GitHub."""

import time


class SyncFailed(Exception):
    """GitHub did not give us what we asked for."""


def fetch(session, path, sleep=time.sleep):
    """Return the JSON body of `path`."""
    response = session.get(path)
    if response.status != 200:
        raise SyncFailed(f"{path}: HTTP {response.status}")
    return response.body


def sync_issues(session, repository, sleep=time.sleep):
    """Return the titles of all open issues, page by page."""
    titles, page = [], 1
    while True:
        issues = fetch(session, f"/repos/{repository}/issues?page={page}", sleep)
        if not issues:
            return titles
        titles += [issue["title"] for issue in issues]
        page += 1
'''
_GITHUB: Final = '''\
"""A GitHub that answers from a list, for tests."""


class Response:
    def __init__(self, status, body=None, headers=None):
        self.status, self.body, self.headers = status, body, headers or {}


class Session:
    def __init__(self, *responses):
        self.responses, self.asked = list(responses), []

    def get(self, path):
        self.asked.append(path)
        return self.responses.pop(0)
'''
_TESTS: Final = """\
import unittest

from src import github_sync
from tests.github import Response, Session


class SyncTest(unittest.TestCase):
    def test_all_pages_are_read(self):
        session = Session(Response(200, [{"title": "a"}]), Response(200, []))
        self.assertEqual(github_sync.sync_issues(session, "o/r"), ["a"])

    def test_an_error_is_told(self):
        with self.assertRaises(github_sync.SyncFailed):
            github_sync.sync_issues(Session(Response(500)), "o/r")
"""
_RATE_LIMIT: Final = """\
import unittest

from src import github_sync
from tests.github import Response, Session


class RateLimitTest(unittest.TestCase):
    def test_a_429_is_waited_for(self):
        slept = []
        session = Session(
            Response(429, headers={"Retry-After": "7"}),
            Response(200, [{"title": "a"}]),
            Response(200, []),
        )
        self.assertEqual(github_sync.sync_issues(session, "o/r", slept.append), ["a"])
        self.assertEqual(slept, [7.0])

    def test_no_delay_is_thirty_seconds_or_more(self):
        slept = []
        limited = [Response(429, headers={"Retry-After": "3600"}) for _ in range(3)]
        session = Session(*limited, Response(200, []))
        github_sync.sync_issues(session, "o/r", slept.append)
        self.assertTrue(all(delay < 30 for delay in slept), slept)
"""
_SMOKE: Final = '''\
"""One sync from beginning to end, with a limit in the middle."""

from src.github_sync import sync_issues
from tests.github import Response, Session

session = Session(Response(200, [{"title": "a"}]), Response(429), Response(200, []))
assert sync_issues(session, "o/r", sleep=lambda delay: None) == ["a"]
'''
_FILES: Final[Mapping[str, str]] = {
    "README.md": "# github-sync\n\nKeeps a local list of issues in step with GitHub.\n",
    "src/__init__.py": "",
    "src/github_sync.py": _WORKER,
    "src/settings.py": "TIMEOUT = 30\n",
    "tests/__init__.py": "",
    "tests/github.py": _GITHUB,
    "tests/test_github_sync.py": _TESTS,
    "tests/test_rate_limit.py": _RATE_LIMIT,
    "scripts/__init__.py": "",
    "scripts/smoke_github_sync.py": _SMOKE,
    "tasks/repo-142.yaml": MANIFEST,
}
_AUTHOR: Final = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "Demo"), ("EMAIL", "demo@example.invalid"))
}


def build(root: Path) -> None:
    """Make the repository at `root`, with everything committed on `main`.

    Raises:
        Unfit: git is missing or too old.
    """
    git = find_git(None)
    for name, text in _FILES.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    for words in (
        ("init", "-q", "--template=", "-b", "main"),
        ("add", "."),
        ("commit", "-q", "-m", "GitHub sync worker"),
    ):
        # Nothing of the user's own git may take part: no hooks, no templates, no signing.
        env = {**_AUTHOR, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
        subprocess.run([git, *words], cwd=root, env=env, check=True)  # noqa: S603 - our words
