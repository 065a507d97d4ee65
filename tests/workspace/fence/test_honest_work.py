"""What honest commands do; a fence that refuses any of it is useless."""

import http.server
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_run.ports.fence import Fence, Limits
from agent_run.workspace.fence.policy import Tier
from tests.workspace.fence.conftest import Place, Run

WORK = {
    "writes a new file": "(WORK / 'new').write_text('x')",
    "overwrites a file": "(WORK / 'f').write_text('a'); (WORK / 'f').write_text('b')",
    "replaces a file as editors do": (
        "(WORK / 'f').write_text('a'); (WORK / '.f.swp').write_text('b')\n"
        "os.replace(WORK / '.f.swp', WORK / 'f')"
    ),
    "moves a file between folders": (
        "(WORK / 'a').mkdir(); (WORK / 'b').mkdir(); (WORK / 'a/f').touch()\n"
        "os.rename(WORK / 'a/f', WORK / 'b/f')"
    ),
    "links files": "(WORK / 'f').touch(); os.link(WORK / 'f', WORK / 'g')",
    "makes and follows a link": (
        "(WORK / 'f').write_text('x'); (WORK / 'l').symlink_to('f'); (WORK / 'l').read_text()"
    ),
    "removes a tree": (
        "import shutil; (WORK / 'a/b/c').mkdir(parents=True); shutil.rmtree(WORK / 'a')"
    ),
    "makes a script and runs it": (
        "(WORK / 's').write_text('#!/bin/sh\\nexit 0'); os.chmod(WORK / 's', 0o755)\n"
        "subprocess.run([WORK / 's'], check=True)"
    ),
    "changes mode, times and attributes of its own": (
        "(WORK / 'f').touch(); os.chmod(WORK / 'f', 0o640); os.utime(WORK / 'f', (1, 1))"
    ),
    "uses a temporary file": "import tempfile; tempfile.NamedTemporaryFile().write(b'x')",
    "uses a nameless temporary file": "import tempfile; tempfile.TemporaryFile().write(b'x')",
    "moves a temporary file to the workspace": (
        "import shutil, tempfile; h, n = tempfile.mkstemp(); shutil.move(n, WORK / 'f')"
    ),
    "keeps a cache in its home": "(Path.home() / '.cache/tool').mkdir(parents=True)",
    "uses a process pool": (
        "import multiprocessing as m\nwith m.Pool(2) as p: assert p.map(abs, [-1]) == [1]"
    ),
    "uses shared memory": (
        "from multiprocessing.shared_memory import SharedMemory\n"
        "s = SharedMemory(create=True, size=10); s.close(); s.unlink()"
    ),
    "uses threads": ("import threading; t = threading.Thread(target=int); t.start(); t.join()"),
    "runs an event loop with a child": (
        "import asyncio\n"
        "async def go():\n"
        "    p = await asyncio.create_subprocess_exec('true'); await p.wait()\n"
        "asyncio.run(go())"
    ),
    "keeps a database": (
        "import sqlite3; d = sqlite3.connect(WORK / 'd')\n"
        "d.execute('pragma journal_mode=wal'); d.execute('create table t (a)')\n"
        "d.commit(); d.close()"
    ),
    "locks a file": "import fcntl; f = open(WORK / 'l', 'w'); fcntl.flock(f, fcntl.LOCK_EX)",
    "maps a file": (
        "import mmap; f = open(WORK / 'm', 'wb+'); f.truncate(4096)\n"
        "m = mmap.mmap(f.fileno(), 4096); m[0] = 1; m.close()"
    ),
    "opens a terminal": "import pty; pty.spawn(['true'])",
    "talks through a FIFO": (
        "os.mkfifo(WORK / 'p'); subprocess.Popen(['sh', '-c', 'echo x > p'])\n"
        "assert (WORK / 'p').read_text() == 'x\\n'"
    ),
    "uses unusual names": (
        "for n in (b'a b', b'\\xff\\xfe', b'-rf', b'new\\nline', 'é'.encode()):\n"
        "    open(os.fsencode(WORK) + b'/' + n, 'w').close()"
    ),
    "writes a sparse file": "open(WORK / 's', 'wb').truncate(1 << 30)",
    "compiles to bytecode": (
        "import py_compile; (WORK / 'm.py').write_text('x = 1'); py_compile.compile('m.py')"
    ),
    "kills its own child": (
        "p = subprocess.Popen(['sleep', '100'], start_new_session=True)\n"
        "os.killpg(p.pid, signal.SIGTERM); assert p.wait() == -15"
    ),
    "looks up itself and its time zone": "import pwd; time.tzset(); pwd.getpwuid(0)",
    "counts processors": "assert os.cpu_count() >= 1",
    "edits in place": (
        "(WORK / 'f').write_text('a')\n"
        "subprocess.run(['sed', '-i', 's/a/b/', 'f'], check=True)\n"
        "assert (WORK / 'f').read_text() == 'b'"
    ),
    "reads randomness": "os.urandom(8); open('/dev/urandom', 'rb').read(1)",
    "throws output away": "print('x', file=open('/dev/null', 'w'))",
    "makes a commit": (
        "def git(*words): subprocess.run(['git', '-c', 'user.name=a', '-c', 'user.email=a@b',\n"
        "    *words], check=True, stdout=subprocess.DEVNULL)\n"
        "(WORK / 'f').write_text('x'); git('init', '-q'); git('add', '-A')\n"
        "git('commit', '-q', '-m', 'm'); git('gc', '-q'); git('checkout', '-q', '-b', 'other')"
    ),
    "imports from where Python lives": "import json, ssl, sqlite3, anyio",
    "unpacks an archive": (
        "import tarfile; (WORK / 'd').mkdir(); (WORK / 'd/f').touch()\n"
        "with tarfile.open('t.tar', 'w') as t: t.add('d')\n"
        "subprocess.run(['tar', 'xf', 't.tar'], check=True)"
    ),
}


