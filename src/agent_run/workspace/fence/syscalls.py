"""The kernel calls that Python's library does not offer, one function each.

Imported by the fence's helper, which starts once per command: nothing but `os` and `ctypes`
may be imported here, because `typing`, `signal` or `socket` alone would double its start.
"""

import ctypes
import os

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REC = 0x4000
MS_PRIVATE = 1 << 18
MNT_DETACH = 2

ATTR_RDONLY = 1
ATTR_NOSUID = 2
ATTR_NODEV = 4

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24
PR_SET_SECUREBITS = 28
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4

_MACHINES = {"x86_64": {"pivot_root": 155, "capset": 126, "seccomp": 317}}
_MACHINES["aarch64"] = {"pivot_root": 41, "capset": 91, "seccomp": 277}
# Calls younger than 2019 have one number on every machine.
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446

_AT_FDCWD = -100
_AT_EMPTY_PATH = 0x1000
_AT_RECURSIVE = 0x8000
_OPEN_TREE_CLONE = 1
_MOVE_MOUNT_F_EMPTY_PATH = 4
_CAPABILITY_V3 = 0x20080522
_LAST_CAPABILITY = 63
_SIG_DFL = None

_libc = ctypes.CDLL(None, use_errno=True)


def machine() -> str:
    """This machine's architecture as the kernel names it."""
    return os.uname().machine


def unshare(flags: int) -> None:
    """Leave the namespaces named by `flags`."""
    _checked("unshare", _libc.unshare(flags))


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """Mount a new filesystem, or change how mounts spread when `kind` is empty."""
    result = _libc.mount(
        os.fsencode(source),
        os.fsencode(target),
        kind.encode() or None,
        ctypes.c_ulong(flags),
        options.encode() or None,
    )
    _checked(f"mount {kind} at {target}", result)


def detach(target: str) -> None:
    """Take away what is mounted at `target`, now for names and later for open files."""
    _checked(f"umount {target}", _libc.umount2(os.fsencode(target), MNT_DETACH))


def clone_tree(path: str) -> int:
    """A handle on a private copy of the mounts at `path`."""
    flags = _OPEN_TREE_CLONE | _AT_RECURSIVE | os.O_CLOEXEC
    return _syscall(f"open_tree {path}", _OPEN_TREE, _AT_FDCWD, os.fsencode(path), flags)


def seal_tree(tree: int, attributes: int, *, recursive: bool = True) -> None:
    """Add mount attributes to a tree that is not attached anywhere yet."""
    wanted = (ctypes.c_uint64 * 4)(attributes, 0, 0, 0)
    flags = _AT_EMPTY_PATH | (_AT_RECURSIVE if recursive else 0)
    _syscall("mount_setattr", _MOUNT_SETATTR, tree, b"", flags, wanted, ctypes.sizeof(wanted))


def seal_path(path: str, attributes: int) -> None:
    """Add mount attributes to the one mount at `path`."""
    wanted = (ctypes.c_uint64 * 4)(attributes, 0, 0, 0)
    size = ctypes.sizeof(wanted)
    _syscall(
        f"mount_setattr {path}", _MOUNT_SETATTR, _AT_FDCWD, os.fsencode(path), 0, wanted, size
    )


def attach_tree(tree: int, target: str) -> None:
    """Put a cloned tree in its place."""
    where = os.fsencode(target)
    flags = _MOVE_MOUNT_F_EMPTY_PATH
    _syscall(f"move_mount to {target}", _MOVE_MOUNT, tree, b"", _AT_FDCWD, where, flags)


def pivot_here() -> None:
    """Make the working directory the root and forget the old root."""
    _syscall("pivot_root", _MACHINES[machine()]["pivot_root"], b".", b".")
    detach(".")
    os.chdir("/")


def prctl(option: int, value: int = 0) -> None:
    """Change one property of this process."""
    zero = ctypes.c_ulong(0)
    # A bare Python integer would be passed as 32 bits, and the rest of the register is rubbish.
    result = _libc.prctl(option, ctypes.c_ulong(value), zero, zero, zero)
    _checked(f"prctl {option}", result)


def drop_privileges() -> None:
    """Give up every capability for good, also those that a program file could bring."""
    zero = ctypes.c_ulong(0)
    for capability in range(_LAST_CAPABILITY + 1):
        # Fails without the right to do it, and past the kernel's last capability.
        _libc.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(capability), zero, zero, zero)
    _libc.prctl(PR_CAP_AMBIENT, ctypes.c_ulong(PR_CAP_AMBIENT_CLEAR_ALL), zero, zero, zero)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_V3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    _syscall("capset", _MACHINES[machine()]["capset"], header, nothing)
    prctl(PR_SET_NO_NEW_PRIVS, 1)


def default_signals() -> None:
    """Undo what Python ignores, because ignored signals survive the start of a program."""
    for number in range(1, 32):
        _libc.signal(number, _SIG_DFL)


def load_filter(program: bytes) -> None:
    """Put this process and all that come from it under a seccomp `program`."""
    buffer = ctypes.create_string_buffer(program, len(program))
    address = ctypes.addressof(buffer)
    head = (ctypes.c_uint64 * 2)(len(program) // 8, address)
    _syscall("seccomp", _MACHINES[machine()]["seccomp"], 1, 0, head)


def landlock_version() -> int:
    """The Landlock version of this kernel; 0 when it has none."""
    version = int(_libc.syscall(_LANDLOCK_CREATE, None, 0, 1))
    return max(version, 0)


def landlock_create(attributes: bytes) -> int:
    """A handle on a new ruleset."""
    return _syscall("landlock_create_ruleset", _LANDLOCK_CREATE, attributes, len(attributes), 0)


def landlock_add(ruleset: int, kind: int, rule: bytes) -> None:
    """Grant one thing in a ruleset."""
    _syscall("landlock_add_rule", _LANDLOCK_ADD, ruleset, kind, rule, 0)


def landlock_restrict(ruleset: int) -> None:
    """Hold this process and all that come from it to a ruleset."""
    _syscall("landlock_restrict_self", _LANDLOCK_RESTRICT, ruleset, 0)


def _syscall(name: str, number: int, *arguments: object) -> int:
    wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return _checked(name, int(_libc.syscall(ctypes.c_long(number), *wide)))


def _checked(name: str, result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result
