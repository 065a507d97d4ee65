"""What every store promises, asked of each of them."""

import hashlib
import json
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from agent_run.errors import SequenceTaken, StoreError
from agent_run.ledger.pages import FIRST, Page, breaks
from agent_run.ledger.state import Status
from agent_run.ports.store import Chapter, Search, Snapshot, Store, TaskRow, Wanted
from tests.support.stores import NOON, TRACE, book, chapter, open_store, row

HOSTILE: Final = (
    "'; DROP TABLE pages; --",
    '"quoted" \\" and \\\\ back\\slashes',
    "%s %(name)s %% $1 ? :name {0}",
    "\\u0000 written out, \\x00 too",
    "Zwölf Boxkämpfer 🦔 שלום \u202e\u2028",
    "\x1b[31mred\x1b[0m\r\n\t\x7f",
    "nul\x00nul",
)


def test_pages_come_back_exactly_and_in_order(store: Store) -> None:
    pages = book("r", 5)
    store.append([Chapter("r", 0, pages[:2], (), NOON)])
    store.append([Chapter("r", 2, pages[2:], (), NOON)])

    assert store.read("r") == pages
    assert store.read("r", after=3) == pages[3:]
    assert store.read("r", after=1, limit=2) == pages[1:3]
    assert store.read("r", after=5) == []
    assert store.read("nobody") == []


@pytest.mark.parametrize("after", [0, 1, 2, 4, 9])
def test_a_chapter_that_does_not_follow_is_refused(store: Store, after: int) -> None:
    store.append([chapter("r", 3)])

    with pytest.raises(SequenceTaken, match=rf"page {after + 1} of run 'r' is taken"):
        store.append([chapter("r", after=after)])

    assert len(store.read("r")) == 3


def test_a_run_cannot_begin_in_the_middle(store: Store) -> None:
    with pytest.raises(SequenceTaken):
        store.append([chapter("r", after=1)])

    assert store.read("r") == []
    assert store.runs() == []


def test_all_chapters_are_written_or_none(store: Store) -> None:
    store.append([chapter("taken")])
    fresh = chapter("fresh", rows=(row("fresh", "t"),))

    with pytest.raises(SequenceTaken):
        store.append([fresh, chapter("taken")])

    assert store.read("fresh") == []
    assert store.tasks() == []
    assert [run.run_id for run in store.runs()] == ["taken"]


def test_an_error_inside_a_transaction_undoes_all_of_it(store: Store) -> None:
    with pytest.raises(SequenceTaken):
        _write_and_fail(store)

    assert store.read("r") == []
    assert store.tasks() == []
    store.append([chapter("r")])


def test_what_a_transaction_wrote_it_can_read(store: Store) -> None:
    with store.exclusive() as writer:
        writer.append([chapter("r", rows=(row("r", "t"),))])
        writer.append([chapter("r", after=1)])

        assert [page.seq for page in writer.read("r")] == [1, 2]
        assert [found.task_id for found in writer.find(Search("ready", NOON))] == ["t"]


def test_pages_and_index_are_seen_together(store: Store, address: str) -> None:
    other = open_store(address)
    with store.exclusive() as writer:
        writer.append([chapter("r", rows=(row("r", "t"),))])

        assert other.read("r") == []
        assert other.tasks() == []

    assert len(other.read("r")) == 1
    assert other.tasks() == [row("r", "t")]
    other.close()


def test_an_index_row_changes_with_its_pages(store: Store) -> None:
    store.append([chapter("r", rows=(row("r", "t"), row("r", "u")))])
    due = NOON + timedelta(minutes=20, microseconds=1)
    claimed = replace(row("r", "t"), status=Status.CLAIMED, due=due, changed=2)

    store.append([chapter("r", after=1, rows=(claimed,))])

    assert store.tasks(task_id="t") == [claimed]
    assert store.tasks() == [row("r", "u"), claimed]
    assert store.counts() == {Status.CLAIMED: 1, Status.READY: 1}


def test_ready_tasks_come_by_priority_then_by_order_of_posting(store: Store) -> None:
    for run_id, priority in (("a", 0), ("b", 5), ("c", -1), ("d", 5), ("e", 0)):
        store.append([chapter(run_id, rows=(row(run_id, "t", priority=priority),))])

    assert _found(store, "ready", limit=10) == ["b", "d", "a", "e", "c"]
    assert _found(store, "ready", limit=2) == ["b", "d"]
    assert _found(store, "ready", limit=10, run_id="e") == ["e"]
    assert _found(store, "ready", limit=10, run_id="x") == []


