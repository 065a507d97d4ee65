"""Links to private hosts are in doubt until the user allows the host."""

from pathlib import Path

import pytest

from tests.executors.content.server import served
from tests.support.command_line import Ask


@pytest.fixture
def place(folder: Path) -> Path:
    (folder / "links.yaml").write_text("- Check every link\n")
    return folder


def test_a_private_host_is_asked_once_it_is_allowed(place: Path, ask: Ask) -> None:
    with served() as site:
        (place / "a.md").write_text(f"See <{site.url}/ok>.\n")

        before = ask("qa", "a.md", "--checklist", "links.yaml")
        after = ask("qa", "a.md", "--checklist", "links.yaml", "--allow-host", "127.0.0.1")

    assert before.code == 7
    assert "was not asked: host '127.0.0.1'" in before.out
    assert (after.code, site.asked) == (0, {"HEAD /ok": 1})


def test_what_is_no_host_is_refused(place: Path, ask: Ask) -> None:
    (place / "a.md").write_text("Text.\n")

    done = ask("qa", "a.md", "--checklist", "links.yaml", "--allow-host", "http://wiki/")

    assert done.code == 2
    assert "host 'http://wiki/' is not the name of a host" in done.err
