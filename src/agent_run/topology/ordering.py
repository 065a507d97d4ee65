"""Which of the ready tasks goes first: the one with the longest way still behind it."""

from collections.abc import Callable, Iterable, Mapping
from graphlib import TopologicalSorter

from agent_run.contract.manifest import Manifest
from agent_run.ledger.state import RunState, Status


def seconds_of(manifest: Manifest) -> float:
    """Return how long a task is expected to take: its time budget, or one unit."""
    return float(manifest.budget.time_budget_sec or 1)


def ways_to_go(
    needs: Mapping[str, Iterable[str]], weight: Callable[[str], float]
) -> dict[str, float]:
    """Return for each task the length of the longest chain that begins with it."""
    after: dict[str, list[str]] = {task: [] for task in needs}
    for task, wanted in needs.items():
        for need in wanted:
            after.setdefault(need, []).append(task)
    lengths: dict[str, float] = {}
    for task in reversed(list(TopologicalSorter(needs).static_order())):
        rest = max((lengths[following] for following in after.get(task, ())), default=0.0)
        lengths[task] = rest + weight(task)
    return lengths


def ready_in_order(run: RunState, lengths: Mapping[str, float]) -> list[str]:
    """Return the ready tasks: priority first, then the longest way to go, then age."""
    ready = [(name, task) for name, task in run.tasks.items() if task.status is Status.READY]
    ready.sort(
        key=lambda item: (
            -item[1].manifest.priority,
            -lengths.get(item[0], 0.0),
            item[1].posted,
        )
    )
    return [name for name, _ in ready]
