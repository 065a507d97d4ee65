"""The how-to pages of the recipes are true: every file is written, every command is run."""

import shutil
from pathlib import Path

import pytest

from tests.docs.test_tutorial import _BLOCK, DOCS, commands_of, is_shown_by, run


@pytest.mark.slow
@pytest.mark.parametrize(("page", "count"), [("content-qa.md", 12), ("configure.md", 7)])
def test_the_page_shows_what_really_happens(tmp_path: Path, page: str, count: int) -> None:
    (tmp_path / "agent-run.toml").write_text("")
    shutil.copytree(DOCS.parent / "examples", tmp_path / "examples")
    ran = 0

    for language, title, body in _BLOCK.findall((DOCS / "how-to" / page).read_text()):
        if title and not (tmp_path / title).exists():
            (tmp_path / title).write_text(body)
        if language == "console":
            for shown in commands_of(body):
                really = run(shown.command, tmp_path)
                assert is_shown_by(really, shown.output), f"$ {shown.command}\n{really}"
                ran += 1

    assert ran == count
