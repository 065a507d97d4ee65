"""A small real project, and strangers who work on it end to end.

The project is the GitHub sync worker whose handling of status 429 fails. `perform` posts a
manifest, lets a script be its executor inside the real fence, has the result judged, and
tells what was touched outside.
"""

import hashlib
import os
import shutil
import stat
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, Self

import anyio

from agent_run.contract.base import TaskId
from agent_run.contract.manifest import Manifest
from agent_run.contract.verdict import Finding
from agent_run.desk import Desk
from agent_run.engine.execute import Ordered, execute
from agent_run.engine.site import Site
from agent_run.engine.telling import Told
from agent_run.executors.command import CommandExecutor
from agent_run.gates.cache import FileCache
from agent_run.ledger.commands import Post
from agent_run.ledger.state import RunState, TaskState
from agent_run.ports.executor import Executor
from agent_run.ports.fence import Fence, Limits
from agent_run.wiring.opening import open_desk
from agent_run.wiring.settings import Settings
from agent_run.wiring.site import Wanted, open_site
from agent_run.wiring.toolbox import Toolbox, toolbox
from agent_run.workspace.fence import open_fence

TASK: Final = "repo-142"
SECRET: Final = "the-users-secret-7f3a"
GIT: Final = shutil.which("git") or "git"
BROKEN: Final = '''\
"""Reads issues from GitHub."""


class RateLimited(Exception):
    """GitHub wants us to wait."""


def delays(retries: int, cap: float = 30.0) -> list[float]:
    """Return how long to wait before each retry."""
    return [60.0] * retries


def fetch(get, retries: int = 3) -> dict:
    """Return the body of the first answer that is not 429."""
    status, body = get()
    if status == 429:
        raise RateLimited
    return body
'''
FIXED: Final = '''\
"""Reads issues from GitHub."""


class RateLimited(Exception):
    """GitHub wants us to wait."""


def delays(retries: int, cap: float = 30.0) -> list[float]:
    """Return how long to wait before each retry."""
    return [min(cap, 2.0**number) for number in range(retries)]


def fetch(get, retries: int = 3) -> dict:
    """Return the body of the first answer that is not 429."""
    for _ in range(retries + 1):
        status, body = get()
        if status != 429:
            return body
    raise RateLimited
'''
TESTS: Final = """\
from github_sync import delays, fetch


def test_a_plain_answer_is_returned():
    assert fetch(lambda: (200, {"id": 1})) == {"id": 1}


def test_a_busy_server_is_asked_again():
    answers = [(429, {}), (200, {"id": 2})]
    assert fetch(lambda: answers.pop(0)) == {"id": 2}


def test_no_wait_is_longer_than_the_cap():
    assert max(delays(10)) <= 30
"""
SMOKE: Final = """\
import sys

sys.path.insert(0, "src")
from github_sync import fetch

answers = [(429, {}), (200, {"ok": True})]
assert fetch(lambda: answers.pop(0)) == {"ok": True}
print("smoke passed")
"""
FILES: Final[Mapping[str, str]] = {
    "README.md": "# sync\n",
    "src/github_sync.py": BROKEN,
    "src/other.py": "VALUE = 1\n",
    "tests/test_github_sync.py": TESTS,
    "scripts/__init__.py": "",
    "scripts/smoke_github_sync.py": SMOKE,
    "pytest.ini": "[pytest]\npythonpath = src\n",
    "docs/guide.md": "guide\n",
    ".gitignore": "__pycache__/\n*.log\n.agent-run/\n",
}
PRELUDE: Final = """\
import json, os, pathlib, shutil, signal, subprocess, sys, time
from pathlib import Path
FIXED = {fixed!r}
SYNC = Path("src/github_sync.py")
REPO, HOME, OUTSIDE = Path({root!r}), Path({home!r}), Path({outside!r})
def fix(): SYNC.write_text(FIXED)
def record(**said):
    whole = {{"task_id": "{task}", "files_changed": ["src/github_sync.py"], **said}}
    Path(os.environ["AGENT_RUN_RECORD"]).write_text(json.dumps(whole))
def attempt(deed):
    try: return deed()
    except (OSError, subprocess.SubprocessError) as error: print("held:", error)
"""


