"""What a command may try against its fence, and what must be so afterwards.

Each script prints one word, `refused` or something else; what counts more is that the
things outside are byte for byte and second for second what they were.
"""

import os
import socket
import threading
from pathlib import Path
from typing import Self

import pytest

from agent_run.ports.fence import Fence, Finished, Launch
from agent_run.workspace.fence.policy import Tier
from agent_run.workspace.fence.seccomp import _COLUMN, _NUMBERS
from tests.workspace.fence.conftest import Place, Run

TRY = """
def attempt(act):
    try:
        act()
    except OSError:
        print("refused")
    else:
        print("granted")
"""

FILES = {
    "reads a secret": "attempt(lambda: SECRET.read_bytes())",
    "overwrites a file": "attempt(lambda: SECRET.write_text('mine'))",
    "truncates a file": "attempt(lambda: os.truncate(SECRET, 0))",
    "deletes a file": "attempt(SECRET.unlink)",
    "deletes a folder": "attempt((OUT / 'folder').rmdir)",
    "moves a file in": "attempt(lambda: SECRET.rename(WORK / 'taken'))",
    "links a file in": "attempt(lambda: os.link(SECRET, WORK / 'taken'))",
    "reads through a link": (
        "(WORK / 'way').symlink_to(SECRET); attempt(lambda: (WORK / 'way').read_bytes())"
    ),
    "writes through a link": (
        "(WORK / 'way').symlink_to(SECRET); attempt(lambda: (WORK / 'way').write_text('x'))"
    ),
    "goes by the root of another process": (
        "attempt(lambda: Path(f'/proc/{os.getppid()}/root{SECRET}').read_bytes())"
    ),
    "goes by its own root": "attempt(lambda: Path(f'/proc/self/root{SECRET}').read_bytes())",
    "reads the passwords": "attempt(lambda: Path('/etc/shadow').read_bytes())",
    "reads a file of the home": (
        "attempt(lambda: Path(os.path.expanduser('~root'), '.bashrc').read_bytes())"
    ),
    "writes into the system": "attempt(lambda: Path('/usr/bin/agent-run-was-here').touch())",
    "writes a kernel switch": (
        "attempt(lambda: Path('/proc/sys/kernel/core_pattern').write_text('|/bin/evil'))"
    ),
    "reads the memory of another": (
        "attempt(lambda: open(f'/proc/{os.getppid()}/mem', 'rb').read(1))"
    ),
    "reads the environment of another": (
        "attempt(lambda: Path(f'/proc/{VICTIM}/environ').read_bytes())"
    ),
    "makes a device": "attempt(lambda: os.mknod(WORK / 'mem', 0o020666, os.makedev(1, 1)))",
    "makes a set-id file": (
        "(WORK / 'su').touch(); attempt(lambda: os.chmod(WORK / 'su', 0o4755))"
    ),
    "creates a set-id file": (
        "attempt(lambda: os.open(WORK / 'su', os.O_CREAT | os.O_WRONLY, 0o4755))"
    ),
    "makes a set-group file": (
        "(WORK / 'sg').touch(); attempt(lambda: os.chmod(WORK / 'sg', 0o2755))"
    ),
    "kills a process": "attempt(lambda: os.kill(VICTIM, signal.SIGKILL))",
    "kills its keeper": "attempt(lambda: os.kill(os.getppid(), signal.SIGKILL))",
    "limits another process": (
        "import resource\n"
        "attempt(lambda: resource.prlimit(VICTIM, resource.RLIMIT_NOFILE, (1, 1)))"
    ),
    "becomes another user": "attempt(lambda: os.setuid(12345))",
    "changes its root": "attempt(lambda: os.chroot('/usr'))",
    "opens a raw socket": (
        "attempt(lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))"
    ),
    "opens a packet socket": "attempt(lambda: socket.socket(socket.AF_PACKET))",
    "opens a crypto socket": "attempt(lambda: socket.socket(38, socket.SOCK_SEQPACKET))",
    "opens a machine socket": "attempt(lambda: socket.socket(40, socket.SOCK_STREAM))",
    "types into a terminal": (
        "import fcntl, pty\nattempt(lambda: fcntl.ioctl(pty.openpty()[1], 0x5412, b'x'))"
    ),
}


