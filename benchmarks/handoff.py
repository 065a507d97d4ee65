"""What a durable handoff costs, beside raw tables in the same run.

A handoff: a 1 KB task is posted, claimed by one worker, a 1 KB record submitted, judged,
settled; each step is a transaction that survives kill -9.

All rows are measured in turn, several rounds long, and the lowest of each counts.

Usage: handoff [--count N] [--rounds N] [--folder DIR] [--postgres URL]
"""

import argparse
import sqlite3
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import anyio

from agent_run.contract.manifest import Manifest
from agent_run.contract.record import Record
from agent_run.contract.verdict import Finding, Verdict
from agent_run.desk import Desk
from agent_run.desk.together import Together
from agent_run.ledger.commands import Claim, Judge, Post, Submit
from agent_run.wiring import open_desk
from benchmarks.telling import tell

BODY = "x" * 1_000
PASSED = Verdict(findings=(Finding(gate="bench", outcome="pass", reason="verified"),))
RAW_TABLE = """
CREATE TABLE tasks (
    id TEXT PRIMARY KEY, status TEXT NOT NULL, priority INTEGER NOT NULL,
    owner TEXT, expires_at {real}, attempt INTEGER NOT NULL,
    body TEXT NOT NULL, record TEXT, verdict TEXT
)
"""
RAW_INDEX = "CREATE INDEX ready ON tasks (status, priority, id)"


def ours(desk: Desk, name: str) -> None:
    manifest = Manifest(task_id=name, objective=BODY)
    desk.handle(name, Post(actor="planner", manifest=manifest))
    claim = desk.handle(name, Claim(task_id=name, owner="worker")).tasks[name].claim or 0
    record = Record(notes=BODY)
    desk.handle(name, Submit(task_id=name, actor="worker", claim=claim, record=record))
    desk.handle(name, Judge(task_id=name, actor="judge", verdict=PASSED))


def raw_sqlite(db: sqlite3.Connection, name: str) -> None:
    """Do the same as plainly as can be: one row, four transactions, no history."""
    for sql, values in (
        (
            "INSERT INTO tasks VALUES (?, 'ready', 0, NULL, NULL, 0, ?, NULL, NULL)",
            (name, BODY),
        ),
        (
            (
                "UPDATE tasks SET status = 'claimed', owner = 'worker', expires_at = 1.0,"
                " attempt = attempt + 1 WHERE id = (SELECT id FROM tasks WHERE status = 'ready'"
                " ORDER BY priority, id LIMIT 1) AND status = 'ready'"
            ),
            (),
        ),
        (
            (
                "UPDATE tasks SET status = 'submitted', record = ?"
                " WHERE id = ? AND owner = 'worker' AND status = 'claimed'"
            ),
            (BODY, name),
        ),
        (
            (
                "UPDATE tasks SET status = 'accepted', verdict = 'pass'"
                " WHERE id = ? AND status = 'submitted'"
            ),
            (name,),
        ),
    ):
        db.execute("BEGIN IMMEDIATE")
        db.execute(sql, values)
        db.execute("COMMIT")


def raw_postgres(db: Any, name: str) -> None:
    for sql, values in (
        (
            "INSERT INTO tasks VALUES (%s, 'ready', 0, NULL, NULL, 0, %s, NULL, NULL)",
            (name, BODY),
        ),
        (
            (
                "UPDATE tasks SET status = 'claimed', owner = 'worker', expires_at = 1.0,"
                " attempt = attempt + 1 WHERE id = (SELECT id FROM tasks WHERE status = 'ready'"
                " ORDER BY priority, id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id"
            ),
            (),
        ),
        (
            (
                "UPDATE tasks SET status = 'submitted', record = %s"
                " WHERE id = %s AND owner = 'worker' AND status = 'claimed'"
            ),
            (BODY, name),
        ),
        (
            (
                "UPDATE tasks SET status = 'accepted', verdict = 'pass'"
                " WHERE id = %s AND status = 'submitted'"
            ),
            (name,),
        ),
    ):
        with db.transaction():
            db.execute(sql, values)


