"""Holds a process to named files, by Landlock, as far as the kernel's version of it goes.

A rule can only grant, and grants reach down: what is not named is closed.
"""

# Importing pathlib would double the helper's start.
# ruff: noqa: PTH112

import os
import struct

from agent_run.workspace.fence import syscalls

READ = 0b1101  # execute, read a file, list a directory
_WRITE_FILE = 1 << 1
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_DEVICE_NODES = (1 << 6) | (1 << 11)
_FIRST = (1 << 13) - 1
_FILE_RIGHTS = 0b111 | _TRUNCATE | _IOCTL_DEV
_NET_BIND, _NET_CONNECT = 1, 2
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 1, 2
_RULE_PATH, _RULE_PORT = 1, 2

REFER_SINCE, TRUNCATE_SINCE, NET_SINCE, IOCTL_SINCE, SCOPE_SINCE = 2, 3, 4, 5, 6


def restrict(
    version: int,
    *,
    readable: list[str],
    writable: list[str],
    devices: list[str],
    ports: list[int] | None,
) -> None:
    """Close the filesystem but for what is named, for this process and its descendants.

    `ports` are the TCP ports that may be connected to; None leaves TCP alone.
    """
    rights = _rights(version)
    net = _NET_BIND | _NET_CONNECT if ports is not None and version >= NET_SINCE else 0
    scopes = _SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNALS
    attributes = struct.pack("QQQ", rights, net, scopes)
    ruleset = syscalls.landlock_create(attributes[: _attribute_size(version)])
    for path in readable:
        _grant(ruleset, path, READ & rights)
    for path in writable:
        _grant(ruleset, path, rights & ~_DEVICE_NODES & ~_IOCTL_DEV)
    for path in devices:
        _grant(ruleset, path, (READ | _WRITE_FILE | _TRUNCATE | _IOCTL_DEV) & rights)
    for port in ports or []:
        rule = struct.pack("QQ", _NET_CONNECT, port)
        syscalls.landlock_add(ruleset, _RULE_PORT, rule)
    syscalls.landlock_restrict(ruleset)
    os.close(ruleset)


def _grant(ruleset: int, path: str, rights: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        # Nothing there to grant; whoever creates it later does so outside of the fence.
        return
    try:
        if not os.path.isdir(path):
            rights &= _FILE_RIGHTS
        syscalls.landlock_add(ruleset, _RULE_PATH, struct.pack("=Qi", rights, handle))
    finally:
        os.close(handle)


def _rights(version: int) -> int:
    rights = _FIRST
    for since, right in (
        (REFER_SINCE, _REFER),
        (TRUNCATE_SINCE, _TRUNCATE),
        (IOCTL_SINCE, _IOCTL_DEV),
    ):
        if version >= since:
            rights |= right
    return rights


def _attribute_size(version: int) -> int:
    if version >= SCOPE_SINCE:
        return 24
    return 16 if version >= NET_SINCE else 8
