"""Turns what a `Launch` grants into what the kernel is told.

Everything starts closed. The system's programs and libraries are opened for reading, then
what the launch names; of two grants that meet, the deeper path counts.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from agent_run.errors import ContractError, FenceUnavailable
from agent_run.ports.fence import Launch
from agent_run.workspace.fence.landlock import NET_SINCE
from agent_run.workspace.fence.places import (
    DEVICES,
    ETC,
    HOME,
    MACHINE,
    PRIVATE,
    SHARED_MEMORY,
    SYSTEM,
    system_entries,
)
from agent_run.workspace.fence.routes import Routes
from agent_run.workspace.fence.spec import Entry

Tier = Literal["namespaces", "landlock", "none"]

_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
# Git gives up over a system file that it sees and may not read.
_TOOLS: Final = {"GIT_CONFIG_NOSYSTEM": "1"}
_RANK: Final = {"link": 0, "private": 1, "dev": 2, "ro": 3, "rw": 4, "mask": 5}
_MEBIBYTE: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Ground:
    """Where a fence stands: what it found on this machine and may use there."""

    tier: Tier
    landlock: int
    """The version of Landlock to use; 0 means none."""
    stage: Path
    private: Path | None = None
    """A fresh directory for private files, where they cannot be mounts."""
    proxy_port: int = 0
    """Where the proxy listens, for a launch that names real hosts."""


@dataclass(frozen=True, slots=True)
class _Grants:
    writable: tuple[Path, ...]
    readable: tuple[Path, ...]
    hidden: tuple[Path, ...]


def fields_for(launch: Launch, ground: Ground, routes: Routes) -> dict[str, object]:
    """Every field of the helper's `Spec`.

    Raises:
        ContractError: a path is missing, or a word cannot be given to a program.
        FenceUnavailable: what is asked for cannot be held on `ground`.
    """
    _check_words(launch)
    grants = _grants_of(launch)
    cwd = _existing(launch.cwd, "cwd")
    if ground.tier != "none":
        _check_granted(cwd, grants)
    limits = launch.limits
    fields: dict[str, object] = {
        "tier": ground.tier,
        "landlock": ground.landlock,
        "argv": list(launch.argv),
        "cwd": os.fspath(cwd),
        "env": _environment(launch, ground, routes),
        "stage": os.fspath(ground.stage),
        "layout": [],
        "listen": [],
        "private_net": False,
        "wall_sec": limits.wall_sec,
        "cpu_sec": limits.cpu_sec,
        "memory_bytes": _bytes(limits.memory_mb),
        "processes": limits.processes,
        "disk_bytes": _bytes(limits.disk_mb),
    }
    if ground.tier == "namespaces":
        return fields | _with_mounts(launch, grants, routes)
    return fields | _without_mounts(launch, grants, routes, ground)


def _with_mounts(launch: Launch, grants: _Grants, routes: Routes) -> dict[str, object]:
    listen = list(routes.loopback)
    if routes.hosts:
        listen.append(routes.proxy_port)
    writable = [*map(os.fspath, grants.writable), *(path for path, _mode in PRIVATE)]
    return {
        "layout": list(_layout(launch, grants)),
        "readable": ["/"],
        "writable": writable,
        "counted": writable,
        "devices": [*DEVICES, "/dev/pts"],
        "private_net": launch.network != "allow",
        "inet": "any",
        "ports": None,
        "listen": listen,
    }


def _without_mounts(
    launch: Launch, grants: _Grants, routes: Routes, ground: Ground
) -> dict[str, object]:
    named = not isinstance(launch.network, str)
    if named and ground.tier == "landlock" and ground.landlock < NET_SINCE:
        msg = f"a list of hosts needs Landlock {NET_SINCE}, this kernel has {ground.landlock}"
        raise FenceUnavailable(msg)
    ports = [*routes.loopback, ground.proxy_port] if routes.hosts else [*routes.loopback]
    own = [] if ground.private is None else [os.fspath(ground.private)]
    readable = [*SYSTEM, *ETC, *MACHINE, "/proc", *_prefixes()]
    return {
        "readable": [
            os.fspath(path)
            for granted in (*map(Path, readable), *grants.readable)
            for path in _around(granted, grants.hidden)
        ],
        "writable": [*_undivided(grants), *own, SHARED_MEMORY],
        "counted": [*map(os.fspath, grants.writable), *own],
        "devices": [*DEVICES, "/dev/ptmx", "/dev/pts"],
        "inet": {"deny": "none", "allow": "any"}.get(str(launch.network), "tcp"),
        "ports": ports if named else None,
    }


def _undivided(grants: _Grants) -> Iterator[str]:
    for tree in grants.writable:
        for secret in grants.hidden:
            if secret.is_relative_to(tree):
                msg = (
                    f"hidden path {str(secret)!r} lies in the writable tree {str(tree)!r}, "
                    "which takes mount namespaces, and this machine has none"
                )
                raise FenceUnavailable(msg)
        yield os.fspath(tree)


def _around(granted: Path, hidden: tuple[Path, ...]) -> Iterator[Path]:
    """`granted`, or its parts, so that nothing of `hidden` is among them."""
    if not granted.exists():
        return
    granted = granted.resolve()
    if any(granted == secret for secret in hidden):
        return
    if not any(secret.is_relative_to(granted) for secret in hidden):
        yield granted
        return
    for part in granted.iterdir():
        if not part.is_symlink():
            yield from _around(part, hidden)


def _layout(launch: Launch, grants: _Grants) -> list[Entry]:
    entries: dict[str, Entry] = {}
    for entry in _entries(launch, grants):
        known = entries.get(entry[1])
        if known is None or _RANK[entry[0]] > _RANK[known[0]]:
            entries[entry[1]] = entry
    return sorted(entries.values(), key=lambda entry: (entry[1].count("/"), entry[1]))


def _entries(launch: Launch, grants: _Grants) -> Iterator[Entry]:
    yield from system_entries()
    for name in _prefixes():
        yield ("ro", name, os.fspath(Path(name).resolve()))
    for path in (*launch.readable, *launch.writable, launch.cwd):
        if path.resolve() != path:
            yield ("link", os.fspath(path), os.fspath(path.resolve()))
    for kind, paths in (("ro", grants.readable), ("rw", grants.writable)):
        for path in paths:
            yield (kind, os.fspath(path), os.fspath(path))
    for path in grants.hidden:
        yield ("mask", os.fspath(path), "")


def _prefixes() -> tuple[str, ...]:
    """Where the running Python lives, unless the system's own places hold it."""
    return tuple(
        prefix
        for prefix in sorted({sys.prefix, sys.base_prefix, sys.exec_prefix})
        if not any(Path(prefix).is_relative_to(place) for place in SYSTEM)
    )


