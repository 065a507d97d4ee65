"""What a person copies stays whole, however narrow the terminal is."""

from datetime import timedelta
from typing import Any

import pytest

from agent_run.cli.work.inbox import item_lines
from agent_run.contract.record import Question
from agent_run.ledger.inbox import inbox_rows
from tests.support.stories import NOON, claim, given, post, submit

LONG = "github-sync-worker-rate-limit-backoff-142"
SAID = "words that go on and on, " * 12
NOW = NOON + timedelta(minutes=3)


def lines(width: int | None, **record: Any) -> list[str]:
    said = submit(task_id=LONG, **record)
    (row,) = inbox_rows(LONG, given(post(LONG, answer_within="1h"), claim(task_id=LONG), said))
    return list(item_lines(row, NOW, width))


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize(
    "record",
    [
        {"status": "blocked", "notes": SAID},
        {"question": SAID},
        {"question": Question(text=SAID, wider_scope=("src/one.py", "src/two/**", "docs/**"))},
    ],
    ids=["decision", "question", "scope"],
)
def test_no_line_is_broken_by_the_terminal(width: int, record: dict[str, Any]) -> None:
    shown = lines(width, **record)

    assert max(map(len, shown)) <= width
    assert any(line.split()[0] == LONG for line in shown)
    (command,) = [line for line in shown if "agent-run" in line]
    assert f"agent-run review {LONG}" in command


def test_without_a_terminal_each_thing_is_one_line() -> None:
    shown = lines(None, status="blocked", notes=SAID.strip())

    assert [line.split()[0] for line in shown] == [LONG, "about", "why", "next"]
    assert shown[0] == f"{LONG}  decision, waits 3m, until 2026-11-15 13:00:00Z, by ada"
    assert shown[2] == f'  why    "{SAID.strip()}"'


def test_what_is_cut_says_how_much() -> None:
    (_, _, why, _) = lines(None, status="blocked", notes="x" * 700)

    assert why.endswith('... (100 characters more)"')


def test_what_is_overdue_is_marked() -> None:
    (row,) = inbox_rows("run", given(post(approve_before_claim=True, answer_within="1m")))

    assert "OVERDUE since 2026-11-15 12:01:00Z" in next(iter(item_lines(row, NOW, None)))
