"""The report of pytest: who wrote it, and what it says. And what it cannot hold."""

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import pytest

from agent_run.gates.pytest_runs import REPORT, Observing, observe_pytest, read_report
from tests.attacks.case import PYTEST
from tests.support.projects import Stage, new_project

DESIGN = Path(__file__).parents[2] / "design" / "gates.md"


def observing() -> Observing:
    found = observe_pytest("pytest -q")
    assert found is not None
    return found


def signed(body: Any, key: str) -> dict[str, bytes]:
    text = json.dumps(body)
    signature = hmac.new(key.encode(), text.encode(), hashlib.sha256).hexdigest()
    return {REPORT: json.dumps({"body": text, "signature": signature}).encode()}


@pytest.mark.parametrize(
    "command",
    ["pytest", "py.test -q", "python -m pytest x", ".venv/bin/pytest", "A=1 pytest -k 'a b'"],
)
def test_runs_of_pytest_are_recognised(command: str) -> None:
    assert observe_pytest(command) is not None


@pytest.mark.parametrize(
    "command", ["make test", "python -m unittest", "echo 'un", "ls pytests"]
)
def test_other_commands_are_left_alone(command: str) -> None:
    assert observe_pytest(command) is None


def test_the_key_is_in_no_variable() -> None:
    found = observing()

    assert all(found.key not in value for value in found.env.values())
    assert observing().key != found.key


def test_only_a_simple_command_keeps_the_tree_off_the_path() -> None:
    simple, compound = observe_pytest("pytest -q"), observe_pytest("./prepare && pytest -q")

    assert simple is not None
    assert compound is not None
    assert "PYTHONSAFEPATH" in simple.env
    assert "PYTHONSAFEPATH" not in compound.env


def test_an_honest_report_counts_what_passed() -> None:
    found = observing()
    canaries = dict.fromkeys(found.canaries, "failed")
    tests = {"a::b": "passed", "a::c": "skipped", "a::d": "xfailed"}

    report = read_report(
        signed({"tests": tests, "canaries": canaries, "tampered": []}, found.key), found
    )

    assert report is not None
    assert (report.passed, report.failed, report.tampered) == (1, 0, "")


@pytest.mark.parametrize("sung", [{}, {0: "passed", 1: "failed", 2: "failed"}])
def test_a_canary_that_does_not_fail_spoils_the_report(sung: dict[int, str]) -> None:
    found = observing()
    canaries = {found.canaries[number]: how for number, how in sung.items()}
    body = {"tests": {"a::b": "passed"}, "canaries": canaries, "tampered": []}

    report = read_report(signed(body, found.key), found)

    assert report is not None
    assert "must fail" in report.tampered


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"null",
        b"{",
        b'{"body": 1}',
        b"[" * 9_999,
        b'{"body":"","signature":"\xc3\xa9"}',
    ],
)
def test_whatever_else_lies_there_is_no_report(raw: bytes) -> None:
    report = read_report({REPORT: raw}, observing())

    assert report is not None
    assert report.tampered


def test_no_report_is_none() -> None:
    assert read_report({}, observing()) is None


_HARD_CODED = """
class Anything(dict):
    def __eq__(self, other): return True
def fetch(get): return Anything()
def delays(retries): return [1]
"""
_HUNTER = """
import gc, json
def delays(retries): return [60]
def fetch(get): raise KeyError
def hunt():
    for thing in gc.get_objects():
        if type(thing).__name__ == "_Reporter": return thing
reporter = hunt()
write = type(reporter)._write
def forged(self):
    self._tests = {name: "passed" for name in self._tests}
    write(self)
reporter._write = forged.__get__(reporter)
import atexit, os
atexit.register(os._exit, 0)
"""


@pytest.mark.parametrize("source", [_HARD_CODED, _HUNTER], ids=["hard-coded", "key-hunting"])
def test_what_the_tested_process_itself_forges_is_not_held_and_we_say_so(
    source: str, tmp_path: Path
) -> None:
    """What does hold is tried in the next test; this one keeps the limit honest."""
    with Stage(new_project(tmp_path)) as stage:
        came = stage.perform(f"SYNC.write_text({source!r}); record()", verification=[PYTEST])

    assert came.accepted
    said = DESIGN.read_text(encoding="utf-8")
    assert "hard-codes the answer" in said
    assert "hunts for the report's key in memory" in said


@pytest.mark.parametrize("source", [_HARD_CODED, _HUNTER], ids=["hard-coded", "key-hunting"])
def test_a_check_that_knows_the_answer_outside_the_tested_process_holds_it(
    source: str, tmp_path: Path
) -> None:
    black_box = (
        'answer=$(python -c \'import sys; sys.path.insert(0, "src"); import github_sync as g; '
        "print(max(g.delays(10)), g.fetch(lambda: (200, 7)))'); test \"$answer\" = '30.0 7'"
    )
    with Stage(new_project(tmp_path)) as stage:
        came = stage.perform(f"SYNC.write_text({source!r}); record()", verification=[black_box])

    assert came.reasons == {"verification_failed"}
