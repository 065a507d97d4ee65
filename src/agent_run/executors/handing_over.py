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
from typing import Any, Final

from agent_run.contract.reading import load, read_document
from agent_run.contract.record import Record
from agent_run.errors import InvalidDocument
from agent_run.ports.executor import Job

LARGEST_RECORD: Final = 1 << 20
_MOST_OBJECTS: Final = 50
_OF_A_RECORD: Final = frozenset(
    {"status", "task_id", "step_id", "files_changed", "next_action"}
)


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
        for found in _objects_at_the_end(stdout.decode(errors="replace")):
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


def _objects_at_the_end(text: str) -> Iterator[dict[str, Any]]:
    """Yield the last JSON object of `text` that has a field of a record, if there is one."""
    end = len(text)
    for _ in range(_MOST_OBJECTS):
        start = text.rfind("\n{", 0, end)
        begin = start + 1
        if start < 0 and not text.startswith("{"):
            return
        try:
            found, _end = json.JSONDecoder().raw_decode(text, begin)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict) and not _OF_A_RECORD.isdisjoint(found):
            yield found
            return
        if start < 0:
            return
        end = start
