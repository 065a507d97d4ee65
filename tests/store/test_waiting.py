"""What every store promises to those who wait for something to do."""

import subprocess
import sys
import threading
import time
from datetime import timedelta

from agent_run.ports.store import Search, Store
from tests.support.stores import NOON, chapter, open_store


def test_a_wait_ends_at_once_when_another_process_writes(store: Store, address: str) -> None:
    store.append([chapter("r")])
    store.wait(timedelta(seconds=0.5))  # what this process wrote may count
    assert not store.wait(timedelta(seconds=0.2))
    script = (
        "import sys, time; sys.path.insert(0, '.');"
        "from tests.support.stores import open_store, chapter;"
        "store = open_store(sys.argv[1]); sys.stdin.readline();"
        "store.append([chapter('s')]); print(time.monotonic(), flush=True); store.close()"
    )
    with _process(script, address) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()

        woken = store.wait(timedelta(seconds=30))
        heard = time.monotonic()
        written = float(writer.stdout.readline())

    assert woken
    assert heard - written < 1
    store.wait(timedelta(seconds=0.2))
    assert not store.wait(timedelta(seconds=0.2))


def test_every_waiting_thread_is_woken(store: Store, address: str) -> None:
    other, woken = open_store(address), list[bool]()
    store.wait(timedelta())
    threads = [
        threading.Thread(target=lambda: woken.append(store.wait(timedelta(seconds=30))))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()

    other.append([chapter("r")])
    for thread in threads:
        thread.join()

    assert woken == [True] * 3
    other.close()


def test_looking_for_work_in_vain_wakes_nobody(store: Store) -> None:
    store.wait(timedelta(seconds=0.3))

    with store.exclusive() as writer:
        assert writer.find(Search("ready", NOON)) == []

    assert not store.wait(timedelta(seconds=0.2))


def _process(script: str, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", script, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
