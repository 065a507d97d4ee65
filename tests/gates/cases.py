"""Cases for gates, and rooms whose answers a test writes down beforehand."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agent_run.contract.manifest import Manifest
from agent_run.contract.record import Record
from agent_run.contract.verdict import Finding
from agent_run.gates.cache import NoCache
from agent_run.ports.fence import Ended, FenceReport, Finished
from agent_run.ports.gate import Cache, Case, Done, Errand, Which
from agent_run.ports.workspace import Candidate, Change

NO_FENCE = FenceReport("none", None, (), ())


def finished(
    code: int | None = 0, *, ended: Ended = "exited", signal: int | None = None, out: str = ""
) -> Finished:
    return Finished(
        ended=ended,
        exit_code=code,
        signal=signal,
        detail="",
        stdout=out.encode(),
        stderr=b"",
        stdout_truncated=False,
        stderr_truncated=False,
        elapsed_ms=5,
        cpu_ms=5,
        refused_hosts=(),
        fence=NO_FENCE,
    )


@dataclass(slots=True)
class FakeRooms:
    """Answers with what was written down for base and result."""

    base: Finished = field(default_factory=finished)
    result: Finished = field(default_factory=finished)
    environment: str = "tools"
    errands: list[Errand] = field(default_factory=list)

    def tree(self, which: Which) -> str:
        return f"tree of the {which}"

    async def run(self, errand: Errand) -> Done:
        self.errands.append(errand)
        return Done(self.base if errand.which == "base" else self.result, {})


def change(path: str, lines: int = 1) -> Change:
    return Change(path, "changed", "100644", 10, "b", added=lines, removed=0)


def case(
    *,
    record: Record | None = None,
    observed: Mapping[str, Any] | None = None,
    candidate: Candidate | None = None,
    rooms: FakeRooms | None = None,
    cache: Cache | None = None,
    **manifest: Any,
) -> Case:
    return Case(
        manifest=Manifest.model_validate({"task_id": "t", "objective": "o", **manifest}),
        record=record or Record(),
        observed=observed or {},
        candidate=candidate,
        rooms=rooms,
        cache=cache or NoCache(),
    )


def outcomes(findings: tuple[Finding, ...]) -> list[tuple[str, str]]:
    return [(one.outcome, one.reason) for one in findings]
