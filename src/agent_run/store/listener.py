"""Hears when anybody writes to a ledger in Postgres, so that waiting workers wake at once.

A thread of its own reads the notices, also while nobody waits: a listener that does not
read fills the server's queue of notices, and then nobody could write any more.
"""

import selectors
import socket
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import psycopg

CHANNEL: Final = "agent_run"

_PAUSE: Final = 1.0
"""Seconds between attempts to reach a server that went away."""


class Bell:
    """Counts what was written; each thread is woken by what it has not yet heard of."""

    def __init__(self) -> None:
        self._rung = threading.Condition()
        self._count = 0
        self._heard = threading.local()

    def ring(self) -> None:
        with self._rung:
            self._count += 1
            self._rung.notify_all()

    def wait(self, timeout: float) -> bool:
        """Wait for a ring since this thread last waited, or since the bell was hung."""
        heard: int = getattr(self._heard, "count", 0)
        with self._rung:
            self._rung.wait_for(lambda: self._count != heard, timeout)
            self._heard.count = self._count
            return self._count != heard


class Listener:
    """Keeps one connection that listens, and opens it again when it is lost."""

    def __init__(self, connect: Callable[[], "psycopg.Connection[Any]"]) -> None:
        self._connect = connect
        self._bell = Bell()
        self._stopped, self._stop = socket.socketpair()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def wait(self, timeout: timedelta) -> bool:
        """Wait until something may have been written, or until `timeout`."""
        until = time.monotonic() + timeout.total_seconds()
        with self._starting:
            if self._thread is None:
                # The first caller must not miss what is written while we connect, and must
                # hear of it when the ledger cannot be reached.
                connection = self._listen()
                self._thread = threading.Thread(
                    target=self._hear, args=(connection,), name="ledger-listener", daemon=True
                )
                self._thread.start()
        return self._bell.wait(max(0.0, until - time.monotonic()))

    def close(self) -> None:
        """Stop listening; once is enough."""
        with self._starting:
            if self._closing.is_set():
                return
            self._closing.set()
            self._stop.send(b"x")
            if self._thread is not None:
                self._thread.join()
            self._stop.close()
            self._stopped.close()

    def _listen(self) -> "psycopg.Connection[Any]":
        connection = self._connect()
        connection.execute(f"LISTEN {CHANNEL}".encode())
        return connection

    def _hear(self, connection: "psycopg.Connection[Any] | None") -> None:
        while not self._closing.is_set():
            try:
                connection = connection or self._listen()
                # Nobody knows what was missed while there was no connection.
                self._bell.ring()
                self._read(connection)
            except (psycopg.Error, OSError):
                if connection is not None:
                    connection.close()
                    connection = None
                self._closing.wait(_PAUSE)
        if connection is not None:
            connection.close()

    def _read(self, connection: "psycopg.Connection[Any]") -> None:
        (row,) = connection.execute("SELECT current_schema()").fetchall()
        here = str(row[0]).encode()
        with selectors.DefaultSelector() as selector:
            selector.register(connection.fileno(), selectors.EVENT_READ)
            selector.register(self._stopped, selectors.EVENT_READ)
            while not self._closing.is_set():
                selector.select()
                if self._closing.is_set():
                    return
                connection.pgconn.consume_input()
                heard = False
                while notice := connection.pgconn.notifies():
                    heard = heard or notice.extra == here
                if heard:
                    self._bell.ring()
