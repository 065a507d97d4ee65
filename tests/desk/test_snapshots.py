"""A desk that starts from a snapshot behaves as one that read every page."""

import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_run.contract.budget import Budget, Spend
from agent_run.contract.record import Question
from agent_run.errors import AgentRunError
from agent_run.ledger.commands import (
    Answer,
    Ask,
    Cancel,
    Claim,
    Command,
    Escalate,
    Heartbeat,
    OpenRun,
    Release,
    Reserve,
    Settle,
    WriteNote,
)
from agent_run.ledger.fold import fold
from agent_run.ledger.state import RunState
from agent_run.store.sqlite import SqliteStore
from tests.support.stores import Ticking, judge, open_desk, post, submit

TASKS: Final = ("a", "b", "c")
BUDGET: Final = Budget(max_tokens=1_000)
ACTS: Final = (
    *("post", "claim", "beat", "release", "submit", "judge", "ask", "answer"),
    *("reserve", "settle", "cancel", "escalate", "note"),
)
wishes = st.lists(st.tuples(st.sampled_from(ACTS), st.sampled_from(TASKS)), max_size=40)


@given(bounded=st.booleans(), before=wishes, after=wishes)
@settings(max_examples=30, deadline=None)
def test_a_snapshot_gives_the_same_run_as_its_pages(
    *, bounded: bool, before: list[tuple[str, str]], after: list[tuple[str, str]]
) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(SqliteStore(Path(folder) / "ledger.db")) as store,
        patch("agent_run.desk.memory._SMALLEST_SNAPSHOT", 5),
        patch("agent_run.desk.memory._FIRST_LOOK", 3),
    ):
        clock = Ticking()
        desk = open_desk(store, clock)
        desk.handle("r", OpenRun(actor="ann", budget=BUDGET if bounded else Budget()))
        for turn in (before, after):
            for number, (act, task_id) in enumerate(turn):
                clock.step(1)
                command = _command(desk.run("r"), act, task_id, number)
                try:
                    desk.handle("r", command)
                except AgentRunError:
                    continue  # not allowed now: nothing was written
            desk = open_desk(store, clock)  # knows nothing, starts from the snapshot
            folded = fold(page.event() for page in store.read("r"))

            assert desk.run("r") == folded
        assert list(desk.verify()) == []


def _command(run: RunState, act: str, task_id: str, number: int) -> Command:
    task = run.tasks.get(task_id)
    claim = (task.claim if task else None) or 1
    whose: dict[str, Any] = {"task_id": task_id, "actor": "bob"}
    held: dict[str, Any] = {"task_id": task_id, "actor": "bob", "claim": claim}
    calls = [key for key, _ in task.calls] if task else []
    commands: dict[str, Command] = {
        "post": post(task_id, needs=[n for n in TASKS if n < task_id and n in run.tasks]),
        "claim": Claim(task_id=task_id, owner="bob"),
        "beat": Heartbeat(**held),
        "release": Release(**held, counts=bool(number % 2)),
        "submit": submit(task_id, claim),
        "judge": judge(task_id),
        "ask": Ask(**held, question=Question(text="which one?")),
        "answer": Answer(**whose, answer={"text": "this", "many": [1, None]}),
        "reserve": Reserve(**held, key=f"k{number}", amount=Spend(tokens=300)),
        "settle": Settle(**held, key=(calls or ["none"])[0], spent=Spend(tokens=200)),
        "cancel": Cancel(**whose),
        "escalate": Escalate(**whose, reason="timeout", note="too long"),
        "note": WriteNote(actor="ann", topic="a note", task_id=task_id if task else ""),
    }
    return commands[act]
