"""Commands on base and result: what their ends mean together."""

from pathlib import Path

import anyio
import pytest

from agent_run.gates.cache import FileCache
from agent_run.gates.commands import CommandsGate, InvariantsGate
from agent_run.ports.fence import Finished
from agent_run.ports.workspace import Candidate
from tests.gates.cases import FakeRooms, case, finished, outcomes

DIED = finished(None, ended="signalled", signal=11)
KILLED = finished(None, ended="signalled", signal=9)
SLOW = finished(None, ended="timeout")
HUNGRY = finished(None, ended="memory")


@pytest.mark.parametrize(
    ("base", "result", "expected"),
    [
        (finished(1), finished(0), ("pass", "verified")),
        (finished(0), finished(0), ("pass", "verified")),
        (finished(0), finished(1), ("fail", "verification_failed")),
        (finished(1), finished(1), ("fail", "verification_failed")),
        (finished(0), DIED, ("fail", "verification_failed")),
        (finished(0), finished(139), ("fail", "verification_failed")),
        (finished(0), KILLED, ("inconclusive", "crashed")),
        (finished(0), finished(137), ("inconclusive", "crashed")),
        (finished(0), SLOW, ("inconclusive", "timeout")),
        (SLOW, finished(0), ("pass", "verified")),
        (HUNGRY, HUNGRY, ("inconclusive", "no_evidence")),
        (finished(0), HUNGRY, ("fail", "verification_failed")),
        (finished(127), finished(127), ("inconclusive", "no_evidence")),
        (finished(0), finished(127), ("fail", "verification_failed")),
        (finished(126), finished(126), ("inconclusive", "no_evidence")),
    ],
)
def test_the_end_on_the_result_is_read_beside_the_end_on_the_base(
    base: Finished, result: Finished, expected: tuple[str, str]
) -> None:
    looked_at = case(rooms=FakeRooms(base, result), verification=["check"])

    assert outcomes(anyio.run(CommandsGate().check, looked_at)) == [expected]


@pytest.mark.parametrize(
    ("base", "result", "expected"),
    [
        (finished(0), finished(0), ("pass", "verified")),
        (finished(0), finished(1), ("fail", "invariant_broken")),
        (finished(1), finished(0), ("inconclusive", "no_evidence")),
        (finished(1), finished(1), ("inconclusive", "no_evidence")),
        (finished(0), SLOW, ("inconclusive", "timeout")),
    ],
)
def test_an_invariant_is_broken_only_where_it_held(
    base: Finished, result: Finished, expected: tuple[str, str]
) -> None:
    looked_at = case(rooms=FakeRooms(base, result), invariants=["check"])

    assert outcomes(anyio.run(InvariantsGate().check, looked_at)) == [expected]


def test_a_number_of_tests_cannot_be_had_from_an_exit_code() -> None:
    looked_at = case(rooms=FakeRooms(), verification=[{"run": "make test", "min_passed": 3}])

    assert outcomes(anyio.run(CommandsGate().check, looked_at)) == [("fail", "no_evidence")]


def test_pytest_that_leaves_no_report_is_not_believed() -> None:
    looked_at = case(rooms=FakeRooms(), verification=["pytest -q"])

    assert outcomes(anyio.run(CommandsGate().check, looked_at)) == [("fail", "tampered")]


def test_commands_without_files_to_run_on_are_undecided() -> None:
    looked_at = case(verification=["true"], invariants=["true"])

    for gate in (CommandsGate(), InvariantsGate()):
        found = anyio.run(gate.check, looked_at)
        assert outcomes(found) == [("inconclusive", "no_evidence")]


def test_evidence_keeps_the_end_of_the_output_and_says_what_is_missing() -> None:
    loud = finished(1, out="x" * 10_000 + "the end")
    looked_at = case(rooms=FakeRooms(loud, loud), verification=["check"])

    (found,) = anyio.run(CommandsGate().check, looked_at)

    assert found.evidence.endswith("the end")
    assert "[7007 characters before]" in found.evidence


def test_findings_are_kept_but_never_undecided_ones(tmp_path: Path) -> None:
    cache = FileCache(tmp_path)
    steady, slow = FakeRooms(), FakeRooms(SLOW, SLOW)

    for rooms in (steady, steady, slow, slow):
        command = "steady" if rooms is steady else "slow"
        looked_at = case(rooms=rooms, cache=cache, verification=[command])
        anyio.run(CommandsGate().check, looked_at)

    assert (len(steady.errands), len(slow.errands)) == (2, 4)


def test_a_half_written_finding_is_found_out_again(tmp_path: Path) -> None:
    cache = FileCache(tmp_path)
    cache.put("ab12", {"outcome": "pass"})
    (file,) = tmp_path.glob("*/*.json")
    file.write_text('{"outco')

    assert cache.get("ab12") is None
    assert cache.get("cd34") is None


def test_a_tree_that_differs_is_not_the_same_case(tmp_path: Path) -> None:
    class Other(FakeRooms):
        def tree(self, which: object) -> str:
            return f"another tree of the {which}"

    cache, first, other = FileCache(tmp_path), FakeRooms(), Other()
    for rooms in (first, other):
        looked_at = case(
            rooms=rooms, cache=cache, candidate=Candidate("t"), verification=["true"]
        )
        anyio.run(CommandsGate().check, looked_at)

    assert len(other.errands) == 2
