"""What a durable handoff costs, beside raw tables in the same run.

A handoff: a 1 KB task is posted, claimed by one worker, a 1 KB record submitted, judged,
settled; each step is a transaction that survives kill -9.

Usage: handoff [--count N] [--folder DIR] [--postgres URL]
"""

import argparse
import sqlite3
import tempfile
from collections.abc import Callable, Sequence
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


def on_sqlite(folder: Path, count: int) -> list[dict[str, object]]:
    db = sqlite3.connect(folder / "raw.db", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute(RAW_TABLE.format(real="REAL"))
    db.execute(RAW_INDEX)
    desk = open_desk(f"sqlite:////{str(folder / 'ours.db').lstrip('/')}")
    raw = measured(lambda name: raw_sqlite(db, name), count, "raw")
    alone = measured(lambda name: ours(desk, name), count, "alone")
    many = measured_together(desk, count, "many")
    desk.close()
    db.close()
    return [
        _row("sqlite", "raw table", raw, raw),
        _row("sqlite", "agent-run", alone, raw),
        _row("sqlite", "agent-run, 64 in flight", many, raw),
    ]


def on_postgres(url: str, count: int) -> list[dict[str, object]]:
    import psycopg  # noqa: PLC0415 - only where it is asked for

    with psycopg.connect(url, autocommit=True) as db:
        db.execute("DROP TABLE IF EXISTS tasks")
        db.execute(RAW_TABLE.format(real="DOUBLE PRECISION"))
        db.execute(RAW_INDEX)
        raw = measured(lambda name: raw_postgres(db, name), count, "raw")
        db.execute("DROP TABLE tasks")
    desk = open_desk(url)
    alone = measured(lambda name: ours(desk, name), count, "alone")
    many = measured_together(desk, count, "many")
    desk.close()
    return [
        _row("postgres", "raw psycopg", raw, raw),
        _row("postgres", "agent-run", alone, raw),
        _row("postgres", "agent-run, 64 in flight", many, raw),
    ]


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="handoff", description=__doc__)
    parser.add_argument("--count", type=int, default=1_000)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--postgres")
    wanted = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=wanted.folder) as folder:
        rows = on_sqlite(Path(folder), wanted.count)
    if wanted.postgres:
        rows += on_postgres(wanted.postgres, wanted.count)
    tell(rows)
    return 0


def _row(
    store: str, what: str, cost: tuple[float, float], raw: tuple[float, float]
) -> dict[str, object]:
    return {
        "store": store,
        "what": what,
        "cpu ms": round(cost[0], 3),
        "wall ms": round(cost[1], 3),
        "cpu ratio": round(cost[0] / raw[0], 2),
        "handoffs/s": round(1e3 / cost[1]),
    }
