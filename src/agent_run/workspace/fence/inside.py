"""The helper: goes behind the fence, starts the command, stays until all of it is dead.

Started as `python -I -S` with two open files, the `Spec` and a socket to its caller. Each
line it writes to the socket is one fact; when the socket closes, the command is ended.
It may import nothing heavier than `ctypes`.
"""

import _socket
import fcntl
import os
import resource
import struct
import sys

from agent_run.workspace.fence import keeper, landlock, mounts, seccomp, spec, syscalls

_SIGKILL = 9
_SIOCSIFFLAGS, _IFF_UP_RUNNING = 0x8914, 0x41
_SETUP_FAILED = 1
_LISTEN_BACKLOG = 128
_MIN_PID_MAX = 301
_OWN_PROCESSES = 2
"""The helper and the first process, which share the command's user namespace."""


def main(arguments: list[str]) -> int:
    """Run the command of the `Spec` open at the first number, speak on the second."""
    control = int(arguments[1])
    os.set_inheritable(control, False)  # noqa: FBT003
    try:
        wanted = spec.load(int(arguments[0]))
        if wanted.tier == "namespaces":
            _in_namespaces(wanted, control)
        else:
            _adopt_orphans()
            _keep(wanted, control, first=False)
    except OSError as error:
        _say(control, f"failed {error}")
        return _SETUP_FAILED
    used = os.times()
    own = used.user + used.system + used.children_user + used.children_system
    _say(control, f"cpu {own * 1000:.0f}")
    return 0


def _in_namespaces(wanted: spec.Spec, control: int) -> None:
    uid, gid = os.geteuid(), os.getegid()
    flags = syscalls.CLONE_NEWUSER | syscalls.CLONE_NEWPID
    flags |= syscalls.CLONE_NEWIPC | syscalls.CLONE_NEWUTS
    if wanted.private_net:
        flags |= syscalls.CLONE_NEWNET
    syscalls.unshare(flags)
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"{uid} {uid} 1")
    _write("/proc/self/gid_map", f"{gid} {gid} 1")
    if wanted.private_net:
        _open_loopback(wanted, control)
    first = os.fork()
    if first == 0:
        os._exit(_first_process(wanted, control))
    os.close(1)
    os.close(2)
    # The kernel reports the first process only when no other of its namespace is left.
    os.waitpid(first, 0)


def _first_process(wanted: spec.Spec, control: int) -> int:
    try:
        syscalls.prctl(syscalls.PR_SET_PDEATHSIG, _SIGKILL)
        mounts.enter_new_root(wanted.stage, wanted.layout, wanted.disk_bytes)
        _bound_processes(wanted)
        _keep(wanted, control, first=True)
    except OSError as error:
        _say(control, f"failed {error}")
        return _SETUP_FAILED
    return 0


def _keep(wanted: spec.Spec, control: int, *, first: bool) -> None:
    problem, problem_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become(wanted, problem_end)
    os.close(problem_end)
    os.close(1)
    os.close(2)
    if wanted.tier != "none":
        syscalls.prctl(syscalls.PR_SET_DUMPABLE, 0)
    watch = keeper.Keeper(wanted, pid, control, first=first)
    try:
        outcome = os.read(problem, 4096).decode() or watch.outcome()
    finally:
        # Whatever went wrong with the watching, nobody may outlive the watcher.
        watch.end_all()
    if outcome.startswith("exited") and watch.over_disk():
        outcome = "limit disk"
    _say(control, outcome)


def _become(wanted: spec.Spec, problem: int) -> None:
    """Turn into the command; on trouble say so and die."""
    step = "failed"
    try:
        os.setsid()
        # All else that is open closes by itself when the command starts.
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        _limit(wanted)
        if wanted.tier == "none":
            os.chdir(wanted.cwd)
        else:
            _restrict(wanted)
        step = "unstartable"
        os.execvpe(wanted.argv[0], wanted.argv, wanted.env)  # noqa: S606
    except OSError as error:
        os.write(problem, f"{step} {error.errno} {error.strerror}".encode())
    finally:
        os._exit(_SETUP_FAILED)


def _restrict(wanted: spec.Spec) -> None:
    os.chdir(wanted.cwd)
    syscalls.prctl(syscalls.PR_SET_PDEATHSIG, _SIGKILL)
    syscalls.drop_privileges()
    if wanted.landlock:
        landlock.restrict(
            wanted.landlock,
            readable=wanted.readable,
            writable=wanted.writable,
            devices=wanted.devices,
            ports=wanted.ports,
        )
    shared = wanted.tier != "namespaces"
    machine = syscalls.machine()
    syscalls.load_filter(seccomp.program(machine, inet=wanted.inet, shared=shared))


def _limit(wanted: spec.Spec) -> None:
    syscalls.default_signals()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if wanted.disk_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (wanted.disk_bytes, wanted.disk_bytes))
    if wanted.cpu_sec is not None:
        # The keeper counts the whole tree; this is for one process that outruns its look.
        resource.setrlimit(resource.RLIMIT_CPU, (wanted.cpu_sec + 1, wanted.cpu_sec + 2))
    if wanted.processes is not None and wanted.tier == "namespaces":
        most = wanted.processes + _OWN_PROCESSES
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))


def _bound_processes(wanted: spec.Spec) -> None:
    """Bound the pid namespace, because the kernel exempts root from limits per user."""
    if wanted.processes is None or os.geteuid() != 0:
        return
    try:
        _write(
            "/proc/sys/kernel/pid_max",
            str(max(wanted.processes + _OWN_PROCESSES, _MIN_PID_MAX)),
        )
    except OSError:
        # Kernels before 6.14 have one bound for the whole machine; the keeper still counts.
        return


def _adopt_orphans() -> None:
    if sys.platform == "linux":
        syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)


def _open_loopback(wanted: spec.Spec, control: int) -> None:
    """Switch loopback on; hand listening sockets out, where the real network is."""
    with _closing(_socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)) as plain:
        request = struct.pack("16sH14x", b"lo", _IFF_UP_RUNNING)
        fcntl.ioctl(plain.fileno(), _SIOCSIFFLAGS, request)
    line = _socket.socket(fileno=os.dup(control))
    for port in wanted.listen:
        for family, address in ((_socket.AF_INET, "127.0.0.1"), (_socket.AF_INET6, "::1")):
            _offer(line, family, address, port)
    line.close()


def _offer(line: _socket.socket, family: int, address: str, port: int) -> None:
    try:
        with _closing(_socket.socket(family, _socket.SOCK_STREAM)) as listener:
            listener.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
            listener.bind((address, port))
            listener.listen(_LISTEN_BACKLOG)
            handle = struct.pack("i", listener.fileno())
            rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, handle)
            line.sendmsg([f"listening {port}\n".encode()], [rights])
    except OSError:
        if family == _socket.AF_INET:
            raise


class _closing:  # noqa: N801 - reads as `contextlib.closing`, which is too heavy here
    def __init__(self, held: _socket.socket) -> None:
        self._held = held

    def __enter__(self) -> _socket.socket:
        return self._held

    def __exit__(self, *trouble: object) -> None:
        self._held.close()


def _write(path: str, text: str) -> None:
    handle = os.open(path, os.O_WRONLY)
    try:
        os.write(handle, text.encode())
    finally:
        os.close(handle)


def _say(control: int, line: str) -> None:
    try:
        os.write(control, line.replace("\n", " ").encode() + b"\n")
    except BrokenPipeError:
        # The caller is gone: nobody is left to be told, and dying is all there is to do.
        return
