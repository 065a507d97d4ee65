"""Gates that run commands: verification on the result, invariants before and after.

Every command runs in a fresh room, inside the fence, once on the base and once on the
result. What cannot be decided is inconclusive; it is never taken for a pass or a fail.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import anyio
from pydantic import JsonValue

from agent_run.contract.manifest import Check
from agent_run.contract.verdict import Finding, Outcome, Reason
from agent_run.gates.pytest_runs import Observing, Report, observe_pytest, read_report
from agent_run.ports.fence import Finished
from agent_run.ports.gate import Cache, Case, Done, Errand, Rooms, Which

_NOT_STARTED: Final = frozenset({126, 127})
_BY_SHELL: Final = 128
_FROM_OUTSIDE: Final = frozenset({1, 2, 9, 15})
"""Signals that the machine, or who looks after it, sends; others are the program's own."""
_NO_PYTEST: Final = "No module named pytest"
_RAN: Final = frozenset({"passed", "failed"})
_TAIL: Final = 3_000
_SHOWN: Final = 5
_VERSION: Final = "2"

Answer: TypeAlias = tuple[Outcome, Reason, str]


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of one command in one room."""

    outcome: Outcome
    reason: Reason
    said: str
    output: str = ""
    tests: Mapping[str, str] = field(default_factory=dict)
    """Outcome by test id, by a report of our own. Empty means that there is no report."""
    elapsed_ms: int = 0
    cached: bool = False


class CommandsGate:
    """Does the result pass what the manifest asks of it?"""

    name = "commands"

    async def check(self, case: Case) -> tuple[Finding, ...]:
        """Return one finding for each command of `verification`."""
        findings: list[Finding] = []
        for check in case.manifest.verification:
            if case.rooms is None:
                findings.append(_no_room(self.name, check))
                continue
            before, after = await _both(check, case.rooms, case.cache)
            findings.append(
                _verdict_on(self.name, check, before, _compared(case, before, after))
            )
        return tuple(findings)


class InvariantsGate:
    """Does what held before the work still hold?"""

    name = "invariants"

    async def check(self, case: Case) -> tuple[Finding, ...]:
        """Return one finding for each command of `invariants`."""
        findings: list[Finding] = []
        for check in case.manifest.invariants:
            if case.rooms is None:
                findings.append(_no_room(self.name, check))
                continue
            before, after = await _both(check, case.rooms, case.cache)
            findings.append(_still_holds(self.name, check, before, after))
        return tuple(findings)


async def _both(check: Check, rooms: Rooms, cache: Cache) -> tuple[Trial, Trial]:
    trials: dict[Which, Trial] = {}

    async def one(which: Which) -> None:
        trials[which] = await _tried(check, which, rooms, cache)

    async with anyio.create_task_group() as group:
        group.start_soon(one, "base")
        group.start_soon(one, "result")
    return trials["base"], trials["result"]


async def _tried(check: Check, which: Which, rooms: Rooms, cache: Cache) -> Trial:
    key = _key(check, rooms.tree(which), rooms.environment)
    known = cache.get(key)
    if isinstance(known, dict):
        return Trial(**{**known, "cached": True})  # type: ignore[arg-type]  # we wrote it
    observed = observe_pytest(check.run)
    errand = Errand(
        command=check.run,
        which=which,
        timeout_sec=check.timeout.total_seconds(),
        env=observed.env if observed else {},
        readable=observed.readable if observed else (),
        reports=observed.reports if observed else (),
        papers=observed.papers if observed else {},
    )
    done = await rooms.run(errand)
    trial = _trial(check, done, observed)
    if trial.outcome != "inconclusive":
        cache.put(key, _plain(trial))
    return trial


def _trial(check: Check, done: Done, observed: Observing | None) -> Trial:
    finished = done.finished
    report = read_report(done.reports, observed) if observed else None
    answer = _not_run(finished)
    if answer is None and observed is not None:
        answer = _tested(check, finished, report)
    outcome, reason, said = answer or _ran(check, finished)
    return Trial(
        outcome,
        reason,
        said,
        output=_tail(finished),
        tests=report.tests if report else {},
        elapsed_ms=finished.elapsed_ms,
    )


def _not_run(finished: Finished) -> Answer | None:
    """Return why the command tells nothing about the work, if that is so."""
    if finished.ended in {"timeout", "cpu"}:
        return "inconclusive", "timeout", finished.detail or "took too long"
    if finished.ended == "signalled":
        return _signalled(finished.signal or 0)
    if finished.ended != "exited":
        return "inconclusive", "no_evidence", finished.detail or f"ended by {finished.ended}"
    code = finished.exit_code or 0
    if code in _NOT_STARTED:
        last = _tail(finished).strip().splitlines()[-1:]
        said = f"could not be run: {last[0]}" if last else "could not be run"
        return "inconclusive", "no_evidence", said
    return _signalled(code - _BY_SHELL) if code - _BY_SHELL in _FROM_OUTSIDE else None


def _signalled(number: int) -> Answer:
    said = f"was ended by signal {number}"
    if number in _FROM_OUTSIDE:
        return "inconclusive", "crashed", said
    return "fail", "verification_failed", said


def _tested(check: Check, finished: Finished, report: Report | None) -> Answer:
    """Return what a run of pytest says; its exit code alone is not believed."""
    code = finished.exit_code
    if report is None:
        return _unreported(finished)
    if report.tampered or (report.failed and not code):
        lied = f"{report.failed} tests failed, yet pytest exited with 0"
        return "fail", "tampered", report.tampered or lied
    if code:
        return "fail", "verification_failed", f"exit {code}"
    wanted = check.min_passed or 1
    if report.passed < wanted:
        said = f"{report.passed} tests passed, wanted at least {wanted}"
        return "fail", "no_evidence", said
    return "pass", "verified", f"exit 0, {report.passed} tests passed"


def _unreported(finished: Finished) -> Answer:
    code, said = finished.exit_code, "pytest ended without leaving its report"
    if not code:
        return "fail", "tampered", said
    if _NO_PYTEST in _tail(finished):
        return "inconclusive", "no_evidence", "pytest is not installed"
    return "fail", "verification_failed", f"exit {code}, {said}"


def _ran(check: Check, finished: Finished) -> Answer:
    if finished.exit_code:
        return "fail", "verification_failed", f"exit {finished.exit_code}"
    if check.min_passed is None:
        return "pass", "verified", "exit 0"
    said = "min_passed needs pytest, whose report we can check; exit 0 is no evidence"
    return "fail", "no_evidence", said


def _compared(case: Case, before: Trial, after: Trial) -> Trial:
    """Return `after` as it looks beside `before`."""
    if after.outcome == "inconclusive" and after.reason == "no_evidence":
        if before.outcome == "inconclusive":
            return after
        said = f"{after.said}, which did not happen on the base"
        return replace(after, outcome="fail", reason="verification_failed", said=said)
    if after.outcome != "pass":
        return after
    changed = {change.path for change in case.candidate.changes} if case.candidate else set()
    silent = _silent(before.tests, after.tests)
    of_same = [test for test in silent if test.partition("::")[0] not in changed]
    if of_same:
        said = f"tests that ran on the base did not run: {_some(of_same)}"
        return replace(after, outcome="fail", reason="tampered", said=said)
    ran = [sum(how in _RAN for how in tests.values()) for tests in (before.tests, after.tests)]
    if silent and ran[1] < ran[0]:
        said = f"{ran[0]} tests ran on the base and {ran[1]} now; gone are {_some(silent)}"
        return replace(after, outcome="inconclusive", reason="no_evidence", said=said)
    return after


def _silent(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return the tests that ran before and not after; parameters may come and go."""
    running = {test.partition("[")[0] for test, how in after.items() if how in _RAN}
    ran = (test.partition("[")[0] for test, how in before.items() if how in _RAN)
    return [test for test in dict.fromkeys(ran) if "::" in test and test not in running]


