"""Settings that are wrong: each fault in our words, with its file, its line and its key."""

import os
from pathlib import Path

import pytest

from agent_run.errors import InvalidDocument, Unfit
from agent_run.wiring.settings import configure


def told(folder: Path, text: str, *, name: str = "agent-run.toml", **environ: str) -> list[str]:
    (folder / name).write_text(text)
    with pytest.raises(InvalidDocument) as refused:
        configure(start=folder, environ=environ)
    return [str(fault).removeprefix(f"{folder}/") for fault in refused.value.faults]


def test_every_fault_has_its_line_and_its_key(tmp_path: Path) -> None:
    text = """\
# settings
fence = "maybe"

fense = "off"
day_budget_usd = nan
[executors.script]
readable = [
  "a",
  3,
]
comand = "true"
[executors."two words"]
command = "true"
"""

    assert told(tmp_path, text) == [
        "agent-run.toml:2: fence: is 'maybe', expected 'require', 'prefer' or 'off'",
        "agent-run.toml:4: fense: is not a known key; did you mean 'fence'?",
        "agent-run.toml:5: day_budget_usd: is nan, expected a finite number",
        (
            "agent-run.toml:7: executors.script.readable[1]: is 3, expected a string; "
            "put it in quotes"
        ),
        (
            "agent-run.toml:11: executors.script.comand: is not a known key; did you mean "
            "'command'?"
        ),
        (
            """agent-run.toml:12: executors["two words"]: is the key 'two words', expected """
            "letters, digits, '-', '_' and single dots"
        ),
    ]


def test_a_fault_in_pyproject_has_its_line_there(tmp_path: Path) -> None:
    text = '[project]\nname = "x"\n\n[tool.agent-run]\nowner = ""\n'

    assert told(tmp_path, text, name="pyproject.toml") == [
        "pyproject.toml:5: owner: is '', expected at least 1 character"
    ]
    assert told(tmp_path, "[tool]\nagent-run = 3\n", name="pyproject.toml") == [
        "pyproject.toml:2: tool.agent-run: is 3, expected a table"
    ]


def test_a_pyproject_of_another_shape_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("tool = 3\n")

    assert configure(start=tmp_path, environ={}).settings.fence == "prefer"


def test_a_fault_of_the_environment_names_the_variable(tmp_path: Path) -> None:
    variables = {"AGENT_RUN_MAX_OUTPUT_MB": "many", "AGENT_RUN_TELEMETRY": "perhaps"}

    assert told(tmp_path, "", **variables) == [
        "AGENT_RUN_MAX_OUTPUT_MB: is 'many', expected an integer",
        "AGENT_RUN_TELEMETRY: is 'perhaps', expected true or false",
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [("fence", 1), ("a = 1\nb = = 2\n", 2), ('a = 1\nb = """x\n', 2), ("a = 1\na = 2\n", 2)],
)
def test_what_is_no_toml_has_its_line(tmp_path: Path, text: str, line: int) -> None:
    [fault] = told(tmp_path, text)

    assert fault.startswith(f"agent-run.toml:{line}: is not TOML: ")
    assert "(at" not in fault


@pytest.mark.timeout(20)
def test_whatever_lies_under_our_name_is_not_passed_over(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "agent-run.toml")

    with pytest.raises(InvalidDocument, match="is a pipe, expected a file"):
        configure(start=tmp_path, environ={})


def test_a_folder_that_is_gone_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()

    with pytest.raises(Unfit, match="the current folder cannot be used"):
        configure(environ={})
