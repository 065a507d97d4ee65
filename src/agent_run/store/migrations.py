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
    CREATE INDEX tasks_ready_in ON tasks (run_id, priority DESC, number)
        WHERE status = 'ready';
    CREATE INDEX tasks_busy ON tasks (status, due) WHERE due IS NOT NULL;
    CREATE INDEX tasks_busy_judging ON tasks (status) WHERE status = 'submitted';

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

POSTGRES: Final[tuple[str, ...]] = (
    """
    CREATE TABLE pages (
        run_id   text   NOT NULL COLLATE "C",
        seq      bigint NOT NULL,
        task_id  text   NOT NULL COLLATE "C",
        kind     text   NOT NULL,
        trace_id text   NOT NULL,
        body     text   NOT NULL,
        blob     text,
        digest   text   NOT NULL,
        PRIMARY KEY (run_id, seq)
    );

    CREATE TABLE runs (
        run_id    text   NOT NULL COLLATE "C" PRIMARY KEY,
        trace_id  text   NOT NULL,
        opened_at bigint NOT NULL,
        untasked  bigint NOT NULL
    );

    CREATE TABLE tasks (
        number   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        run_id   text   NOT NULL COLLATE "C",
        task_id  text   NOT NULL COLLATE "C",
        status   text   NOT NULL COLLATE "C",
        priority bigint NOT NULL,
        posted   bigint NOT NULL,
        executor text   NOT NULL COLLATE "C",
        due      bigint,
        changed  bigint NOT NULL
    );
    CREATE UNIQUE INDEX tasks_by_name ON tasks (task_id, run_id);
    CREATE INDEX tasks_ready ON tasks (priority DESC, number) WHERE status = 'ready';
    CREATE INDEX tasks_ready_for ON tasks (executor, priority DESC, number)
        WHERE status = 'ready';
    CREATE INDEX tasks_ready_in ON tasks (run_id, priority DESC, number)
        WHERE status = 'ready';
    CREATE INDEX tasks_busy ON tasks (status, due, number)
        WHERE status IN ('claimed', 'asked', 'submitted');

    CREATE TABLE blobs (
        digest  text  NOT NULL PRIMARY KEY,
        content bytea NOT NULL
    );

    CREATE TABLE snapshots (
        run_id text   NOT NULL COLLATE "C" PRIMARY KEY,
        seq    bigint NOT NULL,
        digest text   NOT NULL,
        body   bytea  NOT NULL
    );

    CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$;
    CREATE TRIGGER pages_are_never_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON pages
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
    CREATE TRIGGER blobs_are_never_changed BEFORE UPDATE OR TRUNCATE ON blobs
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

    CREATE FUNCTION hold_run(wanted text) RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM pg_advisory_xact_lock(
            hashtextextended(wanted, hashtext(current_schema())));
    END $$;

    CREATE FUNCTION append_chapter(
        book text, after bigint, trace text, at bigint, beyond bigint,
        written json, fresh json, moved json)
    RETURNS void LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM pg_advisory_xact_lock(hashtextextended(book, hashtext(current_schema())));
        IF after = 0 THEN
            INSERT INTO runs VALUES (book, trace, at, beyond) ON CONFLICT DO NOTHING;
            IF NOT FOUND THEN
                RAISE EXCEPTION 'page 1 of run ''%'' is taken', book USING ERRCODE = 'AR001';
            END IF;
        ELSE
            IF after IS DISTINCT FROM (SELECT max(seq) FROM pages WHERE run_id = book) THEN
                RAISE EXCEPTION 'page % of run ''%'' is taken', after + 1, book
                    USING ERRCODE = 'AR001';
            END IF;
            IF beyond > 0 THEN
                UPDATE runs SET untasked = beyond WHERE run_id = book;
            END IF;
        END IF;
        INSERT INTO pages SELECT book, x.* FROM json_to_recordset(written) AS x(
            seq bigint, task_id text, kind text, trace_id text, body text, blob text,
            digest text);
        IF fresh IS NOT NULL THEN
            INSERT INTO tasks (run_id, task_id, status, priority, posted, executor, due,
                               changed)
            SELECT book, x.* FROM json_to_recordset(fresh) AS x(
                task_id text, status text, priority bigint, posted bigint, executor text,
                due bigint, changed bigint);
        END IF;
        IF moved IS NOT NULL THEN
            UPDATE tasks SET status = x.status, due = x.due, changed = x.changed
            FROM json_to_recordset(moved) AS x(
                task_id text, status text, due bigint, changed bigint)
            WHERE tasks.task_id = x.task_id AND tasks.run_id = book;
        END IF;
        PERFORM pg_notify('agent_run', current_schema());
    END $$;
    """,
    """
    CREATE INDEX tasks_busy_with_people ON tasks (status, due, number)
        WHERE status IN ('escalated', 'waiting') AND due IS NOT NULL;
    """,
)
