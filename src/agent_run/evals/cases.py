"""Datasets: one case a line, with what should come out and what a person decided.

A dataset is checked as a whole when it is loaded: every fault of every line is told at once,
before anything is spent.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

from pydantic import Field, JsonValue

from agent_run.contract.base import Contract, Lines, Name
from agent_run.contract.faults import Fault, in_line, refusal
from agent_run.contract.files import content_of
from agent_run.contract.reading import load, read_document
from agent_run.errors import InvalidDocument

StepOutcome: TypeAlias = Literal["pass", "fail", "escalate", "skip"]
CaseOutcome: TypeAlias = Literal["pass", "fail", "escalate"]
Decision: TypeAlias = Literal["pass", "fail"]

_MOST_FAULTS: Final = 200


class Expected(Contract):
    """What a good pipeline would find."""

    steps: dict[Name, StepOutcome] = Field(default_factory=dict)
    """Step -> what it should come to. A step is named by its label `step`, or its task_id."""
    outcome: CaseOutcome | None = None
    """What the whole should come to. `None` means that nobody said."""


class Human(Contract):
    """What a person decided about the same input."""

    decision: Decision
    reasons: Lines = ()
    by: str = Field(default="", max_length=200)


class EvalCase(Contract):
    """One input, and what is known about it."""

    case_id: Name
    input: JsonValue = None
    expected: Expected = Expected()
    human: Human | None = None
    labels: dict[Name, str] = Field(default_factory=dict)


def load_dataset(file: Path) -> tuple[EvalCase, ...]:
    """Return the cases of a JSONL file, in order; empty lines are passed over.

    Raises:
        InvalidDocument: A line is no case, or two cases share a name; `faults` names all.
    """
    return parse_dataset(content_of(file), source=str(file))


def parse_dataset(text: bytes, *, source: str) -> tuple[EvalCase, ...]:
    """Return the cases in `text`.

    Raises:
        InvalidDocument: As `load_dataset`.
    """
    found: dict[int, EvalCase] = {}
    faults: list[Fault] = []
    for number, line in enumerate(text.split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            found[number] = load(EvalCase, read_document(line, source=source, format="json"))
        except InvalidDocument as error:
            faults += [in_line(fault, number) for fault in error.faults]
        if len(faults) >= _MOST_FAULTS:
            told = f"has {len(faults)} faults up to here, the rest was not looked at"
            raise refusal([*faults, Fault(source, number, None, "", told)])
    faults += _repeated(found, source)
    if not found and not faults:
        faults.append(Fault(source, None, None, "", "holds no case"))
    if faults:
        raise refusal(faults)
    return tuple(found.values())


def _repeated(found: Mapping[int, EvalCase], source: str) -> Iterator[Fault]:
    lines: dict[str, int] = {}
    for number, case in found.items():
        if case.case_id in lines:
            told = f"is {case.case_id!r} again, as on line {lines[case.case_id]}"
            yield Fault(source, number, None, "case_id", told)
        lines.setdefault(case.case_id, number)
