"""Every fault of a draft, found before anybody reviews it: bounds, paths, commands, code."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from agent_run.contract.paths import fault_of, is_literal, matches
from agent_run.contract.plan import Plan
from agent_run.contract.reading import load, read_document
from agent_run.executors.planner.commands import command_faults
from agent_run.executors.planner.draft import PlanDraft, StepDraft
from agent_run.executors.planner.ground import Ground
from agent_run.executors.planner.overspecified import code_in

_WHOLE_PERCENT = range(101)


@dataclass(frozen=True, slots=True)
class Bounds:
    """How large a plan and its tasks may be."""

    steps: int = 12
    files: int = 40
    """That the paths of one task may cover."""


def draft_faults(draft: PlanDraft, ground: Ground, bounds: Bounds) -> list[str]:
    """Name everything that is wrong with `draft`, in words that its author can act on."""
    faults: list[str] = []
    if not draft.steps and not draft.open_questions:
        faults.append("steps: is empty, expected a step, or an open question that prevents it")
    if len(draft.steps) > bounds.steps:
        faults.append(f"steps: has {len(draft.steps)} steps, expected at most {bounds.steps}")
    if draft.confidence_percent not in _WHOLE_PERCENT:
        faults.append(f"confidence_percent: is {draft.confidence_percent}, expected 0 to 100")
    created = {path for step in draft.steps for path in step.new_files}
    for index, step in enumerate(draft.steps):
        checker = _Step(step, ground, bounds, frozenset(created))
        faults += [f"steps[{index}].{fault}" for fault in checker.faults()]
    return faults


def plan_of(draft: PlanDraft, *, objective: str) -> Plan:
    """Return the plan that a draft without faults stands for.

    Raises:
        InvalidDocument: Its steps do not make one plan; every fault is named.
    """
    steps = [
        {
            "task_id": step.task_id,
            "objective": step.objective,
            "allowed_paths": [*step.allowed_paths, *step.new_files],
            "constraints": list(step.constraints),
            "verification": list(step.verification),
            "handoff_notes": [*step.handoff_notes, *_unsure(step)],
            "needs": list(step.needs),
        }
        for step in draft.steps
    ]
    written = {
        "objective": objective,
        "reasoning": draft.reasoning,
        "confidence": draft.confidence_percent / 100,
        "steps": steps,
    }
    text = json.dumps(written, ensure_ascii=False)
    return load(Plan, read_document(text, source="plan", format="json"))


def _unsure(step: StepDraft) -> Iterator[str]:
    for guess in step.unsure_of:
        yield f"The planner is not sure: {guess}"


@dataclass(frozen=True, slots=True)
class _Step:
    step: StepDraft
    ground: Ground
    bounds: Bounds
    created: frozenset[str]
    """Files that any step of the plan creates."""

    def faults(self) -> Iterator[str]:
        if self.step.confidence_percent not in _WHOLE_PERCENT:
            given = self.step.confidence_percent
            yield f"confidence_percent: is {given}, expected 0 to 100"
        yield from self._written_code()
        for path in self.step.allowed_paths:
            fault = fault_of(path) or self._path_fault(path)
            if fault:
                yield f"allowed_paths: {fault}"
        for path in self.step.new_files:
            fault = fault_of(path) or self._new_file_fault(path)
            if fault:
                yield f"new_files: {fault}"
        yield from self._check_faults()

    def _written_code(self) -> Iterator[str]:
        step = self.step
        told = {
            "objective": (step.objective,),
            "constraints": step.constraints,
            "handoff_notes": step.handoff_notes,
        }
        for key, texts in told.items():
            for text in texts:
                found = code_in(text)
                if found:
                    yield (
                        f"{key}: holds {found}; say what must be true afterwards and leave "
                        "the code to the executor"
                    )

    def _path_fault(self, path: str) -> str:
        if path.rstrip("/") in self.ground.folders:
            path = path.rstrip("/") + "/**"
        covered = sum(matches(path, one) for one in self.ground.files)
        if not covered:
            kind = "file" if is_literal(path) else "files"
            return f"{path!r} matches no {kind} of the project; a file to create is a new_file"
        if covered > self.bounds.files:
            return f"{path!r} covers {covered} files, expected at most {self.bounds.files}"
        return ""

    def _new_file_fault(self, path: str) -> str:
        if not is_literal(path):
            return f"{path!r} is a pattern, expected the path of one file"
        if path in self.ground.files:
            return f"{path!r} exists already; it belongs into allowed_paths"
        parent = path.rpartition("/")[0]
        above = parent.rpartition("/")[0]
        if parent and not {parent, above} & self.ground.folders:
            return f"{path!r} lies in {parent!r}, and there is no such folder nor one above it"
        return ""

    def _check_faults(self) -> Iterator[str]:
        step = self.step
        if (step.allowed_paths or step.new_files) and not step.verification:
            yield "verification: is empty, expected a command that proves the work"
        for command in step.verification:
            for fault in command_faults(command, self.ground, self._exists):
                yield f"verification: {command!r} {fault}"

    def _exists(self, path: str) -> bool:
        there = self.ground.files | self.created
        return path in there or path in self.ground.folders or self._new_folder(path)

    def _new_folder(self, path: str) -> bool:
        return any(one.startswith(f"{path}/") for one in self.created)
