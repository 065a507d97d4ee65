"""Git as a set of tools without habits: no configuration, hooks, filters or environment.

`Git` never runs in a folder that an executor could write to.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Literal

from agent_run.errors import Unfit, WorkspaceError

ObjectFormat = Literal["sha1", "sha256"]

NOTHING: Final = "/dev/null"
_PLACES: Final = "/usr/bin:/bin:/usr/local/bin:/opt/homebrew/bin:/usr/pkg/bin"
_OLDEST: Final = (2, 38)
_PATIENCE_SEC: Final = 900
_CHUNK: Final = 1 << 20
_MUTED: Final = (
    ("core.hooksPath", NOTHING),
    ("core.fsmonitor", "false"),
    ("core.untrackedCache", "false"),
    ("core.attributesFile", NOTHING),
    ("core.excludesFile", NOTHING),
    ("core.sshCommand", "false"),
    ("core.pager", "cat"),
    ("core.editor", "false"),
    ("core.quotePath", "false"),
    # Our own rules for names are stricter for new files, and old ones must stay readable.
    ("core.protectNTFS", "false"),
    ("core.protectHFS", "false"),
    ("credential.helper", ""),
    ("protocol.allow", "never"),
    ("submodule.recurse", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("commit.gpgSign", "false"),
    ("diff.external", ""),
    ("merge.renormalize", "false"),
    ("safe.directory", "*"),
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a git tree."""

    mode: int
    oid: str
    size: int
    """0 for a submodule, whose content is elsewhere."""