@pytest.mark.parametrize("script", FILES.values(), ids=FILES.keys())
def test_a_command_is_refused_when_it(
    script: str, place: Place, fence: Fence, run: Run
) -> None:
    before = place.outside()

    finished = run(fence, place.launch(TRY + script))

    assert finished.stdout == b"refused\n", finished
    assert place.outside() == before
    assert Path(f"/proc/{place.victim}").exists()


CALLS = {
    "ptrace": "ptrace 16, VICTIM, 0, 0",
    "mount": "mount b'none', b'/tmp', b'tmpfs', 0, None",
    "umount2": "umount2 b'/proc', 2",
    "unshare": "unshare 0x10000000",
    "setns": "setns 0, 0",
    "keyctl": "keyctl 0, -3, 0",
    "add_key": "add_key b'user', b'a', b'b', 1, -3",
    "bpf": "bpf 0, None, 0",
    "userfaultfd": "userfaultfd 1",
    "io_uring_setup": "io_uring_setup 1, ctypes.create_string_buffer(120)",
    "perf_event_open": "perf_event_open ctypes.create_string_buffer(128), 0, -1, -1, 0",
    "clone with a namespace": "clone 0x10000000 | 17, 0, 0, 0, 0",
    "clone3": "clone3 ctypes.create_string_buffer(88), 88",
    "process_vm_readv": "process_vm_readv VICTIM, None, 0, None, 0, 0",
    "pidfd_getfd": "pidfd_getfd 0, 0, 0",
    "open_by_handle_at": "open_by_handle_at 0, ctypes.create_string_buffer(16), 0",
    "openat2": "openat2 -100, b'/tmp', ctypes.create_string_buffer(24), 24",
    "kexec_load": "kexec_load 0, 0, None, 0",
    "init_module": "init_module None, 0, b''",
    "reboot": "reboot 0, 0, 0, None",
    "swapon": "swapon b'/tmp/x', 0",
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_the_kernel_refuses(call: str, place: Place, fence: Fence, run: Run) -> None:
    name, arguments = call.split(" ", 1)
    code = f"print(syscall(NUMBER, {arguments}))\nprint(errno.errorcode[ctypes.get_errno()])"

    finished = run(fence, place.launch(code.replace("NUMBER", str(_number(name)))))

    assert finished.stdout.split() in ([b"refused", b"EPERM"], [b"refused", b"ENOSYS"])


def _number(name: str) -> int:
    number = _NUMBERS[name][_COLUMN[os.uname().machine]]
    assert number is not None
    return number


META = {
    "changes a mode": "attempt(lambda: os.chmod(SECRET, 0o777))",
    "changes times": "attempt(lambda: os.utime(SECRET, (1, 1)))",
    "asks for a size": "attempt(lambda: os.stat(SECRET))",
    "reads a command line": "attempt(lambda: Path(f'/proc/{VICTIM}/cmdline').read_bytes())",
}


@pytest.mark.parametrize("script", META.values(), ids=META.keys())
def test_what_landlock_cannot_see_is_held_by_namespaces_or_admitted(
    script: str, place: Place, fence: Fence, tier: Tier, run: Run
) -> None:
    finished = run(fence, place.launch(TRY + script))

    if tier == "namespaces":
        assert finished.stdout == b"refused\n"
    else:
        said = " ".join(fence.report().lacks)
        assert "mode, times" in said
        assert "names, sizes" in said
        assert "command lines" in said


def test_nothing_is_inherited(place: Place, fence: Fence, run: Run) -> None:
    os.environ["AGENT_RUN_TEST_TOKEN"] = "hunter2"
    code = """
print(sorted(os.environ))
print(sorted(os.listdir('/proc/self/fd'))[:3], len(os.listdir('/proc/self/fd')))
print(repr(sys.stdin.read()))
print([l for l in open('/proc/self/status') if l.startswith(('CapEff', 'CapPrm', 'NoNew'))])
"""

    with (place.out / "secret").open() as held:
        os.set_inheritable(held.fileno(), True)  # noqa: FBT003
        finished = run(fence, place.launch(code))
    del os.environ["AGENT_RUN_TEST_TOKEN"]

    names, handles, stdin, status = finished.stdout.decode().splitlines()
    assert "TOKEN" not in names
    assert handles == "['0', '1', '2'] 4"
    assert stdin == "''"
    assert status.count("0000000000000000") == 2
    assert "NoNewPrivs:\\t1" in status


def test_a_process_that_kills_everything_it_can_kills_only_its_own(
    place: Place, fence: Fence, run: Run
) -> None:
    finished = run(fence, place.launch("os.kill(-1, signal.SIGKILL); time.sleep(0)"))

    assert finished.ended in {"exited", "signalled"}
    assert Path(f"/proc/{place.victim}").exists()
    assert os.kill(place.victim, 0) is None  # type: ignore[func-returns-value]


CONNECT = """
def reach(family, address, kind=socket.SOCK_STREAM):
    try:
        with socket.socket(family, kind) as s:
            s.settimeout(5)
            s.connect(address)
            s.send(b'x')
            print('sent')
    except OSError:
        print('refused')
"""


class Listener:
    """A service outside; remembers whether anybody came."""

    def __init__(self, family: int, address: object, kind: int = socket.SOCK_STREAM) -> None:
        self.socket = socket.socket(family, kind)
        self.socket.bind(address)  # type: ignore[arg-type]  # any address the family takes
        if kind == socket.SOCK_STREAM:
            self.socket.listen()
        self.socket.setblocking(False)  # noqa: FBT003

    def visited(self) -> bool:
        try:
            if self.socket.type == socket.SOCK_STREAM:
                self.socket.accept()[0].close()
            else:
                self.socket.recv(1)
        except BlockingIOError:
            return False
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *trouble: object) -> None:
        self.socket.close()


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_a_service_on_the_host_is_out_of_reach(
    kind: int, place: Place, fence: Fence, run: Run
) -> None:
    with Listener(socket.AF_INET, ("127.0.0.1", 0), kind) as service:
        port = service.socket.getsockname()[1]
        code = f"reach(socket.AF_INET, ('127.0.0.1', {port}), {int(kind)})"
        run(fence, place.launch(CONNECT + code))

        assert not service.visited()


