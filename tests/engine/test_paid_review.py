"""What the judge asks a model is paid by the task it judges, once."""

import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from typing import Any

import anyio
import pytest

from agent_run.engine.execute import Ordered, execute
from agent_run.engine.site import Site
from agent_run.gates.review import ReviewGate
from agent_run.ledger.commands import Post
from agent_run.ledger.state import RunState, Status
from agent_run.ledger.strips import strips
from agent_run.models import BytesMeter, ScriptedModel, Turn
from tests.engine.executors import Fake, fixing
from tests.support.projects import TASK, Project, Stage, manifest

OPINION = {
    "judgement": "holds",
    "readings": [{"constraint": "keep it", "judgement": "holds", "quote": "+"}],
    "confidence_percent": 90,
}


def post(stage: Stage, **budget: Any) -> None:
    wanted = manifest(constraints=["keep it"], budget={"max_attempts": 1, **budget})
    stage.open().desk.handle(TASK, Post(actor="planner", manifest=wanted))


def reviewed(site: Site, model: ScriptedModel) -> Site:
    """Return the site in which `model` reads every change as well."""
    gate = ReviewGate(model, BytesMeter(), site.desk.store.blob)
    return replace(site, gates=(*site.gates, gate))


def model() -> ScriptedModel:
    return ScriptedModel([Turn(output=OPINION)])


def worked(site: Site) -> RunState:
    return anyio.run(execute, site, TASK, TASK, Ordered(Fake(fixing), "ada"))


def spending(site: Site) -> list[tuple[str, str]]:
    events = [page.event() for page in site.desk.pages(TASK) if page.kind.startswith("spend")]
    return [(event.kind, event.actor) for event in events]


def test_a_review_is_reserved_and_settled_on_the_ledger_before_the_verdict(
    stage: Stage,
) -> None:
    post(stage, max_tokens=1_000_000)
    site = reviewed(stage.open(), asked := model())

    run = worked(site)

    assert run.tasks[TASK].status is Status.ACCEPTED
    assert spending(site) == [("spend_reserved", "judge"), ("spend_settled", "judge")]
    assert len(asked.asked) == 1
    assert run.tasks[TASK].spent.tokens == run.spent.tokens > 0
    kinds = [page.kind for page in site.desk.pages(TASK)]
    assert kinds.index("record_submitted") < kinds.index("spend_reserved")
    assert kinds.index("spend_settled") < kinds.index("task_accepted")
    (call,) = (strip for strip in strips(site.desk.pages(TASK)) if strip.kind == "call")
    assert (call.parent, call.outcome) == (f"task/{TASK}", "settled")


def test_a_review_beyond_the_budget_is_not_made_and_a_person_reads(stage: Stage) -> None:
    post(stage, max_tokens=100)
    site = reviewed(stage.open(), asked := model())

    run = worked(site)

    task = run.tasks[TASK]
    assert (task.status, asked.asked, spending(site)) == (Status.ESCALATED, [], [])
    assert task.verdict is not None
    (finding,) = (one for one in task.verdict.findings if one.gate == "model review")
    assert "the budget of task 'repo-142' does not allow it" in finding.evidence


_DYING = """
import anyio, os, signal, sys
from dataclasses import replace
from pathlib import Path
from agent_run.engine.execute import Ordered, execute
from tests.engine.executors import Fake, fixing
from tests.engine.test_paid_review import model, reviewed
from tests.support.projects import Project, Stage, TASK

place = Path(sys.argv[1])
stage = Stage(Project(place, place / "repo", place / "home", place / "outside"))
site = reviewed(stage.open(), model())

class Deadly:
    name = "deadly"

    async def check(self, case):
        while not any(page.kind == sys.argv[2] for page in site.desk.pages(TASK)):
            await anyio.sleep(0.02)
        os.kill(os.getpid(), signal.SIGKILL)

site = replace(site, gates=(*site.gates, Deadly()))
anyio.run(execute, site, TASK, TASK, Ordered(Fake(fixing), "ada"))
"""


@pytest.mark.slow
def test_a_judge_that_was_killed_after_the_review_does_not_pay_again(
    stage: Stage, project: Project
) -> None:
    post(stage, max_tokens=1_000_000)
    script = textwrap.dedent(_DYING)
    dead = subprocess.run(
        [sys.executable, "-c", script, str(project.place), "spend_settled"], check=False
    )
    assert dead.returncode == -signal.SIGKILL
    before = stage.open().desk.run(TASK)
    assert before.tasks[TASK].status is Status.SUBMITTED
    site = reviewed(stage.open(), asked := model())

    run = worked(site)

    assert (run.tasks[TASK].status, asked.asked) == (Status.ACCEPTED, [])
    assert run.spent == before.spent
    assert len(spending(site)) == 2
