"""Files that a command writes because the user named them: one way to write, one to refuse.

A place that cannot be written is a wrong argument, as a file that cannot be read is.
"""

import os
import stat
from pathlib import Path
from typing import Final

from agent_run.errors import ContractError

_OPEN: Final = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK


def require_place(name: str) -> Path:
    """Return the place called `name`, if a file can be there; asked before any work is done.

    Raises:
        ContractError: It is a folder, or its folder is not there.
    """
    place = Path(name)
    try:
        if place.is_dir():
            raise _refused(name, "it is a folder")
        if not place.parent.is_dir():
            raise _refused(name, f"there is no folder {str(place.parent)!r}")
    except (OSError, ValueError) as error:
        raise _refused(name, _said(error)) from error
    return place


def write_output(name: str, text: str) -> None:
    """Write `text` to the file called `name`, over what was there.

    Raises:
        ContractError: It cannot be written.
    """
    place = require_place(name)
    try:
        # A pipe that nobody reads from would keep us waiting for ever.
        handle = os.open(place, _OPEN, 0o666)
        os.set_blocking(handle, True)
        with os.fdopen(handle, "wb") as file:
            if stat.S_ISREG(os.fstat(handle).st_mode):
                file.truncate(0)
            file.write(text.encode("utf-8", "backslashreplace"))
    except (OSError, ValueError) as error:
        raise _refused(name, _said(error)) from error


def make_folder(folder: Path) -> None:
    """Make the folder, and those above it, where they are not there.

    Raises:
        ContractError: It cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        msg = f"the folder {str(folder)!r} cannot be made: {_said(error)}"
        raise ContractError(msg) from error


def _refused(name: str, why: str) -> ContractError:
    return ContractError(f"{name!r} cannot be written: {why}")


def _said(error: OSError | ValueError) -> str:
    return str(getattr(error, "strerror", None) or error)
