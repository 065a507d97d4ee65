"""The experiments that are shown beside other frameworks: on our side nothing bad happens."""

from pathlib import Path

import pytest

from benchmarks.peers import experiments, ours


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio
@pytest.mark.parametrize("when", ["early", "late"])
async def test_one_failed_worker_of_30_makes_no_sibling_run_again(
    tmp_path: Path, when: str
) -> None:
    result = await ours.one_fails(tmp_path, when)

    assert result == experiments.row(
        ours.PEER, "E1", f"healthy siblings run again ({when} failure)", bad=0, of=29
    )


@pytest.mark.slow
def test_two_processes_at_one_task_execute_it_once(tmp_path: Path) -> None:
    result = ours.two_at_once(tmp_path)

    ran = experiments.noted(tmp_path / "ran")
    assert ran == {f"r{number}": 1 for number in range(20)}
    assert result == experiments.row(
        ours.PEER, "E2", "tasks run by both processes", bad=0, of=20
    )


@pytest.mark.anyio
async def test_eight_agents_never_spend_more_than_their_one_budget(tmp_path: Path) -> None:
    beyond, in_vain = await ours.one_budget(tmp_path)

    assert beyond == experiments.row(
        ours.PEER, "E3", "tokens spent beyond the limit", bad=0, of=1_000
    )
    assert in_vain == experiments.row(
        ours.PEER, "E3", "answers paid for and thrown away", bad=0, of=2
    )


@pytest.mark.anyio
async def test_data_that_breaks_its_schema_is_stored_nowhere(tmp_path: Path) -> None:
    result = await ours.breaks_its_schema(tmp_path)

    assert result == experiments.row(ours.PEER, "E4", "invalid payloads stored", bad=0, of=1)
    assert b'{"count":"many"}' not in whole(tmp_path)


def whole(folder: Path) -> bytes:
    """Return everything the ledger's files hold, one after the other."""
    return b"".join(file.read_bytes() for file in folder.glob("ledger.db*"))
