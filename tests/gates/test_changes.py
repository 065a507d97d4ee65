"""Scope and size: what may be changed, and how much of it."""

from typing import Any

import anyio

from agent_run.gates.changes import DiffSizeGate, ScopeGate
from agent_run.ports.workspace import Candidate, Issue
from tests.gates.cases import case, change, outcomes


def test_allowed_changes_pass_and_are_named() -> None:
    candidate = Candidate("t", (change("src/a.py"), change("src/b.py")))

    (found,) = anyio.run(ScopeGate().check, case(candidate=candidate, allowed_paths=["src/**"]))

    assert found.outcome == "pass"
    assert found.paths == ("src/a.py", "src/b.py")


def test_each_reason_is_one_finding_with_its_paths() -> None:
    refused = (
        Issue("out_of_scope", "a", "'a' was changed"),
        Issue("tampered", "b", "'b' is a link"),
        Issue("out_of_scope", "c", "'c' was added"),
    )

    found = anyio.run(ScopeGate().check, case(candidate=Candidate("t", refused=refused)))

    assert outcomes(found) == [("fail", "out_of_scope"), ("fail", "tampered")]
    assert found[0].paths == ("a", "c")


def test_of_thousands_of_strays_some_are_named_and_the_rest_is_counted() -> None:
    refused = tuple(Issue("out_of_scope", f"f{n}", f"'f{n}' was added") for n in range(20_000))

    (found,) = anyio.run(ScopeGate().check, case(candidate=Candidate("t", refused=refused)))

    assert found.evidence.endswith("and 19900 more, which are not named here")


def test_no_change_is_a_failure_where_changes_are_expected() -> None:
    nothing = Candidate("t")

    expected = anyio.run(ScopeGate().check, case(candidate=nothing, allowed_paths=["a"]))
    allowed = anyio.run(ScopeGate().check, case(candidate=nothing))
    failed = anyio.run(
        ScopeGate().check, case(candidate=nothing, allowed_paths=["a"], observed={"error": "x"})
    )

    assert outcomes(expected) == [("fail", "no_change")]
    assert outcomes(allowed) == outcomes(failed) == [("pass", "verified")]


def test_work_without_files_is_none_of_its_business() -> None:
    assert anyio.run(ScopeGate().check, case()) == ()
    assert anyio.run(DiffSizeGate().check, case(max_diff_lines=1)) == ()


def test_a_change_may_not_be_larger_than_the_manifest_says() -> None:
    candidate = Candidate("t", (change("a", 30), change("b", 30)))

    def asked(**limits: Any) -> list[tuple[str, str]]:
        return outcomes(anyio.run(DiffSizeGate().check, case(candidate=candidate, **limits)))

    assert asked() == []
    assert asked(max_diff_lines=60, max_diff_files=2) == [("pass", "verified")]
    assert asked(max_diff_lines=59) == [("fail", "out_of_scope")]
    assert asked(max_diff_files=1) == [("fail", "out_of_scope")]


def test_files_that_nobody_saw_are_not_taken_for_right() -> None:
    (unseen,) = anyio.run(ScopeGate().check, case(allowed_paths=["src/**"]))

    assert (unseen.outcome, unseen.reason) == ("inconclusive", "no_evidence")