def test_an_executor_finds_its_own_tasks_and_those_for_anybody(store: Store) -> None:
    for run_id, executor, priority in (
        *(("a", "codex", 1), ("b", "", 0), ("c", "claude", 9)),
        *(("d", "codex", 2), ("e", "", 3), ("f", "person", 0)),
    ):
        rows = (row(run_id, "t", executor=executor, priority=priority),)
        store.append([chapter(run_id, rows=rows)])

    assert _found(store, "ready", executors=("codex",)) == ["e", "d", "a", "b"]
    assert _found(store, "ready", executors=("claude", "person")) == ["c", "e", "b", "f"]
    assert _found(store, "ready", executors=()) == ["e", "b"]
    assert _found(store, "ready") == ["c", "e", "d", "a", "b", "f"]
    assert _found(store, "ready", executors=("codex",), run_id="d") == ["d"]
    assert _found(store, "ready", executors=("codex",), run_id="c") == []
    assert _found(store, "ready", executors=("codex",), limit=2) == ["e", "d"]


@pytest.mark.parametrize(
    ("wanted", "status"),
    [
        ("expired", Status.CLAIMED),
        ("overdue", Status.ASKED),
        ("undecided", Status.ESCALATED),
        ("unapproved", Status.WAITING),
    ],
)
def test_what_is_past_its_time_is_found_longest_first(
    store: Store, wanted: Wanted, status: Status
) -> None:
    for run_id, seconds in (("a", 0), ("b", -60), ("c", 1), ("d", None)):
        due = None if seconds is None else NOON + timedelta(seconds=seconds)
        rows = (row(run_id, "t", status=status, due=due, executor="codex"),)
        store.append([chapter(run_id, rows=rows)])

    assert _found(store, wanted) == ["b", "a"]
    assert _found(store, wanted, limit=1) == ["b"]
    assert _found(store, wanted, run_id="a") == ["a"]
    assert _found(store, wanted, executors=("codex",)) == ["b", "a"]
    assert _found(store, wanted, executors=("person",)) == []


def test_submitted_tasks_are_found_in_order_of_posting(store: Store) -> None:
    for run_id, status in (("a", Status.SUBMITTED), ("b", Status.READY), ("c", "submitted")):
        store.append([chapter(run_id, rows=(row(run_id, "t", status=Status(status)),))])

    assert _found(store, "submitted") == ["a", "c"]
    assert _found(store, "submitted", run_id="c") == ["c"]


def test_runs_come_newest_first(store: Store) -> None:
    for number, run_id in enumerate("abc"):
        later = NOON + timedelta(seconds=number)
        store.append([replace(chapter(run_id), at=later)])

    assert [run.run_id for run in store.runs()] == ["c", "b", "a"]
    assert [run.run_id for run in store.runs(limit=1)] == ["c"]
    (only,) = store.runs(run_id="b")
    assert (only.trace_id, only.opened_at) == (TRACE, NOON + timedelta(seconds=1))
    assert store.runs(run_id="x") == []


def test_the_index_knows_the_last_page_of_every_book(store: Store) -> None:
    store.append([chapter("notes", 3)])
    store.append([chapter("task", rows=(row("task", "t"),))])
    store.append([chapter("task", 2, after=1, rows=(replace(row("task", "t"), changed=2),))])

    assert store.heads() == {"notes": 3, "task": 3}


def test_large_bodies_are_kept_by_their_content_and_come_back(store: Store) -> None:
    body = json.dumps({"text": "🦔'\"\\" * 2_500_000}, ensure_ascii=False)
    small, large = (Page("r", seq, "", "note", TRACE, body, FIRST) for seq in (1, 2))

    store.append([Chapter("r", 0, [small, large], (), NOON)])

    assert store.read("r") == [small, large]
    content = body.encode()
    assert len(content) > 10_000_000
    assert store.blob(hashlib.sha256(content).hexdigest()) == content


