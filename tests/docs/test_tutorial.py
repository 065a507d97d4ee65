"""The tutorial is true: its files are written, its commands run, its output compared."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
_BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Shown:
    """One command of a console block, and the output that the page shows for it."""

    command: str
    output: str


def commands_of(block: str) -> Iterator[Shown]:
    """Yield each `$ command` with the lines up to the next one."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield Shown(command, output)


def is_shown_by(output: str, page: str) -> bool:
    """Say whether `page` shows `output`; `...` on the page stands for any text in one line."""
    pattern = r"[^\n]*".join(re.escape(piece) for piece in page.rstrip("\n").split("..."))
    return re.fullmatch(pattern, output.rstrip("\n")) is not None


def run(command: str, folder: Path) -> str:
    """Return what a shell shows: output and errors, and the exit code unless it is 0."""
    tools = Path(sys.executable).parent
    ours = {name: text for name, text in os.environ.items() if "AGENT_RUN" not in name}
    done = subprocess.run(
        ["bash", "-c", command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        cwd=folder,
        env={**ours, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "USER": "ada"},
        timeout=60,
    )
    code = f"[exit {done.returncode}]\n" if done.returncode else ""
    return done.stdout + code


def followed(page: Path, folder: Path, *, over: bool = True) -> int:
    """Write the files of a page, run its commands, and return how many there were.

    A file that is there already is written over, if that is wanted.
    """
    ran = 0
    for language, title, body in _BLOCK.findall(page.read_text()):
        if title and (over or not (folder / title).exists()):
            (folder / title).write_text(body)
        if language == "console":
            for shown in commands_of(body):
                really = run(shown.command, folder)
                assert is_shown_by(really, shown.output), f"$ {shown.command}\n{really}"
                ran += 1
    return ran


def test_the_tutorial_shows_what_really_happens(tmp_path: Path) -> None:
    (tmp_path / "agent-run.toml").write_text("")

    assert followed(DOCS / "tutorial.md", tmp_path) == 12


@pytest.mark.parametrize(
    ("output", "page", "same"),
    [
        ("a\n", "a", True),
        ("a 12 b\n", "a ... b\n", True),
        ("a\nb\n", "a...b\n", False),
        ("a.c", "abc", False),
        ("abc", "a.c", False),
        ("a\n[exit 2]\n", "a\n", False),
    ],
)
def test_wildcards_stand_for_text_within_one_line(output: str, page: str, same: bool) -> None:  # noqa: FBT001
    assert is_shown_by(output, page) is same