@pytest.mark.parametrize("script", WORK.values(), ids=WORK.keys())
def test_a_command_succeeds_when_it(script: str, place: Place, fence: Fence, run: Run) -> None:
    finished = run(fence, place.launch(script))

    assert (finished.ended, finished.exit_code) == ("exited", 0), finished.stderr.decode()


NAMESPACES_ONLY = {
    "serves on loopback": (
        "s = socket.create_server(('127.0.0.1', 0))\n"
        "c = socket.create_connection(s.getsockname()); c.send(b'x')\n"
        "assert s.accept()[0].recv(1) == b'x'"
    ),
    "serves on IPv6 loopback": (
        "s = socket.create_server(('::1', 0), family=socket.AF_INET6)\n"
        "socket.create_connection(s.getsockname()[:2])"
    ),
    "resolves localhost": "assert socket.getaddrinfo('localhost', 80)",
    "sends datagrams to itself": (
        "s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('127.0.0.1', 0))\n"
        "s.sendto(b'x', s.getsockname()); assert s.recv(1) == b'x'"
    ),
    "uses a socket in a file": (
        "s = socket.socket(socket.AF_UNIX); s.bind('/tmp/s'); s.listen()\n"
        "socket.socket(socket.AF_UNIX).connect('/tmp/s')"
    ),
    "uses a manager process": (
        "import multiprocessing as m\nwith m.Manager() as g: assert g.dict(a=1)['a'] == 1"
    ),
}


@pytest.mark.parametrize("script", NAMESPACES_ONLY.values(), ids=NAMESPACES_ONLY.keys())
def test_a_private_network_lets_a_command_that(
    script: str, place: Place, fence: Fence, tier: Tier, run: Run
) -> None:
    finished = run(fence, place.launch(script))

    if tier == "namespaces":
        assert (finished.ended, finished.exit_code) == ("exited", 0), finished.stderr.decode()
    else:
        assert any("loopback cannot be reached" in each for each in fence.report().lacks)


class Echo(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"x" * 300_000)

    def log_message(self, *words: object) -> None:
        """Say nothing."""


@pytest.fixture
def endpoint() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def test_a_named_loopback_port_of_the_host_is_reached(
    place: Place, fence: Fence, run: Run, endpoint: int
) -> None:
    code = f"""
import urllib.request
for _ in range(3):
    print(len(urllib.request.urlopen('http://127.0.0.1:{endpoint}/').read()))
"""

    finished = run(fence, place.launch(code, network=(f"127.0.0.1:{endpoint}",)))

    assert finished.stdout.split() == [b"300000"] * 3, finished.stderr.decode()
    assert finished.refused_hosts == ()


def test_an_allowed_network_is_the_host_s(
    place: Place, fence: Fence, run: Run, endpoint: int
) -> None:
    code = f"""
import urllib.request
print(len(urllib.request.urlopen('http://127.0.0.1:{endpoint}/').read()))
socket.create_server(('127.0.0.1', 0))
"""

    finished = run(fence, place.launch(code, network="allow"))

    assert finished.stdout == b"300000\n", finished.stderr.decode()
    assert finished.exit_code == 0


