"""Work that touches no files: claimed, done, submitted and judged among many others at once.

It does what `worker` and `judge` do, with nothing of what only files need: no folder, no
room, no tree. What many such tasks write at one moment is one commit, and one heartbeat
keeps all their claims.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

import anyio

from agent_run.contract.base import RunId, TaskId, format_duration
from agent_run.contract.claim import ClaimCheck
from agent_run.contract.manifest import Manifest
from agent_run.contract.verdict import Finding, Verdict
from agent_run.desk.counter import claim_check
from agent_run.desk.together import Together
from agent_run.engine.briefing import brief_for
from agent_run.engine.handing import handing
from agent_run.engine.judge import JUDGE
from agent_run.engine.observing import invalid_because, observation, settled_record
from agent_run.engine.site import Site
from agent_run.engine.telling import Told, Topic
from agent_run.errors import AgentRunError, StaleClaim, StoreError, TransitionError, Unfit
from agent_run.ledger.commands import Claim, Heartbeat, Judge, Release, Submit
from agent_run.ledger.state import RunState, Status
from agent_run.ports.executor import Executor, Job, Work
from agent_run.ports.gate import Case

_BEATS_PER_TTL: Final = 3
_SHORTEST_PAUSE: Final = 0.05
_AT_THE_DESK: Final = 16
"""How many may be on their way from one piece of work to the next.

