"""A check that waits for a person says which draft it is about, and what was found."""

from pathlib import Path

import pytest

from tests.support.command_line import Ask

CHECKLIST = "- Verify that every link leads somewhere\n- No known misspelling\n"


@pytest.fixture
def two(folder: Path) -> Path:
    """Two drafts of one name, each with a broken link."""
    (folder / "list.md").write_text(CHECKLIST)
    for place in ("x", "y"):
        (folder / place).mkdir()
        (folder / place / "a.md").write_text(f"See [it](no-{place}.md).\n")
    return folder


@pytest.mark.usefixtures("two")
def test_items_of_two_drafts_of_one_name_are_told_apart(ask: Ask) -> None:
    ask("qa", "x/a.md", "y/a.md", "--checklist", "list.md")

    items = {item["about"]: item for item in ask("inbox", "--json").json["items"]}
    listed = ask("inbox").out

    assert set(items) == {"x/a.md", "y/a.md"}
    for place in ("x", "y"):
        item = items[f"{place}/a.md"]
        assert f"no-{place}.md" in item["found"] + item["text"]
        assert item["said_by"] == "executor"
        assert f"  about  {place}/a.md: Verify that every link leads somewhere\n" in listed
        assert (
            f"about       {place}/a.md\n"
            in ask("review", item["run_id"] + "/" + item["task_id"]).out
        )
    assert "executor_failed" not in listed
    assert "asks for a person" not in listed
