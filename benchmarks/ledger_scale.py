"""How the ledger behaves when it grows: claiming, folding, and the memory of an idle desk.

Usage: ledger_scale [--largest N] [--folder DIR] [--postgres URL]
"""

import argparse
import gc
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter, process_time

from agent_run.contract.manifest import Manifest
from agent_run.contract.record import Record
from agent_run.contract.verdict import Finding, Verdict
from agent_run.desk import Desk
from agent_run.desk.memory import Known
from agent_run.ledger.commands import Claim, Judge, Post, Submit
from agent_run.ledger.events import TaskPosted
from agent_run.ledger.pages import FIRST, Page, seal
from agent_run.ledger.state import Status
from agent_run.ports.store import Chapter, TaskRow
from agent_run.wiring import open_desk
from benchmarks.telling import tell

PER_RUN = 100
CLAIMS = 200
ROUNDS = 7
EVENTS = 10_000
PASSED = Verdict(findings=(Finding(gate="bench", outcome="pass", reason="verified"),))


def claims_when_open(desk: Desk, sizes: Sequence[int]) -> Iterator[dict[str, object]]:
    """Yield what claiming one task costs, with more and more tasks open."""
    there, first = 0, 0.0
    for size in sizes:
        while there < size:
            batch = min(size - there, 50 * PER_RUN)
            desk.store.append(list(_chapters(there, batch)))
            there += batch
        for _ in range(20):
            desk.claim_next(owner="warm")
        started, began = process_time(), perf_counter()
        for _ in range(CLAIMS):
            if desk.claim_next(owner="worker") is None:
                msg = "there should have been a task to claim"
                raise AssertionError(msg)
        taken = (process_time() - started) / CLAIMS * 1e3
        waited = (perf_counter() - began) / CLAIMS * 1e3
        first = first or taken
        yield {
            "open tasks": size,
            "cpu ms": round(taken, 3),
            "ratio": round(taken / first, 2),
            "wall ms": round(waited, 3),
        }


def folding(folder: Path) -> dict[str, object]:
    """Return what it costs to read and fold a run of 10,000 events, cold."""
    url = f"sqlite:////{str(folder / 'fold.db').lstrip('/')}"
    desk = open_desk(url)
    for number in range(EVENTS // 4):
        name = f"t{number}"
        posted = Post(actor="p", manifest=Manifest(task_id=name, objective="x" * 200))
        state = desk.handle("run", posted, Claim(task_id=name, owner="w"))
        claim = state.tasks[name].claim or 0
        submit = Submit(task_id=name, actor="w", claim=claim, record=Record(notes="y" * 200))
        desk.handle("run", submit, Judge(task_id=name, actor="j", verdict=PASSED))
    pages = desk.pages("run")
    desk.close()
    folded = [_cpu_ms(lambda: Known().after(pages)) for _ in range(ROUNDS)]
    loaded = [_cpu_ms(lambda: _read_cold(url)) for _ in range(ROUNDS)]
    return {
        "events": len(pages),
        "decode and fold, cpu ms": min(folded),
        "highest of all rounds": max(folded),
        "cold desk with snapshot, cpu ms": min(loaded),
    }


def _cpu_ms(act: Callable[[], object]) -> int:
    gc.collect()
    started = process_time()
    # Held until the clock was read: to let go of a run is no part of folding it.
    _made = act()
    return round((process_time() - started) * 1e3)


def _read_cold(url: str) -> None:
    desk = open_desk(url)
    desk.run("run")
    desk.close()


def memory(folder: Path) -> dict[str, object]:
    """Return how much an idle desk holds, in a process of its own."""
    program = (
        "import resource, sys\n"
        "from agent_run.wiring import open_desk\n"
        f"desk = open_desk('sqlite:////{str(folder / 'idle.db').lstrip('/')}')\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
        "desk.close()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    return {"idle desk, MB": round(int(done.stdout) / 1_024, 1)}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="ledger_scale", description=__doc__)
    parser.add_argument("--largest", type=int, default=100_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--postgres")
    wanted = parser.parse_args(arguments)
    sizes = [size for size in (1_000, 10_000, 100_000, 1_000_000) if size <= wanted.largest]
    with tempfile.TemporaryDirectory(dir=wanted.folder) as name:
        folder = Path(name)
        tell([memory(folder)])
        tell([folding(folder)])
        desk = open_desk(f"sqlite:////{str(folder / 'claims.db').lstrip('/')}")
        tell([{"store": "sqlite", **row} for row in claims_when_open(desk, sizes)])
        desk.close()
    if wanted.postgres:
        desk = open_desk(wanted.postgres)
        tell([{"store": "postgres", **row} for row in claims_when_open(desk, sizes)])
        desk.close()
    print({"peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1_024})
    return 0


def _chapters(begin: int, count: int) -> Iterator[Chapter]:
    now = datetime.now(UTC)
    for start in range(begin, begin + count, PER_RUN):
        run_id = f"run-{start}"
        pages: list[Page] = []
        rows: list[TaskRow] = []
        for seq in range(1, PER_RUN + 1):
            name = f"t{start + seq}"
            manifest = Manifest(task_id=name, objective="claim me")
            event = TaskPosted(task_id=name, at=now, actor="p", manifest=manifest)
            previous = pages[-1].digest if pages else FIRST
            pages.append(seal(run_id, seq, "0" * 32, event, previous=previous))
            rows.append(TaskRow(run_id, name, Status.READY, 0, seq, "", None, seq))
        yield Chapter(run_id, 0, pages, rows, now)
