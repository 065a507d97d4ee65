"""Evaluation through the door: real plans, real ledgers, exit codes that fail a build."""

import json
from pathlib import Path

import pytest

from tests.support.command_line import Ask

PLAN = """\
steps:
- task_id: tone
  objective: listen
  executor: shouting
  min_confidence: 0.7
  budget: {max_attempts: 1}
"""
SETTINGS = """\
[executors.shouting]
function = "tests.support.graders:shouting"
[executors.deaf]
function = "tests.support.graders:deaf"
"""


def _case(name: str, given: str, outcome: str) -> dict[str, object]:
    human = {"decision": "fail" if given.isupper() else "pass"}
    steps = {"tone": outcome}
    return {"case_id": name, "input": given, "expected": {"steps": steps}, "human": human}


@pytest.fixture
def dataset(folder: Path) -> Path:
    (folder / "agent-run.toml").write_text(SETTINGS)
    (folder / "plan.yaml").write_text(PLAN)
    (folder / "deaf.yaml").write_text(PLAN.replace("shouting", "deaf"))
    cases = [
        _case("quiet", "hello there", "pass"),
        _case("loud", "BUY NOW", "fail"),
        _case("unsure", "psst", "escalate"),
    ]
    (folder / "d.jsonl").write_text("".join(json.dumps(case) + "\n" for case in cases))
    return folder


def test_a_dataset_goes_through_a_plan_and_is_scored(ask: Ask, dataset: Path) -> None:
    answer = ask("eval", "run", "d.jsonl", "--plan", "plan.yaml", "--out", "one", "--json")

    scores = answer.json["scores"]
    assert answer.code == 0
    assert scores["step_accuracy"]["value"] == 1
    assert (scores["precision"]["value"], scores["recall"]["value"]) == (1, 1)
    assert scores["decided"]["value"] == pytest.approx(2 / 3)
    assert "3/3" in answer.err
    assert len(list((dataset / "one" / "cases").glob("*.db"))) == 3


def test_the_second_time_only_the_scores_are_made(ask: Ask, dataset: Path) -> None:
    run = ("eval", "run", "d.jsonl", "--plan", "plan.yaml", "--out", "one", "--json")
    first = ask(*run)

    second = ask(*run)

    assert second.json == first.json
    assert "1/3" not in second.err
    assert ask("eval", "show", "one", "--json").json == first.json


def test_a_case_whose_ledger_is_there_goes_on_from_it(ask: Ask, dataset: Path) -> None:
    run = ("eval", "run", "d.jsonl", "--plan", "plan.yaml", "--out", "one", "--json")
    first = ask(*run).json["scores"]
    (dataset / "one" / "results.jsonl").unlink()  # as after a crash before anything was told

    second = ask(*run).json["scores"]

    assert second["attempts"] == first["attempts"]
    assert second["step_accuracy"] == first["step_accuracy"]


def test_a_missed_limit_fails_the_build(ask: Ask, dataset: Path) -> None:
    run = ("eval", "run", "d.jsonl", "--plan", "deaf.yaml", "--out", "two")

    answer = ask(*run, "--min", "step_accuracy=0.9", "--json")

    assert answer.code == 1
    assert answer.json["missed"] == ["step_accuracy is 0.3333, wanted min 0.9"]
    assert ask("eval", "show", "two", "--max", "tokens=5").code == 0
    assert ask("eval", "show", "two", "--min", "beauty=1").code == 2


def test_two_evaluations_are_compared(ask: Ask, dataset: Path) -> None:
    ask("eval", "run", "d.jsonl", "--plan", "plan.yaml", "--out", "one")
    ask("eval", "run", "d.jsonl", "--plan", "deaf.yaml", "--out", "two")

    found = ask("eval", "compare", "one", "two", "--json")

    assert found.json["became_wrong"] == ["loud", "unsure"]
    assert found.json["mcnemar_p"] == 0.5
    assert "may be chance" in ask("eval", "compare", "one", "two").out


def test_a_recipe_makes_a_plan_of_each_case(ask: Ask, dataset: Path) -> None:
    answer = ask(
        *("eval", "run", "d.jsonl", "--recipe", "tests.support.graders:one_step"),
        *("--out", "r", "--json"),
    )

    assert answer.json["scores"]["step_accuracy"]["value"] == 1
    assert ask("eval", "run", "d.jsonl", "--out", "r").code == 2


