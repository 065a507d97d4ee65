"""Opening the house: from a URL to a desk that works.

Adapters are imported only when they are asked for, so that a command that needs none of them
starts quickly.
"""

import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from time import monotonic
from typing import Final
from urllib.parse import unquote, urlsplit

from agent_run.desk import Desk
from agent_run.errors import InvalidDocument, Unfit
from agent_run.ports.clock import Clock
from agent_run.ports.store import Store
from agent_run.store.sqlite import SqliteStore

_SKEW_HOLDS: Final = 60.0


def open_desk(url: str) -> Desk:
    """Return the desk of the ledger at `url`: `sqlite:///path` or `postgresql://...`.

    Raises:
        InvalidDocument: `url` names no ledger.
        StoreError: The ledger cannot be opened.
        Unfit: The adapter for this kind of ledger is not installed.
    """
    store = _open_store(url)
    return Desk(store, clock=_ledger_clock(store), new_trace=new_trace)


def wall_clock() -> datetime:
    """Return this machine's time, in UTC."""
    return datetime.now(UTC)


def new_trace() -> str:
    """Return a fresh trace id: 32 hexadecimal digits, as W3C trace context wants it."""
    return secrets.token_hex(16)


def _open_store(url: str) -> Store:
    scheme, _, rest = url.partition(":")
    match scheme:
        case "sqlite":
            return _sqlite(url)
        case "postgresql" | "postgres":
            return _postgres(url)
        case _ if not rest:
            msg = f"store {url!r} is not a URL, expected sqlite:///PATH or postgresql://..."
        case _:
            msg = f"store {url!r} is of unknown kind {scheme!r}, expected sqlite or postgresql"
    raise InvalidDocument(msg)


def _sqlite(url: str) -> Store:
    parts = urlsplit(url)
    path = unquote(parts.path.removeprefix("/") if not parts.netloc else "")
    if not path or parts.query:
        msg = f"store {url!r} names no file, expected sqlite:///relative or sqlite:////absolute"
        raise InvalidDocument(msg)
    file = Path(path)
    try:
        _make_folder(file.parent)
    except OSError as error:
        msg = f"the folder {str(file.parent)!r} of the ledger cannot be made: {error.strerror}"
        raise Unfit(msg) from error
    return SqliteStore(file)


def _make_folder(folder: Path) -> None:
    if folder.is_dir():
        return
    folder.mkdir(parents=True)
    # The state folder ignores itself, so that nobody commits a ledger by accident.
    (folder / ".gitignore").write_text("*\n")


def _postgres(url: str) -> Store:
    try:
        module = import_module("agent_run.store.postgres")
    except ModuleNotFoundError as error:
        msg = (
            f"a ledger on Postgres needs {error.name!r}, which is not installed; "
            "install agent-run[postgres]"
        )
        raise Unfit(msg) from error
    opened: Callable[[str], Store] = module.PostgresStore
    return opened(url)


def _ledger_clock(store: Store) -> Clock:
    """Return a clock that all machines of one ledger agree on."""
    asked = monotonic()
    skew = store.skew(wall_clock())

    def now() -> datetime:
        nonlocal asked, skew
        if skew and monotonic() - asked > _SKEW_HOLDS:
            asked, skew = monotonic(), store.skew(wall_clock())
        return wall_clock() + skew

    return now if skew else wall_clock
