"""Does the input that a plan gives fit who will get it? Asked before anything is spent."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from agent_run.contract.expectations import described
from agent_run.contract.manifest import Manifest
from agent_run.contract.payload import payload_faults
from agent_run.contract.plan import Plan
from agent_run.contract.values import faults_of
from agent_run.ports.executor import Executor


def unfit_inputs(
    plan: Plan, executors: Mapping[str, Executor], *, given_later: bool = False
) -> Iterator[str]:
    """Yield a sentence for each key of an input that its step's executor cannot take.

    Who does the steps that name nobody stands under the empty name. With `given_later`, an
    input that is missing is no fault.
    """
    for number, step in enumerate(plan.manifests()):
        # What a step that needs others is handed shows when they are done.
        if step.input is not None or not (step.needs or given_later):
            yield from _told(f"steps[{number}].input", step, executors)
    for number, step in enumerate(plan.final):
        # A final step without an input is handed what came of the others.
        if step.input is not None:
            yield from _told(f"final[{number}].input", step, executors)


def _against_schema(place: str, step: Manifest) -> Iterator[str]:
    if step.input is None or step.input_schema is None:
        return
    for fault in payload_faults(step.input, step.input_schema):
        yield f"{place}{fault}" if fault.startswith("[") else f"{place}: {fault}"


def _told(place: str, step: Manifest, executors: Mapping[str, Executor]) -> Iterator[str]:
    executor = executors.get(step.executor or "")
    takes: Any = getattr(executor, "takes", None)
    if executor is None or takes is None:
        yield from _against_schema(place, step)
        return
    if getattr(executor, "migrate", None) is not None:
        return  # what does not fit today may be brought up to date
    wanted = getattr(executor, "taken", None)
    try:
        takes.validate_python(step.input)
    except ValidationError as error:
        whose = f"(task {step.task_id!r}, executor {executor.name!r})"
        if step.input is None:
            yield f"{place}: is missing, expected {described(wanted)} {whose}"
            return
        for fault in faults_of(error, wanted=wanted, value=step.input):
            dot = "." if fault.key and not fault.key.startswith("[") else ""
            yield f"{place}{dot}{fault.key}: {fault.message} {whose}"