def _some(tests: Sequence[str]) -> str:
    more = len(tests) - _SHOWN
    return ", ".join(tests[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _no_room(gate: str, check: Check) -> Finding:
    return Finding(
        gate=gate,
        outcome="inconclusive",
        reason="no_evidence",
        evidence="there are no files here that this command could be run on",
        commands=(check.run,),
    )


def _verdict_on(gate: str, check: Check, before: Trial, after: Trial) -> Finding:
    base = {"pass": "passed", "fail": "failed", "inconclusive": "was undecided"}[before.outcome]
    evidence = f"{after.said}; {base} on the base too"
    if before.outcome != after.outcome:
        evidence = f"{after.said}; {base} on the base"
    if after.outcome != "pass" and after.output:
        evidence = f"{evidence}\n{after.output}"
    return Finding(
        gate=gate,
        outcome=after.outcome,
        reason=after.reason,
        evidence=evidence,
        commands=(check.run,),
        elapsed_ms=after.elapsed_ms,
        cached=after.cached,
    )


def _still_holds(gate: str, check: Check, before: Trial, after: Trial) -> Finding:
    outcome, reason, said = after.outcome, after.reason, "holds before and after"
    if before.outcome != "pass":
        outcome, reason = "inconclusive", "no_evidence"
        said = f"did not hold before the work: {before.said}\n{before.output}"
    elif after.outcome == "fail":
        reason, said = (
            "invariant_broken",
            f"held before, broken now: {after.said}\n{after.output}",
        )
    elif after.outcome == "inconclusive":
        said = after.said
    return Finding(
        gate=gate,
        outcome=outcome,
        reason=reason,
        evidence=said,
        commands=(check.run,),
        elapsed_ms=after.elapsed_ms,
        cached=after.cached,
    )


def _tail(finished: Finished) -> str:
    whole = (finished.stdout + finished.stderr).decode(errors="replace")
    left_out = len(whole) - _TAIL
    return whole if left_out <= 0 else f"[{left_out} characters before]\n{whole[-_TAIL:]}"


def _plain(trial: Trial) -> dict[str, JsonValue]:
    return {
        "outcome": trial.outcome,
        "reason": trial.reason,
        "said": trial.said,
        "output": trial.output,
        "tests": dict(trial.tests),
        "elapsed_ms": trial.elapsed_ms,
    }


def _key(check: Check, tree: str, environment: str) -> str:
    judged = f"{_VERSION}\n{environment}\n{tree}\n{check.model_dump_json()}"
    return hashlib.sha256(judged.encode()).hexdigest()
