"""Files that one process at a time may write to."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agent_run.errors import ContractError


@contextmanager
def held_alone(file: Path, *, otherwise: str) -> Iterator[None]:
    """Keep `file` for this process, and make it if it is not there.

    The kernel lets go of it when the process dies, however it dies.

    Raises:
        ContractError: Another process has it, as the sentence `otherwise` says, or it cannot
            be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle = file.open("ab")
    except OSError as error:
        msg = f"{str(file)!r} cannot be written: {error.strerror}"
        raise ContractError(msg) from error
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ContractError(otherwise) from error
        yield
