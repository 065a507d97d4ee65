"""The how-to pages of the recipes are true: every file is written, every command is run."""

import shutil
from pathlib import Path

import pytest

from tests.docs.test_tutorial import DOCS, followed


@pytest.mark.slow
@pytest.mark.parametrize(("page", "count"), [("content-qa.md", 12), ("configure.md", 7)])
def test_the_page_shows_what_really_happens(tmp_path: Path, page: str, count: int) -> None:
    (tmp_path / "agent-run.toml").write_text("")
    shutil.copytree(DOCS.parent / "examples", tmp_path / "examples")

    assert followed(DOCS / "how-to" / page, tmp_path, over=False) == count
