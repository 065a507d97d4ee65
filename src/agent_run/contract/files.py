"""Files that a user named: read whole, within a size, and never waited for.

A pipe, a device or a socket would keep us waiting for as long as somebody else likes.
"""

import stat
from pathlib import Path
from typing import Final

from agent_run.contract.faults import Fault, refusal
from agent_run.errors import InvalidDocument

_OPEN_FILES: Final = Path("/dev/fd")
_KINDS: Final = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def content_of(file: Path, *, most: int | None = None) -> bytes:
    """Return what stands in `file`; `most` of `None` means no limit.

    Raises:
        InvalidDocument: It cannot be read, is no regular file, or has more than `most` bytes.
    """
    try:
        found = file.stat()
        if not stat.S_ISREG(found.st_mode) and not _is_ours(file, found.st_mode):
            raise unreadable(file, f"is {_kind(found.st_mode)}, expected a file")
        if most is not None and found.st_size > most:
            told = f"is {found.st_size} bytes long, expected at most {most}"
            raise unreadable(file, told)
        with file.open("rb") as opened:
            content = opened.read(-1 if most is None else most + 1)
    except OSError as error:
        raise unreadable(file, f"cannot be read: {error.strerror}") from error
    except ValueError as error:  # a NUL in a name
        raise unreadable(file, f"cannot be read: {error}") from error
    if most is not None and len(content) > most:
        raise unreadable(file, f"is longer than {most} bytes")
    return content


def text_of(file: Path, *, most: int | None = None) -> str:
    """Return the text in `file`, without a byte order mark.

    Raises:
        InvalidDocument: As `content_of`, or it is not UTF-8.
    """
    try:
        return content_of(file, most=most).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        told = f"is not UTF-8 at byte {error.start} (0x{byte:02x}), expected UTF-8"
        raise unreadable(file, told) from error


def unreadable(file: Path | str, told: str) -> InvalidDocument:
    """Return the refusal of a whole file, in one sentence."""
    return refusal([Fault(str(file), None, None, "", told)])


def _is_ours(file: Path, mode: int) -> bool:
    """Say whether it is a pipe that the user's shell opened for us, as `<(command)` does."""
    return stat.S_ISFIFO(mode) and file.parent == _OPEN_FILES


def _kind(mode: int) -> str:
    return next((name for is_one, name in _KINDS if is_one(mode)), "something else")
