"""A conversation becomes notes, the notes one plan, the plan a configuration."""

import json
import os
import signal
import subprocess
import sys
import textwrap
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_run.contract.brief import Brief
from agent_run.contract.notes import Notes
from agent_run.contract.plan import Plan
from agent_run.contract.record import Record
from agent_run.desk import Desk
from agent_run.errors import ContractError, TransitionError
from agent_run.executors.function import executor
from agent_run.ledger.commands import Answer
from agent_run.ledger.state import Status
from agent_run.models.scripted import ScriptedModel, Turn
from agent_run.recipes.asking import asker_for
from agent_run.recipes.configure.annotator import listening_annotator, model_annotator
from agent_run.recipes.configure.clarity import Clarity, carried, pivot
from agent_run.recipes.configure.conversation import (
    Standing,
    Team,
    go_on,
    output_of,
    say,
    standing,
)
from agent_run.recipes.configure.nodes import usual_registry
from agent_run.recipes.configure.planner import (
    ContextLog,
    context_log,
    dispatchable,
    log_faults,
    model_planner,
    registry_planner,
)
from agent_run.recipes.configure.registry import Registry, Specialist, Waiting, specialist
from tests.recipes.support import opened

WISH = "Whenever a ticket is opened in Jira I want a message in Slack."
EVENT = {"event": "issue created"}
PARAMETERS = {"jira": {"project": "X"}, "slack": {"channel": "#a"}}


def team(folder: Path, registry: Registry | None = None) -> Team:
    known = registry or usual_registry(folder / "saved")
    return Team(listening_annotator(), registry_planner(known), known)


def went_on(desk: Desk, folder: Path, who: Team) -> Standing:
    async def gone() -> Standing:
        return await go_on(desk, "c1", who, state=folder / "state", ttl=timedelta(seconds=1))

    return anyio.run(gone)


def answer(desk: Desk, node: str, value: Any) -> None:
    desk.handle("c1", Answer(task_id=node, actor="ada", answer=value))


def statuses(now: Standing) -> dict[str, str]:
    return {name: str(task.status) for name, task in now.run.in_order()}


def test_notes_that_lack_something_do_not_pivot_and_say_what() -> None:
    found = pivot(Notes(open_questions=("Which one?",), clarity_percent=90))

    assert not found.ready
    assert found.missing == ("nothing is known of requirements", "Which one?")


def test_the_thresholds_of_clarity_are_the_callers() -> None:
    notes = Notes(requirements=("x",), open_questions=("y?",), clarity_percent=50)

    assert not pivot(notes).ready
    assert pivot(notes, Clarity(least_percent=50, most_open=1)).ready


def test_a_later_turn_never_loses_an_earlier_requirement() -> None:
    before = Notes(requirements=("a",), event_flags={"event_driven": True})

    after = carried(before, Notes(requirements=("b",), turn=2))

    assert after.requirements == ("a", "b")
    assert after.event_flags == {"event_driven": True}


def test_the_log_is_what_the_notes_call_for_and_loads_as_a_plan(tmp_path: Path) -> None:
    registry = usual_registry(tmp_path)
    notes = Notes(requirements=("x",), mentioned_integrations=("slack",))

    log = context_log(notes, registry)

    assert [stop.node for stop in log.plan] == [
        "integration_specialist",
        "integration_config",
        "composer",
        "save_node",
        "summarizer",
    ]
    assert len(Plan.model_validate(log.model_dump(mode="json")).steps) == 5
    plan = dispatchable(log, notes, registry)
    assert [step.task_id for step in plan.final] == ["save_node", "summarizer"]


def test_the_log_of_a_stranger_is_checked_against_the_registry(tmp_path: Path) -> None:
    said = {"plan": [{"node": "rm", "message": "x"}, {"node": "composer", "message": "y"}] * 2}

    faults = log_faults(ContextLog.model_validate(said), usual_registry(tmp_path))

    assert len(faults) == 3
    assert "is 'rm', expected one of event_specialist" in faults[0]


def test_a_new_specialist_is_added_in_one_place(tmp_path: Path) -> None:
    added = Specialist(
        specialist("budget_specialist", lambda notes, configuration: {"limit": 5}),
        when=lambda notes: "budget" in notes.summary,
        message=lambda notes: "Set the limit.",
    )
    registry = usual_registry(tmp_path / "saved").with_specialist(added, before="composer")
    with opened(tmp_path) as desk:
        say(desk, "c1", ["I need a database with a budget"], actor="ada")

        now = went_on(desk, tmp_path, team(tmp_path, registry))

    saved: Any = output_of(now.run, "save_node")
    assert saved["configuration"]["budget_specialist"] == {"limit": 5}
    with pytest.raises(ContractError, match="stands twice"):
        registry.with_specialist(added)


