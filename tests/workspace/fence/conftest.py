"""A workspace, things outside of it, and every fence that can be tried here."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import anyio
import pytest

from agent_run.ports.fence import Fence, Finished, Launch, Limits, Mechanism
from agent_run.workspace.fence import open_fence, probe
from agent_run.workspace.fence.policy import Tier

PREAMBLE = """
import ctypes, errno, os, signal, socket, subprocess, sys, time
from pathlib import Path
WORK, OUT = Path(os.environ["WORK"]), Path(os.environ["OUT"])
SECRET, VICTIM = OUT / "secret", int(os.environ["VICTIM"])
libc = ctypes.CDLL(None, use_errno=True)
def syscall(number, *arguments):
    result = libc.syscall(ctypes.c_long(number), *(
        ctypes.c_long(a) if isinstance(a, int) else a for a in arguments))
    return "refused" if result < 0 else "granted"
"""


@dataclass(frozen=True, slots=True)
class Place:
    """One test's ground: what the command may write, and what it must leave alone."""

    work: Path
    out: Path
    victim: int
    """A process outside of the fence."""

    def launch(self, script: str, **changes: object) -> Launch:
        """A launch of Python code that knows `WORK`, `OUT`, `SECRET` and `VICTIM`."""
        env = {"WORK": str(self.work), "OUT": str(self.out), "VICTIM": str(self.victim)}
        plain = Launch(
            argv=(sys.executable, "-c", PREAMBLE + script),
            cwd=self.work,
            env=env,
            writable=(self.work,),
            limits=Limits(wall_sec=60),
        )
        return replace(plain, **changes)  # type: ignore[arg-type]  # checked by the dataclass's users

    def outside(self) -> dict[str, tuple[int, int, int, bytes]]:
        """Everything outside, down to modes and times."""
        return {
            str(path): _facts(path)
            for path in sorted(self.out.rglob("*"))
            if not path.is_socket()
        }


def _facts(path: Path) -> tuple[int, int, int, bytes]:
    facts = path.lstat()
    content = path.read_bytes() if path.is_file() else b""
    return facts.st_mode, facts.st_mtime_ns, facts.st_uid, content


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    work, out = tmp_path / "work", tmp_path / "out"
    work.mkdir()
    out.mkdir()
    (out / "secret").write_text("the key")
    (out / "folder").mkdir()
    victim = subprocess.Popen(
        ["/bin/sleep", "1000"], env={"TOKEN": "hunter2"}, start_new_session=True
    )
    try:
        yield Place(work=work, out=out, victim=victim.pid)
    finally:
        victim.send_signal(signal.SIGKILL)
        victim.wait()


def works(tier: Tier) -> bool:
    found: dict[str, Mechanism] = {each.name: each for each in probe().mechanisms}
    return tier == "none" or found[tier].works


@pytest.fixture(params=["namespaces", "landlock"])
def tier(request: pytest.FixtureRequest) -> Tier:
    name: Tier = request.param
    if not works(name):
        pytest.skip(f"{name} does not work on this machine")
    return name


@pytest.fixture
def fence(tier: Tier, tmp_path: Path) -> Fence:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return open_fence("require", tier=tier, scratch=scratch)


@pytest.fixture(params=["namespaces", "landlock", "none"])
def any_fence(request: pytest.FixtureRequest, tmp_path: Path) -> Fence:
    name: Tier = request.param
    if not works(name):
        pytest.skip(f"{name} does not work on this machine")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return open_fence("off" if name == "none" else "require", tier=name, scratch=scratch)


Run = Callable[[Fence, Launch], Finished]


@pytest.fixture
def run() -> Run:
    return lambda fence, launch: anyio.run(partial(fence.run, launch))


@pytest.fixture
def marked(place: Place) -> Callable[[], list[int]]:
    """The processes of this machine that carry the test's own mark in their arguments."""
    mark = os.fsencode(place.work)

    def alive() -> list[int]:
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                words = (process / "cmdline").read_bytes()
            except OSError:
                continue
            if mark in words and int(process.name) != os.getpid():
                found.append(int(process.name))
        return found

    return alive
