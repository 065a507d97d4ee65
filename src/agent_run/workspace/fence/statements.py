"""What each fence holds and lacks, said for people.

Every sentence here has a case in the tests, an attack that fails or one that is admitted.
"""

from typing import Final

from agent_run.workspace.fence.landlock import NET_SINCE, SCOPE_SINCE, TRUNCATE_SINCE
from agent_run.workspace.fence.policy import Tier

_CONTROL: Final = (
    "every process the command starts is dead before the run is over",
    "time, processor, memory, process, disk and output limits of the whole tree are counted",
)
_FILTER: Final = (
    "no privilege can be gained and no set-id file made",
    "debugging, mounting, namespaces, keys, bpf, io_uring and odd socket families are refused",
)
_NAMESPACES: Final = (
    "only granted files exist inside; they are read-only unless granted for writing",
    "processes outside cannot be seen, signalled or debugged",
    "the network is a private loopback; named hosts are reached through a forwarder outside",
    "temporary files, shared memory and home are private and bounded",
    "sockets in the filesystem outside cannot be reached",
)
_LANDLOCK: Final = (
    "only granted files can be read, run or written",
    "processes outside cannot be debugged",
    "sockets in the filesystem cannot be used at all",
    "denied network means that no internet socket can be made",
)
_LANDLOCK_LACKS: Final = (
    "mode, times and attributes of files outside can be changed where the user may do so",
    "names, sizes and times of files outside can be asked for",
    "command lines of processes outside can be read in /proc",
    "shared memory in /dev/shm is the machine's own and not private",
    "without a private network, a test server on loopback cannot be reached when denied",
    "a named host is held by its port only: another host at the same port can be reached",
    "a directory above a hidden path cannot be listed inside",
    "root is not held to the number of processes by the kernel, only by counting",
    "a directory that the command made unreadable is not counted for the disk limit",
)
_COUNTED: Final = "memory and disk are counted some times a second: a burst can pass the limit"


def holds(tier: Tier, version: int) -> tuple[str, ...]:
    """What `tier` enforces with Landlock `version`."""
    if tier == "none":
        return _CONTROL
    if tier == "namespaces":
        return (*_NAMESPACES, *_FILTER, *_CONTROL)
    signals: tuple[str, ...] = ()
    if version >= SCOPE_SINCE:
        signals = ("processes outside cannot be signalled",)
    return (*_LANDLOCK, *signals, *_FILTER, *_CONTROL)


def lacks(tier: Tier, version: int) -> tuple[str, ...]:
    """What `tier` does not enforce with Landlock `version`."""
    if tier == "none":
        return (
            "nothing is fenced: the command can read, write and reach what this user can",
            "a process may end its keeper, and then outlive the run",
            _COUNTED,
        )
    if tier == "namespaces":
        return (*_open_network(version), _COUNTED)
    missing = [*_LANDLOCK_LACKS, *_open_network(version)]
    if version < TRUNCATE_SINCE:
        missing.append("files outside can be cut to length zero where the user may do so")
    if version < NET_SINCE:
        missing.append("a list of hosts cannot be held and is refused")
    if version < SCOPE_SINCE:
        missing.append("processes outside can be signalled one by one")
    return (*missing, _COUNTED)


def _open_network(version: int) -> tuple[str, ...]:
    if version >= SCOPE_SINCE:
        return ()
    return ("with network allowed, abstract sockets of the machine can be reached",)
