"""Functions of users by name: found where they are, refused in one sentence elsewhere."""

import sys
from pathlib import Path

import pytest

from agent_run.errors import ContractError
from agent_run.wiring.loading import function_at


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "own_words_of_ours.py").write_text("def hello(): return 'hi'\nfive = 5\n")
    (tmp_path / "broken_words_of_ours.py").write_text("1 / 0\n")
    (tmp_path / "json.py").write_text("def dumps(): return 'not the library'\n")
    return tmp_path


def test_a_function_of_the_project_is_found(project: Path) -> None:
    hello = function_at("own_words_of_ours:hello", called="recipe", root=project)

    assert hello() == "hi"


def test_a_file_of_the_project_never_stands_in_for_a_library(project: Path) -> None:
    dumps = function_at("json:dumps", called="recipe", root=project)

    assert dumps([1]) == "[1]"


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("nowhere", "recipe 'nowhere' is not like 'package.module:name'"),
        ("", "is not like"),
        (":name", "is not like"),
        ("own_words_of_ours:", "is not like"),
        (".own_words_of_ours:hello", "is not like"),
        ("no_such_words:hello", "cannot be loaded: No module named 'no_such_words'"),
        ("own_words_of_ours:goodbye", "has no attribute 'goodbye'"),
        ("broken_words_of_ours:hello", "cannot be loaded: division by zero"),
        ("own_words_of_ours:five", "is int, expected a function"),
    ],
)
def test_what_is_no_function_is_named(project: Path, place: str, said: str) -> None:
    with pytest.raises(ContractError) as refused:
        function_at(place, called="recipe", root=project)

    assert said in str(refused.value)