def measured(do: Callable[[str], None], count: int, prefix: str) -> tuple[float, float]:
    """Return milliseconds of CPU and of wall clock for each of `count` handoffs."""
    for number in range(count // 10):
        do(f"{prefix}-warm-{number}")
    cpu, wall = process_time(), perf_counter()
    for number in range(count):
        do(f"{prefix}-{number}")
    return (process_time() - cpu) / count * 1e3, (perf_counter() - wall) / count * 1e3


async def ours_together(desk: Together, name: str) -> None:
    manifest = Manifest(task_id=name, objective=BODY)
    await desk.handle(name, Post(actor="planner", manifest=manifest))
    state = await desk.handle(name, Claim(task_id=name, owner="worker"))
    claim, record = state.tasks[name].claim or 0, Record(notes=BODY)
    await desk.handle(name, Submit(task_id=name, actor="worker", claim=claim, record=record))
    await desk.handle(name, Judge(task_id=name, actor="judge", verdict=PASSED))


def measured_together(
    desk: Desk, count: int, prefix: str, in_flight: int = 64
) -> tuple[float, float]:
    """Return the same for handoffs of which `in_flight` are under way at once."""
    each = max(1, count // in_flight)

    async def all_of_them() -> None:
        shared = Together(desk)

        async def work(worker: int) -> None:
            for number in range(each):
                await ours_together(shared, f"{prefix}-{worker}-{number}")

        async with anyio.create_task_group() as group:
            for worker in range(in_flight):
                group.start_soon(work, worker)

    cpu, wall = process_time(), perf_counter()
    anyio.run(all_of_them)
    done = each * in_flight
    return (process_time() - cpu) / done * 1e3, (perf_counter() - wall) / done * 1e3


def on_sqlite(folder: Path, count: int, rounds: int = 1) -> list[dict[str, object]]:
    db = sqlite3.connect(folder / "raw.db", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute(RAW_TABLE.format(real="REAL"))
    db.execute(RAW_INDEX)
    desk = open_desk(f"sqlite:////{str(folder / 'ours.db').lstrip('/')}")
    rows = _lowest(
        {
            "raw table": lambda name: measured(lambda each: raw_sqlite(db, each), count, name),
            "agent-run": lambda name: measured(lambda each: ours(desk, each), count, name),
            "agent-run, 64 in flight": lambda name: measured_together(desk, count, name),
        },
        rounds,
    )
    desk.close()
    db.close()
    return [{"store": "sqlite", **row} for row in rows]


def on_postgres(url: str, count: int, rounds: int = 1) -> list[dict[str, object]]:
    import psycopg  # noqa: PLC0415 - only where it is asked for

    with psycopg.connect(url, autocommit=True) as db:
        # Beside our own table of that name.
        db.execute("DROP SCHEMA IF EXISTS raw CASCADE")
        db.execute("CREATE SCHEMA raw")
        db.execute("SET search_path = raw")
        db.execute(RAW_TABLE.format(real="DOUBLE PRECISION"))
        db.execute(RAW_INDEX)
        desk = open_desk(url)
        rows = _lowest(
            {
                "raw psycopg": lambda name: measured(
                    lambda each: raw_postgres(db, each), count, name
                ),
                "agent-run": lambda name: measured(lambda each: ours(desk, each), count, name),
                "agent-run, 64 in flight": lambda name: measured_together(desk, count, name),
            },
            rounds,
        )
        desk.close()
        db.execute("DROP SCHEMA raw CASCADE")
    return [{"store": "postgres", **row} for row in rows]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="handoff", description=__doc__)
    parser.add_argument("--count", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--postgres")
    wanted = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=wanted.folder) as folder:
        rows = on_sqlite(Path(folder), wanted.count, wanted.rounds)
    if wanted.postgres:
        rows += on_postgres(wanted.postgres, wanted.count, wanted.rounds)
    tell(rows)
    return 0


def _lowest(
    ways: Mapping[str, Callable[[str], tuple[float, float]]], rounds: int
) -> list[dict[str, object]]:
    """Measure each way once a round, and return the lowest of each beside the first."""
    taken: dict[str, list[tuple[float, float]]] = {what: [] for what in ways}
    for number in range(rounds):
        for what, way in ways.items():
            taken[what].append(way(f"{what.split()[-1]}-{number}"))
    lowest = {
        what: (min(cpu for cpu, _ in costs), min(wall for _, wall in costs))
        for what, costs in taken.items()
    }
    first = next(iter(lowest.values()))
    return [
        {
            "what": what,
            "cpu ms": round(cpu, 3),
            "wall ms": round(wall, 3),
            "cpu ratio": round(cpu / first[0], 2),
            "handoffs/s": round(1e3 / wall),
        }
        for what, (cpu, wall) in lowest.items()
    ]