@pytest.mark.parametrize("network", ["deny", "allow"])
def test_a_socket_in_the_filesystem_is_out_of_reach(
    network: str, place: Place, fence: Fence, run: Run
) -> None:
    path = place.out / "docker.sock"
    with Listener(socket.AF_UNIX, os.path.relpath(path)) as service:
        code = f"os.chdir('/'); reach(socket.AF_UNIX, {os.fspath(path)!r})"
        finished = run(fence, place.launch(CONNECT + code, network=network))

        assert finished.stdout == b"refused\n"
        assert not service.visited()


@pytest.mark.parametrize("network", ["deny", "allow"])
def test_an_abstract_socket_is_out_of_reach(
    network: str, place: Place, fence: Fence, run: Run
) -> None:
    name = f"\0agent-run-test-{place.victim}"
    with Listener(socket.AF_UNIX, name) as service:
        code = f"reach(socket.AF_UNIX, {name!r})"
        finished = run(fence, place.launch(CONNECT + code, network=network))

        assert finished.stdout == b"refused\n"
        assert not service.visited()


def test_a_list_of_hosts_opens_nothing_else(place: Place, fence: Fence, run: Run) -> None:
    with (
        Listener(socket.AF_INET, ("127.0.0.1", 0)) as named,
        Listener(socket.AF_INET, ("127.0.0.1", 0)) as other,
    ):
        ports = [each.socket.getsockname()[1] for each in (named, other)]
        code = "\n".join(f"reach(socket.AF_INET, ('127.0.0.1', {port}))" for port in ports)
        network = (f"127.0.0.1:{ports[0]}",)
        finished = run(fence, place.launch(CONNECT + code, network=network))

        assert finished.stdout.split() == [b"sent", b"refused"]
        assert not other.visited()