def test_a_conversation_goes_on_until_it_is_clear(tmp_path: Path) -> None:
    who = team(tmp_path)
    with opened(tmp_path) as desk:
        say(desk, "c1", ["Hello there"], actor="ada")
        first = went_on(desk, tmp_path, who)
        say(desk, "c1", ["I want answers in Slack", "and a search of Notion"], actor="ada")
        then = went_on(desk, tmp_path, who)

    assert first.phase == "talking"
    assert "What should it do?" in first.pivot.missing
    assert then.phase == "asking"
    assert then.notes.turn == 3
    assert set(then.notes.mentioned_integrations) == {"slack", "notion"}


def test_the_whole_way_with_two_answers_of_a_person(tmp_path: Path) -> None:
    who = team(tmp_path)
    with opened(tmp_path) as desk:
        say(desk, "c1", [WISH], actor="ada")
        asked = went_on(desk, tmp_path, who)
        assert (asked.phase, asked.waiting) == ("asking", ("event_config",))
        assert asked.log is not None

        answer(desk, "event_config", EVENT)
        went_on(desk, tmp_path, who)
        answer(desk, "integration_config", PARAMETERS)
        done = went_on(desk, tmp_path, who)

        with pytest.raises(TransitionError, match="has its plan already"):
            say(desk, "c1", ["and more"], actor="ada")

    assert done.phase == "done"
    saved = json.loads((tmp_path / "saved" / "c1.json").read_text())
    assert saved["complete"] is True
    assert saved["configuration"]["event_config"] == EVENT
    assert saved["configuration"]["integration_config"] == PARAMETERS
    assert str(output_of(done.run, "summarizer")).startswith("Configured by event_specialist")


def test_an_answer_that_does_not_fit_is_asked_for_again(tmp_path: Path) -> None:
    who = team(tmp_path)
    with opened(tmp_path) as desk:
        say(desk, "c1", [WISH], actor="ada")
        went_on(desk, tmp_path, who)
        answer(desk, "event_config", {"event": 5})

        now = went_on(desk, tmp_path, who)

    assert now.waiting == ("event_config",)
    question = now.run.tasks["event_config"].question
    assert question is not None
    assert "the last answer does not fit" in question.text


def test_silence_past_the_deadline_follows_the_policy_and_the_end_still_runs(
    tmp_path: Path,
) -> None:
    waits = Waiting(within=timedelta(milliseconds=1), on_silence="fail")
    who = team(tmp_path, usual_registry(tmp_path / "saved", waits=waits))
    with opened(tmp_path) as desk:
        say(desk, "c1", [WISH], actor="ada")

        now = went_on(desk, tmp_path, who)

    assert now.phase == "failed"
    found = statuses(now)
    assert found["event_config"] == "failed"
    assert found["composer"] == "skipped"
    assert found["save_node"] == found["summarizer"] == "accepted"


def breaking(folder: Path) -> Registry:
    @executor("integration_specialist")
    def broken(brief: Brief) -> Record:
        msg = "it broke"
        raise RuntimeError(msg)

    usual = usual_registry(folder / "saved")
    nodes = tuple(
        Specialist(broken, one.when, one.message) if one.name == broken.name else one
        for one in usual.specialists
        if one.waits is None
    )
    return Registry(nodes, usual.final)


def test_a_failing_specialist_does_not_keep_the_end_from_running(tmp_path: Path) -> None:
    who = team(tmp_path, breaking(tmp_path))
    with opened(tmp_path) as desk:
        say(desk, "c1", ["I want messages in Slack"], actor="ada")

        now = went_on(desk, tmp_path, who)

    assert now.phase == "stuck"
    found = statuses(now)
    assert found["integration_specialist"] == "escalated"
    assert found["save_node"] == found["summarizer"] == "accepted"
    assert json.loads((tmp_path / "saved" / "c1.json").read_text())["complete"] is False
    assert "Not done: integration_specialist" in str(output_of(now.run, "summarizer"))


