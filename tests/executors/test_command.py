"""A command as executor: what it is launched with, and what its end says."""

import json
from pathlib import Path

import anyio
import pytest

from agent_run.errors import ContractError
from agent_run.executors.command import CommandExecutor
from agent_run.ports.executor import Work
from agent_run.ports.fence import Limits
from tests.executors.jobs import FakeFence, job
from tests.gates.cases import finished


def ran(place: Path, fence: FakeFence) -> Work:
    return anyio.run(CommandExecutor("x", "make it").run, job(place, fence))


def test_it_sees_its_papers_and_nothing_else(tmp_path: Path) -> None:
    fence = FakeFence()

    ran(tmp_path, fence)

    (launch,) = fence.launches
    assert launch.argv == ("/bin/sh", "-c", "make it")
    assert launch.cwd == tmp_path / "workspace"
    assert {
        name: launch.env[f"AGENT_RUN_{name}"] for name in ("TASK_ID", "ATTEMPT", "CLAIM")
    } == {
        "TASK_ID": "t-1",
        "ATTEMPT": "2",
        "CLAIM": "7",
    }
    assert "do it" in Path(launch.env["AGENT_RUN_BRIEF"]).read_text()
    assert json.loads(Path(launch.env["AGENT_RUN_MANIFEST"]).read_text())["task_id"] == "t-1"
    assert all(name.startswith("AGENT_RUN_") for name in launch.env)
    assert tmp_path / "job" not in launch.writable


def test_the_whole_copy_may_be_written_where_the_project_is_a_part_of_it(
    tmp_path: Path,
) -> None:
    fence = FakeFence()
    work = job(tmp_path, fence, tree=tmp_path)

    anyio.run(CommandExecutor("x", "true").run, work)

    assert tmp_path in fence.launches[0].writable


def test_its_own_limits_and_network_replace_those_of_the_job(tmp_path: Path) -> None:
    fence = FakeFence()
    executor = CommandExecutor(
        "x", "true", network=("a.example:443",), limits={"memory_mb": 64}
    )
    work = job(tmp_path, fence, limits=Limits(memory_mb=9, wall_sec=5), network="allow")

    anyio.run(executor.run, work)

    (launch,) = fence.launches
    assert (launch.limits.memory_mb, launch.limits.wall_sec) == (64, 5)
    assert launch.network == ("a.example:443",)


def test_it_cannot_work_without_a_workspace(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="was given no workspace"):
        anyio.run(CommandExecutor("x", "true").run, job(tmp_path, workspace=None))


def test_its_record_is_read_from_its_file(tmp_path: Path) -> None:
    work = ran(tmp_path, FakeFence(record='{"status": "done", "risks": ["a"]}'))

    assert work.record is not None
    assert (work.record.status, work.record.risks) == ("done", ("a",))


def test_its_record_is_read_from_the_end_of_its_output(tmp_path: Path) -> None:
    out = 'thinking {"a": 1}\n{"status": "failed"}\n{\n "status": "done"\n}\n{"unrelated": 1}\n'

    work = ran(tmp_path, FakeFence(finished(out=out)))

    assert work.record is not None
    assert work.record.status == "done"


def test_no_record_is_no_fault(tmp_path: Path) -> None:
    work = ran(tmp_path, FakeFence(finished(out="all done\n")))

    assert (work.record, work.invalid) == (None, "")


def test_a_record_that_is_none_is_said_to_be_none(tmp_path: Path) -> None:
    work = ran(tmp_path, FakeFence(record='{"status": "great"}'))

    assert work.record is None
    assert "status" in work.invalid


@pytest.mark.parametrize(
    ("end", "error"),
    [
        (finished(0), ""),
        (finished(3, out="x"), "exit 3"),
        (finished(None, ended="timeout"), "ended by timeout"),
        (finished(None, ended="signalled", signal=9), "ended by signalled"),
    ],
)
def test_a_bad_end_is_told(tmp_path: Path, end: object, error: str) -> None:
    work = ran(tmp_path, FakeFence(end))  # type: ignore[arg-type]  # pytest's parameters

    assert work.seen.error == error
