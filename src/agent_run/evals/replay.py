"""Judging a recorded run again: the same records, today's gates, no executor.

Accepted work is judged on its files again while they are there. Otherwise gates about files
cannot be asked: what they found then is kept, and said to be kept; a gate that is silent now
is never taken for a pass.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, Protocol, TypeAlias

from pydantic import JsonValue

from agent_run.contract.manifest import Manifest
from agent_run.contract.record import Record
from agent_run.contract.verdict import Finding, Outcome, Verdict
from agent_run.errors import AgentRunError
from agent_run.evals.side_by_side import each_of
from agent_run.ledger import events as happened
from agent_run.ledger.pages import Page
from agent_run.ports.gate import Cache, Case, Gate, Rooms
from agent_run.ports.workspace import Candidate

How: TypeAlias = Literal["same", "changed", "new", "kept"]

_NEEDS_FILES: Final = frozenset({"scope", "commands", "invariants", "diff size"})


@dataclass(frozen=True, slots=True)
class Exhibit:
    """One record that was judged, and what was found then."""

    task_id: str
    claim: int
    manifest: Manifest
    record: Record
    observed: dict[str, object]
    verdict: Verdict
    commit: str = ""
    """Where the accepted change lies. Empty means that there is none."""

    @property
    def had_files(self) -> bool:
        return self.verdict.tree is not None


class Files(Protocol):
    """Who still has the files of accepted work."""

    def files(
        self, name: str, commit: str, manifest: Manifest
    ) -> AbstractAsyncContextManager[tuple[Candidate, Rooms | None] | None]:
        """Give the change that `commit` is, and rooms for it; `None` if it is gone."""
        ...


class NoFiles:
    """Nobody has any."""

    @asynccontextmanager
    async def files(self, name: str, commit: str, manifest: Manifest) -> AsyncIterator[None]:
        """Give nothing."""
        yield None


@dataclass(frozen=True, slots=True)
class Hearing:
    """Before whom records come again."""

    gates: Sequence[Gate]
    cache: Cache
    files: Files
    at_once: int = 4


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


Progress: TypeAlias = Callable[[int, int, Replayed], None]
"""Told how many are judged, of how many, and which was the last."""


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
                if isinstance(verdict, Verdict) and record and not verdict.by_a_person:
                    commit = _commit(getattr(event, "result", None))
                    yield _exhibit(manifests[event.task_id], record, verdict, commit)


async def replay(
    hearing: Hearing, found: Sequence[Exhibit], progress: Progress
) -> list[Replayed]:
    """Return what the gates say today about each record."""
    return await each_of(
        found, partial(_judged_again, hearing), at_once=hearing.at_once, progress=progress
    )


async def _judged_again(hearing: Hearing, exhibit: Exhibit) -> Replayed:
    then = _by_gate(exhibit.verdict.findings)
    now: dict[str, tuple[Finding, ...]] = {}
    name = f"{exhibit.task_id}-{exhibit.claim}"
    async with hearing.files.files(name, exhibit.commit, exhibit.manifest) as there:
        candidate, rooms = there or (None, None)
        case = Case(
            manifest=exhibit.manifest,
            record=exhibit.record,
            observed=exhibit.observed,  # type: ignore[arg-type]  # JSON, as the ledger has it
            candidate=candidate,
            rooms=rooms,
            cache=hearing.cache,
        )
        gone = candidate is None
        for gate in hearing.gates:
            if gone and exhibit.had_files and gate.name in _NEEDS_FILES:
                continue
            answer = await _asked(gate, case)
            now[gate.name] = _with_files(answer, then.get(gate.name, ())) if gone else answer
    return _replayed(exhibit, then, now)


def _replayed(
    exhibit: Exhibit,
    then: Mapping[str, tuple[Finding, ...]],
    now: Mapping[str, tuple[Finding, ...]],
) -> Replayed:
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
    evidence = "; ".join(map(_told, now))
    if before is None:
        return GateReplay(name, "new", None, after, evidence)
    how: How = "same" if before == after else "changed"
    return GateReplay(name, how, before, after, evidence)


def _told(finding: Finding) -> str:
    about = ", ".join(finding.commands)
    return f"{about}: {finding.evidence}" if about else finding.evidence


def _by_gate(findings: Sequence[Finding]) -> dict[str, tuple[Finding, ...]]:
    grouped: dict[str, tuple[Finding, ...]] = {}
    for finding in findings:
        grouped[finding.gate] = (*grouped.get(finding.gate, ()), finding)
    return grouped


def _commit(result: JsonValue) -> str:
    return str(result.get("commit", "")) if isinstance(result, dict) else ""


def _exhibit(
    manifest: Manifest, submitted: happened.RecordSubmitted, verdict: Verdict, commit: str
) -> Exhibit:
    seen = submitted.observed if isinstance(submitted.observed, dict) else {}
    return Exhibit(
        task_id=submitted.task_id,
        claim=submitted.claim,
        manifest=manifest,
        record=submitted.record,
        observed=dict(seen),
        verdict=verdict,
        commit=commit,
    )
