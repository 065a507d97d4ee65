"""Gates that run commands: verification on the result, invariants before and after.

Every command runs in a fresh room, inside the fence, once on the base and once on the
result. What cannot be decided is inconclusive; it is never taken for a pass or a fail.
"""

import hashlib
from dataclasses import dataclass
from typing import Final, TypeAlias

import anyio
from pydantic import JsonValue

from agent_run.contract.manifest import Check
from agent_run.contract.verdict import Finding, Outcome, Reason
from agent_run.gates.pytest_runs import Report, observe_pytest, read_report
from agent_run.ports.fence import Finished
from agent_run.ports.gate import Cache, Case, Errand, Rooms, Which

_NOT_STARTED: Final = frozenset({126, 127})
_TAIL: Final = 3_000
_VERSION: Final = "1"

Answer: TypeAlias = tuple[Outcome, Reason, str]


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of one command in one room."""

    outcome: Outcome
    reason: Reason
    said: str
    output: str = ""
    passed: int | None = None
    """Tests that passed, by a report of our own. `None` means that there is no report."""
    elapsed_ms: int = 0
    cached: bool = False


class CommandsGate:
    """Does the result pass what the manifest asks of it?"""

    name = "commands"

    async def check(self, case: Case) -> tuple[Finding, ...]:
        """Return one finding for each command of `verification`."""
        if case.rooms is None:
            return ()
        findings: list[Finding] = []
        for check in case.manifest.verification:
            before, after = await _both(check, case.rooms, case.cache)
            findings.append(_verdict_on(self.name, check, before, after))
        return tuple(findings)


class InvariantsGate:
    """Does what held before the work still hold?"""

    name = "invariants"

    async def check(self, case: Case) -> tuple[Finding, ...]:
        """Return one finding for each command of `invariants`."""
        if case.rooms is None:
            return ()
        findings: list[Finding] = []
        for check in case.manifest.invariants:
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
    key = _key(check, rooms.tree(which))
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
    )
    done = await rooms.run(errand)
    report = read_report(done.reports, observed) if observed else None
    trial = _trial(check, done.finished, report)
    if trial.outcome != "inconclusive":
        cache.put(key, _plain(trial))
    return trial


def _trial(check: Check, finished: Finished, report: Report | None) -> Trial:
    outcome, reason, said = _not_run(finished) or _ran(check, finished, report)
    return Trial(
        outcome,
        reason,
        said,
        output=_tail(finished),
        passed=report.passed if report else None,
        elapsed_ms=finished.elapsed_ms,
    )


def _not_run(finished: Finished) -> Answer | None:
    """Return why the command tells nothing about the work, if that is so."""
    if finished.ended in {"timeout", "cpu"}:
        return "inconclusive", "timeout", finished.detail or "took too long"
    if finished.ended != "exited":
        return "inconclusive", "no_evidence", finished.detail or f"ended by {finished.ended}"
    if finished.exit_code in _NOT_STARTED:
        last = _tail(finished).strip().splitlines()[-1:]
        said = f"could not be run: {last[0]}" if last else "could not be run"
        return "inconclusive", "no_evidence", said
    return None


def _ran(check: Check, finished: Finished, report: Report | None) -> Answer:
    if finished.exit_code != 0:
        return "fail", "verification_failed", f"exit {finished.exit_code}"
    if report is None:
        if check.min_passed is None:
            return "pass", "verified", "exit 0"
        said = "min_passed needs pytest, whose report we can check; exit 0 is no evidence"
        return "fail", "no_evidence", said
    if report.tampered:
        return "fail", "tampered", report.tampered
    wanted = check.min_passed or 1
    if report.passed < wanted:
        said = f"{report.passed} tests passed, wanted at least {wanted}"
        return "fail", "no_evidence", said
    return "pass", "verified", f"exit 0, {report.passed} tests passed"


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
        "passed": trial.passed,
        "elapsed_ms": trial.elapsed_ms,
    }


def _key(check: Check, tree: str) -> str:
    judged = f"{_VERSION}\n{tree}\n{check.model_dump_json()}"
    return hashlib.sha256(judged.encode()).hexdigest()
