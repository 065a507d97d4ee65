"""How a ledger's tables came to be, step by step; a step that was released never changes.

Both stores number their steps the same way and apply the missing ones when they open.
"""

from typing import Final

SQLITE: Final[tuple[str, ...]] = (
    """
    CREATE TABLE pages (
        run_id   TEXT    NOT NULL,
        seq      INTEGER NOT NULL,
        task_id  TEXT    NOT NULL,
        kind     TEXT    NOT NULL,
        trace_id TEXT    NOT NULL,
        body     TEXT    NOT NULL,
        blob     TEXT,
        digest   TEXT    NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX pages_in_order ON pages (run_id, seq);
    CREATE TRIGGER pages_are_never_changed BEFORE UPDATE ON pages
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
    CREATE TRIGGER pages_are_never_removed BEFORE DELETE ON pages
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;

    CREATE TABLE runs (
        run_id    TEXT    NOT NULL PRIMARY KEY,
        trace_id  TEXT    NOT NULL,
        opened_at INTEGER NOT NULL,
        untasked  INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE tasks (
        number   INTEGER PRIMARY KEY,
        run_id   TEXT    NOT NULL,
        task_id  TEXT    NOT NULL,
        status   TEXT    NOT NULL,
        priority INTEGER NOT NULL,
        posted   INTEGER NOT NULL,
        executor TEXT    NOT NULL,
        due      INTEGER,
        changed  INTEGER NOT NULL
    ) STRICT;
    CREATE UNIQUE INDEX tasks_by_name ON tasks (task_id, run_id);
    CREATE INDEX tasks_ready ON tasks (executor, priority DESC, number)
        WHERE status = 'ready';
    CREATE INDEX tasks_busy ON tasks (status, due)
        WHERE status IN ('claimed', 'asked', 'submitted');

    CREATE TABLE blobs (
        digest  TEXT NOT NULL PRIMARY KEY,
        content BLOB NOT NULL
    ) STRICT;
    CREATE TRIGGER blobs_are_never_changed BEFORE UPDATE ON blobs
    BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;

    CREATE TABLE snapshots (
        run_id TEXT    NOT NULL PRIMARY KEY,
        seq    INTEGER NOT NULL,
        digest TEXT    NOT NULL,
        body   BLOB    NOT NULL
    ) STRICT;
    """,
)
