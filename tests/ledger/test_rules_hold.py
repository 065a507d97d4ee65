"""Whatever is asked, in whatever order, these stay true."""

from datetime import timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agent_run.contract.budget import Spend
from agent_run.contract.record import Question, Record
from agent_run.contract.verdict import Verdict
from agent_run.errors import AgentRunError
from agent_run.ledger import commands as wished
from agent_run.ledger.commands import Command
from agent_run.ledger.events import AnyEvent, RunCancelled, RunOpened
from agent_run.ledger.fold import EMPTY, evolve, fold
from agent_run.ledger.pages import FIRST, Page, breaks, seal
from agent_run.ledger.rules import decide
from agent_run.ledger.state import LEADS_TO, SETTLED, RunState, Status
from tests.support.stories import FAILED, NOON, PASSED, UNDECIDED, UNSURE, open_run, post

TTL = timedelta(minutes=5)
RUN_TOKENS, TASK_TOKENS = 100, 60
TASKS = st.sampled_from(["a", "b", "c"])
OWNERS = st.sampled_from(["ada", "bob"])
SPENDERS = st.sampled_from(["ada", "bob", "judge"])
KEYS = st.sampled_from(["x", "y"])
VERDICTS = st.sampled_from([PASSED, FAILED, UNDECIDED, UNSURE])


