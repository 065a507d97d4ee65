"""Finds out what this machine can hold, by trying it once per process."""

import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Final, Literal, assert_never

from agent_run.errors import AgentRunError, FenceUnavailable
from agent_run.ports.fence import Fence, FenceReport, Kind, Launch, Limits, Mechanism
from agent_run.workspace.fence import syscalls
from agent_run.workspace.fence.helper import line_to_helper
from agent_run.workspace.fence.local import LocalFence
from agent_run.workspace.fence.policy import Ground, Tier, fields_for
from agent_run.workspace.fence.routes import Routes
from agent_run.workspace.fence.statements import holds, lacks

Mode = Literal["require", "prefer", "off"]

_TIERS: Final[tuple[Tier, ...]] = ("namespaces", "landlock")
_TRIAL_SEC: Final = 20
# Must use its own file and must not read the one outside; whether the new one came to be
# is looked at from outside.
_TRIAL: Final = "(echo x > ../new); ! cat ../outside && cat inside && echo x > inside"


def open_fence(mode: Mode, *, tier: Tier | None = None, scratch: Path | None = None) -> Fence:
    """The strongest fence that works here, or the one named by `tier`.

    `scratch` is a directory for private files and for building roots on; None means the
    system's temporary directory.

    Raises:
        FenceUnavailable: `mode` is `"require"`, and nothing or not `tier` works here.
    """
    stage = Path(tempfile.gettempdir() if scratch is None else scratch).resolve()
    chosen = _chosen(mode, tier, stage)
    version = 0 if chosen == "none" else _landlock_version()
    ground = Ground(tier=chosen, landlock=version, stage=stage)
    return LocalFence(ground=ground, found=_report(chosen, version, stage))


def probe(scratch: Path | None = None) -> FenceReport:
    """What the strongest working fence holds here, and what trying each mechanism gave."""
    stage = Path(tempfile.gettempdir() if scratch is None else scratch).resolve()
    return _report(_strongest(stage), _landlock_version(), stage)


def _chosen(mode: Mode, tier: Tier | None, stage: Path) -> Tier:
    match mode:
        case "off":
            return "none"
        case "prefer":
            return _strongest(stage) if tier is None else tier
        case "require":
            wanted = _strongest(stage) if tier is None else tier
        case _:
            assert_never(mode)
    if wanted == "none":
        msg = f"no fence works on this machine: {_trial('landlock', stage)}"
        raise FenceUnavailable(msg)
    trouble = _trial(wanted, stage)
    if trouble:
        msg = f"fence {wanted!r} does not work on this machine: {trouble}"
        raise FenceUnavailable(msg)
    return wanted


def _strongest(stage: Path) -> Tier:
    return next((tier for tier in _TIERS if not _trial(tier, stage)), "none")


def _report(tier: Tier, version: int, stage: Path) -> FenceReport:
    kind = _kind(tier, version)
    used = 0 if tier == "none" else version
    return FenceReport(
        kind=kind,
        abi=used or None,
        holds=holds(tier, used),
        lacks=lacks(tier, used),
        mechanisms=_mechanisms(version, stage),
    )


def _kind(tier: Tier, version: int) -> Kind:
    match tier:
        case "namespaces":
            return "namespaces+landlock+seccomp" if version else "namespaces+seccomp"
        case "landlock":
            return "landlock+seccomp"
        case "none":
            return "none"
        case _:
            assert_never(tier)


def _mechanisms(version: int, stage: Path) -> tuple[Mechanism, ...]:
    namespaces, plain = (_trial(tier, stage) for tier in _TIERS)
    return (
        Mechanism(
            "namespaces", not namespaces, namespaces or "user, mount, pid, net, ipc, uts"
        ),
        Mechanism("landlock", version > 0, f"version {version}" if version else "not offered"),
        Mechanism("seccomp", not (namespaces and plain), plain or "filter loaded"),
        Mechanism("cgroups", works=False, detail="not used; limits are counted by the keeper"),
    )


@cache
def _landlock_version() -> int:
    return syscalls.landlock_version() if sys.platform == "linux" else 0


@cache
def _trial(tier: Tier, stage: Path) -> str:
    """What goes wrong when `tier` is tried; empty when it holds."""
    version = _landlock_version()
    if tier == "landlock" and not version:
        return "the kernel offers no Landlock"
    if syscalls.machine() not in {"x86_64", "aarch64"}:
        return f"no filter is known for {syscalls.machine()!r}"
    try:
        with tempfile.TemporaryDirectory(dir=stage) as folder:
            return _tried(Ground(tier=tier, landlock=version, stage=stage), Path(folder))
    except (AgentRunError, OSError, subprocess.TimeoutExpired) as error:
        return str(error)


def _tried(ground: Ground, folder: Path) -> str:
    work = (folder / "work").resolve()
    work.mkdir()
    (folder / "outside").write_text("secret")
    (work / "inside").write_text("open")
    launch = Launch(
        argv=("/bin/sh", "-c", _TRIAL),
        cwd=work,
        env={},
        writable=(work,),
        limits=Limits(wall_sec=_TRIAL_SEC),
    )
    with line_to_helper(fields_for(launch, ground, Routes())) as line:
        subprocess.run(  # noqa: S603 - our own interpreter and helper
            line.command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            cwd="/",
            env={},
            pass_fds=line.handles,
            timeout=_TRIAL_SEC * 2,
        )
        line.theirs.close()
        said = line.ours.recv(65_536).decode(errors="replace")
    if (folder / "new").exists():
        return "tried it: a file outside was written"
    return "" if said.startswith("exited 0\n") else f"tried it: {said.strip()}"
