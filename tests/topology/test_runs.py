"""Plans driven by function executors on a real ledger: what is promised about whole runs."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from agent_run.contract.brief import Brief
from agent_run.contract.manifest import Manifest
from agent_run.contract.plan import Plan
from agent_run.contract.record import Record
from agent_run.contract.shapes import Orchestration, Routing
from agent_run.engine.loop import drive
from agent_run.engine.runs import crew_of, is_finished, resume, run_plan
from agent_run.engine.site import Site
from agent_run.errors import InvalidDocument
from agent_run.executors.function import FunctionExecutor, executor
from agent_run.ledger.commands import Answer, OpenRun
from agent_run.ledger.events import RecordSubmitted
from agent_run.ledger.state import Status
from agent_run.topology.orchestrator import orchestrator
from agent_run.topology.routing import answer_of, routing
from tests.support.sites import file_less_site

pytestmark = pytest.mark.anyio

Calls = Counter[str]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = file_less_site(tmp_path)
    yield made
    made.desk.close()


def counting(
    calls: Calls, *, fail: Callable[[str], bool] = lambda _task: False
) -> FunctionExecutor[Any]:
    @executor("work")
    async def work(brief: Brief) -> Record:
        calls[brief.task_id] += 1
        if fail(brief.task_id):
            return Record(status="failed", error="the network is down")
        return Record(status="done", output={"did": brief.task_id}, confidence=1.0)

    return work


def plan_of(*steps: dict[str, Any], **more: object) -> Plan:
    given = [{"objective": "do it", "executor": "work", **step} for step in steps]
    return Plan.model_validate({"steps": given, **more})


async def test_one_failed_worker_costs_its_siblings_nothing_when_the_run_is_resumed(
    site: Site,
) -> None:
    """Experiment E1: of 30 parallel workers one fails; healthy siblings run again: none."""
    calls: Calls = Counter()
    broken = {"w7"}
    crew = crew_of([counting(calls, fail=lambda task: task in broken)], owner="driver")
    limit = {"max_attempts": 1}
    steps: list[dict[str, Any]] = [{"task_id": f"w{n}", "budget": limit} for n in range(30)]

    first = await run_plan(site, plan_of(*steps), crew, run_id="fan")
    assert first.status == "waiting"
    before = dict(calls)
    broken.clear()
    await anyio.to_thread.run_sync(lambda: answer(site, "fan", "w7"))
    second = await resume(site, "fan", crew)

    assert second.status == "accepted"
    assert {
        task: calls[task] - before[task] for task in calls if calls[task] != before[task]
    } == {"w7": 1}


async def test_what_one_step_gives_arrives_typed_at_the_next(site: Site) -> None:
    class Draft(BaseModel):
        title: str

    class Report(BaseModel):
        length: int

    @executor("write")
    async def write(brief: Brief) -> Record[Draft]:
        return Record[Draft](status="done", output=Draft(title="Hello"))

    @executor("measure")
    async def measure(brief: Brief[Draft]) -> Record[Report]:
        assert isinstance(brief.input, Draft)
        return Record[Report](status="done", output=Report(length=len(brief.input.title)))

    plan = Plan.model_validate(
        {
            "objective": "know how long titles are",
            "steps": [
                {"task_id": "a", "objective": "write", "executor": "write"},
                {"task_id": "b", "objective": "measure", "executor": "measure", "needs": ["a"]},
            ],
        }
    )
    done = await run_plan(site, plan, crew_of([write, measure], owner="driver"), run_id="typed")

    assert done.output("b") == {"length": 5}
    (envelope,) = done.run.tasks["b"].inbox
    assert (envelope.source, envelope.intent) == ("a", "know how long titles are")
    assert envelope.fingerprint


async def test_a_plan_whose_types_do_not_fit_is_refused_before_anything_runs(
    site: Site,
) -> None:
    class Draft(BaseModel):
        title: str

    class Report(BaseModel):
        length: int

    @executor("write")
    async def write(brief: Brief) -> Record[Draft]:
        raise AssertionError

    @executor("measure")
    async def measure(brief: Brief[Report]) -> Record:
        raise AssertionError

    plan = plan_of(
        {"task_id": "a", "executor": "write"},
        {"task_id": "b", "executor": "measure", "needs": ["a"]},
        {"task_id": "c", "executor": "nobody"},
    )

    with pytest.raises(InvalidDocument) as refused:
        await run_plan(site, plan, crew_of([write, measure], owner="driver"), run_id="misfit")

    assert str(refused.value).splitlines() == [
        "steps[2].executor: is 'nobody', expected one of measure, plan, write",
        "steps[1].needs: 'a' does not fit 'b': length is required, but never given",
    ]
    assert not site.desk.runs()


class OldDraft(BaseModel):
    title: str


class NewDraft(BaseModel):
    headline: str


def renamed(payload: Any, fingerprint: str) -> Any:
    assert fingerprint
    return {"headline": payload["title"]}


@pytest.mark.parametrize("migrated", [True, False], ids=["migrated", "refused"])
async def test_a_payload_from_before_a_deploy_is_migrated_or_refused_unused(
    site: Site, *, migrated: bool
) -> None:
    seen: list[str] = []

    @executor("write")
    async def write(brief: Brief) -> Record[OldDraft]:
        return Record[OldDraft](status="done", output=OldDraft(title="Hello"))

    @executor("print")
    async def before(brief: Brief[OldDraft]) -> Record:
        return Record(status="blocked", next_action="escalate", error="the printer is off")

    @executor("print", migrate=renamed if migrated else None)
    async def after(brief: Brief[NewDraft]) -> Record:
        assert brief.input is not None
        seen.append(brief.input.headline)
        return Record(status="done")

    plan = plan_of(
        {"task_id": "a", "executor": "write"},
        {"task_id": "b", "executor": "print", "needs": ["a"]},
    )
    await run_plan(site, plan, crew_of([write, before], owner="driver"), run_id="deploy")
    await anyio.to_thread.run_sync(lambda: answer(site, "deploy", "b"))

    done = await resume(site, "deploy", crew_of([write, after], owner="driver"))

    task = done.run.tasks["b"]
    assert seen == (["Hello"] if migrated else [])
    assert task.status is (Status.ACCEPTED if migrated else Status.ESCALATED)
    assert migrated or "does not fit executor 'print'" in task.note


async def test_output_that_breaks_its_own_schema_is_never_written(site: Site) -> None:
    """Experiment E4: the payload is refused before it reaches the ledger."""
    calls: Calls = Counter()

    @executor("work")
    async def work(brief: Brief) -> Record:
        calls[brief.task_id] += 1
        return Record(status="done", output={"count": "many"})

    schema = {"type": "object", "properties": {"count": {"type": "integer"}}}
    plan = plan_of({"task_id": "a", "output_schema": schema, "budget": {"max_attempts": 2}})

    done = await run_plan(site, plan, crew_of([work], owner="driver"), run_id="broken")

    assert done.run.tasks["a"].status is Status.ESCALATED
    assert calls["a"] == 2
    records = [p for p in site.desk.pages("broken") if p.kind == "record_submitted"]
    assert len(records) == 2
    for page in records:
        event = page.event()
        assert isinstance(event, RecordSubmitted)
        assert event.record.output is None


async def test_a_payload_over_the_receivers_tokens_fails_with_the_numbers(site: Site) -> None:
    calls: Calls = Counter()

    @executor("work")
    async def work(brief: Brief) -> Record:
        calls[brief.task_id] += 1
        return Record(status="done", output="word " * 100)

    plan = plan_of({"task_id": "a"}, {"task_id": "b", "needs": ["a"], "max_input_tokens": 50})

    done = await run_plan(site, plan, crew_of([work], owner="driver"), run_id="long")

    task = done.run.tasks["b"]
    assert (task.status, task.reason) == (Status.ESCALATED, "over_budget")
    assert "has 100 tokens, and 'b' takes at most 50" in task.note
    assert calls["b"] == 0


async def test_the_final_region_runs_whatever_failed_before(site: Site) -> None:
    calls: Calls = Counter()
    crew = crew_of([counting(calls, fail=lambda task: task == "b")], owner="driver")
    plan = plan_of(
        {"task_id": "a"},
        {"task_id": "b", "budget": {"max_attempts": 1}},
        {"task_id": "c"},
        order="sequence",
        final=[
            {"task_id": "save", "objective": "save", "executor": "work"},
            {"task_id": "tell", "objective": "summarize", "executor": "work"},
        ],
    )

    done = await run_plan(site, plan, crew, run_id="final")

    assert (calls["a"], calls["c"], calls["save"], calls["tell"]) == (1, 0, 1, 1)
    told = done.run.tasks["tell"].manifest.input
    assert isinstance(told, dict)
    assert [one["status"] for one in told["outcomes"]] == [  # type: ignore[index, union-attr, call-overload]
        "accepted",
        "escalated",
        "waiting",
        "accepted",
    ]


async def test_the_final_region_runs_even_when_the_budget_is_used_up(site: Site) -> None:
    calls: Calls = Counter()
    plan = plan_of(
        {"task_id": "a"},
        {"task_id": "b"},
        order="sequence",
        budget={"max_attempts": 1},
        final=[{"task_id": "save", "objective": "save", "executor": "work"}],
    )

    done = await run_plan(site, plan, crew_of([counting(calls)], owner="driver"), run_id="poor")

    assert (done.run.tasks["b"].reason, calls["b"]) == ("over_budget", 0)
    assert calls["save"] == 1


async def test_a_step_may_be_a_plan_whose_finished_work_is_kept(site: Site) -> None:
    calls: Calls = Counter()
    broken = {"inner-2"}
    crew = crew_of([counting(calls, fail=lambda task: task in broken)], owner="driver")
    limit = {"max_attempts": 1}
    steps = [
        {"task_id": name, "objective": name, "executor": "work", "budget": limit}
        for name in ("inner-1", "inner-2")
    ]
    plan = plan_of(
        {"task_id": "a"}, {"task_id": "sub", "executor": "plan", "input": {"steps": steps}}
    )

    waiting = await run_plan(site, plan, crew, run_id="outer")
    assert waiting.run.tasks["sub"].status is Status.ESCALATED
    broken.clear()
    await anyio.to_thread.run_sync(lambda: answer(site, "outer.sub", "inner-2"))
    await anyio.to_thread.run_sync(lambda: answer(site, "outer", "sub"))
    done = await resume(site, "outer", crew)

    assert done.status == "accepted"
    assert done.output("sub") == {"inner-1": {"did": "inner-1"}, "inner-2": {"did": "inner-2"}}
    assert (calls["a"], calls["inner-1"], calls["inner-2"]) == (1, 1, 2)


async def test_workers_join_at_the_barrier_and_the_synthesis_is_told_of_gaps(
    site: Site,
) -> None:
    seen: list[object] = []

    @executor("work")
    async def work(brief: Brief) -> Record:
        if brief.task_id == "x2":
            return Record(status="failed", error="no luck")
        return Record(status="done", output={"size": int(brief.task_id[1:])})

    @executor("join")
    async def join(brief: Brief) -> Record:
        seen.append(brief.input)
        return Record(status="done", output="joined")

    def task(name: str, who: str) -> Manifest:
        return Manifest(task_id=name, objective=name, executor=who, budget={"max_attempts": 1})

    spec = Orchestration(
        synthesis=task("join", "join"),
        workers=tuple(task(f"x{n}", "work") for n in (1, 2, 3)),
        quorum=0.6,
    )
    site.desk.handle("fan", OpenRun(actor="driver", intent="compare"))

    run = await drive(site, "fan", orchestrator(spec), crew_of([work, join], owner="driver"))

    assert run.tasks["join"].status is Status.ACCEPTED
    (told,) = seen
    assert isinstance(told, dict)
    assert [one["task"] for one in told["results"]] == ["x1", "x3"]
    assert [one["task"] for one in told["missing"]] == ["x2"]
    assert told["conflicts"] == [{"field": "size", "values": {"x1": 1, "x3": 3}}]
    assert told["warnings"] == ["1/3 workers failed"]


async def test_without_a_quorum_there_is_no_synthesis(site: Site) -> None:
    calls: Calls = Counter()
    work = counting(calls, fail=lambda task: task != "x1")
    workers = tuple(
        Manifest(task_id=f"x{n}", objective="x", executor="work", budget={"max_attempts": 1})
        for n in (1, 2, 3)
    )
    join = Manifest(task_id="join", objective="join", executor="work")
    spec = Orchestration(synthesis=join, workers=workers, quorum=0.6)
    site.desk.handle("fan", OpenRun(actor="driver"))

    run = await drive(site, "fan", orchestrator(spec), crew_of([work], owner="driver"))

    assert (run.tasks["join"].status, calls["join"]) == (Status.FAILED, 0)
    assert "1 of 3 workers succeeded, wanted at least 2" in run.tasks["join"].note


async def test_specialists_hand_over_and_the_intent_arrives(site: Site) -> None:
    @executor("triage")
    async def triage(brief: Brief) -> Record:
        return Record(status="done", output={"handoff_to": "billing", "about": "invoice 7"})

    @executor("billing")
    async def billing(brief: Brief) -> Record:
        return Record(status="done", output={"answer": f"{brief.intent}: paid"})

    spec = Routing(
        start="triage",
        specialists={
            name: Manifest(task_id=name, objective=name, executor=name)
            for name in ("triage", "billing")
        },
        intent="Was invoice 7 paid?",
    )
    site.desk.handle("route", OpenRun(actor="driver"))

    run = await drive(site, "route", routing(spec), crew_of([triage, billing], owner="driver"))

    assert answer_of(spec, run) == {"answer": "Was invoice 7 paid?: paid"}
    assert run.tasks["billing-2"].inbox[0].source == "triage-1"


async def test_specialists_that_go_in_circles_end_with_a_person(site: Site) -> None:
    calls: Calls = Counter()

    def passing_on(name: str, to: str) -> FunctionExecutor[Any]:
        @executor(name)
        async def pass_on(brief: Brief) -> Record:
            calls[name] += 1
            return Record(status="done", output={"handoff_to": to})

        return pass_on

    names = {"a": "b", "b": "a"}
    spec = Routing(
        start="a",
        specialists={n: Manifest(task_id=n, objective=n, executor=n) for n in names},
        intent="help",
    )
    site.desk.handle("route", OpenRun(actor="driver"))
    crew = crew_of([passing_on(n, to) for n, to in names.items()], owner="driver")

    run = await drive(site, "route", routing(spec), crew)

    assert run.tasks["unrouted"].status is Status.ESCALATED
    assert "in a circle" in run.tasks["unrouted"].note
    assert sum(calls.values()) <= 4


def answer(site: Site, run_id: str, task_id: str) -> None:
    site.desk.handle(run_id, Answer(task_id=task_id, actor="eve", answer="try again"))


async def test_workers_and_specialists_are_run_and_resumed_like_plans(site: Site) -> None:
    calls: Calls = Counter()
    work = counting(calls)
    one = Manifest(task_id="x1", objective="x", executor="work")
    join = Manifest(task_id="join", objective="x", executor="work")
    fan = Orchestration(objective="compare", workers=(one,), synthesis=join)
    desk = Routing(start="a", specialists={"a": one}, intent="help")
    crew = crew_of([work], owner="driver")

    first = await run_plan(site, fan, crew, run_id="fan")
    second = await run_plan(site, desk, crew, run_id="desk")
    again = [await resume(site, name, crew) for name in ("fan", "desk")]

    assert [one.status for one in (first, second, *again)] == ["accepted"] * 4
    assert calls == {"x1": 1, "join": 1, "a-1": 1}
    assert is_finished(again[0].run, "fan")
    assert first.run.intent == "compare"


async def test_a_shape_that_nobody_can_work_on_is_refused(site: Site) -> None:
    one = Manifest(task_id="x1", objective="x", executor="nobody")
    crew = crew_of([counting(Counter())], owner="driver")

    with pytest.raises(InvalidDocument, match=r"workers\[0\]\.executor: is 'nobody'"):
        await run_plan(
            site,
            Orchestration(workers=(one,), synthesis=one.model_copy(update={"task_id": "join"})),
            crew,
            run_id="fan",
        )
    with pytest.raises(InvalidDocument, match=r"specialists\.a\.executor: is 'nobody'"):
        await run_plan(
            site, Routing(start="a", specialists={"a": one}, intent="x"), crew, run_id="desk"
        )


async def test_more_workers_than_allowed_are_refused_and_none_begins(site: Site) -> None:
    steps = [{"task_id": f"x{n}", "objective": "x", "executor": "work"} for n in range(3)]

    @executor("split")
    async def split(brief: Brief) -> Record:
        return Record(status="done", output={"steps": steps})

    calls: Calls = Counter()
    spec = Orchestration(
        decompose=Manifest(task_id="split", objective="x", executor="split"),
        synthesis=Manifest(task_id="join", objective="x", executor="work"),
        most_workers=2,
    )

    done = await run_plan(site, spec, crew_of([split, counting(calls)], owner="d"), run_id="r")

    assert (done.status, calls) == ("failed", {})
    assert "3 workers were named, and at most 2" in done.run.tasks["join"].note
