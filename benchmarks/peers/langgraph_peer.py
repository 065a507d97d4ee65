"""The four experiments on LangGraph with its SQLite checkpointer, as its documentation uses it.

E3 is left out: LangGraph has no budget of tokens that branches could share.
"""

# mypy: ignore-errors
# What is imported here stands in an environment of its own.

import asyncio
import operator
import sys
import tempfile
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from pydantic import BaseModel, ValidationError

import experiments as same

PEER = f"langgraph {version('langgraph')}"


class Results(TypedDict):
    done: Annotated[list[str], operator.add]


class Counted(BaseModel):
    count: int = 0


async def one_fails(folder: Path, when: str) -> object:
    """E1: thirty parallel nodes; the graph is invoked again after one of them raised."""
    broken = {f"w{same.BROKEN}"}

    def node(name: str) -> Callable[[Any], Any]:
        async def work(_state: Results) -> dict[str, list[str]]:
            same.note(folder / "ran", name)
            if name in broken:
                await asyncio.sleep(same.EARLY if when == "early" else same.LATE)
                msg = "the network is down"
                raise ConnectionError(msg)
            await asyncio.sleep(same.WORK)
            return {"done": [name]}

        return work

    graph = StateGraph(Results)
    for number in range(same.WORKERS):
        graph.add_node(f"w{number}", node(f"w{number}"))
        graph.add_edge(START, f"w{number}")
        graph.add_edge(f"w{number}", END)
    config: Any = {"configurable": {"thread_id": "fan"}}
    async with AsyncSqliteSaver.from_conn_string(str(folder / "checkpoints.db")) as saver:
        app = graph.compile(checkpointer=saver)
        try:
            await app.ainvoke({"done": []}, config)
        except ConnectionError:
            before = same.noted(folder / "ran")
        broken.clear()
        await app.ainvoke(None, config)
    return same.siblings_row(PEER, when, before, same.noted(folder / "ran"))


def two_at_once(folder: Path) -> object:
    """E2: two processes invoke the same thread of the same graph."""
    same.two_processes(__file__, folder)
    return same.doubles_row(PEER, same.noted(folder / "ran"))


def both(folder: Path, number: int) -> None:
    """Be one of the two processes."""

    def work(state: Results) -> dict[str, list[str]]:
        same.note(folder / "ran", state["done"][0])
        return {"done": ["did"]}

    graph = StateGraph(Results)
    graph.add_node("work", work)
    graph.add_edge(START, "work")
    graph.add_edge("work", END)
    with SqliteSaver.from_conn_string(str(folder / "checkpoints.db")) as saver:
        saver.setup()
        app = graph.compile(checkpointer=saver)
        for round_number in range(same.ROUNDS):
            name = f"r{round_number}"
            same.at_one_instant(folder, number, name)
            config: Any = {"configurable": {"thread_id": name}}
            app.invoke({"done": [name]}, config)


def breaks_its_schema(folder: Path) -> object:
    """E4: a node returns text where its state wants a number; look what the thread holds."""

    def work(_state: Counted) -> dict[str, object]:
        return {"count": "many"}

    graph = StateGraph(Counted)
    graph.add_node("work", work)
    graph.add_edge(START, "work")
    graph.add_edge("work", END)
    config: Any = {"configurable": {"thread_id": "broken"}}
    with SqliteSaver.from_conn_string(str(folder / "checkpoints.db")) as saver:
        app = graph.compile(checkpointer=saver)
        try:
            app.invoke(Counted(), config)
        except ValidationError as error:
            print(f"refused: {error}", file=sys.stderr)
        kept = saver.get_tuple(config)
    values = kept.checkpoint["channel_values"] if kept else {}
    return same.invalid_row(PEER, stored=int(values.get("count") == "many"))


def results() -> Iterable[object]:
    """Yield the rows of all it can do."""
    for when in ("early", "late"):
        with tempfile.TemporaryDirectory() as folder:
            yield asyncio.run(one_fails(Path(folder), when))
    with tempfile.TemporaryDirectory() as folder:
        yield two_at_once(Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        yield breaks_its_schema(Path(folder))


if __name__ == "__main__":
    sys.exit(same.main(__file__, results, both))