def test_a_case_that_breaks_the_pipeline_fails_the_build(ask: Ask, dataset: Path) -> None:
    (dataset / "breaking.py").write_text("def plan(given):\n    return given['no such key']\n")
    (dataset / "d.jsonl").write_text('{"case_id": "a", "input": {}}\n')
    run = ("eval", "run", "d.jsonl", "--recipe", "breaking:plan", "--out", "one")

    broken, allowed = ask(*run), ask(*run, "--max", "errors=1")

    assert (broken.code, allowed.code) == (1, 0)
    assert "recipe 'breaking:plan' failed: KeyError: 'no such key'" in broken.err
    assert "1 case broke the pipeline" in broken.err


def test_every_fault_of_a_dataset_is_told(ask: Ask, dataset: Path) -> None:
    (dataset / "d.jsonl").write_text('{"case_id": "a"}\n{"case_id": "a", "x": 1}\nnonsense\n')

    answer = ask("eval", "check", "d.jsonl")

    assert answer.code == 2
    assert len(answer.err.splitlines()) == 2


def test_reports_are_scored_blind_and_by_a_function(ask: Ask, dataset: Path) -> None:
    (dataset / "rubric.yaml").write_text(
        "rubric_id: clarity\ncriteria:\n- {name: clear, question: Is it clear?}\n"
    )
    ask("eval", "run", "d.jsonl", "--plan", "plan.yaml", "--out", "one")
    rubric = ("--rubric", "rubric.yaml")

    out = ask(
        *("eval", "rubric", "hand-out", "one", *rubric),
        *("--csv", "s.csv", "--key", "k.json", "--json"),
    )
    sheet = (dataset / "s.csv").read_text().splitlines()
    filled = [sheet[0], *(line.removesuffix(",,") + ",4," for line in sheet[1:])]
    (dataset / "s.csv").write_text("\n".join(filled) + "\n")
    back = ask(
        *("eval", "rubric", "take-in", "s.csv", *rubric, "--key", "k.json"),
        *("--out", "people.jsonl", "--json"),
    )
    asked = ask(
        *("eval", "rubric", "ask", "one", *rubric, "--out", "model.jsonl"),
        *("--scorer", "tests.support.graders:by_length", "--json"),
    )
    told = ask("eval", "rubric", "summary", "people.jsonl", "model.jsonl", "--json").json

    again = ask(
        *("eval", "rubric", "hand-out", "one", *rubric), *("--csv", "s.csv", "--key", "k2.json")
    )

    assert (again.code, "'s.csv' is there already" in again.err) == (2, True)
    assert (out.json["rows"], back.json["ratings"]) == (3, 3)
    assert asked.json["ratings"] == 3
    assert told["means"]["people.jsonl"] == {"clear": 4.0}
    assert told["agreement"][0]["both"] == 3


def _scored_reports(ask: Ask, folder: Path, score: int) -> str:
    """Evaluate, and write a rubric and a model that gives everything one score."""
    (folder / "rubric.yaml").write_text(
        "rubric_id: clarity\ncriteria:\n- {name: clear, question: Is it clear?}\n"
    )
    turn = {"output": {"clear": {"reason": "it says so", "score": score}}}
    (folder / "rater.json").write_text(json.dumps([turn]))
    ask("eval", "run", "d.jsonl", "--plan", "plan.yaml", "--out", "one")
    return "scripted:rater.json"


def test_a_model_scores_reports_and_is_not_paid_twice(ask: Ask, dataset: Path) -> None:
    model = _scored_reports(ask, dataset, 4)
    rate = ("eval", "rubric", "ask", "one", "--rubric", "rubric.yaml", "--model", model)

    first = ask(*rate, "--out", "model.jsonl", "--json")
    calls = (dataset / "model.jsonl.calls").read_text()
    again = ask(*rate, "--out", "model.jsonl", "--json")

    line, *_ = (dataset / "model.jsonl").read_text().splitlines()
    assert (first.code, again.code) == (0, 0)
    assert json.loads(line)["scores"] == {"clear": 4}
    assert json.loads(line)["note"] == "clear: it says so"
    assert (dataset / "model.jsonl.calls").read_text() == calls


@pytest.mark.parametrize(
    ("score", "flags", "code", "said"),
    [
        (9, (), 1, "gave no usable answer in 3 tries"),
        (9, (), 1, "'model.jsonl.calls': its answers are kept"),
        (4, ("--max-tokens", "5"), 6, "the budget does not allow it"),
        (4, ("--scorer", "tests.support.graders:by_length"), 2, "only one"),
    ],
)
def test_a_model_that_cannot_score_is_one_sentence(
    ask: Ask, dataset: Path, score: int, flags: tuple[str, ...], code: int, said: str
) -> None:
    model = _scored_reports(ask, dataset, score)

    answer = ask(
        *("eval", "rubric", "ask", "one", "--rubric", "rubric.yaml", "--quiet"),
        *("--model", model, "--out", "model.jsonl", *flags),
    )

    assert answer.code == code
    assert said in answer.err.splitlines()[-1]
    assert not (dataset / "model.jsonl").exists()


