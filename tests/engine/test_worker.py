"""The worker and its claim: renewed, given back, lost; and nothing survives it."""

import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

from agent_run.desk import Desk
from agent_run.engine.execute import Ordered, execute, tidy
from agent_run.errors import ExecutorMissing, StaleClaim, UncommittedWork
from agent_run.ledger.commands import Cancel, Claim, Post
from agent_run.ledger.state import Status
from agent_run.ports.executor import Job, Work
from agent_run.store.sqlite import SqliteStore
from tests.engine.executors import Fake, fixing
from tests.support.projects import (
    TASK,
    Project,
    Stage,
    commit_all,
    git,
    manifest,
    put,
    running,
    script_executor,
)

LATER = timedelta(hours=1)


class JumpyClock:
    """The time of this machine, and as much more as a test wants."""

    ahead = timedelta()

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


def post(stage: Stage, **fields: object) -> None:
    site = stage.open()
    site.desk.handle(TASK, Post(actor="planner", manifest=manifest(**fields)))


def until(condition: Callable[[], object], *, seconds: float = 20) -> None:
    """Wait for something that another process does."""
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "it did not happen in time"
        time.sleep(0.02)


def test_a_claim_that_outlasts_its_ttl_is_kept_alive_by_the_worker(stage: Stage) -> None:
    async def longer_than_the_claim() -> None:
        await anyio.sleep(0.7)

    post(stage)
    order = Ordered(Fake(fixing, before=longer_than_the_claim), "ada", ttl=timedelta(0, 0.3))

    run = anyio.run(execute, stage.open(), TASK, TASK, order)

    assert run.tasks[TASK].status is Status.ACCEPTED
    kinds = [page.kind for page in stage.open().desk.pages(TASK)]
    assert "claim_extended" in kinds


def test_a_cancelled_task_ends_its_executor_with_all_its_processes(
    stage: Stage, project: Project
) -> None:
    executor = script_executor(
        project, "signal.signal(15, signal.SIG_IGN); os.fork(); time.sleep(60)"
    )

    async def cancel_soon() -> None:
        site = stage.open()
        async with anyio.create_task_group() as group:
            group.start_soon(cancel, site.desk)
            await execute(site, TASK, TASK, Ordered(executor, "ada", ttl=timedelta(0, 0.6)))

    async def cancel(desk: Desk) -> None:
        await anyio.to_thread.run_sync(until, lambda: len(running(project)) > 1)
        desk.handle(TASK, Cancel(task_id=TASK, actor="eve"))

    post(stage)

    with pytest.RaisesGroup(StaleClaim):
        anyio.run(cancel_soon)

    assert running(project) == []
    assert stage.open().desk.run(TASK).tasks[TASK].status is Status.CANCELLED


def test_a_worker_that_was_overtaken_submits_nothing(stage: Stage, project: Project) -> None:
    clock = JumpyClock()
    project.state.mkdir()
    stage.desk = Desk(
        SqliteStore(project.state / "ledger.db"), clock=clock, new_trace=lambda: "a" * 32
    )
    desk = stage.desk

    async def overtaken() -> None:
        clock.ahead = LATER
        await anyio.to_thread.run_sync(
            lambda: desk.handle(TASK, Claim(task_id=TASK, owner="bob"))
        )
        await anyio.sleep(30)

    post(stage, budget={"max_attempts": 3})
    order = Ordered(Fake(fixing, before=overtaken), "ada", ttl=timedelta(0, 1))

    with pytest.raises(StaleClaim, match="bob"):
        anyio.run(execute, stage.open(), TASK, TASK, order)

    task = desk.run(TASK).tasks[TASK]
    assert (task.status, task.owner, task.record) == (Status.CLAIMED, "bob", None)
    assert list((project.state / "work" / "jobs").iterdir()) == []


def test_a_cancelled_worker_gives_its_claim_back(stage: Stage, project: Project) -> None:
    executor = script_executor(project, "time.sleep(60)")

    async def interrupted() -> None:
        with anyio.move_on_after(0.8):
            await execute(stage.open(), TASK, TASK, Ordered(executor, "ada"))

    post(stage)
    anyio.run(interrupted)

    task = stage.open().desk.run(TASK).tasks[TASK]
    assert task.status is Status.READY
    assert task.attempts_left == 1
    assert running(project) == []


