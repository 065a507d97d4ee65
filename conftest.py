"""Runs the Python examples of README and docs, each file in a folder of its own."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Path]:
    before = Path.cwd()
    os.chdir(tmp_path)
    yield tmp_path
    os.chdir(before)


def _named(namespace: dict[str, Any]) -> None:
    namespace["__name__"] = "__main__"


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser()],
    patterns=["*.md"],
    setup=_named,
    fixtures=["scratch"],
).pytest()