@dataclass(frozen=True, slots=True)
class Project:
    """Everything an attack could reach."""

    place: Path
    root: Path
    """The user's repository."""
    home: Path
    outside: Path
    """Somebody else's folder beside it."""

    @property
    def state(self) -> Path:
        return self.root / ".agent-run"

    def fingerprint(self) -> dict[str, str]:
        """Return type, mode and content of all that is the user's."""
        return fingerprint(self.place, besides=(self.state, self.place / "scripts"))


@dataclass(frozen=True, slots=True)
class Performance:
    """What came of one task."""

    task: TaskState
    run: RunState
    told: tuple[str, ...]
    site: Site
    touched: tuple[str, ...]
    """What differs in the user's places, our own ref and its objects not counted."""

    @property
    def accepted(self) -> bool:
        return self.task.status == "accepted"

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.task.verdict.findings if self.task.verdict else ()

    @property
    def reasons(self) -> set[str]:
        return {one.reason for one in self.findings if one.outcome != "pass"}

    @property
    def said(self) -> str:
        """Everything that a person would be shown."""
        evidence = "\n".join(f"{one.gate} {one.reason} {one.evidence}" for one in self.findings)
        return f"{self.task.status}: {self.task.note}\n{evidence}\n" + "\n".join(self.told)

    @property
    def transcript(self) -> str:
        observed = self.task.observed
        digest = observed.get("transcript") if isinstance(observed, dict) else None
        content = self.site.desk.store.blob(str(digest)) if digest else None
        return (content or b"").decode(errors="replace")

    def changes(self) -> dict[str, str]:
        """Return each path of the accepted commit that differs from its parent, and how."""
        result = self.task.result
        assert isinstance(result, dict)
        options = ("-r", "--no-commit-id", "--no-renames", "--name-status", "-z")
        words = git(self.repository, "diff-tree", *options, str(result["commit"])).split("\0")
        return dict(zip(words[1::2], words[0::2], strict=False))

    @property
    def repository(self) -> Path:
        """Where results are kept: the user's repository, or our own for a plain folder."""
        private = self.site.folder.parent / "workspaces" / "folder.git"
        return private if private.is_dir() else self.site.folder.parent.parent


def new_project(place: Path, *, files: Mapping[str, str] | None = None) -> Project:
    """Return a fresh project below `place`, committed."""
    project = Project(place, place / "repo", place / "home", place / "outside")
    for folder in (project.root, project.home / ".ssh", project.outside):
        folder.mkdir(parents=True)
    put(project.home, ".ssh/id_ed25519", SECRET)
    put(project.home, ".netrc", SECRET)
    put(project.outside, "theirs.txt", "theirs\n")
    for path, content in (FILES if files is None else files).items():
        put(project.root, path, content)
    git(project.root, "init", "-q", "-b", "main")
    commit_all(project.root, "first")
    git(project.root, "branch", "other")
    return project


def put(root: Path, path: str, content: str | bytes) -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def git(where: Path, *arguments: str) -> str:
    """Run the user's own git, and return what it says."""
    env = {
        "PATH": os.defpath,
        "HOME": str(where),
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        **{f"GIT_{who}_NAME": "Ada" for who in ("AUTHOR", "COMMITTER")},
        **{f"GIT_{who}_EMAIL": "ada@example.org" for who in ("AUTHOR", "COMMITTER")},
    }
    command = [GIT, "-C", str(where), "-c", "safe.directory=*", *arguments]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"git {arguments}: {done.stderr}"
    return done.stdout.removesuffix("\n")


def commit_all(where: Path, message: str) -> str:
    git(where, "add", "-A")
    git(where, "commit", "-q", "-m", message)
    return git(where, "rev-parse", "HEAD")


def fingerprint(root: Path, *, besides: tuple[Path, ...] = ()) -> dict[str, str]:
    """Return type, mode and content of everything below `root`."""
    seen: dict[str, str] = {}
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if Path(folder) / name not in besides]
        for name in (*folders, *files):
            path = Path(folder) / name
            status = path.lstat()
            what = f"{status.st_mode:o}"
            if stat.S_ISLNK(status.st_mode):
                what += f" -> {path.readlink()}"
            elif stat.S_ISREG(status.st_mode):
                what += " " + hashlib.sha256(path.read_bytes()).hexdigest()
            seen[str(path.relative_to(root))] = what
    return seen


