"""Builds the only filesystem that a fenced command will ever see.

The root is an empty tmpfs; what is granted is bound into it, read-only unless said
otherwise; everything else does not exist inside.
"""

# Importing pathlib would double the helper's start.
# ruff: noqa: PTH103, PTH112, PTH120, PTH211

import os

from agent_run.workspace.fence import syscalls
from agent_run.workspace.fence.spec import Entry

_QUIET = syscalls.MS_NOSUID | syscalls.MS_NODEV
_TYPE, _DIRECTORY = 0o170000, 0o040000
_DEV_LINKS = (
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
)


def enter_new_root(stage: str, layout: list[Entry], private_bytes: int | None) -> None:
    """Replace this process's root by one that holds `layout` and nothing else.

    `private_bytes` bounds each private tree; None leaves the kernel's half of memory.
    """
    syscalls.unshare(syscalls.CLONE_NEWNS)
    syscalls.mount("none", "/", "", syscalls.MS_REC | syscalls.MS_PRIVATE)
    # Sources are opened before anything is covered: the stage may lie above one of them.
    trees = {entry: syscalls.clone_tree(entry[2]) for entry in layout if _is_bound(entry)}
    syscalls.mount("fence", stage, "tmpfs", _QUIET, "mode=0755")
    size = "" if private_bytes is None else f",size={private_bytes}"
    for entry in layout:
        _place(stage, entry, trees.get(entry), size)
    _furnish(stage)
    for kind, path, _source in layout:
        if kind == "mask" and os.path.isdir(stage + path):
            syscalls.seal_path(stage + path, syscalls.ATTR_RDONLY)
    os.chdir(stage)
    syscalls.pivot_here()
    syscalls.seal_path("/", syscalls.ATTR_RDONLY)


def _is_bound(entry: Entry) -> bool:
    return entry[0] in {"ro", "rw", "dev"}


def _place(stage: str, entry: Entry, tree: int | None, size: str) -> None:
    kind, path, source = entry
    target = stage + path
    if tree is not None:
        _bind(kind, target, tree)
    elif kind == "link":
        if not os.path.lexists(target):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.symlink(source, target)
    elif kind == "private":
        os.makedirs(target, exist_ok=True)
        syscalls.mount("fence", target, "tmpfs", _QUIET, "mode=" + source + size)
    elif os.path.isdir(target):
        syscalls.mount("fence", target, "tmpfs", _QUIET, "mode=0555")
    elif os.path.lexists(target):
        _bind("dev", target, syscalls.clone_tree("/dev/null"))


def _bind(kind: str, target: str, tree: int) -> None:
    attributes = syscalls.ATTR_NOSUID
    if kind != "dev":
        attributes |= syscalls.ATTR_NODEV
    if kind == "ro":
        attributes |= syscalls.ATTR_RDONLY
    syscalls.seal_tree(tree, attributes)
    if not os.path.lexists(target):
        # Asked of the handle: by now the stage may cover the source's own name.
        if os.fstat(tree).st_mode & _TYPE == _DIRECTORY:
            os.makedirs(target)
        else:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    syscalls.attach_tree(tree, target)
    os.close(tree)


def _furnish(stage: str) -> None:
    """Add what programs take for granted: processes, terminals, links in `/dev`."""
    os.makedirs(stage + "/proc", exist_ok=True)
    # Read-only: a root outside would else own the switches below `/proc/sys`.
    flags = _QUIET | syscalls.MS_NOEXEC
    syscalls.mount("proc", stage + "/proc", "proc", flags)
    syscalls.seal_path(stage + "/proc", syscalls.ATTR_RDONLY)
    os.makedirs(stage + "/dev/pts", exist_ok=True)
    options = "newinstance,ptmxmode=0666,mode=620"
    no_suid_exec = syscalls.MS_NOSUID | syscalls.MS_NOEXEC
    syscalls.mount("devpts", stage + "/dev/pts", "devpts", no_suid_exec, options)
    for name, where in _DEV_LINKS:
        os.symlink(where, f"{stage}/dev/{name}")
