"""Judging a recorded run again: the same records, today's gates, no executor.

Gates that need the files of the work cannot be asked again from the ledger alone. What they
found then is kept, and said to be kept; a gate that is silent now is never taken for a pass.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from agent_run.contract.manifest import Manifest
from agent_run.contract.record import Record
from agent_run.contract.verdict import Finding, Outcome, Verdict
from agent_run.errors import AgentRunError
from agent_run.ledger import events as happened
from agent_run.ledger.pages import Page
from agent_run.ports.gate import Cache, Case, Gate

How: TypeAlias = Literal["same", "changed", "new", "kept"]

_NEEDS_FILES: Final = frozenset({"scope", "commands", "invariants", "diff size"})
_PERSON: Final = "review"


@dataclass(frozen=True, slots=True)
class Exhibit:
    """One record that was judged, and what was found then."""

    task_id: str
    claim: int
    manifest: Manifest
    record: Record
    observed: dict[str, object]
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class GateReplay:
    """What one gate says now beside what it said then."""

    gate: str
    how: How
    then: Outcome | None
    """`None` means that it had nothing to say."""
    now: Outcome | None
    evidence: str


@dataclass(frozen=True, slots=True)
class Replayed:
    """One record, judged again."""

    task_id: str
    claim: int
    then: Outcome
    now: Outcome
    gates: tuple[GateReplay, ...]

    @property
    def differs(self) -> bool:
        return self.then != self.now


def exhibits(pages: Sequence[Page]) -> Iterator[Exhibit]:
    """Yield each record that gates gave a verdict on, in the order of the verdicts."""
    manifests: dict[str, Manifest] = {}
    submitted: dict[str, happened.RecordSubmitted] = {}
    for page in pages:
        event = page.event()
        match event:
            case happened.TaskPosted():
                manifests[event.task_id] = event.manifest
            case happened.ScopeWidened():
                known = manifests[event.task_id]
                wider = (*known.allowed_paths, *event.paths)
                manifests[event.task_id] = known.model_copy(update={"allowed_paths": wider})
            case happened.RecordSubmitted():
                submitted[event.task_id] = event
            case _:
                verdict = getattr(event, "verdict", None)
                record = submitted.get(event.task_id)
                if isinstance(verdict, Verdict) and record and not _is_persons(verdict):
                    yield _exhibit(manifests[event.task_id], record, verdict)


async def replay(
    found: Sequence[Exhibit], gates: Sequence[Gate], cache: Cache
) -> list[Replayed]:
    """Return what these gates say today about each record."""
    return [await _judged_again(exhibit, gates, cache) for exhibit in found]


async def _judged_again(exhibit: Exhibit, gates: Sequence[Gate], cache: Cache) -> Replayed:
    case = Case(
        manifest=exhibit.manifest,
        record=exhibit.record,
        observed=exhibit.observed,  # type: ignore[arg-type]  # JSON, as the ledger has it
        candidate=None,
        rooms=None,
        cache=cache,
    )
    then = _by_gate(exhibit.verdict.findings)
    now: dict[str, tuple[Finding, ...]] = {}
    for gate in gates:
        answer = await _asked(gate, case)
        now[gate.name] = _with_files(answer, then.get(gate.name, ()))
    compared = [
        _compared(name, then.get(name, ()), now.get(name, ())) for name in {**then, **now}
    ]
    told = tuple(gate for gate in compared if gate.then or gate.now)
    counted = [
        finding
        for gate in told
        for finding in (then[gate.gate] if gate.how == "kept" else now[gate.gate])
    ]
    outcome = Verdict(findings=tuple(counted)).outcome if counted else "inconclusive"
    return Replayed(exhibit.task_id, exhibit.claim, exhibit.verdict.outcome, outcome, told)


async def _asked(gate: Gate, case: Case) -> tuple[Finding, ...]:
    try:
        return await gate.check(case)
    except AgentRunError as error:
        return (
            Finding(
                gate=gate.name,
                outcome="inconclusive",
                reason="no_evidence",
                evidence=str(error),
            ),
        )


def _with_files(now: tuple[Finding, ...], then: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Add what was held against files, which a gate cannot see any more, to what it says."""
    carried = tuple(one for one in then if one.paths and one.outcome != "pass")
    if not now or not carried:
        return now
    return (*(one for one in now if one.outcome != "pass"), *carried)


def _compared(name: str, then: tuple[Finding, ...], now: tuple[Finding, ...]) -> GateReplay:
    before = Verdict(findings=then).outcome if then else None
    after = Verdict(findings=now).outcome if now else None
    if before is not None and after is None:
        why = (
            "needs the files of the work" if name in _NEEDS_FILES else "has nothing to say now"
        )
        return GateReplay(name, "kept", before, None, f"{why}; what it found then counts")
    evidence = "; ".join(one.evidence for one in now)
    if before is None:
        return GateReplay(name, "new", None, after, evidence)
    how: How = "same" if before == after else "changed"
    return GateReplay(name, how, before, after, evidence)


def _by_gate(findings: Sequence[Finding]) -> dict[str, tuple[Finding, ...]]:
    grouped: dict[str, tuple[Finding, ...]] = {}
    for finding in findings:
        grouped[finding.gate] = (*grouped.get(finding.gate, ()), finding)
    return grouped


def _exhibit(
    manifest: Manifest, submitted: happened.RecordSubmitted, verdict: Verdict
) -> Exhibit:
    seen = submitted.observed if isinstance(submitted.observed, dict) else {}
    return Exhibit(
        task_id=submitted.task_id,
        claim=submitted.claim,
        manifest=manifest,
        record=submitted.record,
        observed=dict(seen),
        verdict=verdict,
    )


def _is_persons(verdict: Verdict) -> bool:
    return any(finding.gate == _PERSON for finding in verdict.findings)
