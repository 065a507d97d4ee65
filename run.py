"""One script from a bare checkout to a working tool: `python3 run.py demo`.

It needs nothing but Python. The environment it makes lies in `.venv`, holds the pinned
versions of `constraints.txt`, and is made again only when one of its inputs changed.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

OLDEST_PYTHON = (3, 11)
ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / "python"
CONSTRAINTS = ROOT / "constraints.txt"
STAMP = VENV / "made-from"


class CannotPrepare(Exception):
    """The environment cannot be made; the message says what to do about it."""


def demo(rest: Sequence[str]) -> int:
    """Show the product at work on this machine, without a key or a network."""
    return _tool("agent-run", "demo", *rest)


def agent_run(rest: Sequence[str]) -> int:
    """Run `agent-run` itself: `python3 run.py agent-run status`."""
    return _tool("agent-run", *rest)


def check(rest: Sequence[str]) -> int:
    """Check format, lint, types, layers and generated docs; run no test."""
    for step in (
        ("ruff", "format", "--check", "."),
        ("ruff", "check", "."),
        ("mypy",),
        ("lint-imports",),
        ("python", "-m", "cogapp", "--check", *_generated_pages()),
    ):
        print("$", *step[:4], flush=True)
        code = _tool(*step)
        if code:
            return code
    return 0


def test(rest: Sequence[str]) -> int:
    """Run every check and the whole test suite, with two real coding agents."""
    return check(()) or _pytest("-m", "not (clis and slow) and not browser", *rest)


def everything(rest: Sequence[str]) -> int:
    """Run every check and every test, with all coding agents and a browser; installs 2.4 GB."""
    return check(()) or _pytest(*rest)


def quick(rest: Sequence[str]) -> int:
    """Run the tests that need no races, kills or outside tools."""
    return _pytest("-m", "not slow and not clis and not browser", *rest)


def docs(rest: Sequence[str]) -> int:
    """Write the generated parts of the docs again."""
    return _tool("python", "-m", "cogapp", "-r", *_generated_pages())


def bench(rest: Sequence[str]) -> int:
    """Measure speed and memory as ratios within this one run."""
    return _tool("python", "-m", "benchmarks", *rest)


def pin(rest: Sequence[str]) -> int:
    """Write `constraints.txt` from what is installed now."""
    listed = subprocess.run(
        [PYTHON, "-m", "pip", "freeze", "--exclude-editable", "--exclude", "agent-run"],
        check=True,
        capture_output=True,
        text=True,
    )
    lines = [line for line in listed.stdout.splitlines() if "==" in line]
    CONSTRAINTS.write_text("\n".join(sorted(lines, key=str.lower)) + "\n")
    print(f"pinned {len(lines)} packages in {CONSTRAINTS.name}")
    return 0


COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "demo": demo,
    "test": test,
    "everything": everything,
    "check": check,
    "quick": quick,
    "docs": docs,
    "bench": bench,
    "pin": pin,
    "agent-run": agent_run,
}


def main() -> int:
    summaries = "\n".join(f"  {name:10} {do.__doc__}" for name, do in COMMANDS.items())
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog=f"commands:\n{summaries}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND")
    parser.add_argument("rest", nargs=argparse.REMAINDER, help="handed on to the command")
    wanted = parser.parse_args()
    try:
        prepare(whole=wanted.command != "demo")
    except CannotPrepare as problem:
        print(f"run.py: {problem}", file=sys.stderr)
        return 3
    return COMMANDS[wanted.command](wanted.rest)


def prepare(*, whole: bool) -> None:
    """Make `.venv` unless it already stands for these very inputs.

    To see the demo takes a fraction of what working on the project takes.

    Raises:
        CannotPrepare: this machine cannot make the environment.
    """
    if sys.version_info < OLDEST_PYTHON:
        found = ".".join(map(str, sys.version_info[:3]))
        needed = ".".join(map(str, OLDEST_PYTHON))
        msg = f"this is Python {found}; agent-run needs Python {needed} or newer"
        raise CannotPrepare(msg)
    wanted = _fingerprint()
    stands = STAMP.read_text().splitlines() if STAMP.is_file() and PYTHON.exists() else []
    if stands in ([wanted, "whole"], [wanted, "whole" if whole else "demo"]):
        return
    print("preparing the environment in .venv", file=sys.stderr, flush=True)
    uv = shutil.which("uv")
    if not _stands_for_this_python():
        _make_with_uv(uv) if uv else _make_with_venv()
    if uv:
        _must(uv, "pip", "install", "--quiet", "--python", PYTHON, *_requirements(whole=whole))
    else:
        wants = (*_quiet_pip(), *_requirements(whole=whole))
        _must(PYTHON, "-m", "pip", "install", "--quiet", *wants)
    STAMP.write_text(f"{wanted}\n{'whole' if whole else 'demo'}")


def _stands_for_this_python() -> bool:
    home = VENV / "pyvenv.cfg"
    version = ".".join(map(str, sys.version_info[:3]))
    return PYTHON.exists() and home.is_file() and version in home.read_text()


def _make_with_uv(uv: str) -> None:
    _must(uv, "venv", "--quiet", "--clear", "--seed", "--python", sys.executable, VENV)


def _make_with_venv() -> None:
    try:
        import ensurepip  # noqa: F401, PLC0415 - only asked whether it is there
        import venv  # noqa: PLC0415
    except ImportError:
        msg = (
            "neither uv nor Python's venv module is here; install uv (`pip install uv`) "
            "or your system's package for venv (on Debian: python3-venv)"
        )
        raise CannotPrepare(msg) from None
    venv.create(VENV, with_pip=True, clear=True)


def _quiet_pip() -> tuple[str, ...]:
    return ("--disable-pip-version-check", "--no-input")


def _requirements(*, whole: bool) -> list[str]:
    """What to install: the project with what the demo shows, or all extras and all tools."""
    import tomllib  # noqa: PLC0415 - not there before 3.11, which must get its sentence

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = sorted(project["project"]["optional-dependencies"]) if whole else ["qa"]
    wanted = ["-e", f"{ROOT}[{','.join(extras)}]"]
    if whole:
        wanted += project["dependency-groups"]["dev"]
    return [*wanted, "-c", str(CONSTRAINTS)] if CONSTRAINTS.exists() else wanted


def _fingerprint() -> str:
    parts = [sys.version, str(ROOT), (ROOT / "pyproject.toml").read_text()]
    if CONSTRAINTS.exists():
        parts.append(CONSTRAINTS.read_text())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _must(*command: str | Path) -> None:
    try:
        subprocess.run([str(part) for part in command], check=True, cwd=ROOT)
    except (subprocess.CalledProcessError, OSError) as error:
        msg = f"the environment could not be made: {error}"
        raise CannotPrepare(msg) from error


def _tool(name: str, *rest: str) -> int:
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}"}
    try:
        return subprocess.run(
            [BIN / name, *rest], cwd=ROOT, env=environment, check=False
        ).returncode
    except KeyboardInterrupt:
        return 130


def _pytest(*rest: str) -> int:
    cores = str(max(2, os.cpu_count() or 2))
    return _tool("pytest", "-n", cores, "--dist", "worksteal", *rest)


def _generated_pages() -> list[str]:
    pages = sorted(ROOT.glob("docs/**/*.md"))
    return [str(page) for page in pages if "[[[cog" in page.read_text(encoding="utf-8")]


if __name__ == "__main__":
    sys.exit(main())