def test_entries_are_the_pages_without_what_proves_them(store: Store) -> None:
    body = json.dumps("🦔" * 20_000, ensure_ascii=False)
    large = Page("r", 4, "t", "note", TRACE, body, FIRST)
    store.append([chapter("r", 3), chapter("other", 2)])
    store.append([Chapter("r", 3, [large], (row("r", "t"),), NOON)])

    found = store.entries("r", after=0, limit=9)

    assert found == [(page.seq, page.task_id, page.kind, page.body) for page in store.read("r")]
    assert found[-1] == (4, "t", "note", body)
    assert store.entries("r", after=1, limit=2) == found[1:3]
    assert store.entries("nobody", after=0, limit=9) == []


def test_a_blob_is_kept_once_under_its_digest(store: Store) -> None:
    content = bytes(range(256)) * 10

    assert store.put_blob(content) == hashlib.sha256(content).hexdigest()
    assert store.put_blob(content) == hashlib.sha256(content).hexdigest()
    assert store.blob(hashlib.sha256(content).hexdigest()) == content
    assert store.blob(hashlib.sha256(b"").hexdigest()) is None


def test_the_newest_snapshot_wins_whenever_it_comes(store: Store) -> None:
    assert store.snapshot("r") is None
    store.save_snapshot(Snapshot("r", 20, FIRST, b"twenty"))
    store.save_snapshot(Snapshot("r", 10, FIRST, b"ten"))
    store.save_snapshot(Snapshot("s", 5, FIRST, b"\x00\xff"))

    assert store.snapshot("r") == Snapshot("r", 20, FIRST, b"twenty")
    assert store.snapshot("s") == Snapshot("s", 5, FIRST, b"\x00\xff")


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_in_a_body_comes_back_as_it_was(store: Store, text: str) -> None:
    body = json.dumps(text, ensure_ascii=False)
    page = Page("r", 1, "t", "note", TRACE, body, FIRST)

    store.append([Chapter("r", 0, [page], (row("r", "t"),), NOON)])

    assert store.read("r") == [page]
    assert json.loads(store.read("r")[0].body) == text


@pytest.mark.parametrize("text", HOSTILE[:-1])
def test_hostile_names_stay_names(store: Store, text: str) -> None:
    page = Page(text, 1, text, text, text, text, text)
    rows = (row(text, text, executor=text),)

    store.append([Chapter(text, 0, [page], rows, NOON)])

    assert store.read(text) == [page]
    assert store.tasks(task_id=text) == list(rows)
    assert store.find(Search("ready", NOON, text, executors=(text,))) == list(rows)
    assert store.find(Search("ready", NOON, executors=(text,))) == list(rows)
    assert store.heads() == {text: 1}
    with store.exclusive() as writer:
        writer.hold(text)
        assert writer.read(text) == [page]


def test_a_raw_nul_never_spoils_what_stands_in_the_ledger(store: Store) -> None:
    store.append([chapter("r", 2)])
    before = store.read("r")
    page = Page("r", 3, "a\x00b", "note", TRACE, "{}", FIRST)

    with suppress(StoreError):
        store.append([Chapter("r", 2, [page], (), NOON)])

    assert store.read("r")[:2] == before
    assert store.read("r")[2:] in ([], [page])


def test_what_was_written_is_there_after_reopening(store: Store, address: str) -> None:
    store.append([chapter("r", 3, rows=(row("r", "t"),))])
    store.put_blob(b"x")

    other = open_store(address)

    assert other.read("r") == store.read("r")
    assert other.tasks() == store.tasks()
    assert other.blob(hashlib.sha256(b"x").hexdigest()) == b"x"
    assert not list(breaks(other.read("r")))
    other.close()


def test_the_clock_of_the_ledger_can_be_compared(store: Store) -> None:
    assert abs(store.skew(datetime.now(UTC))) < timedelta(seconds=2)


def _found(store: Store, wanted: Wanted, *, limit: int = 100, **more: Any) -> list[str]:
    rows: list[TaskRow] = store.find(Search(wanted, NOON, limit=limit, **more))
    with store.exclusive() as writer:
        assert writer.find(Search(wanted, NOON, limit=limit, **more)) == rows
    with store.exclusive() as writer:
        assert writer.find(Search(wanted, NOON, limit=32, **more)) == rows[:32] or limit < 32
    return [found.run_id for found in rows]


def _write_and_fail(store: Store) -> None:
    with store.exclusive() as writer:
        writer.append([chapter("r", rows=(row("r", "t"),))])
        writer.append([chapter("r")])
