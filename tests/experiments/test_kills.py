"""Drivers killed with kill -9 at any point: what was finished is never done again."""

import os
import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_run.contract.plan import Plan
from agent_run.ledger.commands import Answer
from agent_run.ledger.state import RunState, Status
from benchmarks.peers.experiments import noted
from tests.experiments.actors import RUN, Life, live, open_run, site_of
from tests.races.actors import started

pytestmark = pytest.mark.slow

FEWEST_KILLS, MOST_LIVES = 2, 300
ON_RECORD = {Status.SUBMITTED, Status.ACCEPTED, Status.ESCALATED}


@pytest.mark.parametrize("at_once", [1, 4])
def test_a_run_killed_again_and_again_repeats_only_what_was_in_flight(
    tmp_path: Path, at_once: int
) -> None:
    chance = random.Random(os.urandom(8).hex())
    life = Life(tmp_path, 0, at_once)
    open_run(life, woven(chains=16, length=3))

    kills, done, ended = 0, set[str](), ""
    for number in range(MOST_LIVES):
        life = replace(life, number=number)
        ended = lived(life, kill_after=chance.uniform(0, 0.03))
        assert not done & set(noted(tmp_path / f"begun-{number}"))
        if ended:
            break
        kills, done = kills + 1, on_record(life)

    assert ended == "accepted"
    assert kills >= FEWEST_KILLS
    begun = [noted(tmp_path / f"begun-{number}") for number in range(kills + 1)]
    assert all(count == 1 for one in begun for count in one.values())
    assert sum(begun, Counter()).total() <= 16 * 3 + 1 + kills * at_once
    assert list_of_breaks(life) == []


def test_workers_that_were_done_when_their_driver_was_killed_are_not_run_again(
    tmp_path: Path,
) -> None:
    """Experiment E1, with kill -9 in the middle: 30 workers at once, one of them fails."""
    life = Life(tmp_path, 0, at_once=6, broken=("w7",))
    steps = [{"task_id": f"w{n}", "budget": {"max_attempts": 1}} for n in range(30)]
    open_run(life, plan_of(steps))

    with started(live, (life,)) as ((process, _),):
        until(lambda: len(noted(tmp_path / "begun-0")) >= 15)
        process.kill()
    before = run_of(life)
    spared = {name for name, task in before.tasks.items() if task.status in ON_RECORD}
    crashed = {name for name, task in before.tasks.items() if task.status is Status.CLAIMED}
    second = replace(life, number=1, broken=())
    assert lived(second) == "waiting"
    answered = replace(second, number=2)
    answer_all(answered)
    ended = lived(answered)

    begun = noted(tmp_path / "begun-1") + noted(tmp_path / "begun-2")
    assert ended == "accepted"
    assert len(spared) >= 15 - 6
    assert len(crashed) <= 6
    assert not (spared - {"w7"}) & set(begun)
    assert begun["w7"] <= 1
    assert max(begun.values()) == 1


def lived(life: Life, *, kill_after: float | None = None) -> str:
    """Let a process drive the run; return how it ended, or nothing if it was killed."""
    with started(live, (life,)) as ((process, pipe),):
        if kill_after is not None:
            until(lambda: noted(life.folder / f"begun-{life.number}") or pipe.poll())
            time.sleep(kill_after)  # not to wait for anything: any moment will do
            process.kill()
            process.join()
        elif not pipe.poll(100):
            pytest.fail("the run did not end")
        try:
            return str(pipe.recv())
        except EOFError:
            return ""


def woven(*, chains: int, length: int) -> Plan:
    """Return chains of steps side by side, and one step that needs the ends of all."""
    steps: list[dict[str, Any]] = [
        {"task_id": f"c{chain}-{link}", "needs": [f"c{chain}-{link - 1}"] if link else []}
        for chain in range(chains)
        for link in range(length)
    ]
    ends = [f"c{chain}-{length - 1}" for chain in range(chains)]
    return plan_of([*steps, {"task_id": "join", "needs": ends}])


def plan_of(steps: list[dict[str, Any]]) -> Plan:
    common = {"objective": "do it", "executor": "work", "budget": {"max_attempts": 1_000}}
    return Plan.model_validate({"steps": [{**common, **step} for step in steps]})


def run_of(life: Life) -> RunState:
    with closing(site_of(life).desk) as desk:
        return desk.run(RUN)


def on_record(life: Life) -> set[str]:
    """Return the tasks whose work was handed in."""
    tasks = run_of(life).tasks
    return {name for name, task in tasks.items() if task.status in ON_RECORD}


def list_of_breaks(life: Life) -> list[object]:
    with closing(site_of(life).desk) as desk:
        return list(desk.verify())


def answer_all(life: Life) -> None:
    with closing(site_of(life).desk) as desk:
        for name, task in desk.run(RUN).tasks.items():
            if task.status is Status.ESCALATED:
                desk.handle(RUN, Answer(task_id=name, actor="eve", answer="try again"))


def until(true: Callable[[], object]) -> None:
    """Wait for something another process does."""
    limit = time.monotonic() + 60
    while not true():
        assert time.monotonic() < limit
        time.sleep(0.001)