def test_what_a_person_mends_after_the_end_is_saved_again(tmp_path: Path) -> None:
    with opened(tmp_path) as desk:
        say(desk, "c1", ["I want messages in Slack"], actor="ada")
        went_on(desk, tmp_path, team(tmp_path, breaking(tmp_path)))
        usual = usual_registry(tmp_path / "saved")
        mended = Registry(
            tuple(one for one in usual.specialists if one.waits is None), usual.final
        )
        answer(desk, "integration_specialist", "try again")

        now = went_on(desk, tmp_path, team(tmp_path, mended))

    assert now.phase == "done"
    assert statuses(now)["save_node.2"] == "accepted"
    assert json.loads((tmp_path / "saved" / "c1.json").read_text())["complete"] is True


def test_a_planner_that_fails_does_not_keep_the_end_from_running(tmp_path: Path) -> None:
    @executor("planner")
    def lost(brief: Brief) -> Record:
        msg = "no idea"
        raise RuntimeError(msg)

    registry = usual_registry(tmp_path / "saved")
    with opened(tmp_path) as desk:
        say(desk, "c1", [WISH], actor="ada")

        now = went_on(desk, tmp_path, Team(listening_annotator(), lost, registry))

    assert now.phase == "stuck"
    assert statuses(now)["save_node"] == statuses(now)["summarizer"] == "accepted"


def test_the_dispatcher_asks_no_model(tmp_path: Path) -> None:
    notes = {
        "requirements": ["post to slack"],
        "mentioned_tools": ["search"],
        "clarity_percent": 95,
    }
    log = {"plan": [{"node": "composer", "message": "Compose it."}]}
    model = ScriptedModel(
        lambda request: Turn(output=log if request.output_name == "plan" else notes)
    )
    registry = usual_registry(tmp_path / "saved")
    with opened(tmp_path) as desk:
        ask = asker_for(desk, model)
        who = Team(model_annotator(ask), model_planner(registry, ask), registry)
        say(desk, "c1", ["post to slack"], actor="ada")

        now = went_on(desk, tmp_path, who)

    assert now.phase == "done"
    assert [request.output_name for request in model.asked] == ["notes", "plan"]
    assert now.run.tasks["composer"].manifest.objective == "Compose it."


SLOW = """
import sys
from datetime import timedelta
from pathlib import Path
from time import sleep
import anyio
from agent_run.recipes.configure.annotator import listening_annotator
from agent_run.recipes.configure.conversation import Team, go_on, say
from agent_run.recipes.configure.nodes import usual_registry
from agent_run.recipes.configure.planner import registry_planner
from agent_run.recipes.configure.registry import Registry, Specialist, specialist
from agent_run.wiring import open_desk

folder, hang = Path(sys.argv[1]), sys.argv[2] == "hang"

def work(name):
    def done(notes, configuration):
        with (folder / "visits").open("a") as file:
            file.write(name + "\\n")
        if name == "second" and hang:
            print("hanging", flush=True)
            sleep(100)
        return name
    return Specialist(specialist(name, done), lambda notes: True, lambda notes: f"Do {name}.")

registry = Registry(
    tuple(map(work, ("first", "second", "third"))), usual_registry(folder / "saved").final
)
team = Team(listening_annotator(), registry_planner(registry), registry)
desk = open_desk(f"sqlite:///{folder}/state/ledger.db")
if hang:
    say(desk, "c1", ["I want search"], actor="ada")
short = timedelta(seconds=1)
now = anyio.run(lambda: go_on(desk, "c1", team, state=folder / "state", ttl=short))
print(now.phase)
desk.close()
"""


@pytest.mark.slow
def test_killed_in_the_middle_it_goes_on_and_repeats_nothing_that_was_finished(
    tmp_path: Path,
) -> None:
    script = tmp_path / "slow.py"
    script.write_text(textwrap.dedent(SLOW))
    command = [sys.executable, str(script), str(tmp_path)]
    with subprocess.Popen([*command, "hang"], stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "hanging\n"
        os.kill(first.pid, signal.SIGKILL)
        first.wait()

    done = subprocess.run(
        [*command, "go on"], capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout == "done\n"
    visits = (tmp_path / "visits").read_text().split()
    assert visits == ["first", "second", "second", "third"]
    with opened(tmp_path) as desk:
        run = desk.run("c1")
        assert run.tasks["planner"].attempt == run.tasks["first"].attempt == 1
        assert list(desk.verify()) == []
        registry = usual_registry(tmp_path / "saved")
        who = Team(listening_annotator(), registry_planner(registry), registry)
        assert standing(desk, "c1", who).phase == "done"
        assert all(task.status is Status.ACCEPTED for task in run.tasks.values())