def test_an_executor_that_cannot_start_costs_no_attempt(stage: Stage) -> None:
    class Missing(Fake):
        async def run(self, job: Job) -> Work:
            msg = "the program 'x' is not installed"
            raise ExecutorMissing(msg)

    post(stage)

    with pytest.raises(ExecutorMissing):
        anyio.run(execute, stage.open(), TASK, TASK, Ordered(Missing(), "ada"))

    task = stage.open().desk.run(TASK).tasks[TASK]
    assert (task.status, task.attempts_left) == (Status.READY, 1)


def test_a_worker_that_fails_after_the_executor_began_uses_the_attempt_up(
    stage: Stage,
) -> None:
    def breaking(workspace: Path) -> None:
        msg = "no space left"
        raise OSError(msg)

    post(stage, budget={"max_attempts": 2})

    with pytest.raises(OSError, match="no space left"):
        anyio.run(execute, stage.open(), TASK, TASK, Ordered(Fake(breaking), "ada"))

    task = stage.open().desk.run(TASK).tasks[TASK]
    assert (task.status, task.attempts_left) == (Status.READY, 1)


def test_uncommitted_work_gives_the_claim_back_untouched(
    stage: Stage, project: Project
) -> None:
    put(project.root, "README.md", "in the middle of something")
    post(stage)

    with pytest.raises(UncommittedWork, match=r"README\.md"):
        anyio.run(execute, stage.open(), TASK, TASK, Ordered(Fake(fixing), "ada"))

    task = stage.open().desk.run(TASK).tasks[TASK]
    assert (task.status, task.attempts_left) == (Status.READY, 1)


_CRASHING = """
import anyio, sys
from pathlib import Path
from agent_run.engine.execute import Ordered, execute
from tests.support.projects import Project, Stage, TASK, script_executor
place = Path(sys.argv[1])
project = Project(place, place / "repo", place / "home", place / "outside")
stage = Stage(project)
executor = script_executor(project, "fix(); time.sleep(60)")
anyio.run(execute, stage.open(), TASK, TASK, Ordered(executor, "crashing"))
"""


@pytest.mark.slow
def test_a_killed_worker_leaves_a_claim_that_passes_to_the_next(
    stage: Stage, project: Project
) -> None:
    post(stage, budget={"max_attempts": 2})
    desk = stage.open().desk
    base = git(project.root, "rev-parse", "HEAD")
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(_CRASHING), str(project.place)]
    ) as worker:
        until(lambda: running(project))
        worker.kill()
    until(lambda: not running(project))
    assert desk.run(TASK).tasks[TASK].status is Status.CLAIMED
    put(project.root, "README.md", "the user went on\n")
    commit_all(project.root, "meanwhile")
    clock = JumpyClock()
    clock.ahead = LATER
    with Stage(project) as next_stage:
        next_stage.desk = Desk(
            SqliteStore(project.state / "ledger.db"), clock=clock, new_trace=lambda: "a" * 32
        )
        site = next_stage.open()
        left = [*(project.state / "work" / "jobs").iterdir()]

        run = anyio.run(execute, site, TASK, TASK, Ordered(Fake(fixing), "bob"))

    task = run.tasks[TASK]
    assert (task.status, task.attempt) == (Status.ACCEPTED, 2)
    assert isinstance(task.result, dict)
    assert git(project.root, "rev-parse", f"{task.result['commit']}^") == base
    assert left
    assert list((project.state / "work" / "jobs").iterdir()) == []
    assert list((project.state / "workspaces" / "runs").glob("repo*")) == []


def test_tidying_up_leaves_alone_what_is_in_use(stage: Stage, project: Project) -> None:
    async def tidied() -> None:
        await anyio.to_thread.run_sync(lambda: tidy(stage.open()))

    post(stage)
    order = Ordered(Fake(fixing, before=tidied), "ada")

    run = anyio.run(execute, stage.open(), TASK, TASK, order)

    assert run.tasks[TASK].status is Status.ACCEPTED
