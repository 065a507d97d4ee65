"""Plans as graphs of tools: nodes that call a tool, links that pass results on.

Language models write such plans, and many cannot run: a tool that does not exist, a link to
a step that is not there, steps that wait for each other. All of it is found without running
anything, each fault with its place.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import Field, JsonValue, ValidationError

from agent_run.contract.base import Contract
from agent_run.contract.faults import Broken
from agent_run.contract.plan import Plan, first_cycle
from agent_run.contract.values import faults_of

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9]+")


class ToolNode(Contract):
    """One call of a tool."""

    task: str = Field(min_length=1, max_length=500)
    arguments: tuple[JsonValue, ...] = ()


class ToolLink(Contract):
    """The result of one call is needed by another."""

    source: str = Field(min_length=1, max_length=500)
    target: str = Field(min_length=1, max_length=500)


class ToolGraph(Contract):
    """A plan as nodes and links, each tool called at most once."""

    task_nodes: tuple[ToolNode, ...] = Field(min_length=1, max_length=1_000)
    task_links: tuple[ToolLink, ...] = Field(default=(), max_length=10_000)


@dataclass(frozen=True, slots=True)
class Tool:
    """What is known about a tool: which kinds of things it takes and gives."""

    name: str
    takes: frozenset[str] = frozenset()
    gives: frozenset[str] = frozenset()


def graph_faults(document: Mapping[str, Any], catalogue: Mapping[str, Tool]) -> list[str]:
    """Name everything that keeps the graph from being run with the tools of `catalogue`."""
    shape = {key: document[key] for key in ("task_nodes", "task_links") if key in document}
    try:
        graph = ToolGraph.model_validate(shape)
    except ValidationError as error:
        return [str(fault) for fault in faults_of(error, wanted=ToolGraph, value=shape)]
    return list(_faults(graph, catalogue))


def plan_of_graph(document: Mapping[str, Any], catalogue: Mapping[str, Tool]) -> Plan:
    """Return the graph as a plan.

    Raises:
        Broken: It cannot be run; `faults` names each place.
    """
    faults = graph_faults(document, catalogue)
    if faults:
        raise Broken(tuple(fault.partition(": ")[::2] for fault in faults))
    graph = ToolGraph.model_validate(
        {key: document[key] for key in ("task_nodes", "task_links") if key in document}
    )
    names = {node.task: _name(node.task) for node in graph.task_nodes}
    needs: dict[str, list[str]] = {node.task: [] for node in graph.task_nodes}
    for link in graph.task_links:
        if names[link.source] not in needs[link.target]:
            needs[link.target].append(names[link.source])
    steps = [
        {
            "task_id": names[node.task],
            "objective": node.task,
            "executor": names[node.task],
            "input": {"arguments": list(node.arguments)},
            "needs": needs[node.task],
        }
        for node in graph.task_nodes
    ]
    return Plan.model_validate({"steps": steps, "order": "graph"})


def _faults(graph: ToolGraph, catalogue: Mapping[str, Tool]) -> Iterator[str]:
    nodes = [node.task for node in graph.task_nodes]
    for index, name in enumerate(nodes):
        if name not in catalogue:
            yield f"task_nodes[{index}].task: is {name!r}, expected a tool of the catalogue"
    for name, times in Counter(nodes).items():
        if times > 1:
            yield f"task_nodes: call {name!r} {times} times, so that links to it are ambiguous"
    known = dict.fromkeys(nodes)
    for index, link in enumerate(graph.task_links):
        for end, name in (("source", link.source), ("target", link.target)):
            if name not in known:
                yield f"task_links[{index}].{end}: is {name!r}, expected one of the nodes"
        yield from _untyped(index, link, catalogue)
    yield from _circle(graph.task_links, known)


def _untyped(index: int, link: ToolLink, catalogue: Mapping[str, Tool]) -> Iterator[str]:
    source, target = catalogue.get(link.source), catalogue.get(link.target)
    if source is None or target is None or not (source.gives and target.takes):
        return
    if source.gives.isdisjoint(target.takes):
        gives, takes = _listed(source.gives), _listed(target.takes)
        said = f"{source.name!r} gives {gives}, {target.name!r} takes {takes}"
        yield f"task_links[{index}]: {said}"


def _circle(links: Sequence[ToolLink], known: Iterable[str]) -> Iterator[str]:
    needs: dict[str, list[str]] = {name: [] for name in known}
    for link in links:
        if link.source in needs and link.target in needs:
            needs[link.target].append(link.source)
    cycle = first_cycle(needs)
    if cycle:
        yield "task_links: wait for each other in a circle: " + " -> ".join(cycle)


def _name(tool: str) -> str:
    return _NOT_IN_NAMES.sub("-", tool).strip("-").lower() or "tool"


def _listed(kinds: Iterable[str]) -> str:
    return " or ".join(sorted(kinds))
