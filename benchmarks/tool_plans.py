"""How many plans that language models wrote can run at all, and how long it takes to know.

Usage: tool_plans CATALOGUE.json PLANS.jsonl...
"""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from time import process_time

from agent_run.contract.toolgraph import Tool, graph_faults


def main(arguments: Sequence[str]) -> int:
    catalogue_file, *plan_files = map(Path, arguments)
    nodes = json.loads(catalogue_file.read_text())["nodes"]
    catalogue = {
        node["id"]: Tool(
            node["id"], frozenset(node["input-type"]), frozenset(node["output-type"])
        )
        for node in nodes
    }
    for file in plan_files:
        plans = [json.loads(line) for line in file.read_text().splitlines()]
        started = process_time()
        found = [graph_faults(plan, catalogue) for plan in plans]
        taken = process_time() - started
        kinds = Counter(kind for faults in found for kind in {_kind(fault) for fault in faults})
        certain = sum(any(_kind(f) != "types do not fit" for f in faults) for faults in found)
        result = {
            "plans": file.name,
            "count": len(plans),
            "refused": sum(map(bool, found)),
            "certainly_invalid": certain,
            "ms_per_plan": round(taken / len(plans) * 1_000, 3),
            "kinds": dict(kinds.most_common()),
        }
        print(json.dumps(result))
    return 0


def _kind(fault: str) -> str:
    for words, kind in (
        ("tool of the catalogue", "unknown tool"),
        ("one of the nodes", "dangling link"),
        ("in a circle", "circle"),
        ("ambiguous", "tool called twice"),
        ("takes", "types do not fit"),
    ):
        if words in fault:
            return kind
    return "not a graph"
