"""Real coding-agent command lines, installed once below `.cache/clis` for the tests.

A missing `node` or registry fails the test with a sentence: a suite that skips its real tools
proves nothing. A file lock lets parallel test processes install each tool exactly once.
"""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal

REPOSITORY: Final = Path(__file__).resolve().parents[2]
CACHE: Final = REPOSITORY / ".cache" / "clis"
INSTALL_SECONDS: Final = 900


class CliNotInstalled(Exception):
    """A coding-agent command line could not be installed on this machine."""


@dataclass(frozen=True, slots=True)
class Cli:
    """One command line: where it comes from and how its program is called."""

    name: str
    source: Literal["npm", "pypi"]
    package: str
    version: str
    program: str
    pins: str | None = None
    """Versions of what it depends on. `None` means that the package itself names them all."""

    @property
    def home(self) -> Path:
        return CACHE / f"{self.name}-{self.version}"

    @property
    def path(self) -> Path:
        """The program, which exists once `installed` returned."""
        below = "node_modules/.bin" if self.source == "npm" else "bin"
        return self.home / below / self.program


CLIS: Final[Mapping[str, Cli]] = MappingProxyType(
    {
        cli.name: cli
        for cli in (
            Cli("claude", "npm", "@anthropic-ai/claude-code", "2.1.325", "claude"),
            Cli("codex", "npm", "@openai/codex", "0.166.0", "codex"),
            Cli("opencode", "npm", "opencode-ai", "1.18.33", "opencode"),
            Cli(
                "mini-swe-agent",
                "pypi",
                "mini-swe-agent",
                "2.4.6",
                "mini",
                pins="mini-swe-agent.txt",
            ),
            Cli("aider", "pypi", "aider-chat", "0.86.2", "aider"),
        )
    }
)


def installed(name: str) -> Path:
    """Return the program of the named command line, installing it first where needed.

    Raises:
        CliNotInstalled: the tool that installs it is missing, or says no.
    """
    cli = CLIS[name]
    ready = cli.home / "ready"
    # Looked at before the lock, so that a user who may only read the cache can use it.
    if ready.exists():
        return cli.path
    CACHE.mkdir(parents=True, exist_ok=True)
    with _locked(CACHE / f"{cli.name}.lock"):
        if not ready.exists():
            # Without its mark the folder is what a killed installation left behind.
            shutil.rmtree(cli.home, ignore_errors=True)
            _install(cli)
            _called(
                [str(cli.path), "--version" if cli.source == "npm" else "--help"], cli, CACHE
            )
            ready.touch()
    return cli.path


def _install(cli: Cli) -> None:
    wanted = f"{cli.package}@{cli.version}"
    if cli.source == "npm":
        npm = shutil.which("npm")
        if npm is None or shutil.which("node") is None:
            msg = f"{cli.name!r} needs 'node' and 'npm' on PATH: install Node.js 20 or later"
            raise CliNotInstalled(msg)
        cli.home.mkdir()
        flags = ["--no-audit", "--no-fund", "--prefix", str(cli.home)]
        _called([npm, "install", *flags, wanted], cli)
        return
    _called([sys.executable, "-m", "venv", str(cli.home)], cli)
    pip = [str(cli.home / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    held = () if cli.pins is None else ("-c", str(Path(__file__).with_name(cli.pins)))
    _called([*pip, *held, wanted.replace("@", "==")], cli)


def _called(argv: Sequence[str], cli: Cli, user_home: Path | None = None) -> None:
    # Some of them write into the home as soon as they are asked for their version.
    own = {} if user_home is None else {"HOME": str(user_home)}
    done = subprocess.run(  # noqa: PLW1510 - the answer is read below, with its output
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=INSTALL_SECONDS,
        env={**os.environ, "MSWEA_SILENT_STARTUP": "1", **own},
    )
    if done.returncode != 0:
        said = done.stdout.strip()[-2_000:]
        msg = f"{cli.name!r}: {' '.join(argv)!r} exited with {done.returncode}: {said}"
        raise CliNotInstalled(msg)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
