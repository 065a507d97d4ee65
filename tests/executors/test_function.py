"""A function as executor: typed on both sides, timed, and never more than a task's failure."""

import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_run.contract.base import Contract
from agent_run.contract.brief import Brief
from agent_run.contract.record import Record
from agent_run.errors import ContractError
from agent_run.executors.function import FunctionExecutor, executor
from agent_run.ports.executor import Work
from agent_run.ports.fence import Limits
from tests.executors.jobs import job


class Draft(Contract):
    words: int


class Score(Contract):
    value: float


@executor("score")
async def score(brief: Brief[Draft]) -> Record[Score]:
    assert brief.input is not None
    return Record[Score](output=Score(value=brief.input.words / 2), tokens_used=7)


def ran(function: FunctionExecutor[Any], place: Path, **more: Any) -> Work:
    return anyio.run(function.run, job(place, **more))


def test_input_arrives_typed_and_output_leaves_as_json(tmp_path: Path) -> None:
    work = ran(score, tmp_path, brief={"input": {"words": 3}})

    assert work.record is not None
    assert work.record.output == {"value": 1.5}
    assert work.seen.tokens_used == 7


def test_input_that_does_not_fit_goes_to_a_person_before_anything_is_done(
    tmp_path: Path,
) -> None:
    work = ran(score, tmp_path, brief={"input": {"words": "many"}})

    assert work.record is not None
    assert (work.record.status, work.record.next_action) == ("blocked", "escalate")
    assert "does not fit executor 'score'" in work.record.error


def test_output_that_does_not_fit_is_an_invalid_record(tmp_path: Path) -> None:
    @executor("wrong")
    def wrong(brief: Brief) -> Record[Score]:
        return Record[Any](output={"value": "high"})

    assert "output does not fit" in ran(wrong, tmp_path).invalid


def test_something_that_is_no_record_is_said_to_be_none(tmp_path: Path) -> None:
    @executor("wrong")
    def wrong(brief: Brief) -> Any:
        return {"status": "done"}

    assert ran(wrong, tmp_path).invalid == "returned dict, expected a Record"


def test_an_exception_is_the_failure_of_the_task(tmp_path: Path) -> None:
    @executor("broken")
    def broken(brief: Brief) -> Record:
        msg = "no idea"
        raise LookupError(msg)

    assert ran(broken, tmp_path).seen.error == "LookupError: no idea"


@pytest.mark.parametrize("kind", ["waits", "blocks"])
def test_a_function_that_takes_too_long_is_left_behind(tmp_path: Path, kind: str) -> None:
    @executor("waits")
    async def waits(brief: Brief) -> Record:
        await anyio.sleep(30)
        return Record()

    @executor("blocks")
    def blocks(brief: Brief) -> Record:
        time.sleep(1)
        return Record()

    slow: FunctionExecutor[Any] = waits if kind == "waits" else blocks
    work = ran(slow, tmp_path, limits=Limits(wall_sec=0.1))

    assert (work.seen.ended, work.seen.error) == ("timeout", "took longer than 0.1 s")


def test_a_function_with_a_second_argument_works_on_files(tmp_path: Path) -> None:
    @executor("writes")
    def writes(brief: Brief, workspace: Path) -> Record:
        (workspace / "new.txt").write_text(brief.objective)
        return Record(files_changed=("new.txt",))

    ran(writes, tmp_path)

    assert writes.wants_workspace
    assert not score.wants_workspace
    assert (tmp_path / "workspace" / "new.txt").read_text() == "do it"


def test_a_function_with_other_arguments_is_refused_at_once() -> None:
    def odd(brief: Brief, workspace: Path, more: int) -> Record:
        return Record()

    with pytest.raises(ContractError, match="takes 3 arguments"):
        executor("odd")(odd)


def test_the_decorated_function_can_still_be_called(tmp_path: Path) -> None:
    brief = job(tmp_path).brief.model_copy(update={"input": Draft(words=4)})

    async def called() -> Record[Score]:
        record: Record[Score] = await score(brief)
        return record

    assert anyio.run(called).output == Score(value=2)