def _environment(launch: Launch, ground: Ground, routes: Routes) -> dict[str, str]:
    home, temporary = HOME, "/tmp"  # noqa: S108
    if ground.private is not None:
        home, temporary = (os.fspath(ground.private / name) for name in ("home", "tmp"))
    env = {"HOME": home, "TMPDIR": temporary, "PATH": _PATH, **_TOOLS, **launch.env}
    if routes.hosts:
        proxy = f"http://127.0.0.1:{ground.proxy_port or routes.proxy_port}"
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
            env[name] = proxy
        env["NO_PROXY"] = env["no_proxy"] = "127.0.0.1,localhost,::1"
        # Node reads the names above only when it is asked to.
        env["NODE_USE_ENV_PROXY"] = "1"
    return env


def _grants_of(launch: Launch) -> _Grants:
    return _Grants(
        writable=tuple(_existing(path, "writable") for path in launch.writable),
        readable=tuple(_existing(path, "readable") for path in launch.readable),
        hidden=tuple(path.resolve() for path in launch.hidden),
    )


def _existing(path: Path, role: str) -> Path:
    if not path.is_absolute() or not path.exists():
        msg = f"{role} path {str(path)!r} is missing or relative, expected an absolute path"
        raise ContractError(msg)
    resolved = path.resolve()
    if resolved == Path("/") and role != "cwd":
        msg = f"{role} path {str(path)!r} is the whole machine, expected a tree within it"
        raise ContractError(msg)
    return resolved


def _check_granted(cwd: Path, grants: _Grants) -> None:
    places = (*grants.writable, *grants.readable, *map(Path, SYSTEM))
    if not any(cwd.is_relative_to(place) for place in places):
        msg = f"cwd {str(cwd)!r} lies in nothing that is granted"
        raise ContractError(msg)


def _check_words(launch: Launch) -> None:
    if not launch.argv or not launch.argv[0]:
        msg = f"argv {launch.argv!r} names no program"
        raise ContractError(msg)
    words: Iterable[str] = (*launch.argv, *launch.env, *launch.env.values())
    for word in words:
        if "\0" in word:
            msg = f"{word!r} holds a NUL, which no argument or variable can"
            raise ContractError(msg)
    for name in launch.env:
        if not name or "=" in name:
            msg = f"{name!r} is not a name for an environment variable"
            raise ContractError(msg)


def _bytes(mebibytes: int | None) -> int | None:
    return None if mebibytes is None else mebibytes * _MEBIBYTE
