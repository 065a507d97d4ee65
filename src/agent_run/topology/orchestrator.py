"""Orchestrator and workers: decompose, fan out, wait at the barrier, synthesize.

Workers see only their own brief. One that fails costs the others nothing. The synthesis sees
distilled results, and is told what is missing and where results contradict each other.
"""

from collections.abc import Mapping, Sequence
from math import ceil

from pydantic import JsonValue, ValidationError

from agent_run.contract.manifest import Manifest
from agent_run.contract.plan import Plan
from agent_run.contract.shapes import Orchestration
from agent_run.ledger.commands import Command, Fail, Post
from agent_run.ledger.state import SETTLED, RunState, Status
from agent_run.topology.shape import ACTOR, Topology, outcome_of, posts

_AT_BARRIER = SETTLED | {Status.ESCALATED}


def orchestrator(spec: Orchestration) -> Topology:
    """Return the topology that fans out to workers and joins their results."""

    def next_commands(run: RunState) -> tuple[Command, ...]:
        if spec.decompose is not None:
            if spec.decompose.task_id not in run.tasks:
                return posts((spec.decompose,), run)
            if run.tasks[spec.decompose.task_id].status not in SETTLED:
                return ()
        workers = workers_of(spec, run)
        if len(workers) - len(spec.workers) > spec.most_workers:
            return _refused(spec, run, len(workers) - len(spec.workers))
        missing = posts(workers, run)
        if missing:
            return missing
        return _joined(spec, run, [worker.task_id for worker in workers])

    return next_commands


def workers_of(spec: Orchestration, run: RunState) -> tuple[Manifest, ...]:
    """Return the workers: those known beforehand, and those the decomposition named."""
    if spec.decompose is None:
        return spec.workers
    task = run.tasks.get(spec.decompose.task_id)
    if task is None or task.status is not Status.ACCEPTED or task.record is None:
        return spec.workers
    try:
        plan = Plan.model_validate(task.record.output)
    except ValidationError:
        return spec.workers  # not accepted by the record gate in the first place
    return (*spec.workers, *(_as_worker(spec, one) for one in plan.manifests()))


def _refused(spec: Orchestration, run: RunState, count: int) -> tuple[Command, ...]:
    """Start nobody rather than some of those that were named."""
    name = spec.synthesis.task_id
    if name in run.tasks:
        return ()
    note = f"{count} workers were named, and at most {spec.most_workers} are allowed"
    posted = Post(actor=ACTOR, manifest=spec.synthesis.model_copy(update={"needs": ()}))
    return (posted, Fail(task_id=name, actor=ACTOR, reason="no_evidence", note=note))


def contradictions(outputs: Mapping[str, JsonValue]) -> list[JsonValue]:
    """Return each field in which results of different workers say different things."""
    said: dict[str, dict[str, JsonValue]] = {}
    for task, output in outputs.items():
        if isinstance(output, dict):
            for field, value in output.items():
                if isinstance(value, str | int | float | bool):
                    said.setdefault(field, {})[task] = value
    return [
        {"field": field, "values": dict(values)}
        for field, values in said.items()
        if len(set(map(repr, values.values()))) > 1
    ]


def _as_worker(spec: Orchestration, found: Manifest) -> Manifest:
    if spec.worker is None:
        return found
    named = found.model_dump(exclude_defaults=True)
    common = spec.worker.model_dump(exclude_defaults=True, exclude={"task_id", "objective"})
    return Manifest.model_validate({**common, **named})


def _joined(spec: Orchestration, run: RunState, names: Sequence[str]) -> tuple[Command, ...]:
    if spec.synthesis.task_id in run.tasks:
        return ()
    if any(run.tasks[name].status not in _AT_BARRIER for name in reversed(names)):
        return ()  # those that began last are looked at first: most likely they still work
    succeeded = [name for name in names if run.tasks[name].status is Status.ACCEPTED]
    wanted = max(1, ceil(spec.quorum * len(names)))
    manifest = spec.synthesis.model_copy(
        update={"needs": (), "input": _gathered(run, names, succeeded)}
    )
    posted = Post(actor=ACTOR, manifest=manifest)
    if len(succeeded) >= wanted:
        return (posted,)
    note = f"{len(succeeded)} of {len(names)} workers succeeded, wanted at least {wanted}"
    failed = Fail(task_id=manifest.task_id, actor=ACTOR, reason="no_evidence", note=note)
    return (posted, failed)


def _gathered(run: RunState, names: Sequence[str], succeeded: Sequence[str]) -> JsonValue:
    results: list[JsonValue] = [outcome_of(name, run.tasks[name]) for name in succeeded]
    lost = [name for name in names if name not in set(succeeded)]
    missing: list[JsonValue] = [outcome_of(name, run.tasks[name]) for name in lost]
    outputs = {
        name: record.output
        for name in succeeded
        if (record := run.tasks[name].record) is not None
    }
    warnings: list[JsonValue] = [f"{len(lost)}/{len(names)} workers failed"] if lost else []
    return {
        "results": results,
        "missing": missing,
        "conflicts": contradictions(outputs),
        "warnings": warnings,
        "confidence": len(succeeded) / len(names) if names else 0.0,
    }