When many come back at one moment, the first are at work again while the last still wait;
if all went through each step together, all would wait for all.
"""
_NO_GATE: Final = Finding(
    gate="judge",
    outcome="inconclusive",
    reason="no_evidence",
    evidence="no gate has a question about this task, so a person has to look",
)
_SHOWN: Final = {"pass": "PASS", "inconclusive": "UNDECIDED", "fail": "FAIL"}


def touches_no_files(site: Site, executor: Executor, manifest: Manifest) -> bool:
    """Say whether a task can be done without a copy of the project."""
    if executor.wants_workspace:
        return False
    files = manifest.allowed_paths or manifest.verification or manifest.invariants
    return site.workspace is None or not files


@dataclass(slots=True)
class _Held:
    """One claim that is being worked under."""

    check: ClaimCheck
    scope: anyio.CancelScope
    lost: str = ""
    """Why the claim is not ours any more. Empty means that it is."""
    missed: int = 0
    """How many heartbeats in a row the ledger did not answer."""


@dataclass(slots=True)
class Bench:
    """Where the file-less tasks of one run are worked on, all in this process."""

    site: Site
    desk: Together
    run_id: RunId
    trace_id: str
    owner: str
    ttl: timedelta
    door: anyio.Semaphore = field(default_factory=lambda: anyio.Semaphore(_AT_THE_DESK))
    """Whoever works passes it on the way out, and again on the way back with the record."""
    _held: dict[TaskId, _Held] = field(default_factory=dict)

    async def work(self, task_id: TaskId, executor: Executor) -> RunState:
        """Claim the task and work on it until it is settled, waits, or no attempt is left.

        The caller holds the door; it stands open while the executor works.

        Raises:
            NotClaimable: Someone else holds it, or it waits for something.
            StaleClaim: The claim was lost; nothing was submitted.
            Unfit: The executor cannot work here; the claim was given back.
        """
        while True:
            claim = Claim(task_id=task_id, owner=self.owner, ttl=self.ttl)
            state = await self.desk.handle(self.run_id, claim)
            if state.tasks[task_id].status is not Status.CLAIMED:
                task = state.tasks[task_id]
                self._tell("claim", f"task={task_id} {task.status}: {task.note}")
                return state
            state = await self._attempt(state, task_id, executor)
            while state.tasks[task_id].status is Status.SUBMITTED:
                state = await self._judge(state, task_id)
            if state.tasks[task_id].status is not Status.READY:
                return state

    @asynccontextmanager
    async def outside(self) -> AsyncIterator[None]:
        """Let others through the door meanwhile."""
        self.door.release()
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                await self.door.acquire()

    async def beat(self) -> None:
        """Keep all claims alive, until cancelled."""
        pause = max(_SHORTEST_PAUSE, self.ttl.total_seconds() / _BEATS_PER_TTL)
        while True:
            await anyio.sleep(pause)
            async with anyio.create_task_group() as group:
                for held in tuple(self._held.values()):
                    group.start_soon(self._beat_for, held)

    async def _beat_for(self, held: _Held) -> None:
        check = held.check
        heartbeat = Heartbeat(
            task_id=check.task_id, actor=check.owner, claim=check.claim or 0, ttl=self.ttl
        )
        try:
            await self.desk.handle(self.run_id, heartbeat)
            held.missed = 0
        except StoreError as error:
            # The ledger may come back; the claim holds as long as its time has not passed.
            held.missed += 1
            if held.missed >= _BEATS_PER_TTL:
                held.lost = f"the ledger did not answer for a whole claim: {error}"
        except TransitionError as error:
            held.lost = str(error)
        if held.lost:
            held.scope.cancel()

    async def _attempt(self, state: RunState, task_id: TaskId, executor: Executor) -> RunState:
        check = claim_check(self.run_id, state, task_id)
        said = f"task={task_id} owner={check.owner} ttl={format_duration(self.ttl)}"
        self._tell("claim", f"{said} attempt={check.attempt} claim={check.claim}")
        manifest = state.tasks[task_id].manifest
        try:
            with self._holding(check):
                job = self._job(state, check)
                async with self.outside():
                    work = await executor.run(job)
        except Exception as error:
            counts = not isinstance(error, Unfit)
            await self._give_back(check, str(error) or type(error).__name__, counts=counts)
            raise
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self._give_back(check, "the worker was interrupted", counts=False)
            raise
        work = replace(work, invalid=invalid_because(work, manifest))
        return await self._submit(check, executor, work)

    @contextmanager
    def _holding(self, check: ClaimCheck) -> Iterator[None]:
        with anyio.CancelScope() as scope:
            held = self._held[check.task_id] = _Held(check, scope)
            try:
                yield
            finally:
                del self._held[check.task_id]
        if held.lost:
            self._tell("claim", f"lost: {held.lost}", check.task_id)
            raise StaleClaim(held.lost)

    def _job(self, state: RunState, check: ClaimCheck) -> Job:
        brief = brief_for(self.run_id, state, check.task_id, trace_id=self.trace_id)
        wall = brief.manifest.budget.time_budget_sec
        return Job(
            brief=brief,
            workspace=None,
            folder=self.site.folder / "jobs" / f"{self.run_id}-{check.claim}",
            fence=self.site.fence,
            limits=replace(self.site.limits, wall_sec=wall),
            network=brief.manifest.network,
        )

    async def _submit(self, check: ClaimCheck, executor: Executor, work: Work) -> RunState:
        kept: dict[str, str] = {}
        if transcript := work.seen.transcript:
            store = self.site.desk.store
            kept["transcript"] = await anyio.to_thread.run_sync(store.put_blob, transcript)
        record = settled_record(work, None, check.task_id)
        submit = Submit(
            task_id=check.task_id,
            actor=check.owner,
            claim=check.claim or 0,
            record=record,
            observed=observation(work, None, executor=executor.name, kept=kept),
        )
        state = await self.desk.handle(self.run_id, submit)
        said = f"status={record.status} files=0 risks={len(record.risks)}"
        self._tell("summary", said, check.task_id)
        return state

    async def _judge(self, state: RunState, task_id: TaskId) -> RunState:
        task = state.tasks[task_id]
        if task.record is None:
            msg = f"task {task_id!r} is submitted without a record"
            raise TransitionError(msg)
        observed = task.observed if isinstance(task.observed, dict) else {}
        case = Case(task.manifest, task.record, observed, None, None, self.site.cache)
        findings = await self._findings(case)
        verdict = Verdict(findings=findings or (_NO_GATE,))
        command = Judge(task_id=task_id, actor=JUDGE, verdict=verdict, claim=task.claim)
        if verdict.passed:
            handed = handing(
                state, task_id, task.record, trace_id=self.trace_id, meter=self.site.meter
            )
            command = replace(command, handoffs=handed.envelopes, misfits=handed.misfits)
        state = await self.desk.handle(self.run_id, command)
        self._tell_verdict(verdict, state, task_id)
        return state

    async def _findings(self, case: Case) -> tuple[Finding, ...]:
        findings: list[Finding] = []
        for gate in self.site.gates:
            try:
                findings += await gate.check(case)
            except (AgentRunError, OSError) as error:
                # A gate that cannot work says nothing about the work.
                findings.append(
                    Finding(
                        gate=gate.name,
                        outcome="inconclusive",
                        reason="no_evidence",
                        evidence=str(error),
                    )
                )
        return tuple(findings)

    async def _give_back(self, check: ClaimCheck, reason: str, *, counts: bool) -> None:
        release = Release(
            task_id=check.task_id,
            actor=check.owner,
            claim=check.claim or 0,
            reason=reason,
            counts=counts,
        )
        try:
            await self.desk.handle(self.run_id, release)
        except TransitionError:
            return  # the claim is not ours any more, so there is nothing to give back
        except StoreError as error:
            told = f"could not be given back, it ends at {check.expires_at:%H:%M:%S}: {error}"
            self._tell("claim", told, check.task_id)

    def _tell_verdict(self, verdict: Verdict, state: RunState, task_id: TaskId) -> None:
        gates = "  ".join(f"{one.gate} {_SHOWN[one.outcome]}" for one in verdict.findings)
        status = state.tasks[task_id].status
        words = {Status.READY: "returned", Status.SUBMITTED: "undecided"}
        self._tell("verify", f"{gates}  -> {words.get(status, status)}", task_id)

    def _tell(self, topic: Topic, text: str, about: TaskId = "") -> None:
        named = f"{about}: {text}" if about else text
        self.site.tell(Told(topic, named))
