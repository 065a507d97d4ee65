"""Our order of ready tasks on real workflow graphs, beside first-come-first-served.

Usage: scheduling FOLDER_OF_GRAPHS [--workers N...]
Each graph is JSON: {"tasks": [{"id", "parents", "seconds"}]}.
"""

import argparse
import heapq
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_run.contract.budget import Budget
from agent_run.contract.manifest import Manifest
from agent_run.ledger.state import RunState, Status, TaskState
from agent_run.topology.ordering import ready_in_order, ways_to_go
from benchmarks.telling import tell


@dataclass(frozen=True, slots=True)
class Graph:
    needs: Mapping[str, Sequence[str]]
    seconds: Mapping[str, float]

    def lower_bound(self, workers: int) -> float:
        """Return what no schedule can beat: the longest chain, or all work shared equally."""
        chain = max(ways_to_go(self.needs, lambda name: self.seconds[name]).values())
        return max(chain, sum(self.seconds.values()) / workers)


def read(file: Path) -> Graph:
    tasks = json.loads(file.read_text())["tasks"]
    names = {task["id"] for task in tasks}
    needs = {task["id"]: [p for p in task["parents"] if p in names] for task in tasks}
    return Graph(needs, {task["id"]: float(task["seconds"]) for task in tasks})


def makespan(graph: Graph, workers: int, choose: Callable[[list[str]], str]) -> float:
    """Return when the last task ends if `choose` picks among the ready ones."""
    missing = {name: len(needs) for name, needs in graph.needs.items()}
    after: dict[str, list[str]] = {name: [] for name in graph.needs}
    for name, needs in graph.needs.items():
        for need in needs:
            after[need].append(name)
    ready = [name for name, count in missing.items() if not count]
    busy: list[tuple[float, str]] = []
    now = 0.0
    while ready or busy:
        while ready and len(busy) < workers:
            name = choose(ready)
            ready.remove(name)
            heapq.heappush(busy, (now + graph.seconds[name], name))
        now, done = heapq.heappop(busy)
        for follower in after[done]:
            missing[follower] -= 1
            if not missing[follower]:
                ready.append(follower)
    return now


def ours(graph: Graph) -> Callable[[list[str]], str]:
    """Return the choice that `topology.ordering` makes on a run with these tasks ready."""
    lengths = ways_to_go(graph.needs, lambda name: graph.seconds[name])
    tasks = {
        name: TaskState(
            Manifest(task_id=f"t{number}", objective=name, budget=Budget()),
            Status.READY,
            number,
        )
        for number, name in enumerate(graph.needs)
    }

    def choose(ready: list[str]) -> str:
        empty = RunState()
        run = RunState(tasks=empty.tasks.update({name: tasks[name] for name in ready}))
        return ready_in_order(run, lengths)[0]

    return choose


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="scheduling", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--workers", type=int, nargs="*", default=[2, 4, 8])
    wanted = parser.parse_args(arguments)
    rows: list[dict[str, object]] = []
    for file in sorted(wanted.folder.glob("*.json")):
        rows += [_row(file.stem, read(file), workers) for workers in wanted.workers]
    tell(rows)
    worse = sum(str(row["ours / bound"]) > str(row["first come / bound"]) for row in rows)
    print(f"\nworse than first come: {worse} of {len(rows)}")
    return 0


def _row(name: str, graph: Graph, workers: int) -> dict[str, object]:
    lengths = ways_to_go(graph.needs, lambda task: graph.seconds[task])
    bound = graph.lower_bound(workers)
    mine = makespan(graph, workers, ours(graph))
    first = makespan(graph, workers, lambda ready: ready[0])
    path = makespan(graph, workers, lambda ready: max(ready, key=lengths.__getitem__))
    return {
        "graph": name,
        "tasks": len(graph.needs),
        "workers": workers,
        "ours / bound": round(mine / bound, 3),
        "first come / bound": round(first / bound, 3),
        "ours / critical path first": round(mine / path, 4),
    }
