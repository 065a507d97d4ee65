"""A connection to Postgres that asks the same few questions again and again.

It goes straight to libpq with prepared statements, text in and text out: a third of the time
that cursors take, and the desk asks ten questions for one handoff.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import psycopg
from psycopg.pq import DiagnosticField, ExecStatus
from psycopg.pq.abc import PGresult

Value: TypeAlias = str | int | None
Kind: TypeAlias = Callable[[bytes], Any]

TEXT: Final[Kind] = bytes.decode
NUMBER: Final[Kind] = int

_DONE: Final = frozenset({ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK})
_SURVIVED: Final = frozenset({b"ERROR"})
"""What the server says of errors after which it goes on listening."""


class Session(psycopg.Connection[tuple[Any, ...]]):
    """Adds three short ways of asking; everything else is as in psycopg.

    All raise `psycopg.Error`. They wait inside libpq, where a lock time-out or the loss of
    the connection ends them, but no signal does.
    """

    _asked: dict[str, bytes]

    def ask(self, sql: str, values: Sequence[Value], kinds: Sequence[Kind]) -> list[list[Any]]:
        """Return all rows that `sql` gives, each column read by its kind; NULL is None."""
        result = self._answer(sql, values)
        value = result.get_value
        return [
            [
                None if (found := value(row, column)) is None else kind(found)
                for column, kind in enumerate(kinds)
            ]
            for row in range(result.ntuples)
        ]

    def tell(self, sql: str, *values: Value) -> None:
        """Run `sql` for what it does."""
        self._answer(sql, values)

    def order(self, words: bytes) -> None:
        """Begin, commit or roll back.

        A commit of what had already failed is an error, though the server calls it none.
        """
        result = self._checked(self.pgconn.exec_(words))
        if words == b"COMMIT" and result.command_status != words:
            msg = "the transaction had failed and was not committed"
            raise psycopg.DatabaseError(msg)

    def _answer(self, sql: str, values: Sequence[Value]) -> PGresult:
        try:
            known = self._asked
        except AttributeError:
            known = self._asked = {}
        name = known.get(sql)
        if name is None:
            name = f"agent_run_{len(known)}".encode()
            self._checked(self.pgconn.prepare(name, sql.encode()))
            known[sql] = name
        texts = [None if value is None else str(value).encode() for value in values]
        for text in texts:
            if text is not None and b"\0" in text:
                msg = "a text holds a NUL, which Postgres cannot keep"
                raise psycopg.DataError(msg)
        return self._checked(
            self.pgconn.exec_prepared(name, texts)  # type: ignore[arg-type]  # None is NULL
        )

    def _checked(self, result: PGresult) -> PGresult:
        if result.status in _DONE:
            return result
        error = psycopg.errors.error_from_result(result)
        if result.error_field(DiagnosticField.SEVERITY_NONLOCALIZED) not in _SURVIVED:
            # libpq would notice only at the next try; whoever lent us must know now.
            self.pgconn.finish()
        raise error