@dataclass(frozen=True, slots=True)
class Git:
    """The git program, bound to one repository and to where its objects are."""

    program: str
    directory: Path
    work_tree: Path | None = None
    objects: Path | None = None
    """Where new objects are written. None means the repository's own place."""
    alternates: tuple[Path, ...] = ()
    """Where objects are also looked for."""
    index: Path | None = None
    settings: tuple[tuple[str, str], ...] = ()
    """Configuration on top of none, as `("core.autocrlf", "true")`."""
    search: bool = False
    """Whether git looks for the repository upwards from `directory`."""

    def run(
        self, *arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None
    ) -> bytes:
        """Return what the command prints.

        Raises:
            WorkspaceError: the command failed; its last words are in the message.
        """
        code, out, err = self.attempt(*arguments, stdin=stdin, env=env)
        if code:
            msg = f"git {arguments[0]} failed with {code}: {_last_words(err)}"
            raise WorkspaceError(msg)
        return out

    def line(self, *arguments: str, stdin: bytes = b"") -> str:
        """Return what the command prints, as text without its newline."""
        return os.fsdecode(self.run(*arguments, stdin=stdin)).removesuffix("\n")

    def attempt(
        self, *arguments: str, stdin: bytes = b"", env: Mapping[str, str] | None = None
    ) -> tuple[int, bytes, bytes]:
        """Return exit code, output and error output."""
        try:
            done = subprocess.run(  # noqa: S603 - a fixed program, and no shell
                self._argv(arguments),
                input=stdin,
                env={**self._env(), **(env or {})},
                cwd=self.work_tree or self.directory,
                capture_output=True,
                timeout=_PATIENCE_SEC,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            msg = f"git {arguments[0]} was not done after {_PATIENCE_SEC} s"
            raise WorkspaceError(msg) from error
        except OSError as error:
            msg = f"git cannot work in {str(self.directory)!r}: {error}"
            raise WorkspaceError(msg) from error
        return done.returncode, done.stdout, done.stderr

    def entries(self, tree: str) -> dict[bytes, Entry]:
        """Return every file of `tree`, by its path."""
        out = self.run("ls-tree", "-r", "-l", "-z", "--full-tree", tree)
        return dict(_parsed(out.split(b"\0")[:-1]))

    @contextmanager
    def blobs(self, oids: Iterable[str]) -> Iterator["Blobs"]:
        """Give the content of `oids`, in this order, from one process."""
        with tempfile.TemporaryFile() as wanted:
            wanted.write("".join(f"{oid}\n" for oid in oids).encode())
            wanted.seek(0)
            with subprocess.Popen(  # noqa: S603 - a fixed program, and no shell
                self._argv(("cat-file", "--batch", "--buffer")),
                stdin=wanted,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=self._env(),
                cwd=self.directory,
            ) as process:
                try:
                    if process.stdout is None:
                        msg = "git cat-file has no output to read"
                        raise WorkspaceError(msg)
                    yield Blobs(process.stdout)
                finally:
                    process.kill()

    def _argv(self, arguments: Sequence[str]) -> list[str]:
        settings = [f"{key}={value}" for key, value in (*_MUTED, *self.settings)]
        options = [word for setting in settings for word in ("-c", setting)]
        return [self.program, "--no-pager", *options, *arguments]

    def _env(self) -> dict[str, str]:
        env = {
            "PATH": f"{os.path.dirname(self.program)}:{_PLACES}",  # noqa: PTH120 - a string
            "HOME": NOTHING,
            "LC_ALL": "C",
            "TZ": "UTC",
            "GIT_CONFIG_GLOBAL": NOTHING,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_TERMINAL_PROMPT": "0",
        }
        if not self.search:
            env["GIT_DIR"] = str(self.directory)
        if self.work_tree:
            env["GIT_WORK_TREE"] = str(self.work_tree)
        if self.objects:
            env["GIT_OBJECT_DIRECTORY"] = str(self.objects)
        if self.alternates:
            env["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = ":".join(map(_quoted, self.alternates))
        if self.index:
            env["GIT_INDEX_FILE"] = str(self.index)
        return env


class Blobs:
    """Contents that come out of one `git cat-file`, to be taken in order."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def read(self) -> bytes:
        """Return the next content as a whole."""
        size = self._size()
        content = self._stream.read(size + 1)
        if len(content) != size + 1:
            msg = "git stopped in the middle of a file"
            raise WorkspaceError(msg)
        return content[:-1]

    def copy_to(self, fd: int) -> None:
        """Write the next content to `fd`."""
        left = self._size()
        while left:
            chunk = self._stream.read(min(left, _CHUNK))
            if not chunk:
                msg = "git stopped in the middle of a file"
                raise WorkspaceError(msg)
            write_all(fd, chunk)
            left -= len(chunk)
        self._stream.read(1)

    def _size(self) -> int:
        header = self._stream.readline().split()
        if len(header) != 3 or header[1] == b"missing":  # noqa: PLR2004 - id, type, size
            name = header[0].decode() if header else "an object"
            msg = (
                f"{name} is missing in the repository; a partial clone must be completed first"
            )
            raise WorkspaceError(msg)
        return int(header[2])


def write_all(fd: int, content: bytes) -> None:
    """Write every byte of `content`, however often the kernel takes only a part."""
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]


def find_git(program: str | None = None) -> str:
    """Return the path of a git that is young enough.

    Raises:
        Unfit: there is none.
    """
    found = program or shutil.which("git", path=_PLACES)
    if not found:
        msg = "git is not installed, and a workspace cannot be made without it"
        raise Unfit(msg)
    said = subprocess.run(  # noqa: S603 - a fixed program, and no shell
        [found, "version"], capture_output=True, text=True, check=False, env={"LC_ALL": "C"}
    ).stdout
    numbers = said.split()[2].split(".") if said.startswith("git version ") else ["0", "0"]
    if (int(numbers[0]), int(numbers[1])) < _OLDEST:
        msg = f"{said.strip()!r} is too old, git 2.38 or later is needed"
        raise Unfit(msg)
    return found


@dataclass(frozen=True, slots=True)
class Place:
    """Where a repository was found."""

    directory: Path
    top: Path
    object_format: ObjectFormat


def discover(program: str, root: Path) -> Place | None:
    """Return the repository that `root` lies in, or None if it lies in none.

    Raises:
        WorkspaceError: it lies in one that has no files of its own.
    """
    git = Git(program, root, search=True)
    asked = ("rev-parse", "--path-format=absolute", "--show-object-format", "--git-dir")
    code, out, err = git.attempt(*asked)
    if code:
        if b"not a git repository" in err:
            return None
        msg = f"git cannot read the repository at {str(root)!r}: {_last_words(err)}"
        raise WorkspaceError(msg)
    lines = os.fsdecode(out).splitlines()
    top = git.attempt("rev-parse", "--path-format=absolute", "--show-toplevel")
    if top[0]:
        msg = f"{str(root)!r} is a bare repository or inside '.git'; work needs its files"
        raise WorkspaceError(msg)
    found: ObjectFormat = "sha256" if lines[0] == "sha256" else "sha1"
    return Place(Path(lines[1]), Path(os.fsdecode(top[1]).removesuffix("\n")), found)


def anchor(state: Path, object_format: ObjectFormat) -> Path:
    """Return a bare repository with no refs and no objects."""
    return bare_repository(state / f"anchor-{object_format}.git", object_format)


def bare_repository(directory: Path, object_format: ObjectFormat) -> Path:
    """Make a bare repository by hand, so without templates; it is there whole or not at all."""
    if directory.is_dir():
        return directory
    aside = Path(tempfile.mkdtemp(prefix=f".{directory.name}-", dir=directory.parent))
    (aside / "objects").mkdir()
    (aside / "refs").mkdir()
    (aside / "config").write_text(repository_config(object_format, bare=True))
    (aside / "HEAD").write_text("ref: refs/heads/none\n")
    try:
        aside.rename(directory)
    except OSError:
        shutil.rmtree(aside)
        if not directory.is_dir():
            raise
    return directory


def repository_config(object_format: ObjectFormat, *, bare: bool) -> str:
    """Return the least configuration that makes a folder a repository."""
    version = 0 if object_format == "sha1" else 1
    text = f"[core]\n\trepositoryformatversion = {version}\n\tbare = {str(bare).lower()}\n"
    text += "\tfilemode = true\n"
    return text if version == 0 else text + f"[extensions]\n\tobjectFormat = {object_format}\n"


def _parsed(rows: Iterable[bytes]) -> Iterator[tuple[bytes, Entry]]:
    for row in rows:
        head, path = row.split(b"\t", 1)
        mode, _, oid, size = head.split()
        yield path, Entry(int(mode, 8), oid.decode(), 0 if size == b"-" else int(size))


def _last_words(err: bytes) -> str:
    lines = err.decode("utf-8", "backslashreplace").strip().splitlines()
    return "; ".join(lines[-3:]) or "it said nothing"


def _quoted(path: Path) -> str:
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