class Ledger(RuleBasedStateMachine):
    """Three tasks, one of which needs the others; asks at random and believes no answer."""

    def __init__(self) -> None:
        super().__init__()
        self.run: RunState = EMPTY
        self.now = NOON
        self.pages: list[Page] = []
        self.seen: list[RunState] = []
        """The run as somebody saw it after each page."""
        self.overrun = False
        limits = {"max_attempts": 2, "max_tokens": TASK_TOKENS}
        self.ask(open_run(max_tokens=RUN_TOKENS))
        self.ask(post("a", budget=limits, answer_within="2m", on_silence="fail"))
        self.ask(post("b", budget=limits, approve_before_claim=True, answer_within="3m"))
        silence = {"answer_within": "4m", "on_silence": "skip"}
        self.ask(post("c", needs=["a", "b"], on_crash="escalate", **silence))

    def ask(self, command: Command) -> bool:
        try:
            events = decide(self.run, command, now=self.now)
        except AgentRunError:
            return False
        for event in events:
            self.check_table(event)
            previous = self.pages[-1].digest if self.pages else FIRST
            self.pages.append(
                seal("run", len(self.pages) + 1, "trace", event, previous=previous)
            )
            self.run = evolve(self.run, event)
            self.seen.append(self.run)
        return True

    def teardown(self) -> None:
        """Nothing that was seen once has changed since, and any part folds like the whole."""
        events = [page.event() for page in self.pages]
        for number, seen in enumerate(self.seen, start=1):
            assert fold(events[:number]) == seen
            assert fold(events[number:], onto=seen) == self.run

    def check_table(self, event: AnyEvent) -> None:
        if isinstance(event, RunOpened | RunCancelled) or not event.task_id:
            return
        move = LEADS_TO[type(event)]
        task = self.run.tasks.get(event.task_id)
        if not move.before:
            assert task is None
            return
        assert task is not None
        assert task.status in move.before, f"{event.kind} from {task.status}"
        after = evolve(self.run, event).tasks[event.task_id].status
        assert after in (move.after or {task.status})

    @rule(minutes=st.integers(-10, 10))
    def let_time_pass_or_step_back(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)

    @rule(task=TASKS, owner=OWNERS)
    def claim(self, task: str, owner: str) -> None:
        before = self.run.tasks[task]
        granted = self.ask(wished.Claim(task_id=task, owner=owner, ttl=TTL))
        after = self.run.tasks[task]
        if granted and after.status is Status.CLAIMED:
            lapsed = before.expires_at is not None and before.expires_at <= max(
                self.now, self.run.at or self.now
            )
            assert before.status is Status.READY or lapsed, "taken from a living owner"
            assert after.claim == self.run.seq, "the claim is the page that granted it"

    @rule(task=TASKS, age=st.integers(0, 3))
    def heartbeat(self, task: str, age: int) -> None:
        page = (self.run.tasks[task].claim or 0) - age
        self.ask(wished.Heartbeat(task_id=task, actor="ada", claim=page, ttl=TTL))

    @rule(task=TASKS, age=st.integers(0, 1), counts=st.booleans())
    def release(self, task: str, age: int, *, counts: bool) -> None:
        page = (self.run.tasks[task].claim or 0) - age
        self.ask(wished.Release(task_id=task, actor="ada", claim=page, counts=counts))

    @rule(task=TASKS)
    def expire(self, task: str) -> None:
        self.ask(wished.Expire(task_id=task, actor="sweeper"))

    @rule(task=TASKS, actor=SPENDERS, key=KEYS, tokens=st.integers(1, 80))
    def reserve(self, task: str, actor: str, key: str, tokens: int) -> None:
        before = self.run.tasks[task]
        amount = Spend(tokens=tokens)
        granted = self.ask(
            wished.Reserve(
                task_id=task, actor=actor, claim=before.claim or 0, key=key, amount=amount
            )
        )
        worked_on = before.status is Status.SUBMITTED and actor == before.worked_by
        assert not (granted and worked_on), "somebody spent after handing in"

    @rule(task=TASKS, actor=SPENDERS, share=st.integers(0, 100))
    def settle(self, task: str, actor: str, share: int) -> None:
        state = self.run.tasks[task]
        for key, amount in state.calls[:1]:
            spent = Spend(tokens=amount.tokens * share // 100)
            self.ask(
                wished.Settle(
                    task_id=task, actor=actor, claim=state.claim or 0, key=key, spent=spent
                )
            )

    @rule(
        task=TASKS,
        age=st.integers(0, 3),
        tokens=st.integers(0, 20),
        blocked=st.booleans(),
        asks=st.booleans(),
    )
    def submit(self, task: str, age: int, tokens: int, *, blocked: bool, asks: bool) -> None:
        state = self.run.tasks[task]
        record = Record(
            status="blocked" if blocked else "done",
            tokens_used=tokens,
            question=Question(text="which?") if asks else None,
        )
        page = (state.claim or 0) - age
        granted = self.ask(wished.Submit(task_id=task, actor="ada", claim=page, record=record))
        assert not (granted and age), "a submit under an old claim was let through"
        if granted and self.exceeds_budget():
            self.overrun = True  # the truth about money is written even when it hurts

    @rule(task=TASKS, verdict=VERDICTS)
    def judge(self, task: str, verdict: Verdict) -> None:
        self.ask(wished.Judge(task_id=task, actor="judge", verdict=verdict))

    @rule(
        task=TASKS,
        actor=st.one_of(OWNERS, st.just("eve")),
        verdict=st.sampled_from([PASSED, FAILED]),
        again=st.booleans(),
    )
    def review(self, task: str, actor: str, verdict: Verdict, *, again: bool) -> None:
        worker = self.run.tasks[task].record_by
        granted = self.ask(
            wished.Decide(task_id=task, actor=actor, verdict=verdict, again=again)
        )
        own_work = verdict is PASSED and actor == worker
        assert not (granted and own_work), "somebody approved work of their own hands"

    @rule(task=TASKS)
    def approve(self, task: str) -> None:
        self.ask(wished.Approve(task_id=task, actor="eve"))

    @rule(task=TASKS)
    def lapse(self, task: str) -> None:
        before = self.run.tasks[task]
        now = max(self.now, self.run.at or self.now)
        granted = self.ask(wished.Lapse(task_id=task, actor="sweeper"))
        due = before.lapses_at is not None and before.lapses_at <= now
        assert granted == due, "silence counts when the time has passed, and only then"
        if granted:
            assert before.status in {Status.ASKED, Status.ESCALATED, Status.WAITING}
            again = self.ask(wished.Lapse(task_id=task, actor="sweeper"))
            assert not again, "silence was acted upon twice"

    @rule(task=TASKS)
    def widen(self, task: str) -> None:
        self.ask(wished.Widen(task_id=task, actor="eve", paths=("src/**",)))

    @rule(task=TASKS, how=st.sampled_from([wished.Cancel, wished.Skip]))
    def end(self, task: str, how: type[wished.Cancel] | type[wished.Skip]) -> None:
        self.ask(how(task_id=task, actor="eve"))

    @precondition(lambda self: self.escalated() and not self.overrun)
    @rule()
    def answer_and_go_on(self) -> None:
        task = self.escalated()[0]
        assert self.ask(wished.Answer(task_id=task, actor="eve", answer="go on"))
        assert self.run.tasks[task].status is Status.READY
        assert self.run.tasks[task].attempts_left > 0, "an answer must let the work go on"

    def escalated(self) -> list[str]:
        return [name for name, t in self.run.tasks.items() if t.status is Status.ESCALATED]

    def exceeds_budget(self) -> bool:
        tasks = self.run.tasks.values()
        return self.run.spent.tokens > RUN_TOKENS or any(
            t.manifest.budget.exceeded_by(t.spent) for t in tasks
        )

    @invariant()
    def only_a_claimed_task_has_an_owner(self) -> None:
        for task in self.run.tasks.values():
            assert (task.owner is not None) == (task.status is Status.CLAIMED)

    @invariant()
    def nothing_is_held_or_reserved_unless_worked_on_or_judged(self) -> None:
        for task in self.run.tasks.values():
            if task.status is not Status.CLAIMED:
                assert not task.calls or task.status is Status.SUBMITTED
                assert task.held.tokens == 0

    @invariant()
    def the_run_counts_what_its_tasks_count(self) -> None:
        tasks = self.run.tasks.values()
        assert self.run.spent.tokens == sum(task.spent.tokens for task in tasks)
        assert self.run.committed.tokens == sum(task.committed.tokens for task in tasks)

    @invariant()
    def nothing_is_promised_beyond_the_budget(self) -> None:
        if not self.overrun:
            assert not self.exceeds_budget()
            assert self.run.committed.tokens <= RUN_TOKENS

    @invariant()
    def only_what_waits_for_a_person_has_a_deadline(self) -> None:
        for task in self.run.tasks.values():
            if task.status in {Status.READY, Status.CLAIMED, Status.SUBMITTED}:
                assert (task.deadline, task.overdue, task.waits_since) == (None, False, None)
            elif task.status in {Status.ASKED, Status.ESCALATED}:
                assert task.deadline is not None
                assert task.waits_since is not None

    @invariant()
    def what_is_settled_stays_settled(self) -> None:
        settled: set[str] = set()
        state = EMPTY
        for page in self.pages:
            event = page.event()
            state = evolve(state, event)
            if event.task_id and state.tasks[event.task_id].status in SETTLED:
                settled.add(event.task_id)
        assert all(self.run.tasks[task].status in SETTLED for task in settled)

    @invariant()
    def the_book_tells_the_same_story_and_is_whole(self) -> None:
        assert fold(page.event() for page in self.pages) == self.run
        assert not list(breaks(self.pages))

    @invariant()
    def time_never_goes_back_in_the_book(self) -> None:
        times = [page.event().at for page in self.pages]
        assert times == sorted(times)

    @invariant()
    def a_task_waits_exactly_while_something_is_missing(self) -> None:
        for task in self.run.tasks.values():
            if task.status is Status.WAITING:
                assert task.unmet or not task.approved


TestLedger = Ledger.TestCase
TestLedger.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