def test_a_named_host_is_reached_through_the_proxy(
    place: Place, fence: Fence, run: Run
) -> None:
    # `127.0.0.2` is loopback to the kernel and a host like any other to the routes.
    server = http.server.ThreadingHTTPServer(("127.0.0.2", 0), Echo)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    port = server.server_address[1]
    code = f"""
import urllib.request
print(len(urllib.request.urlopen('http://127.0.0.2:{port}/a?b=c').read()))
with socket.create_connection(('127.0.0.1', int(os.environ['HTTP_PROXY'].split(':')[2]))) as s:
    s.sendall(b'CONNECT 127.0.0.2:{port} HTTP/1.1\\r\\n\\r\\n')
    print(s.recv(100).split()[1].decode())
    s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')
    print(s.recv(100).split()[1].decode())
"""

    finished = run(fence, place.launch(code, network=(f"127.0.0.2:{port}",)))
    server.shutdown()
    thread.join()
    server.server_close()

    assert finished.stdout.split() == [b"300000", b"200", b"200"], finished.stderr.decode()


def test_a_readable_tree_is_read_and_run(place: Place, fence: Fence, run: Run) -> None:
    tool = place.out / "tool"
    tool.write_text("#!/bin/sh\necho works\n")
    tool.chmod(0o755)
    code = "print(SECRET.read_text()); sys.stdout.flush(); subprocess.run([OUT / 'tool'])"

    finished = run(fence, place.launch(code, readable=(place.out,)))

    assert finished.stdout == b"the key\nworks\n"


def test_a_single_file_can_be_granted(place: Place, fence: Fence, run: Run) -> None:
    target = place.out / "folder" / "notes"
    target.write_text("old")

    code = f"Path({str(target)!r}).write_text('new')"
    finished = run(fence, place.launch(code, writable=(target,), readable=(place.work,)))

    assert finished.exit_code == 0, finished.stderr.decode()
    assert target.read_text() == "new"


def test_a_path_through_a_link_is_the_same_inside(place: Place, fence: Fence, run: Run) -> None:
    alias = place.work.parent / "alias"
    alias.symlink_to(place.work)
    launch = place.launch(
        f"Path({str(alias)!r}, 'f').write_text('x')", writable=(alias,), cwd=alias
    )

    finished = run(fence, launch)

    assert finished.exit_code == 0, finished.stderr.decode()
    assert (place.work / "f").read_text() == "x"


def test_files_belong_to_whoever_runs_the_fence(place: Place, fence: Fence, run: Run) -> None:
    run(fence, place.launch("(WORK / 'f').touch()"))

    assert (place.work / "f").stat().st_uid == place.work.stat().st_uid


def test_work_within_every_limit_is_left_alone(
    place: Place, any_fence: Fence, run: Run
) -> None:
    code = "x = bytearray(50_000_000); (WORK / 'f').write_bytes(x[:1_000_000]); print('x' * 9)"
    limits = Limits(
        wall_sec=60, cpu_sec=30, memory_mb=512, processes=64, disk_mb=64, output_bytes=100
    )

    finished = run(any_fence, place.launch(code, limits=limits))

    assert (finished.ended, finished.exit_code) == ("exited", 0), finished
    assert not finished.stdout_truncated


def test_the_test_runner_runs_inside(place: Place, fence: Fence, run: Run) -> None:
    (place.work / "test_it.py").write_text(
        "def test_it(tmp_path):\n    assert tmp_path.exists()\n"
    )
    argv = (sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "test_it.py")

    finished = run(fence, place.launch("", argv=argv))

    assert finished.exit_code == 0, finished.stdout.decode()


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("gcc", ("-x", "c", "-o", "a.out", "main.c")),
        (
            "node",
            ("-e", "require('fs').writeFileSync('f', String(require('os').cpus().length))"),
        ),
        ("bash", ("-c", "cat <(echo x) > f; ulimit -n; exec 3<>f")),
    ],
)
def test_a_tool_works_inside(
    tool: str, words: tuple[str, ...], place: Place, fence: Fence, run: Run
) -> None:
    found = shutil.which(tool, path="/usr/local/bin:/usr/bin:/bin")
    if found is None:
        pytest.skip(f"{tool} is not installed")
    (place.work / "main.c").write_text("int main(void) { return 0; }\n")

    finished = run(fence, place.launch("", argv=(found, *words)))

    assert finished.exit_code == 0, finished.stderr.decode()
    assert len(list(Path(place.work).iterdir())) == 2