def manifest(**fields: Any) -> Manifest:
    """Return a manifest for the project; one attempt, unless something else is said."""
    plain = {
        "task_id": TASK,
        "objective": "Add rate-limit backoff to the GitHub sync worker",
        "allowed_paths": ("src/github_sync.py",),
        "budget": {"max_attempts": 1, "time_budget_sec": 60},
    }
    return Manifest.model_validate({**plain, **fields})


def script_executor(project: Project, script: str, *, task: TaskId = TASK) -> CommandExecutor:
    """Return an executor that runs `script` as Python, with a few words at hand."""
    prelude = PRELUDE.format(
        fixed=FIXED,
        root=str(project.root),
        home=str(project.home),
        outside=str(project.outside),
        task=task,
    )
    scripts = project.place / "scripts"
    number = len(list(scripts.iterdir())) if scripts.is_dir() else 0
    file = put(scripts, f"executor{number}.py", prelude + textwrap.dedent(script))
    tools = test_tools(project)
    return CommandExecutor(
        "stranger", f"{sys.executable} -B {file}", tools.env, (*tools.readable, scripts)
    )


def test_tools(project: Project) -> Toolbox:
    """Return the tools of the project's environment, if it has one, and of our own."""
    folders = (project.root / ".venv" / "bin", Path(sys.prefix) / "bin")
    path = os.pathsep.join((*map(str, folders), "/usr/local/bin", "/usr/bin", "/bin"))
    return toolbox({"PATH": path, "LANG": "C.UTF-8"}, root=project.root)


test_tools.__test__ = False  # type: ignore[attr-defined]  # a pytest convention


@dataclass(slots=True)
class Stage:
    """One project with its ledger and site, on which tasks are performed."""

    project: Project
    limits: Limits = field(
        default_factory=lambda: Limits(memory_mb=1_024, processes=200, disk_mb=256)
    )
    dirty: str = "refuse"
    cache: Path | None = None
    """Where findings are kept, if they are to be shared between projects."""
    told: list[str] = field(default_factory=list)
    desk: Desk | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.desk is not None:
            self.desk.close()

    def open(self) -> Site:
        settings = Settings(root=self.project.root, owner="tester")
        if self.desk is None:
            self.desk = open_desk(settings.store_url)
        wanted = Wanted(tell=self._hear, dirty=self.dirty)
        site = open_site(self.desk, settings, wanted)
        tools = test_tools(self.project)
        return replace(
            site,
            env=tools.env,
            readable=tools.readable,
            imports=tools.imports,
            environment=tools.fingerprint(),
            cache=FileCache(self.cache or self.project.state / "cache"),
            fence=shared_fence(),
            limits=self.limits,
        )

    def perform(
        self, work: str | Executor, *, attempts: int | None = None, **fields: Any
    ) -> Performance:
        """Post a manifest with `fields`, and let `work` be done on it until it settles."""
        site, task = self.open(), manifest(**fields)
        site.desk.handle(task.task_id, Post(actor="planner", manifest=task))
        executor = (
            script_executor(self.project, work, task=task.task_id)
            if isinstance(work, str)
            else work
        )
        order = Ordered(executor, "tester", attempts=attempts)
        before = self.project.fingerprint()
        run = anyio.run(execute, site, task.task_id, task.task_id, order)
        touched = difference(before, self.project.fingerprint())
        told = tuple(self.told)
        return Performance(run.tasks[task.task_id], run, told, site, touched)

    def _hear(self, told: Told) -> None:
        self.told.append(f"[{told.topic}] {told.text}")


@cache
def shared_fence() -> Fence:
    """Return the strongest fence of this machine, probed once.

    `TEST_FENCE=landlock` tries the same on the next best.
    """
    named: Any = os.environ.get("TEST_FENCE")
    return open_fence("require" if named else "prefer", tier=named)


def running(project: Project) -> list[str]:
    """Return the processes whose command line names this project's executors."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = file.read_bytes().decode(errors="replace")
        except OSError:
            continue  # it ended meanwhile
        if str(project.place / "scripts") in words:
            found.append(words.replace("\0", " "))
    return found


def difference(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[str, ...]:
    """Return each path that differs, but for our own ref and the objects behind it."""
    kept = ("objects", "refs/agent-run", "logs/refs/agent-run")
    ours = (*(f"repo/.git/{name}" for name in kept), "repo/.agent-run")
    paths = (path for path in {*before, *after} if before.get(path) != after.get(path))
    return tuple(sorted(path for path in paths if not path.startswith(ours)))
