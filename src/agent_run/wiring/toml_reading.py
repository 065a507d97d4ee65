"""Settings files: TOML, with the line of each key for whoever has to mend one.

The parser of the standard library keeps no places. They are found, only when something is
wrong, by reading the file line by line until the key is there.
"""

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agent_run.contract.faults import Fault, Place, refusal
from agent_run.contract.files import text_of
from agent_run.contract.places import Part

_LARGEST: Final = 1_048_576
_WHERE: Final = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_START: Final = (1, 1)


@dataclass(frozen=True, slots=True)
class TomlFile:
    """What a file says, and its text."""

    file: Path
    text: str
    value: dict[str, Any]

    def place(self, parts: Sequence[Part]) -> Place:
        """Return where the statement begins that says what is at `parts`, or what holds it."""
        whole = list(self._so_far())
        for length in range(len(parts), 0, -1):
            known = 0
            for number, value in whole:
                if _holds(value, parts[:length]):
                    return known + 1, 1
                known = number
        return _START

    def _so_far(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield what the first lines say, for each number of lines that is whole."""
        lines = self.text.splitlines(keepends=True)
        for number in range(1, len(lines) + 1):
            try:
                yield number, tomllib.loads("".join(lines[:number]))
            except tomllib.TOMLDecodeError:
                continue  # a value goes on in the next line


def read_toml(file: Path) -> TomlFile:
    """Return what `file` says.

    Raises:
        InvalidDocument: It cannot be read, or is not TOML; names the line.
    """
    text = text_of(file, most=_LARGEST)
    try:
        return TomlFile(file, text, tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise refusal([_fault(file, text, str(error))]) from error


def _fault(file: Path, text: str, said: str) -> Fault:
    found = _WHERE.search(said)
    what = said[: found.start()] if found else said
    told = f"is not TOML: {what[:1].lower()}{what[1:]}"
    if found is None:
        return Fault(str(file), None, None, "", told)
    if found[1] is None:
        return Fault(str(file), len(text.splitlines()) or 1, None, "", told)
    return Fault(str(file), int(found[1]), int(found[2]), "", told)


def _holds(value: object, parts: Sequence[Part]) -> bool:
    for part in parts:
        match value, part:
            case dict(), str() if part in value:
                value = value[part]
            case list(), int() if part < len(value):
                value = value[part]
            case _:
                return False
    return True
