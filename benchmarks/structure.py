"""What the shape of a run costs: ReAct, plan-execute and parallel plan on the same questions.

The model is simulated: a fixed time for each call and for each token it writes, and every
token it reads is counted. So calls, tokens and time follow from the shape alone. The plans
are carried out by the real driver on a real ledger; what it adds is in the times.

Each question has some lookups that do not need each other, and an answer that needs them
all. Shapes come from files of questions (JSON, a list with "branch" or "question" in each),
or are made up.

Usage: structure [FILE...] [--questions N] [--scale S]
"""

import argparse
import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from time import perf_counter

import anyio

from agent_run.contract.brief import Brief
from agent_run.contract.plan import Plan
from agent_run.contract.record import Record
from agent_run.executors.function import executor
from agent_run.wiring import open_desk
from agent_run.wiring.running import run_plan
from benchmarks.telling import tell

INSTRUCTIONS = 800
"""Tokens that tell the model which tools there are, with examples; read at every call."""
QUESTION, THOUGHT, OBSERVATION, STEP, ANSWER = 40, 60, 300, 20, 30
"""Tokens of a question, of one thought with its action, of what a lookup gives, of one step
in a plan, and of an answer."""
CALL, TOKEN, LOOKUP = 0.3, 0.015, 1.0
"""Seconds until a model begins to write, for each token it writes, and for one lookup."""
MADE_UP = (2, 3, 4, 5, 8)


@dataclass(slots=True)
class Simulated:
    """A model that takes its time and counts."""

    scale: float
    """How many real seconds a simulated second takes."""
    calls: int = 0
    tokens: int = 0

    async def ask(self, *, reads: int, writes: int) -> None:
        self.calls += 1
        self.tokens += reads + writes
        await anyio.sleep((CALL + TOKEN * writes) * self.scale)

    async def look_up(self) -> None:
        await anyio.sleep(LOOKUP * self.scale)


@dataclass(slots=True)
class Tally:
    """What one way of working took, question by question."""

    calls: list[int] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def add(self, model: Simulated, took: float) -> None:
        self.calls.append(model.calls)
        self.tokens.append(model.tokens)
        self.seconds.append(took / model.scale)


async def react(model: Simulated, lookups: int) -> None:
    """Think, act, observe; each call reads everything that came before."""
    context = INSTRUCTIONS + QUESTION
    for _ in range(lookups):
        await model.ask(reads=context, writes=THOUGHT)
        await model.look_up()
        context += THOUGHT + OBSERVATION
    await model.ask(reads=context, writes=THOUGHT + ANSWER)


async def planned(model: Simulated, lookups: int, *, at_once: int, folder: Path) -> None:
    """Plan once, look up without any model, answer once from what was found."""

    @executor("look-up")
    async def look_up(brief: Brief) -> Record:
        await model.look_up()
        return Record(status="done", output="found")

    @executor("answer")
    async def answer(brief: Brief) -> Record:
        found = lookups * OBSERVATION
        await model.ask(reads=QUESTION + (lookups + 1) * STEP + found, writes=THOUGHT + ANSWER)
        return Record(status="done", output="answer")

    await model.ask(reads=INSTRUCTIONS + QUESTION, writes=(lookups + 1) * STEP)
    names = [f"l{number}" for number in range(lookups)]
    steps = [{"task_id": name, "objective": "look up", "executor": "look-up"} for name in names]
    join = {"task_id": "join", "objective": "answer", "executor": "answer", "needs": names}
    plan = Plan.model_validate({"objective": "answer", "steps": [*steps, join]})
    with closing(open_desk(f"sqlite:///{folder / 'ledger.db'}")) as desk:
        done = await run_plan(
            desk, plan, executors=[look_up, answer], run_id="q", at_once=at_once
        )
    if done.status != "accepted":
        msg = f"the run ended {done.status!r}, expected 'accepted'"
        raise RuntimeError(msg)


async def measured(way: str, lookups: int, scale: float, tally: Tally) -> None:
    """Answer one question in one way."""
    model = Simulated(scale)
    with tempfile.TemporaryDirectory() as folder:
        began = perf_counter()
        match way:
            case "ReAct":
                await react(model, lookups)
            case "plan-execute":
                await planned(model, lookups, at_once=1, folder=Path(folder))
            case _:
                await planned(model, lookups, at_once=lookups, folder=Path(folder))
        tally.add(model, perf_counter() - began)


def shapes(file: Path) -> Iterator[int]:
    """Yield how many lookups each question of a file needs."""
    for one in json.loads(file.read_text(encoding="utf-8")):
        if "branch" in one:
            yield int(one["branch"])
        else:  # things named with commas, and options, a line each; all are looked up
            named, _, options = one["question"].partition("Options:")
            yield named.count(",") + 1 + len(options.split("\n")[1:-1])


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="structure", description=__doc__)
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--questions", type=int, default=10, help="at most, of each file")
    parser.add_argument("--scale", type=float, default=1.0, help="real seconds for each second")
    wanted = parser.parse_args(arguments)
    sets = {file.stem: _spread(list(shapes(file)), wanted.questions) for file in wanted.files}
    rows: list[dict[str, object]] = []
    for name, branches in (sets or {"made up": list(MADE_UP)}).items():
        rows += _compared(name, branches, wanted.scale)
    tell(rows)
    return 0


def _spread(branches: Sequence[int], most: int) -> Sequence[int]:
    """Return at most `most` of the questions, from all over the file."""
    return branches[:: -(-len(branches) // most)]


def _compared(name: str, branches: Sequence[int], scale: float) -> list[dict[str, object]]:
    tallies = {way: Tally() for way in ("ReAct", "plan-execute", "parallel plan")}

    async def all_of_them() -> None:
        async with anyio.create_task_group() as group:
            for lookups in branches:
                for way, tally in tallies.items():
                    group.start_soon(measured, way, lookups, scale, tally)

    anyio.run(all_of_them)
    first = tallies["ReAct"]
    return [
        {
            "questions": name,
            "lookups": round(mean(branches), 1),
            "way": way,
            "model calls": round(mean(tally.calls), 1),
            "tokens": round(mean(tally.tokens)),
            "seconds": round(mean(tally.seconds), 2),
            "fewer tokens": round(mean(first.tokens) / mean(tally.tokens), 2),
            "faster": round(mean(first.seconds) / mean(tally.seconds), 2),
        }
        for way, tally in tallies.items()
    ]
