"""Reading what the user names on the command line: files, folders, stdin; any document."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from agent_run.contract.claim import ClaimCheck
from agent_run.contract.envelope import Envelope
from agent_run.contract.faults import Fault, refusal
from agent_run.contract.files import content_of, unreadable
from agent_run.contract.manifest import Manifest
from agent_run.contract.notes import Notes
from agent_run.contract.plan import Plan
from agent_run.contract.reading import Document, ReadingLimits, load, read_document
from agent_run.contract.record import Record
from agent_run.contract.shapes import Orchestration, Routing
from agent_run.contract.verdict import Verdict

STDIN: Final = "-"
_PIPED: Final = "<stdin>"
MODELS: Final[Mapping[str, type[BaseModel]]] = {
    "manifest": Manifest,
    "plan": Plan,
    "record": Record,
    "envelope": Envelope,
    "notes": Notes,
    "claim": ClaimCheck,
    "orchestration": Orchestration,
    "routing": Routing,
    "verdict": Verdict,
}
_OTHER_NAMES: Final[Mapping[str, frozenset[str]]] = {
    "plan": frozenset({"subtasks", "plan", "overall_budget"}),
    "record": frozenset({"step_id", "confidence_percent"}),
    "verdict": frozenset({"passed"}),
}
"""Keys that a model reads although none of its fields is called so."""
_SUFFIXES: Final = frozenset({".yaml", ".yml", ".json"})
_LONGEST: Final = ReadingLimits().max_bytes


def named_files(names: Iterable[str]) -> Iterator[str]:
    """Yield the names, and for a folder the documents in it.

    Raises:
        InvalidDocument: A folder holds no document.
    """
    for name in names:
        folder = Path(name)
        if name == STDIN or not os.path.isdir(folder):  # noqa: PTH112 - it never raises
            yield name
            continue
        try:
            inside = sorted(file for file in folder.iterdir() if file.suffix in _SUFFIXES)
        except OSError as error:
            raise unreadable(name, f"cannot be read: {error.strerror}") from error
        if not inside:
            raise unreadable(name, "is a folder without a .yaml, .yml or .json file")
        yield from map(str, inside)


def read_file(name: str) -> Document:
    """Return the document in the file `name`, or on stdin for `-`, with its faults.

    Raises:
        InvalidDocument: It cannot be read, or is no strict document.
    """
    if name != STDIN:
        text = content_of(Path(name), most=_LONGEST)
        return read_document(text, source=name, go_on=True)
    if sys.stdin is None:  # who closed it left nothing in its place
        raise unreadable(_PIPED, "is closed")
    text = sys.stdin.buffer.read(_LONGEST + 1)
    if len(text) > _LONGEST:
        raise unreadable(_PIPED, f"is longer than {_LONGEST} bytes")
    return read_document(text, source=_PIPED, go_on=True)


def kind_of(document: Document) -> str:
    """Return what the keys of `document` say it is.

    Raises:
        InvalidDocument: They say nothing.
    """
    value = document.value
    keys = set(value) if isinstance(value, dict) else set()
    scores = {kind: len(keys & _names(kind)) for kind in MODELS}
    best = max(scores, key=lambda kind: scores[kind])
    if not scores[best]:
        line, column = document.lines.root.place
        told = f"is none of {', '.join(MODELS)}; say with --as what it should be"
        raise refusal([*document.faults, Fault(document.source, line, column, "", told)])
    return best


def load_as(document: Document, kind: str) -> BaseModel:
    """Return `document` as the contract called `kind`.

    Raises:
        InvalidDocument: It is not one; names every key that is wrong.
    """
    return load(MODELS[kind], document)


def _names(kind: str) -> set[str]:
    return {*MODELS[kind].model_fields, *_OTHER_NAMES.get(kind, ())}
