"""What the trusted side tells its helper, in a form both can read at once.

Plain values through `marshal`: both ends run the same interpreter, the bytes never leave
this machine, and a JSON parser would cost as much as the rest of the helper's start.
"""

import marshal
import os

Entry = tuple[str, str, str]
"""Kind (`ro`, `rw`, `dev`, `private`, `mask`, `link`), path inside, and source outside."""


class Spec:
    """One command, and how to hold it; every field is filled by `load`."""

    tier: str
    """`namespaces`, `landlock` or `none`."""
    landlock: int
    """The version to use; 0 means not at all."""
    argv: list[str]
    cwd: str
    env: dict[str, str]
    stage: str
    """A directory to build the new root on; nothing is ever written to it."""
    layout: list[Entry]
    """What the new root is made of, upper paths first."""
    readable: list[str]
    writable: list[str]
    counted: list[str]
    """What the disk limit is about: everything writable but what the machine shares."""
    devices: list[str]
    private_net: bool
    inet: str
    """What `seccomp.program` takes."""
    ports: list[int] | None
    """TCP ports that Landlock lets through; None leaves TCP alone."""
    listen: list[int]
    """Loopback ports inside that the trusted side wants to serve."""
    wall_sec: float | None
    cpu_sec: int | None
    memory_bytes: int | None
    processes: int | None
    disk_bytes: int | None

    def __init__(self, fields: dict[str, object]) -> None:
        vars(self).update(fields)


def dump(fields: dict[str, object]) -> bytes:
    """The bytes that `load` reads."""
    return marshal.dumps(fields)


def load(handle: int) -> Spec:
    """The `Spec` in an open file, which is closed."""
    with os.fdopen(handle, "rb") as file:
        file.seek(0)
        return Spec(marshal.load(file))  # noqa: S302 - written by our own parent process
