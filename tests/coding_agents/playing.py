"""Plays one task on a small real project: posted, executed by a preset, judged."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

import anyio
import pytest

from agent_run.contract.budget import Budget
from agent_run.contract.manifest import Check, Manifest
from agent_run.contract.verdict import Reason, Verdict
from agent_run.desk import Desk
from agent_run.engine.execute import Ordered, execute
from agent_run.ledger.commands import Post
from agent_run.ledger.state import TaskState
from agent_run.wiring.opening import open_desk
from agent_run.wiring.settings import ExecutorSettings, Settings
from agent_run.wiring.site import open_executor, open_site
from tests.support.clis import installed

WRONG: Final = "def add(a, b):\n    return a - b\n"
RIGHT: Final = "def add(a, b):\n    return a + b\n"
FAILING_TEST: Final = "from calc import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"
TASK: Final = "calc-7"
RUN: Final = "run-1"
# The plugins that happen to be installed beside pytest are none of the project's business.
VERIFICATION: Final = "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 python3 -m pytest -q test_calc.py"


@dataclass(frozen=True, slots=True)
class Stage:
    """A user's project with a failing test, and the desk that its ledger lies on."""

    place: Path
    desk: Desk

    @property
    def root(self) -> Path:
        return self.place / "project"

    @property
    def task(self) -> TaskState:
        return self.desk.run(RUN).tasks[TASK]

    def post(self, *, attempts: int = 1, seconds: int = 90) -> None:
        manifest = Manifest(
            task_id=TASK,
            objective="Repair the function add in calc.py",
            allowed_paths=("calc.py",),
            verification=(Check(run=VERIFICATION, min_passed=1),),
            budget=Budget(max_attempts=attempts, time_budget_sec=seconds),
        )
        self.desk.handle(RUN, Post(actor="planner", manifest=manifest))

    def execute(self, name: str, base_url: str, *, ttl: timedelta | None = None) -> TaskState:
        """Let the named preset work on the task until it is settled or waits."""
        agent = ExecutorSettings(
            preset=name, base_url=base_url, model="scripted", program=str(installed(name))
        )
        settings = Settings(root=self.root, fence="require", executors={"agent": agent})
        site = open_site(self.desk, settings)
        order = Ordered(open_executor("agent", settings), "worker-1", ttl)
        return anyio.run(execute, site, RUN, TASK, order).tasks[TASK]

    def git(self, *words: str) -> str:
        done = subprocess.run(
            ("git", "-C", str(self.root), *words), check=True, capture_output=True, text=True
        )
        return done.stdout

    def result(self) -> str | None:
        """Return the commit that stands at the task's reference, if there is one."""
        ref = f"refs/agent-run/{TASK}"
        return self.git("for-each-ref", "--format=%(objectname)", ref).strip() or None

    def print_of_user_files(self) -> dict[str, str]:
        """Return a digest of every file of the project but the ledger and git's objects."""
        ours = (".agent-run", ".git/objects", ".git/refs/agent-run", ".git/logs/refs/agent-run")
        files = (path for path in self.root.rglob("*") if path.is_file())
        named = ((path.relative_to(self.root), path) for path in files)
        return {
            str(name): hashlib.sha256(path.read_bytes()).hexdigest()
            for name, path in named
            if not any(name.is_relative_to(place) for place in ours)
        }

    def alive(self) -> tuple[str, ...]:
        """Return the processes that carry this stage in their environment or their words."""
        mark = str(self.place).encode()
        return tuple(
            words
            for process in Path("/proc").iterdir()
            if process.name.isdigit() and (words := _words_with(process, mark))
        )

    def jobs_left(self) -> tuple[str, ...]:
        folder = self.root / ".agent-run" / "work"
        return tuple(str(path) for path in folder.rglob("*") if not path.is_dir())


@contextmanager
def staged(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """Make the project, and put the tests' own Python first on the search path."""
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    root = place / "project"
    root.mkdir()
    (root / "calc.py").write_text(WRONG)
    (root / "test_calc.py").write_text(FAILING_TEST)
    settings = Settings(root=root)
    desk = open_desk(settings.store_url)
    stage = Stage(place, desk)
    stage.git("init", "--quiet", "--initial-branch=main")
    for name, value in (("user.name", "Ada"), ("user.email", "ada@example.org")):
        stage.git("config", name, value)
    stage.git("add", "--all")
    stage.git("commit", "--quiet", "--message=A function and its test")
    try:
        yield stage
    finally:
        desk.close()


def reasons(verdict: Verdict | None) -> set[Reason]:
    """Return why the verdict is not a pass; nothing if it is, or if there is none."""
    return {finding.reason for finding in verdict.failures} if verdict else set()


def _words_with(process: Path, mark: bytes) -> str:
    try:
        words = (process / "cmdline").read_bytes()
        environment = (process / "environ").read_bytes()
    except OSError:
        return ""  # it ended meanwhile, or belongs to somebody else
    if mark not in words and mark not in environment:
        return ""
    return words.replace(b"\0", b" ").decode(errors="replace").strip() or process.name
