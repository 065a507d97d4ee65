"""What every store promises to writers who come at the same time."""

import threading
from dataclasses import replace

import pytest

from agent_run.errors import SequenceTaken
from agent_run.ledger.pages import FIRST, breaks
from agent_run.ledger.state import Status
from agent_run.ports.store import Chapter, Search, Store
from tests.support.stores import NOON, book, chapter, open_store, row


def test_two_finders_never_get_the_same_task(store: Store, address: str) -> None:
    store.append([chapter("r", rows=tuple(row("r", f"t{n}") for n in range(40)))])
    barrier = threading.Barrier(4)
    taken: list[str] = []

    def take(finder: Store) -> None:
        barrier.wait()
        for _ in range(10):
            with finder.exclusive() as writer:
                (found,) = writer.find(Search("ready", NOON))
                writer.hold("r")
                pages = writer.read("r")
                claimed = replace(found, status=Status.CLAIMED, changed=len(pages) + 1)
                writer.append([chapter("r", after=len(pages), rows=(claimed,))])
                taken.append(found.task_id)

    stores = [open_store(address) for _ in range(4)]
    _together([threading.Thread(target=take, args=(finder,)) for finder in stores])

    assert sorted(taken) == sorted(f"t{n}" for n in range(40))
    assert store.find(Search("ready", NOON)) == []
    for finder in stores:
        finder.close()


def test_whoever_holds_a_run_keeps_other_writers_out(store: Store, address: str) -> None:
    store.append([chapter("r")])
    other, written = open_store(address), threading.Event()

    def write() -> None:
        with pytest.raises(SequenceTaken):
            other.append([chapter("r", after=1)])
        written.set()

    thread = threading.Thread(target=write)
    with store.exclusive() as writer:
        writer.hold("r")
        thread.start()
        assert not written.wait(0.2)
        writer.append([chapter("r", after=1)])
    thread.join()

    assert written.is_set()
    assert len(store.read("r")) == 2
    other.close()


def test_writers_of_many_runs_never_wait_for_each_other_in_a_circle(address: str) -> None:
    names = [f"r{n}" for n in range(6)]
    barrier = threading.Barrier(4)
    failures: list[BaseException] = []

    def write(mine: Store, turn: int) -> None:
        try:
            for number in range(15):
                order = names[turn:] + names[:turn]
                barrier.wait(30)
                _retried(mine, [f"{name}-{number}" for name in order])
        except BaseException as error:  # noqa: BLE001 - shown by the test itself
            failures.append(error)
            barrier.abort()

    stores = [open_store(address) for _ in range(4)]
    _together([threading.Thread(target=write, args=(mine, n)) for n, mine in enumerate(stores)])

    assert failures == []
    assert all(head == 4 for head in stores[0].heads().values())
    for mine in stores:
        mine.close()


def test_a_thread_may_read_while_another_writes(store: Store) -> None:
    failures: list[BaseException] = []
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            pages = store.read("r")
            if list(breaks(pages)) or len(pages) % 3:
                failures.append(AssertionError(f"{len(pages)} pages"))

    thread = threading.Thread(target=look)
    thread.start()
    previous = FIRST
    for number in range(30):
        pages = book("r", 3, after=3 * number, previous=previous)
        store.append([Chapter("r", 3 * number, pages, (), NOON)])
        previous = pages[-1].digest
    done.set()
    thread.join()

    assert failures == []
    assert len(store.read("r")) == 90


def _retried(store: Store, names: list[str]) -> None:
    """Append one page to each run, in one transaction, however often others come first."""
    while True:
        try:
            store.append([chapter(name, after=len(store.read(name))) for name in names])
        except SequenceTaken:
            continue
        return


def _together(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
