"""The command line as a test meets it: in this process for breadth, in its own for truth."""

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from agent_run.cli.app import run
from tests.support.command_line import MANIFEST, RECORD, Answer, Ask


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project, with nothing of the user's environment in it."""
    for name in [name for name in os.environ if name.startswith("AGENT_RUN_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("USER", "ada")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent-run.toml").write_text("")
    (tmp_path / "repo-142.yaml").write_text(MANIFEST)
    (tmp_path / "record.json").write_text(RECORD)
    return tmp_path


@pytest.fixture
def ask(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Run a command line in this process."""

    def asked(*arguments: str, stdin: str = "") -> Answer:
        out, err = _stream(), _stream()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", _stream(stdin))
            with redirect_stdout(out), redirect_stderr(err):
                code = run(arguments)
        return Answer(int(code), _text(out), _text(err))

    return asked


@pytest.fixture
def start(folder: Path) -> Ask:
    """Run a command line in a process of its own."""

    def started(*arguments: str, stdin: str = "", env: dict[str, str] | None = None) -> Answer:
        done = subprocess.run(
            [Path(sys.executable).parent / "agent-run", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            env={**os.environ, **(env or {})},
            timeout=60,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    return started


def _stream(text: str = "") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8", newline="\n")


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()
