"""Drafts against a checklist: what is decided, what a person decides, what is reused."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import anyio
import jsonschema_rs
import pytest

from agent_run.contract.base import RunId
from agent_run.contract.brief import Brief
from agent_run.contract.plan import Plan
from agent_run.contract.record import Record
from agent_run.contract.verdict import Finding, Verdict
from agent_run.errors import InvalidDocument, ModelUnreachable
from agent_run.gates.cache import NoCache
from agent_run.ledger.commands import Decide
from agent_run.ledger.state import Status
from agent_run.models.scripted import ScriptedModel, Turn
from agent_run.ports.executor import Job
from agent_run.ports.model import Model, ModelAnswer, ModelRequest
from agent_run.recipes.asking import asker_for
from agent_run.recipes.qa.example import example_folder, qa_act
from agent_run.recipes.qa.planning import SAVE, SUMMARIZE
from agent_run.recipes.qa.reporting import plan_json, report_json
from agent_run.recipes.qa.rules import Rules
from agent_run.recipes.qa.running import Shop, check_drafts, executors_of
from tests.recipes.support import CLEAN, FLAWED, check, draft, opened, outcomes, wanted
from tests.support.sites import NoFence

PLAN_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["plan_id", "steps", "overall_budget"],
    "additionalProperties": False,
    "properties": {
        "plan_id": {"type": "string", "format": "uuid"},
        "steps": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["id", "goal", "max_attempts", "min_confidence", "time_budget_sec"],
                "additionalProperties": False,
                "properties": {
                    "id": {"type": "string"},
                    "goal": {"type": "string"},
                    "context": {"type": "string"},
                    "max_attempts": {"type": "integer", "minimum": 1, "maximum": 5},
                    "min_confidence": {"type": "number", "minimum": 0, "maximum": 1},
                    "time_budget_sec": {"type": "integer", "minimum": 10, "maximum": 600},
                },
            },
        },
        "overall_budget": {
            "type": "object",
            "required": ["max_attempts", "max_tokens", "time_budget_sec"],
            "additionalProperties": False,
            "properties": {
                "max_attempts": {"type": "integer", "minimum": 1, "maximum": 10},
                "max_tokens": {"type": "integer", "minimum": 1_000, "maximum": 12_000},
                "time_budget_sec": {"type": "integer", "minimum": 60, "maximum": 900},
            },
        },
    },
}
RESULT_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": [
        "step_id",
        "status",
        "confidence",
        "notes",
        "evidence",
        "tokens_used",
        "elapsed_ms",
        "next_action",
    ],
    "additionalProperties": False,
    "properties": {
        "step_id": {"type": "string"},
        "status": {"enum": ["passed", "failed", "blocked"]},
        "confidence": {"type": "number", "minimum": 0, "maximum": 1},
        "notes": {"type": "string"},
        "evidence": {
            "type": "array",
            "items": {"type": "object", "required": ["type", "content"]},
        },
        "tokens_used": {"type": "integer"},
        "elapsed_ms": {"type": "integer"},
        "next_action": {"enum": ["continue", "revise", "escalate"]},
    },
}


def test_a_clean_draft_passes_and_a_flawed_one_fails_with_its_places(tmp_path: Path) -> None:
    drafts = [draft(tmp_path, "clean.md", CLEAN), draft(tmp_path, "flawed.md", FLAWED)]

    with opened(tmp_path) as desk:
        report = check(tmp_path, desk, drafts, wanted(tmp_path))

    assert [one.status for one in report.drafts] == ["pass", "fail"]
    assert report.status == "fail"
    flawed = {step.step.id: step for step in report.drafts[1].steps}
    assert {name: step.outcome for name, step in flawed.items()} == {
        "tone-check": "failed",
        "compliance-check": "passed",
        "link-check": "failed",
        "spelling-check": "failed",
    }
    assert flawed["spelling-check"].remarks[0]["line"] == 3


def test_plans_and_results_are_in_the_words_of_their_schemas(tmp_path: Path) -> None:
    drafts = [draft(tmp_path, "flawed.md", FLAWED)]

    with opened(tmp_path) as desk:
        told: Any = report_json(check(tmp_path, desk, drafts, wanted(tmp_path)))

    plan, results = told["drafts"][0]["plan"], told["drafts"][0]["results"]
    jsonschema_rs.validator_for(PLAN_SCHEMA).validate(plan)
    for result in results:
        jsonschema_rs.validator_for(RESULT_SCHEMA).validate(result)
        assert Record.model_validate(result).task_id == result["step_id"]
    assert len(Plan.model_validate(plan).steps) == 4


def test_what_failed_waits_in_the_inbox_with_evidence_and_transcript(tmp_path: Path) -> None:
    drafts = [draft(tmp_path, "flawed.md", FLAWED)]

    with opened(tmp_path) as desk:
        report = check(tmp_path, desk, drafts, wanted(tmp_path))
        task = desk.run(report.drafts[0].run_id).tasks["spelling-check"]
        observed: Any = task.observed
        transcript = desk.store.blob(observed["transcript"])

    assert task.status is Status.ESCALATED
    assert task.record is not None
    assert "recieved" in task.record.evidence[0].content
    assert transcript is not None
    assert b"recieved" in transcript


def test_the_final_region_runs_whatever_failed_before_it(tmp_path: Path) -> None:
    drafts = [draft(tmp_path, "broken.md", b"\xff\xfe\x00broken")]

    with opened(tmp_path) as desk:
        report = check(tmp_path, desk, drafts, wanted(tmp_path))
        run = desk.run(report.drafts[0].run_id)

    assert set(outcomes(report).values()) == {"person"}
    assert run.tasks[SAVE].status is Status.ACCEPTED
    assert run.tasks[SUMMARIZE].status is Status.ACCEPTED
    saved = tmp_path / "state" / "qa" / f"{report.drafts[0].run_id}.json"
    assert json.loads(saved.read_text())["status"] == "person"
    assert "must be decided by a person" in report.drafts[0].summary


def test_unchanged_drafts_and_rules_are_not_checked_again(tmp_path: Path) -> None:
    drafts = [draft(tmp_path, "clean.md", CLEAN), draft(tmp_path, "flawed.md", FLAWED)]

    with opened(tmp_path) as desk:
        first = check(tmp_path, desk, drafts, wanted(tmp_path))
        pages = len(desk.pages(first.drafts[0].run_id))
        second = check(tmp_path, desk, drafts, wanted(tmp_path))

        assert len(desk.pages(first.drafts[0].run_id)) == pages
    assert first.cache_hits == 0
    assert second.cache_hits == 8
    assert outcomes(first) == outcomes(second)


def test_of_a_changed_checklist_only_the_new_step_is_worked_on(tmp_path: Path) -> None:
    drafts = [draft(tmp_path, "clean.md", CLEAN)]
    with opened(tmp_path) as desk:
        check(tmp_path, desk, drafts, wanted(tmp_path, ("links", "spelling")))

        report = check(tmp_path, desk, drafts, wanted(tmp_path, ("links", "brand tone")))

    assert {step.step.id: step.cached for step in report.steps} == {
        "link-check": True,
        "tone-check": False,
    }


def test_a_changed_draft_is_checked_again(tmp_path: Path) -> None:
    drafts = [draft(tmp_path, "one.md", FLAWED)]
    with opened(tmp_path) as desk:
        before = check(tmp_path, desk, drafts, wanted(tmp_path))
        draft(tmp_path, "one.md", CLEAN)

        after = check(tmp_path, desk, drafts, wanted(tmp_path))

    assert (before.status, after.status) == ("fail", "pass")
    assert after.cache_hits == 0


def test_what_waits_about_an_earlier_version_of_a_draft_waits_no_longer(
    tmp_path: Path,
) -> None:
    drafts = [draft(tmp_path, "one.md", FLAWED)]
    with opened(tmp_path) as desk:
        other = check(tmp_path, desk, drafts, wanted(tmp_path, ("links",))).drafts[0].run_id
        before = check(tmp_path, desk, drafts, wanted(tmp_path)).drafts[0].run_id
        draft(tmp_path, "one.md", CLEAN)

        check(tmp_path, desk, drafts, wanted(tmp_path))

        assert desk.run(before).cancelled
        assert not desk.run(other).cancelled


def test_a_goal_that_nobody_knows_goes_to_a_person_and_stops_nothing(tmp_path: Path) -> None:
    drafts = [draft(tmp_path, "clean.md", CLEAN)]
    goals = ("Check spelling", "Would a child understand it")

    with opened(tmp_path) as desk:
        report = check(tmp_path, desk, drafts, wanted(tmp_path, goals))

    assert outcomes(report) == {"spelling-check": "passed", "goal-2": "person"}
    assert report.status == "person"
    assert "a person has to look" in report.steps[1].why


def test_low_confidence_goes_to_a_person(tmp_path: Path) -> None:
    drafts = [draft(tmp_path, "clean.md", CLEAN)]

    with opened(tmp_path) as desk:
        asked = wanted(tmp_path, ("spelling",), min_confidence=0.99)
        report = check(tmp_path, desk, drafts, asked)

    assert outcomes(report) == {"spelling-check": "person"}
    assert report.steps[0].result["status"] == "passed"


def decide(desk: Any, run_id: RunId, task_id: str, *, passed: bool) -> None:
    outcome: Any = "pass" if passed else "fail"
    reason: Any = "verified" if passed else "review_rejected"
    said = "approved by ada" if passed else "too loud"
    finding = Finding(gate="review", outcome=outcome, reason=reason, evidence=said)
    verdict = Verdict(findings=(finding,))
    desk.handle(run_id, Decide(task_id=task_id, actor="ada", verdict=verdict))


def test_what_a_person_decided_holds_as_long_as_the_draft_does(tmp_path: Path) -> None:
    drafts = [draft(tmp_path, "clean.md", CLEAN)]
    goals = ("Would a child understand it", "Would an expert agree")
    with opened(tmp_path) as desk:
        run_id = check(tmp_path, desk, drafts, wanted(tmp_path, goals)).drafts[0].run_id
        decide(desk, run_id, "goal-1", passed=True)
        decide(desk, run_id, "goal-2", passed=False)

        report = check(tmp_path, desk, drafts, wanted(tmp_path, goals))

    assert outcomes(report) == {"goal-1": "passed", "goal-2": "failed"}
    assert report.steps[0].decided_by == "ada"
    assert "too loud" in report.steps[1].why


def test_a_decision_outlives_the_day_and_what_the_web_said_does_not(tmp_path: Path) -> None:
    name = draft(tmp_path, "one.md", CLEAN + "\nSee [it](http://127.0.0.1:9/x).\n")
    goals = ("links", "Would a child understand it", "Would an expert agree")
    monday = replace(wanted(tmp_path, goals), rules=Rules(), today=date(2026, 11, 2))
    with opened(tmp_path) as desk:
        first = check(tmp_path, desk, [name], monday).drafts[0].run_id
        decide(desk, first, "link-check", passed=True)
        decide(desk, first, "goal-2", passed=True)
        decide(desk, first, "goal-3", passed=False)

        second = check(tmp_path, desk, [name], replace(monday, today=date(2026, 11, 3)))
        third = check(tmp_path, desk, [name], replace(monday, today=date(2026, 11, 4)))

        waiting = [
            n
            for n, task in desk.run(third.drafts[0].run_id).tasks.items()
            if task.status is Status.ESCALATED
        ]
    for report in (second, third):
        said = {step.step.id: step.decision for step in report.steps}
        assert report.drafts[0].run_id != first
        assert said["link-check"] is None
        assert said["goal-2"] is not None
        assert (said["goal-2"].by, said["goal-2"].run_id) == ("ada", first)
        assert outcomes(report)["goal-2"] == "passed"
        assert outcomes(report)["goal-3"] == "failed"
        assert "too loud" in report.steps[2].why
    assert waiting == ["link-check"]


def test_fresh_checks_ask_people_again(tmp_path: Path) -> None:
    name = draft(tmp_path, "one.md", CLEAN)
    asked = wanted(tmp_path, ("Would a child understand it",))
    with opened(tmp_path) as desk:
        first = check(tmp_path, desk, [name], asked).drafts[0].run_id
        decide(desk, first, "goal-1", passed=True)
        shop = Shop(desk, tmp_path / "state", NoCache(), fresh=True)

        report = anyio.run(check_drafts, shop, [name], asked)

    assert outcomes(report) == {"goal-1": "person"}


def test_over_budget_is_declared_and_the_report_still_comes_out(tmp_path: Path) -> None:
    drafts = [draft(tmp_path, "clean.md", CLEAN)]
    checklist = {
        "steps": [{"id": name, "goal": "spelling"} for name in ("a", "b", "c")],
        "overall_budget": {"max_attempts": 2, "max_tokens": 1_000, "time_budget_sec": 60},
    }

    with opened(tmp_path) as desk:
        report = check(tmp_path, desk, drafts, wanted(tmp_path, checklist))

    found = sorted(step.outcome for step in report.steps)
    assert found == ["passed", "passed", "person"]
    over = [one for one in report.drafts[0].over if "attempts" in one]
    assert over
    assert "over budget" in report.drafts[0].summary


def test_a_draft_that_changes_under_the_checks_is_not_passed(tmp_path: Path) -> None:
    name = draft(tmp_path, "one.md", CLEAN)
    with opened(tmp_path) as desk:
        report = check(tmp_path, desk, [name], wanted(tmp_path, ("spelling",)))
        task = desk.run(report.drafts[0].run_id).tasks["spelling-check"]
        draft(tmp_path, "one.md", CLEAN + "\nMore.\n")
        step = executors_of(desk, tmp_path / "state", _Forgetful())[0]
        brief = Brief(
            task_id="spelling-check",
            run_id=report.drafts[0].run_id,
            manifest=task.manifest,
            input=task.manifest.input,
            claim=3,
        )

        work = anyio.run(step.run, _job(brief, tmp_path))

    assert work.record is not None
    assert work.record.status == "blocked"
    assert "changed after its plan was made" in work.record.notes


def test_reflection_proposes_what_would_make_the_report_better(tmp_path: Path) -> None:
    drafts = [draft(tmp_path, "flawed.md", FLAWED)]

    with opened(tmp_path) as desk:
        report = check(tmp_path, desk, drafts, wanted(tmp_path, reflect=True))

    assert any("suggestion" in one for one in report.drafts[0].proposals)


def test_a_draft_that_is_not_there_is_refused_before_anything_begins(tmp_path: Path) -> None:
    with opened(tmp_path) as desk, pytest.raises(InvalidDocument, match="is not there"):
        check(tmp_path, desk, [str(tmp_path / "no.md")], wanted(tmp_path))

    with opened(tmp_path) as desk:
        assert desk.runs() == []


def says(**answer: Any) -> ScriptedModel:
    said = {"confidence": 0.9, "notes": "so", **answer}
    return ScriptedModel([Turn(output=said, tokens_in=300, tokens_out=50)])


def test_rules_and_model_that_agree_decide_together(tmp_path: Path) -> None:
    drafts = [draft(tmp_path, "clean.md", CLEAN)]
    model = says(status="passed")

    with opened(tmp_path) as desk:
        ask = asker_for(desk, model)
        asked = wanted(tmp_path, ("brand tone", "links"), model="scripted")
        report = check(tmp_path, desk, drafts, asked, ask)
        again = check(tmp_path, desk, drafts, asked, ask)

    assert outcomes(report) == {"tone-check": "passed", "link-check": "passed"}
    assert int(str(report.steps[0].result["tokens_used"])) > 0
    assert len(model.asked) == 1
    assert again.cache_hits == 2


def test_where_rules_and_model_disagree_a_person_decides(tmp_path: Path) -> None:
    drafts = [draft(tmp_path, "clean.md", CLEAN)]
    model = says(status="failed", quotes=["four minutes"])

    with opened(tmp_path) as desk:
        asked = wanted(tmp_path, ("brand tone",), model="scripted")
        report = check(tmp_path, desk, drafts, asked, asker_for(desk, model))

    assert outcomes(report) == {"tone-check": "person"}
    assert "they disagree" in report.steps[0].why


def test_a_model_that_quotes_what_does_not_stand_there_fails_nothing(tmp_path: Path) -> None:
    drafts = [draft(tmp_path, "clean.md", CLEAN)]
    model = says(status="failed", quotes=["never written"])

    with opened(tmp_path) as desk:
        asked = wanted(tmp_path, ("Is it true",), model="scripted")
        report = check(tmp_path, desk, drafts, asked, asker_for(desk, model))

    assert outcomes(report) == {"goal-1": "person"}
    assert "quotes nothing that stands in the draft" in report.steps[0].why


def test_a_goal_without_checker_is_done_by_the_model(tmp_path: Path) -> None:
    drafts = [draft(tmp_path, "clean.md", CLEAN)]

    with opened(tmp_path) as desk:
        asked = wanted(tmp_path, ("Is it true",), model="scripted")
        report = check(tmp_path, desk, drafts, asked, asker_for(desk, says(status="passed")))

    assert outcomes(report) == {"goal-1": "passed"}


class _Dead(ScriptedModel):
    async def ask(self, request: ModelRequest) -> ModelAnswer:
        msg = "nobody is there"
        raise ModelUnreachable(msg, wait_sec=0.0)


def test_a_model_that_cannot_be_asked_is_told_and_the_rules_decide(tmp_path: Path) -> None:
    drafts = [draft(tmp_path, "clean.md", CLEAN)]
    dead: Model = _Dead([Turn()])

    with opened(tmp_path) as desk:
        asked = wanted(tmp_path, ("brand tone",), model="scripted")
        report = check(tmp_path, desk, drafts, asked, asker_for(desk, dead))

    assert outcomes(report) == {"tone-check": "passed"}
    assert "nobody is there" in report.steps[0].warnings[0]


def test_the_example_has_its_promised_numbers(tmp_path: Path) -> None:
    folder = example_folder()
    assert folder is not None

    with opened(tmp_path) as desk:
        act = qa_act(desk, tmp_path / "state", folder)

    assert act.score.precision == 1.0
    assert act.score.recall is not None
    assert act.score.recall >= 0.84
    assert (act.score.steps, act.score.undecided, act.score.cache_hits) == (32, 2, 0)
    assert (act.score.defects_found, act.score.defects) == (20, 21)
    assert act.again.cache_hits == 32
    assert plan_json(act.report.drafts[0].plan)["plan_id"]


class _Forgetful:
    def get(self, key: str) -> None:
        return None

    def put(self, key: str, value: object) -> None:
        return None


def _job(brief: Brief, folder: Path) -> Any:
    return Job(brief=brief, workspace=None, folder=folder, fence=NoFence())


def test_an_unfounded_answer_is_asked_for_again_with_better_instructions(
    tmp_path: Path,
) -> None:
    drafts = [draft(tmp_path, "clean.md", CLEAN)]

    def answer(request: ModelRequest) -> Turn:
        told = request.messages[0].model_dump()["text"]
        quote = "four minutes" if "could not be used" in told else "never written"
        said = {"status": "failed", "confidence": 0.9, "notes": "so", "quotes": [quote]}
        return Turn(output=said)

    with opened(tmp_path) as desk:
        asked = wanted(tmp_path, ("Is it true",), model="scripted")
        report = check(tmp_path, desk, drafts, asked, asker_for(desk, ScriptedModel(answer)))

    assert outcomes(report) == {"goal-1": "failed"}
    assert report.steps[0].attempts == 2
    assert report.steps[0].remarks[0]["quote"] == "four minutes"


def test_a_model_stays_within_the_overall_tokens_and_the_end_still_runs(
    tmp_path: Path,
) -> None:
    drafts = [draft(tmp_path, "clean.md", CLEAN)]
    model = says(status="passed")
    checklist = {
        "steps": [{"id": name, "goal": f"Is it {name}"} for name in ("true", "kind", "short")],
        "overall_budget": {"max_attempts": 9, "max_tokens": 1_500, "time_budget_sec": 60},
    }

    with opened(tmp_path) as desk:
        asked = wanted(tmp_path, checklist, model="scripted", reflect=True)
        report = check(tmp_path, desk, drafts, asked, asker_for(desk, model))
        run = desk.run(report.drafts[0].run_id)

    assert run.spent.tokens <= 1_500
    assert 1 <= len(model.asked) < 3
    assert any(
        "the overall budget of 1500 does not allow it" in w
        for s in report.steps
        for w in s.warnings
    )
    assert any("tokens" in over for over in report.drafts[0].over)
    assert run.tasks[SAVE].status is Status.ACCEPTED
    assert run.tasks[SUMMARIZE].status is Status.ACCEPTED


def test_a_model_reflects_on_the_results(tmp_path: Path) -> None:
    drafts = [draft(tmp_path, "clean.md", CLEAN)]
    review = {
        "judgement": "improve",
        "summary": "thin",
        "improvements": [
            {"what": "say which words", "where": "notes", "why": "", "importance": "should"}
        ],
        "confidence_percent": 80,
    }

    with opened(tmp_path) as desk:
        model = ScriptedModel([Turn(output=review)])
        asked = wanted(tmp_path, ("spelling",), model="scripted", reflect=True)
        report = check(tmp_path, desk, drafts, asked, asker_for(desk, model))

    assert "should: notes: say which words" in report.drafts[0].proposals


HANGING = """
import sys
from datetime import timedelta
from pathlib import Path
from time import sleep
import anyio
from agent_run.gates.cache import FileCache
from agent_run.recipes.qa.running import Shop, check_drafts
from agent_run.wiring import open_desk
from tests.recipes.support import wanted

