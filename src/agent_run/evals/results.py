"""What came of each case: read from its run, kept as one line, found again by fingerprint."""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Final, Literal, TypeAlias

from pydantic import Field, JsonValue

from agent_run.contract.base import Contract, Digest, RunId, Text, Whole
from agent_run.contract.faults import Fault, refusal
from agent_run.contract.files import content_of
from agent_run.contract.reading import load, read_document
from agent_run.contract.record import Record
from agent_run.errors import InvalidDocument
from agent_run.evals.cases import CaseOutcome, EvalCase
from agent_run.ledger.metrics.facts import Run, Task
from agent_run.ledger.state import RunState, Status

SeenStep: TypeAlias = Literal["pass", "fail", "escalate", "skip", "error"]
"""`error` means that the step ended without any record."""
SeenCase: TypeAlias = CaseOutcome | Literal["error"]

FILE: Final = "results.jsonl"
_REPORT_KEYS: Final = ("report", "markdown", "summary", "text")
_WAITS: Final = frozenset({"escalated", "asked"})


class CaseResult(Contract):
    """One case, put through one pipeline."""

    case: EvalCase
    fingerprint: Digest
    """Hash of case and pipeline; a result counts only for the very same pair."""
    run_id: RunId
    ledger: str = Field(max_length=1_000)
    """The ledger of this case, below the result folder."""
    outcome: SeenCase
    steps: dict[str, SeenStep]
    report: Text = ""
    """What the last step wrote, for those who score its clarity."""
    tokens: Whole = Field(ge=0)
    cost_usd: Decimal = Field(ge=0)
    unpriced_requests: Whole = Field(default=0, ge=0)
    """Requests whose price nobody knows; their cost is not in the sum."""
    seconds: float = Field(ge=0)
    attempts: Whole = Field(default=0, ge=0)
    note: Text = ""
    """Why the pipeline could not be run. Empty means that it was."""


def fingerprint(case: EvalCase, pipeline: Mapping[str, JsonValue]) -> str:
    """Return the name under which the result of this case and pipeline is found again."""
    text = json.dumps([case.model_dump(mode="json"), dict(pipeline)], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def step_outcome(task: Task) -> SeenStep:
    """Return what the newest record of a task came to, and what became of the task."""
    said = next((one.said for one in reversed(task.attempts) if one.said), "")
    if task.status == "skipped" or said == "skipped":
        return "skip"
    if said == "failed":
        return "fail"
    if said == "blocked" or task.status in _WAITS:
        return "escalate"
    if task.status == "failed" or not said:
        return "error"
    return "pass"


def steps_of(run: Run) -> dict[str, SeenStep]:
    """Return what each step of a run came to."""
    return {task.step: step_outcome(task) for task in run.tasks.values()}


def outcome_of(steps: Iterable[SeenStep]) -> SeenCase:
    """Return what the whole came to: a defect counts before a doubt, a doubt before a pass."""
    found = set(steps)
    for word in ("error", "fail", "escalate"):
        if word in found:
            return word
    return "pass"


def report_of(run: RunState) -> str:
    """Return what the last accepted step wrote, or else the last that wrote anything."""
    tasks = [task for _, task in run.in_order() if task.record is not None]
    tasks.sort(key=lambda task: task.status is Status.ACCEPTED)
    written = (_written(task.record) for task in reversed(tasks) if task.record)
    return next(filter(None, written), "")


def _written(record: Record) -> str:
    output = record.output
    if isinstance(output, str):
        return output
    if isinstance(output, dict):
        for key in _REPORT_KEYS:
            if isinstance(output.get(key), str):
                return str(output[key])
    return record.notes if output is None else json.dumps(output, ensure_ascii=False)


def read_results(folder: Path) -> dict[str, CaseResult]:
    """Return the results of a folder, by case; of two lines about one case the later counts.

    Raises:
        InvalidDocument: The folder holds none, or a line in the middle is broken.
    """
    file = folder / FILE
    lines = content_of(file).split(b"\n")
    results: dict[str, CaseResult] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            result = load(CaseResult, read_document(line, source=str(file), format="json"))
        except InvalidDocument as error:
            if number == len(lines):
                break  # cut short by a crash, without its line end: the case is done again
            told = f"is no result: {error}"
            raise refusal([Fault(str(file), number, None, "", told)]) from error
        results[result.case.case_id] = result
    return results


def append_result(folder: Path, result: CaseResult) -> None:
    """Add one line, whole and on disk before this returns."""
    line = result.model_dump_json() + "\n"
    with (folder / FILE).open("ab") as file:
        file.write(line.encode("utf-8", "backslashreplace"))
        file.flush()
        os.fsync(file.fileno())


def mend(folder: Path) -> None:
    """Cut off a last line that a crash left without its end, so that the next one fits."""
    file = folder / FILE
    if not file.exists():
        return
    text = file.read_bytes()
    whole = text.rfind(b"\n") + 1
    if whole < len(text):
        with file.open("r+b") as open_file:
            open_file.truncate(whole)
