"""What an executor process is handed, and how its answer is found and read.

Everything that comes back was written by a stranger: it is read with a limit, without
following links, and believed only as far as it is a valid record.
"""

import json
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, get_args

from agent_run.contract.reading import load, read_document
from agent_run.contract.record import Record, RecordStatus
from agent_run.errors import InvalidDocument
from agent_run.ports.executor import Job

LARGEST_RECORD: Final = 1 << 20
_MOST_OBJECTS: Final = 50
_OF_A_RECORD: Final = frozenset(
    {*Record.model_fields, "step_id", "confidence_percent", "wider_scope"}
)
_ONLY_OF_A_RECORD: Final = frozenset(
    {"files_changed", "commands_run", "next_action", "confidence_percent", "wider_scope"}
)
"""Keys that no other program's output has by chance."""
_STATUSES: Final = frozenset({*get_args(RecordStatus), "success", "completed"})
_GOES_ON: Final = frozenset("[,:")
"""What stands before an object that may be a part of a larger one."""


@dataclass(frozen=True, slots=True)
class Papers:
    """The files of one job, and the variables that name them."""

    brief: Path
    manifest: Path
    record: Path
    home: Path
    env: Mapping[str, str]

    @property
    def readable(self) -> tuple[Path, ...]:
        return (self.brief, self.manifest)

    @property
    def writable(self) -> tuple[Path, ...]:
        return (self.record.parent, self.home)


def papers_for(job: Job) -> Papers:
    """Write brief and manifest to the job's folder, and make room for record and home."""
    brief, manifest = job.folder / "brief.md", job.folder / "manifest.json"
    out, home = job.folder / "out", job.folder / "home"
    for folder in (out, home):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    brief.write_text(job.brief.to_markdown(), encoding="utf-8")
    manifest.write_text(job.brief.manifest.model_dump_json(indent=2), encoding="utf-8")
    record = out / "record.json"
    env = {
        "AGENT_RUN_TASK_ID": job.brief.task_id,
        "AGENT_RUN_RUN_ID": job.brief.run_id,
        "AGENT_RUN_TRACE_ID": job.brief.trace_id,
        "AGENT_RUN_ATTEMPT": str(job.brief.attempt),
        "AGENT_RUN_CLAIM": str(job.brief.claim),
        "AGENT_RUN_MANIFEST": str(manifest),
        "AGENT_RUN_BRIEF": str(brief),
        "AGENT_RUN_RECORD": str(record),
    }
    return Papers(brief, manifest, record, home, env)


def read_left_behind(path: Path, *, most: int = LARGEST_RECORD) -> bytes | None:
    """Return what a stranger left at `path`; None if there is nothing.

    Raises:
        InvalidDocument: What lies there is no regular file, or is too large.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        msg = f"{path.name}: cannot be read: {error.strerror}"
        raise InvalidDocument(msg) from error
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            msg = f"{path.name}: is not a regular file"
            raise InvalidDocument(msg)
        with os.fdopen(os.dup(handle), "rb") as file:
            content = file.read(most + 1)
    finally:
        os.close(handle)
    if len(content) > most:
        msg = f"{path.name}: is larger than {most} bytes"
        raise InvalidDocument(msg)
    return content


def record_of(papers: Papers, stdout: bytes) -> tuple[Record | None, str]:
    """Return the record that was given, and why it is not one if it is not."""
    try:
        written = read_left_behind(papers.record)
        if written is not None and written.strip():
            document = read_document(written, source="record.json", format="json")
            return load(Record, document), ""
        found = _last_record(stdout.decode(errors="replace"), papers.env["AGENT_RUN_TASK_ID"])
        if found is not None:
            return record_from(found), ""
    except InvalidDocument as error:
        return None, str(error)
    return None, ""


def record_from(value: Mapping[str, Any]) -> Record:
    """Return `value` as a record.

    Raises:
        InvalidDocument: It is not one; every fault is named.
    """
    given = dict(value)
    wider = given.pop("wider_scope", None)
    if wider and "question" not in given:
        given["question"] = {"text": "May more paths be written?", "wider_scope": wider}
    text = json.dumps(given, ensure_ascii=False)
    return load(Record, read_document(text, source="record", format="json"))


def _last_record(text: str, task_id: str) -> dict[str, Any] | None:
    """Return the last JSON object of `text` that is meant as a record; None without one."""
    inner: int | None = None
    """Where an object ends that looks like a record and may be a part of a larger one."""
    last: dict[str, Any] | None = None
    for begin in _line_starts(text):
        found, end = _value_at(text, begin)
        if found is None or (inner is not None and end < inner):
            continue
        if inner is not None:
            # It holds the other: that one was a part of this.
            inner, last = None, None
        if not isinstance(found, dict) or not _meant_as_record(found, task_id):
            continue
        if text[:begin].rstrip()[-1:] not in _GOES_ON:
            return found
        inner, last = end, found
    return last


def _line_starts(text: str) -> Iterator[int]:
    """Yield where lines begin with a bracket, the last first, and not more than enough."""
    end = len(text)
    for _ in range(_MOST_OBJECTS):
        start = max(text.rfind("\n{", 0, end), text.rfind("\n[", 0, end))
        if start < 0:
            break
        yield start + 1
        end = start
    else:
        return
    if text.startswith(("{", "[")):
        yield 0


def _value_at(text: str, begin: int) -> tuple[object, int]:
    try:
        return json.JSONDecoder().raw_decode(text, begin)
    except (ValueError, RecursionError):
        return None, begin


def _meant_as_record(found: Mapping[str, Any], task_id: str) -> bool:
    """Say whether an object is a record, if maybe a wrong one, and no other program's output.

    One that has only keys of a record is. Where others stand beside them, such as in the log
    of a test runner, it must say something that only a record says.
    """
    known = found.keys() & _OF_A_RECORD
    others = len(found) - len(known)
    if not known or not others:
        return bool(known)
    if known & _ONLY_OF_A_RECORD:
        return True
    status = found.get("status")
    ours = task_id in (found.get("task_id"), found.get("step_id"))
    said = ours or (isinstance(status, str) and status in _STATUSES)
    return said and others <= len(known)