folder, hang = Path(sys.argv[1]), sys.argv[2] == "hang"

class Cache(FileCache):
    def put(self, key, value):
        super().put(key, value)
        with (folder / "looked").open("a") as file:
            file.write("x")
        if hang and (folder / "looked").stat().st_size >= 3:
            print("hanging", flush=True)
            sleep(100)

state = folder / "state"
desk = open_desk(f"sqlite:///{state}/ledger.db")
shop = Shop(desk, state, Cache(state / "cache"), ttl=timedelta(seconds=1), drafts_at_once=1)
report = anyio.run(check_drafts, shop, [str(folder / "clean.md")], wanted(folder))
print(report.status, len(desk.runs()))
desk.close()
"""


@pytest.mark.slow
def test_killed_in_the_middle_the_same_call_goes_on(tmp_path: Path) -> None:
    draft(tmp_path, "clean.md", CLEAN)
    script = tmp_path / "hanging.py"
    script.write_text(HANGING)
    command = [sys.executable, str(script), str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen([*command, "hang"], stdout=subprocess.PIPE, text=True, env=env) as it:
        assert it.stdout is not None
        assert it.stdout.readline() == "hanging\n"
        os.kill(it.pid, signal.SIGKILL)
        it.wait()

    done = subprocess.run(
        [*command, "go on"], capture_output=True, text=True, check=True, timeout=60, env=env
    )

    assert done.stdout == "pass 1\n"
    assert (tmp_path / "looked").stat().st_size == 4
