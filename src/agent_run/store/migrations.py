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

    CREATE FUNCTION hold_run(wanted text) RETURNS void LANGUAGE sql AS $$
        SELECT pg_advisory_xact_lock(
            hashtextextended(wanted, hashtext(current_schema())))
    $$;

    CREATE FUNCTION append_chapters(heads json, written json, fresh json, moved json)
    RETURNS text LANGUAGE plpgsql AS $$
    DECLARE
        head record;
        task record;
    BEGIN
        -- In one order for everybody, so that no two writers wait for each other.
        PERFORM hold_run(h.run_id) FROM (
            SELECT run_id FROM json_to_recordset(heads) AS x(run_id text) ORDER BY run_id
        ) h;
        FOR head IN
            SELECT * FROM json_to_recordset(heads) AS x(run_id text, after bigint)
        LOOP
            IF head.after <> coalesce(
                (SELECT max(seq) FROM pages WHERE run_id = head.run_id), 0)
            THEN
                RETURN head.run_id;
            END IF;
        END LOOP;
        INSERT INTO pages SELECT * FROM json_to_recordset(written) AS x(
            run_id text, seq bigint, task_id text, kind text, trace_id text, body text,
            blob text, digest text);
        FOR head IN
            SELECT * FROM json_to_recordset(heads) AS x(
                run_id text, after bigint, trace_id text, at bigint, untasked bigint)
        LOOP
            IF head.after = 0 THEN
                INSERT INTO runs VALUES (head.run_id, head.trace_id, head.at, head.untasked);
            ELSIF head.untasked > 0 THEN
                UPDATE runs SET untasked = head.untasked WHERE run_id = head.run_id;
            END IF;
        END LOOP;
        IF fresh IS NOT NULL THEN
            INSERT INTO tasks (run_id, task_id, status, priority, posted, executor, due,
                               changed)
            SELECT * FROM json_to_recordset(fresh) AS x(
                run_id text, task_id text, status text, priority bigint, posted bigint,
                executor text, due bigint, changed bigint);
        END IF;
        FOR task IN
            SELECT * FROM json_to_recordset(moved) AS x(
                run_id text, task_id text, status text, due bigint, changed bigint)
        LOOP
            UPDATE tasks SET status = task.status, due = task.due, changed = task.changed
            WHERE task_id = task.task_id AND run_id = task.run_id;
        END LOOP;
        PERFORM pg_notify('agent_run', current_schema());
        RETURN NULL;
    END $$;
    """,
)