def test_recorded_work_becomes_a_dataset_for_the_next_version(ask: Ask, dataset: Path) -> None:
    step = {
        "task_id": "tone",
        "objective": "x",
        "executor": "shouting",
        "budget": {"max_attempts": 1},
        "input": "BUY NOW",
    }
    (dataset / "plan.json").write_text(json.dumps({"plan_id": "p", "steps": [step]}))
    ask("run", "plan.json", "--run", "monday")
    ask("review", "monday/tone", "--reject", "it shouts", "--as", "eve")

    collected = ask("eval", "collect", "--decided")
    (dataset / "people.jsonl").write_text(collected.out)
    again = ask("eval", "run", "people.jsonl", "--plan", "deaf.yaml", "--out", "p", "--json")

    assert json.loads(collected.out) == {
        "case_id": "monday.tone",
        "input": "BUY NOW",
        "expected": {"steps": {"tone": "fail"}},
        "human": {"decision": "fail", "by": "eve"},
    }
    assert again.json["scores"]["agreement"]["value"] == 0
    assert ask("eval", "collect", "--run", "nobody").code == 2


def test_a_recorded_run_is_judged_again(ask: Ask, dataset: Path) -> None:
    ask("eval", "run", "d.jsonl", "--plan", "plan.yaml", "--out", "one")
    (ledger,) = (dataset / "one" / "cases").glob("quiet-*.db")
    store, run_id = ("--store", f"sqlite:///{ledger}"), ledger.stem

    same = ask("replay", run_id, *store, "--json")
    stricter = ask("replay", run_id, *store, "--min-confidence", "0.99", "--json")

    assert (same.code, same.json["differs"]) == (0, 0)
    assert (stricter.code, stricter.json["differs"]) == (4, 1)
    assert ask("replay", "nobody", *store).code == 2


def test_a_canary_divides_a_plan_and_is_judged_on_the_ledger(ask: Ask, dataset: Path) -> None:
    (dataset / "canary.yaml").write_text(
        "name: new\nshare: 0.5\nchanges: {executor: deaf}\nstop_at: {max_errors: 1}\n"
    )
    steps = [
        {"task_id": f"t{n}", "objective": "x", "labels": {"risk": "low"}} for n in range(20)
    ]
    (dataset / "plan.json").write_text(json.dumps({"plan_id": "p", "steps": steps}))

    divided = ask("eval", "canary", "assign", "canary.yaml", "plan.json", "--json")
    (dataset / "divided.json").write_text(divided.out)
    posted = ask("post", "divided.json")
    judged = ask("eval", "canary", "judge", "canary.yaml", "--json")

    executors = {step.get("executor") for step in divided.json["steps"]}
    assert executors == {None, "deaf"}
    assert posted.code == 0
    assert (judged.code, judged.json["action"]) == (0, "wait")
    assert sum(one["tasks"] for one in judged.json["variants"]) == 20


def test_a_canary_that_passed_a_limit_gets_nothing_more(ask: Ask, dataset: Path) -> None:
    canary = {"name": "new", "share": 1.0, "changes": {"executor": "shouting"}}
    (dataset / "canary.json").write_text(json.dumps({**canary, "stop_at": {"max_errors": 1}}))
    step = {"objective": "x", "labels": {"risk": "low"}, "input": "BUY NOW"}
    step |= {"executor": "deaf", "budget": {"max_attempts": 1}}
    (dataset / "plan.json").write_text(
        json.dumps({"plan_id": "p", "steps": [{"task_id": "a", **step}]})
    )
    assign = ("eval", "canary", "assign", "canary.json", "plan.json", "--json")

    first = ask(*assign)
    (dataset / "divided.json").write_text(first.out)
    worked = ask("run", "divided.json", "--run", "monday")
    second = ask(*assign)
    judged = ask("eval", "canary", "judge", "canary.json", "--json")

    assert first.json["steps"][0]["executor"] == "shouting"
    assert worked.code == 7
    assert second.json["steps"][0]["executor"] == "deaf"
    assert "the canary is stopped: 1 errors, the limit is 1" in second.err
    assert (judged.code, judged.json["action"]) == (1, "stop")
