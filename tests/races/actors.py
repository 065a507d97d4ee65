"""What the processes of the race tests do; each opens the ledger for itself.

They are forked from one process that has imported all this and has no threads, so that a
new one costs milliseconds and inherits no connection.
"""

import multiprocessing
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Barrier as BarrierType
from typing import Any, Final

from agent_run.desk import Desk
from agent_run.errors import AgentRunError, NotClaimable
from agent_run.ledger.commands import Claim, Heartbeat, Release
from tests.support.stores import judge, open_desk, open_store, post, submit

FORKED: Final = multiprocessing.get_context("forkserver")
FORKED.set_forkserver_preload([__name__])


@contextmanager
def started(
    actor: Callable[..., None], *calls: tuple[Any, ...]
) -> Iterator[list[tuple[BaseProcess, Connection]]]:
    """Start a process for each of `calls`; give each with the end of its pipe."""
    processes: list[tuple[BaseProcess, Connection]] = []
    for values in calls:
        ours, theirs = FORKED.Pipe()
        process = FORKED.Process(target=actor, args=(theirs, *values), daemon=True)
        process.start()
        theirs.close()
        processes.append((process, ours))
    try:
        yield processes
    finally:
        for one, pipe in processes:
            one.kill()
            one.join()
            one.close()
            pipe.close()


def answers(processes: list[tuple[BaseProcess, Connection]], timeout: float = 60) -> list[Any]:
    """Return what each process says, in order."""
    said: list[Any] = []
    for process, pipe in processes:
        assert pipe.poll(timeout), f"process {process.pid} said nothing in {timeout} s"
        said.append(pipe.recv())
    return said


def claim_all(pipe: Connection, address: str, owner: str, barrier: BarrierType) -> None:
    """Claim whatever is there until nothing is, and say what was claimed."""
    with _desk(address) as desk:
        barrier.wait(60)
        claimed: list[tuple[str | None, str, int | None]] = []
        while True:
            check = desk.claim_next(owner=owner)
            if check:
                claimed.append((check.run_id, check.task_id, check.claim))
            elif not desk.find("ready", limit=1):
                break
        pipe.send(claimed)


def claim_these(
    pipe: Connection, address: str, owner: str, barrier: BarrierType, tasks: int
) -> None:
    """Claim each task at the same instant as everybody else, and say which were won."""
    with _desk(address) as desk:
        won, refused = list[str](), list[str]()
        for number in range(tasks):
            barrier.wait(60)
            try:
                desk.handle("r", Claim(task_id=f"t{number}", owner=owner))
                won.append(f"t{number}")
            except NotClaimable as error:
                refused.append(str(error))
        pipe.send((won, refused))


def write_until_killed(pipe: Connection, address: str, run_id: str, name: str) -> None:
    """Hand off one task after the other, and tell of each page once it is acknowledged."""
    with _desk(address) as desk:
        for number in range(10_000):
            task_id = f"{name}-{number}"
            objective = random.choice(("short", "long " * 700))
            state = desk.handle(run_id, post(task_id, objective=objective))
            pipe.send((run_id, state.seq, task_id, "task_posted"))
            check = desk.claim_next(owner=name, run_id=run_id)
            if check is None:
                continue
            pipe.send((run_id, check.claim, check.task_id, "task_claimed"))
            state = desk.handle(run_id, submit(check.task_id, check.claim or 0, name))
            pipe.send((run_id, state.seq, check.task_id, "record_submitted"))
            state = desk.handle(run_id, judge(check.task_id))
            pipe.send((run_id, state.seq, check.task_id, "task_accepted"))


def hand_off_for(
    pipe: Connection, address: str, name: str, barrier: BarrierType, seconds: float
) -> None:
    """Say how many handoffs were made in the time given."""
    with _desk(address) as desk:
        barrier.wait(60)
        until, count = time.monotonic() + seconds, 0
        while time.monotonic() < until:
            run_id = f"{name}-{count}"
            state = desk.handle(run_id, post("t"), Claim(task_id="t", owner=name))
            desk.handle(run_id, submit("t", state.tasks["t"].claim or 0, name))
            desk.handle(run_id, judge("t"))
            count += 1
        pipe.send(count)


def sleep_over_a_claim(pipe: Connection, address: str, ttl: timedelta) -> None:
    """Claim, say so, wait for a word, and say what is answered to the late owner."""
    with _desk(address) as desk:
        check = desk.claim_next(owner="sleepy", ttl=ttl)
        assert check is not None
        claim = check.claim or 0
        pipe.send((os.getpid(), claim))
        pipe.recv()
        said: list[tuple[str, str]] = []
        for command in (
            Heartbeat(task_id="t", actor="sleepy", claim=claim),
            submit("t", claim, "sleepy"),
            Release(task_id="t", actor="sleepy", claim=claim),
        ):
            try:
                desk.handle("r", command)
            except AgentRunError as error:
                said.append((type(error).__name__, str(error)))
        pipe.send(said)


@contextmanager
def _desk(address: str) -> Iterator[Desk]:
    with closing(open_store(address)) as store:
        yield open_desk(store)
