"""Every command of the menu with values that nobody should give: a sentence, never a crash."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click
import pytest

from agent_run.cli.app import cli
from agent_run.cli.exits import Exit
from tests.support.command_line import Ask

HOSTILE: Final = (
    "",
    " ",
    "nan",
    "-1",
    "99999999999999999999",
    "a\nb",
    "\x1b[31m\u202e",
    "\udcff",
    "x" * 300,
    "x" * 5_000,
    ".",
    "/dev/zero",
    "list.yaml/x",
    "pipe.yaml",
    "bytes.yaml",
    "deep.yaml",
    "{",
    "%s",
    "=",
    "-",
    "repo-142/",
    "sqlite:///",
    "postgresql://127.0.0.1:1/x",
    "agent:",
    "scripted:bytes.yaml",
    "2026-99-99",
)
FITTING: Final = {
    "after": "out",
    "before": "out",
    "canary": "canary.yaml",
    "checklist": "list.yaml",
    "claim": "1",
    "csv": "s.csv",
    "dataset": "cases.jsonl",
    "drafts": "a.md",
    "file": "record.json",
    "files": "repo-142.yaml",
    "key": "k.json",
    "model": "scripted:script.yaml",
    "name": "repo-142",
    "out": "out",
    "plan": "plan.yaml",
    "results": "out",
    "rubric": "rubric.yaml",
    "run_id": "repo-142",
    "shell": "bash",
    "target": "repo-142",
    "task": "repo-142",
    "what": "repo-142",
}
"""A value for each parameter that must be there while another one is tried."""
FILES: Final = {
    "a.md": "We are fine.\n",
    "agent-run.toml": '[executors.t]\ncommand = "true"\n',
    "canary.yaml": "name: c\nshare: 0.5\nchanges: {executor: t}\n",
    "cases.jsonl": '{"case_id": "a", "input": 1}\n',
    "deep.yaml": "[" * 3_000,
    "list.yaml": "- No known misspelling\n",
    "plan.yaml": "steps: [{task_id: a, objective: b, executor: t}]\n",
    "rubric.yaml": "rubric_id: c\ncriteria: [{name: clear, question: q}]\n",
    "script.yaml": "[{text: hi}]\n",
}
ENDING: Final = {"judge": ("--once",), "qa": ("--offline",), "worker": ("--once",)}
"""What keeps a command from going on for ever, or from leaving this machine."""
CODES: Final = frozenset(Exit) - {Exit.INTERRUPTED}


def _commands(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if not isinstance(command, click.Group):
        yield path
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        yield from _commands(inner, (*path, name))


def _declared(path: tuple[str, ...]) -> list[click.Parameter]:
    """Return the parameters of a command that take a value."""
    command: click.Command = cli
    for name in path:
        assert isinstance(command, click.Group)
        inner = command.get_command(click.Context(command), name)
        assert inner is not None
        command = inner
    return [one for one in command.params if not getattr(one, "is_flag", False)]


def _line(path: tuple[str, ...], tried: click.Parameter, value: str) -> tuple[str, ...]:
    options: list[str] = []
    arguments: list[str] = []
    for one in _declared(path):
        if one is not tried and one.name != tried.name and not one.required:
            continue
        given = value if one.name == tried.name else FITTING.get(str(one.name), "x")
        if isinstance(one, click.Argument):
            arguments.append(given)
        else:
            options.append(f"{max(one.opts, key=len)}={given}")
    return (*path, *ENDING.get(path[0], ()), *options, "--", *arguments)


# The demonstration takes no values; it is told as a story elsewhere.
COMMANDS: Final = [path for path in _commands(cli, ()) if path != ("demo",)]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_any_value_gets_an_exit_code_of_ours_and_no_crash(
    ask: Ask, folder: Path, path: tuple[str, ...]
) -> None:
    for name, text in FILES.items():
        (folder / name).write_text(text)
    (folder / "bytes.yaml").write_bytes(b"\xff\xfe\x00\x80\x81")
    os.mkfifo(folder / "pipe.yaml")
    ask("post", "repo-142.yaml")

    for tried in _declared(path):
        for value in HOSTILE:
            answer = ask(*_line(path, tried, value))

            told = (_line(path, tried, value), answer.err)
            assert answer.code in CODES, told
            assert "unexpected" not in answer.err, told
            assert "pydantic" not in answer.err, told
            assert "\x1b" not in answer.err, told


@pytest.mark.parametrize("recipe", ["code-fix", "documentation-review", "email-qa"])
@pytest.mark.parametrize("before", [(), ("false",)])
def test_any_argument_of_a_recipe_gets_an_exit_code_of_ours_and_no_crash(
    ask: Ask, folder: Path, recipe: str, before: tuple[str, ...]
) -> None:
    os.mkfifo(folder / "pipe.yaml")

    for value in (*HOSTILE, "x" * 3_950, "/etc/passwd", "a\\b", "..", "*"):
        answer = ask("run", recipe, "--command=true", "--dry-run", "--", *before, value, "a.md")

        assert answer.code in CODES, (value, answer.err)
        assert "unexpected" not in answer.err, (value, answer.err)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
@pytest.mark.parametrize(("command", "code"), [("status", 0), ("check -", 2), ("nope", 2)])
def test_a_stream_that_is_closed_is_no_crash(
    folder: Path, closed: str, command: str, code: int
) -> None:
    line = f"{sys.executable} -m agent_run {command} {closed}"

    done = subprocess.run(
        ["sh", "-c", line], cwd=folder, capture_output=True, text=True, check=False, input=""
    )

    assert done.returncode == code, done.stderr
    assert "unexpected" not in done.stderr


def test_a_folder_that_is_gone_is_said_in_one_sentence(
    folder: Path, monkeypatch: pytest.MonkeyPatch, ask: Ask
) -> None:
    (folder / "gone").mkdir()
    monkeypatch.chdir(folder / "gone")
    (folder / "gone").rmdir()

    for command in ("status", "init", "metrics", "inbox"):
        answer = ask(command)

        assert answer.code == 3
        assert answer.err.startswith("agent-run: the current folder cannot be used: ")
