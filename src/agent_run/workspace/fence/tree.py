"""What the processes of one command use right now, read from `/proc`.

A process may vanish between two reads; it then counts for nothing.
"""

# Importing pathlib would double the helper's start.
# ruff: noqa: PTH112, PTH116, PTH123, PTH208

import os

_PAGE = os.sysconf("SC_PAGE_SIZE")
_TICKS = os.sysconf("SC_CLK_TCK")
_ENAMETOOLONG = 36
_KIND, _FOLDER = 0o170000, 0o040000  # of a mode; the module `stat` would have to be imported
# Places in `/proc/PID/stat` after the name, which may hold any byte, blanks included.
_STATE, _PARENT, _UTIME, _CSTIME, _THREADS, _RSS = 0, 1, 11, 14, 17, 21


class Usage:
    """What a set of processes uses together."""

    def __init__(self, pids: list[int]) -> None:
        self.pids: list[int] = []
        """Those that were still there."""
        self.threads = 0
        self.cpu_sec = 0.0
        """Their own time and that of the children they have waited for."""
        self.resident = 0
        """Bytes; a page that two processes share is counted twice."""
        for pid in pids:
            fields = stat(pid)
            if fields is not None and fields[_STATE] not in {b"Z", b"X"}:
                self.pids.append(pid)
                self.threads += int(fields[_THREADS])
                ticks = sum(int(fields[place]) for place in range(_UTIME, _CSTIME + 1))
                self.cpu_sec += ticks / _TICKS
                self.resident += int(fields[_RSS]) * _PAGE

    def proportional(self) -> int:
        """Bytes of memory, each shared page counted once in all."""
        return sum(_proportional(pid) for pid in self.pids)


def stat(pid: int) -> list[bytes] | None:
    """The fields of a process after its name; None when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None


def everyone_else() -> list[int]:
    """Every process in this pid namespace but the first."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and name != "1"]


def descendants(root: int) -> list[int]:
    """Every process below `root`, by who started or inherited whom."""
    children: dict[int, list[int]] = {}
    names = os.listdir("/proc") if os.path.isdir("/proc/self") else []
    for name in names:
        if name.isdigit():
            fields = stat(int(name))
            if fields is not None:
                children.setdefault(int(fields[_PARENT]), []).append(int(name))
    found: list[int] = []
    pending = [root]
    while pending:
        below = children.get(pending.pop(), [])
        found += below
        pending += below
    return found


def disk_bytes(paths: list[str], enough: int) -> int:
    """Bytes on disk below `paths`, counted until there are more than `enough`.

    What is mounted below a path is not counted with it: a tool that was granted for reading
    may lie inside the private `/tmp`, and nobody wrote it there.
    A path too long for the kernel counts as more than enough: what cannot be measured
    is not granted, and honest trees hold none.
    """
    total = 0
    pending: list[tuple[str, int | None]] = [(path, None) for path in paths]
    while pending and total <= enough:
        path, device = pending.pop()
        try:
            found = os.stat(path, follow_symlinks=False)
            if device not in (None, found.st_dev):
                continue
            if not _is_folder(found.st_mode):
                total += found.st_blocks * 512
                continue
            with os.scandir(path) as entries:
                total += _below(entries, pending, found.st_dev)
        except OSError as error:
            if error.errno == _ENAMETOOLONG:
                return enough + 1
    return total


def _below(
    entries: "os._ScandirIterator[str]", pending: list[tuple[str, int | None]], device: int
) -> int:
    total = 0
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            pending.append((entry.path, device))
        else:
            total += entry.stat(follow_symlinks=False).st_blocks * 512
    return total


def _is_folder(mode: int) -> bool:
    return mode & _KIND == _FOLDER


def _proportional(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
            for line in file:
                if line.startswith(b"Pss:"):
                    return int(line.split()[1]) * 1024
    except (FileNotFoundError, ProcessLookupError):
        return 0
    except PermissionError:
        # It asked the kernel to hide its memory map; then all it holds is counted as its own.
        fields = stat(pid)
        return 0 if fields is None else int(fields[_RSS]) * _PAGE
    return 0
