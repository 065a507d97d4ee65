"""The house stays tidy: what the linters cannot say, said here."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import agent_run

HOME = Path(agent_run.__file__).parent
ROOMS = sorted(HOME.rglob("*.py"))
LONGEST = 400


def _name(room: Path) -> str:
    return str(room.relative_to(HOME))


@pytest.mark.parametrize("room", ROOMS, ids=_name)
def test_no_room_is_too_large(room: Path) -> None:
    assert len(room.read_text().splitlines()) <= LONGEST


@pytest.mark.parametrize("room", ROOMS, ids=_name)
def test_every_room_says_what_it_is_for(room: Path) -> None:
    text = room.read_text()

    assert not text or ast.get_docstring(ast.parse(text))


def test_public_names_are_sorted_and_few() -> None:
    assert agent_run.__all__ == sorted(agent_run.__all__)
    assert len(agent_run.__all__) <= 25


@pytest.mark.parametrize("name", agent_run.__all__)
def test_every_public_name_can_be_had(name: str) -> None:
    assert getattr(agent_run, name) is not None
    assert name in dir(agent_run)


def test_type_checkers_are_told_of_the_same_names() -> None:
    stub = ast.parse((HOME / "__init__.pyi").read_text())
    listed = next(
        ast.literal_eval(node.value) for node in stub.body if isinstance(node, ast.Assign)
    )
    imported = {
        alias.asname: (node.module, alias.name)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

    assert listed == agent_run.__all__
    assert set(imported) == set(listed)
    for name, (module, original) in imported.items():
        assert name == original
        assert module is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nonsense"):
        _ = agent_run.nonsense  # type: ignore[attr-defined]  # that is the point


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, agent_run; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )

    loaded = set(done.stdout.split())
    assert loaded.isdisjoint({"pydantic", "click", "yaml", "rich", "sqlite3", "anyio"})
    assert {name for name in loaded if name.startswith("agent_run")} == {
        "agent_run",
        "agent_run.version",
    }
