"""From bytes to text that a parser can be trusted with.

Whatever a parser would choke on, or read differently from a person, is found here first.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import islice
from typing import Final, Literal, TypeAlias

from agent_run.contract.building import CONTROL, character
from agent_run.contract.faults import Findings, Place

Format: TypeAlias = Literal["yaml", "json"]

_UTF_8_MARK: Final = b"\xef\xbb\xbf"
_OTHER_MARKS: Final = (
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)
_UNFIT: Final = f"{CONTROL}\ud800-\udfff\ufeff\ufffe\uffff"
_UNFIT_IN: Final[dict[Format, re.Pattern[str]]] = {
    "json": re.compile(f"[{_UNFIT}]+"),
    # YAML 1.1, which the parser speaks, ends a line here; editors and YAML 1.2 do not.
    "yaml": re.compile(f"[{_UNFIT}\u2028\u2029]+"),
}
_LINE_END: Final = re.compile(r"\r\n|\n|\r")
_STAND_IN: Final = "\ufffd"
_PARTS_OF_A_CHARACTER: Final = 4


def decoded(text: str | bytes, *, longest: int, findings: Findings) -> str:
    """Return `text` without a byte order mark.

    Raises:
        InvalidDocument: It is too long, empty, or not UTF-8.
    """
    if len(text) > longest:
        unit = "characters" if isinstance(text, str) else "bytes"
        told = f"is {len(text)} {unit} long, expected at most {longest}"
        findings.stop(None, key="", message=told)
    if isinstance(text, bytes):
        text = _from_utf_8(text, findings)
    text = text.removeprefix("\ufeff")
    if not text or text.isspace():
        findings.stop(None, key="", message="is empty, expected a document")
    return text


def without_unfit(text: str, *, form: Format, most: int) -> tuple[str, list[tuple[Place, str]]]:
    """Return `text` with a stand-in for each unfit character, and the first `most` runs.

    The stand-in keeps all places true, so that the reader can go on and name the key.
    """
    runs = _UNFIT_IN[form]
    if runs.search(text) is None:
        return text, []
    starts = line_starts(text)
    found = [
        (place_at(starts, run.start()), character(run[0][0]))
        for run in islice(runs.finditer(text), most)
    ]
    return runs.sub(lambda run: _STAND_IN * len(run[0]), text), found


def line_starts(text: str) -> list[int]:
    """Return the index at which each line of `text` begins."""
    return [0, *(found.end() for found in _LINE_END.finditer(text))]


def place_at(starts: Sequence[int], at: int) -> Place:
    """Return line and column of the character at index `at`."""
    line = bisect_right(starts, at)
    return line, at - starts[line - 1] + 1


def _from_utf_8(text: bytes, findings: Findings) -> str:
    for mark, encoding in _OTHER_MARKS:
        if text.startswith(mark):
            findings.stop(None, key="", message=f"is {encoding}, expected UTF-8")
    start = text.removeprefix(_UTF_8_MARK)[:_PARTS_OF_A_CHARACTER]
    if len(start) == _PARTS_OF_A_CHARACTER and start.count(0) in {2, 3}:
        findings.stop(None, key="", message="looks like UTF-16 or UTF-32, expected UTF-8")
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        before = text[: error.start].decode("utf-8").removeprefix("\ufeff")
        place = place_at(line_starts(before), len(before))
        told = f"is not UTF-8 at byte {error.start} (0x{text[error.start]:02x})"
        findings.stop(place, key="", message=f"{told}, expected UTF-8")
