"""What a durable step costs on LangGraph with its SQLite checkpointer: a chain of steps.

Each step is checkpointed before the next begins, as `durability="sync"` promises.
"""

# mypy: ignore-errors
# What is imported here stands in an environment of its own.

import json
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph


class Count(TypedDict):
    done: int


def main(steps: int) -> None:
    """Run a chain of `steps` nodes, each of which adds one and is checkpointed."""
    graph = StateGraph(Count)
    for number in range(steps):
        graph.add_node(f"n{number}", lambda state: {"done": state["done"] + 1})
        graph.add_edge(f"n{number - 1}" if number else START, f"n{number}")
    graph.add_edge(f"n{steps - 1}", END)
    with (
        tempfile.TemporaryDirectory() as folder,
        SqliteSaver.from_conn_string(str(Path(folder) / "checkpoints.db")) as saver,
    ):
        app = graph.compile(checkpointer=saver)
        config: Any = {"configurable": {"thread_id": "t"}, "recursion_limit": steps + 10}
        cpu, wall = process_time(), perf_counter()
        done = app.invoke({"done": 0}, config, durability="sync")
        cpu, wall = process_time() - cpu, perf_counter() - wall
    if done["done"] != steps:
        raise RuntimeError(done)
    row = {"what": f"langgraph {version('langgraph')}", "steps": steps}
    cost = {"cpu ms a step": cpu / steps * 1e3, "wall ms a step": wall / steps * 1e3}
    print(json.dumps({**row, **cost}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