def test_the_proxy_refuses_what_is_not_named_and_says_so(
    place: Place, fence: Fence, run: Run
) -> None:
    code = """
port = int(os.environ['HTTPS_PROXY'].rpartition(':')[2])
for head in ('CONNECT evil.invalid:443 HTTP/1.1', 'CONNECT 127.0.0.1:22 HTTP/1.1',
             'GET http://evil.invalid/x HTTP/1.1', 'CONNECT api.invalid:444 HTTP/1.1',
             'rubbish'):
    with socket.create_connection(('127.0.0.1', port)) as s:
        s.sendall(head.encode() + b'\\r\\nHost: api.invalid\\r\\n\\r\\n')
        print(s.recv(100).split()[1].decode())
"""

    finished = run(fence, place.launch(code, network=("api.invalid",)))

    assert finished.stdout.split() == [b"403", b"403", b"403", b"403", b"400"], finished
    assert finished.refused_hosts == (
        "evil.invalid:443",
        "127.0.0.1:22",
        "evil.invalid:80",
        "api.invalid:444",
    )


def test_an_open_socket_is_not_seen_from_outside(place: Place, fence: Fence, run: Run) -> None:
    free = socket.create_server(("127.0.0.1", 0))
    port = free.getsockname()[1]
    free.close()
    code = f"""
try:
    s = socket.create_server(('127.0.0.1', {port}))
except OSError:
    pass
(WORK / 'ready').touch()
while not (WORK / 'done').exists(): time.sleep(0.01)
"""
    answers: list[bool] = []

    def knock() -> None:
        while not (place.work / "ready").exists():
            threading.Event().wait(0.01)
        with socket.socket() as client:
            answers.append(client.connect_ex(("127.0.0.1", port)) == 0)
        (place.work / "done").touch()

    thread = threading.Thread(target=knock)
    thread.start()
    run(fence, place.launch(code))
    thread.join()

    assert answers == [False]


def test_a_hidden_folder_below_a_readable_one_is_not_read(
    place: Place, fence: Fence, run: Run
) -> None:
    (place.out / "open").write_text("fine")
    (place.out / "folder" / "key").write_text("hunter2")
    code = """
print((OUT / 'open').read_text())
for name in ('folder/key', 'secret'):
    try: print(bool((OUT / name).read_bytes()))
    except OSError: print('refused')
"""
    hidden = (place.out / "folder", place.out / "secret")

    finished = run(fence, place.launch(code, readable=(place.out,), hidden=hidden))

    words = finished.stdout.split()
    assert words[:2] == [b"fine", b"refused"]
    assert words[2] in {b"refused", b"False"}


def test_private_files_of_one_command_are_not_met_by_the_next(
    place: Place, fence: Fence, run: Run
) -> None:
    leave = """
import tempfile
for where in (tempfile.gettempdir(), os.path.expanduser('~')):
    Path(where, 'left-behind').write_text('x')
deep = Path(tempfile.gettempdir(), 'deep'); deep.mkdir(); os.chdir(deep)
for _ in range(1500): os.mkdir('d'); os.chdir('d')
os.mkdir('shut'); os.chmod('shut', 0)
"""
    look = """
import tempfile
print([w for w in (tempfile.gettempdir(), os.path.expanduser('~'))
       if {'left-behind', 'deep'} & set(os.listdir(w))])
"""

    first = run(fence, place.launch(leave))
    second = run(fence, place.launch(look))

    assert first.exit_code == 0, first
    assert second.stdout == b"[]\n"
    assert not list((place.work.parent / "scratch").iterdir())


def test_shared_memory_of_others_is_private_or_admitted(
    place: Place, fence: Fence, tier: Tier, run: Run
) -> None:
    path = Path(f"/dev/shm/agent-run-test-{place.victim}")
    path.write_text("hunter2")
    try:
        finished = run(fence, place.launch(TRY + f"attempt(Path({str(path)!r}).read_bytes)"))
    finally:
        path.unlink()

    if tier == "namespaces":
        assert finished.stdout == b"refused\n"
    else:
        assert any("/dev/shm" in sentence for sentence in fence.report().lacks)


def test_a_readable_tree_is_not_written(place: Place, fence: Fence, run: Run) -> None:
    before = place.outside()
    launch: Launch = place.launch(
        TRY + "attempt(lambda: SECRET.write_text('x'))", readable=(place.out,)
    )

    finished: Finished = run(fence, launch)

    assert finished.stdout == b"refused\n"
    assert place.outside() == before
