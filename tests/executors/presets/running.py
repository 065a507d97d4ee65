"""Runs a preset's invocation as a bare process, as the engine will run it inside a fence."""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from agent_run.executors.presets import (
    PRESETS,
    Assignment,
    Endpoint,
    Invocation,
    Observation,
    Output,
    find_program,
)
from tests.support.clis import installed

WRONG = "def add(a, b):\n    return a - b\n"
RIGHT = "def add(a, b):\n    return a + b\n"


@dataclass(frozen=True, slots=True)
class Ran:
    """A finished run: what was seen, and the folder that was worked in."""

    observation: Observation
    output: Output
    workspace: Path

    def text(self, name: str) -> str:
        return (self.workspace / name).read_text()


def assignment(name: str, place: Path, endpoint: Endpoint, brief: str) -> Assignment:
    """Return an assignment on a small project with one wrong function."""
    workspace, home = place / "workspace", place / "home"
    workspace.mkdir()
    home.mkdir()
    (workspace / "calc.py").write_text(WRONG)
    brief_path = place / "brief.md"
    brief_path.write_text(brief)
    program = installed(name)
    return Assignment(
        brief=brief,
        brief_path=brief_path,
        workspace=workspace,
        home=home,
        program=find_program(program.name, f"{program.parent}{os.pathsep}{os.environ['PATH']}"),
        endpoint=endpoint,
        editable=("calc.py",),
    )


def run(
    name: str,
    place: Path,
    endpoint: Endpoint,
    *,
    brief: str = "Repair the function add in calc.py.",
    seconds: float = 90,
) -> Ran:
    """Start the named preset in `place` and return how it ended, at the latest in `seconds`."""
    task = assignment(name, place, endpoint, brief)
    invocation = PRESETS[name].invocation(task)
    for folder in invocation.folders:
        folder.mkdir(parents=True, exist_ok=True)
    for path, text in invocation.files.items():
        path.write_text(text)
    stdout, stderr, exit_code = _ended(invocation, seconds)
    files = {key: p.read_text() for key, p in invocation.results.items() if p.is_file()}
    output = Output(stdout, stderr, exit_code, files)
    return Ran(PRESETS[name].read_events(output), output, task.workspace)


def _ended(invocation: Invocation, seconds: float) -> tuple[str, str, int | None]:
    # The tests' own Python stands first, so that the scripted commands find one.
    search = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
    process = subprocess.Popen(
        invocation.argv,
        cwd=invocation.cwd,
        env={"PATH": search, "LANG": "C.UTF-8", **invocation.env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        stdout, stderr = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        stdout, stderr = process.communicate()
        return stdout, stderr, None
    return stdout, stderr, process.returncode
