"""The how-to pages are true: every file is written, every command is run."""

from pathlib import Path

import pytest

from tests.docs.test_tutorial import _BLOCK, DOCS, followed

PAGES = [
    ("execute.md", 11),
    ("review.md", 8),
    ("metrics.md", 8),
    ("evaluate.md", 11),
    ("canary.md", 3),
    ("work-together.md", 5),
]
"""Each page, and how many commands it shows."""


@pytest.mark.slow
@pytest.mark.parametrize(("page", "count"), PAGES)
def test_the_page_shows_what_really_happens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: str, count: int
) -> None:
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "Ada")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "ada@example.invalid")
    (tmp_path / "agent-run.toml").write_text("")
    (tmp_path / ".gitignore").write_text("*.yaml\n")

    assert followed(DOCS / "how-to" / page, tmp_path) == count


def test_the_python_of_a_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "how-to" / "work-together.md").read_text()
    (body,) = (body for language, _, body in _BLOCK.findall(text) if language == "python")

    exec(compile(body, "work-together.md", "exec"), {})

    assert (tmp_path / "shops.db").exists()
