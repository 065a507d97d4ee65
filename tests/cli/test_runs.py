"""Whole plans through the door: run, resume, advise."""

import json
from pathlib import Path

import pytest

from tests.support.command_line import agent_run

PLAN = """\
plan_id: two-steps
objective: Make two files
steps:
  - task_id: one
    objective: Write one
    allowed_paths: [one.txt]
    executor: writer
  - task_id: two
    objective: Write two
    allowed_paths: [two.txt]
    needs: [one]
    executor: {second}
    budget: {{max_attempts: 1}}
"""
CONFIG = """\
[executors.writer]
command = 'echo hello > "$AGENT_RUN_TASK_ID.txt"'

[executors.idler]
command = "true"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "agent-run.toml").write_text(CONFIG)
    (tmp_path / "good.yaml").write_text(PLAN.format(second="writer"))
    (tmp_path / "bad.yaml").write_text(PLAN.format(second="nobody"))
    (tmp_path / "stuck.yaml").write_text(PLAN.format(second="idler"))
    return tmp_path


def test_a_plan_is_carried_out_and_every_line_says_which_task_it_is_about(
    project: Path,
) -> None:
    done = agent_run(project, "run", "good.yaml")

    assert done.returncode == 0, done.stderr
    assert "[edit]    one: one.txt added" in done.stdout
    assert done.stdout.splitlines()[-2:] == ["one   accepted  1", "two   accepted  1"]


def test_a_plan_with_nobody_for_a_step_is_refused_before_anything_runs(project: Path) -> None:
    done = agent_run(project, "run", "bad.yaml")

    assert done.returncode == 2
    assert "steps[1].executor: is 'nobody', expected one of writer" in done.stderr
    assert agent_run(project, "status", "--json").stdout.count("task_id") == 0


def test_a_run_that_waits_for_a_person_says_so_and_goes_on_after_the_answer(
    project: Path,
) -> None:
    waiting = agent_run(project, "run", "stuck.yaml", "--json")
    assert waiting.returncode == 7
    assert {
        task["task_id"]: task["status"] for task in json.loads(waiting.stdout)["tasks"]
    } == {
        "one": "accepted",
        "two": "escalated",
    }

    (project / "agent-run.toml").write_text(CONFIG.replace('"true"', '"echo 2 > two.txt"'))
    assert agent_run(project, "review", "two", "--answer", "write the file").returncode == 0
    done = agent_run(project, "resume", "two-steps", "--json")

    assert done.returncode == 0, done.stderr
    attempts = {task["task_id"]: task["attempt"] for task in json.loads(done.stdout)["tasks"]}
    assert attempts == {"one": 1, "two": 2}


def test_advice_is_given_with_its_price(project: Path) -> None:
    asked = ("--steps", "15", "--independent", "5", "--price", "m=1/5", "--json")
    done = agent_run(project, "advise", *asked)

    told = json.loads(done.stdout)
    assert told["topology"] == "orchestrator-workers"
    assert {estimate["topology"] for estimate in told["estimates"]} == {
        "single",
        "plan-execute",
        "orchestrator-workers",
        "routing",
    }
    assert float(told["estimates"][0]["cost_usd"]["m"]) > 0


def test_a_price_that_is_none_gets_a_sentence(project: Path) -> None:
    done = agent_run(project, "advise", "--price", "cheap")

    assert done.returncode == 2
    assert "price 'cheap' is not like 'gpt-5=1.25/10'" in done.stderr


def test_who_could_do_it_is_named_where_nobody_is(project: Path) -> None:
    done = agent_run(project, "run", "code-fix", "false", "x.py")

    assert done.returncode == 2
    assert "steps[0].executor: is missing, expected one of idler, writer, aider" in done.stderr


def test_a_name_that_is_neither_a_file_nor_a_recipe_is_told_the_recipes(project: Path) -> None:
    done = agent_run(project, "run", "nope")

    assert done.returncode == 2
    assert "'nope' is neither a file nor a recipe, expected a plan or one of" in done.stderr
    assert "code-fix, documentation-review, email-qa" in done.stderr


def test_an_executor_that_is_configured_wrongly_is_said_to_be(project: Path) -> None:
    with (project / "agent-run.toml").open("a") as file:
        file.write('\n[executors.nobody]\nfunction = "not.there:at_all"\n')

    done = agent_run(project, "run", "bad.yaml")

    assert done.returncode == 2
    assert "function 'not.there:at_all' cannot be loaded" in done.stderr


def test_an_empty_turn_of_a_conversation_is_refused(project: Path) -> None:
    done = agent_run(project, "configure", "--run", "c1", " ")

    assert done.returncode == 2
    assert done.stderr == "agent-run: a TEXT is empty, expected what you want to say\n"


def test_a_plan_whose_id_names_no_run_is_run_under_its_first_task(project: Path) -> None:
    plan = (project / "good.yaml").read_text().replace("two-steps", '"my plan/1"')
    (project / "named.yaml").write_text(plan)

    done = agent_run(project, "run", "named.yaml", "--json")

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["run_id"] == "one"


def test_executors_of_a_recipe_work_only_in_it(project: Path) -> None:
    (project / "p.yaml").write_text("steps: [{task_id: a, objective: b, executor: qa.check}]")

    done = agent_run(project, "run", "p.yaml")

    assert done.returncode == 2
    assert "task 'a' names executor 'qa.check', which works only in its recipe" in done.stderr


FAN_IN = """\
steps:
  - task_id: left
    objective: x
    allowed_paths: ["*.txt"]
    executor: left
    budget: {{max_attempts: 1}}
  - task_id: right
    objective: x
    allowed_paths: ["*.txt"]
    executor: {right}
    budget: {{max_attempts: 1}}
  - task_id: both
    objective: x
    allowed_paths: [both.txt]
    needs: [left, right]
    executor: both
    budget: {{max_attempts: 1}}
final:
  - {{task_id: end, objective: x, executor: end, budget: {{max_attempts: 1}}}}
"""
HANDS = """\
[executors]
left.command = "echo left > left.txt"
right.command = "echo right > right.txt"
rival.command = "echo rival > left.txt"
both.command = "cat left.txt right.txt > both.txt"
end.command = "echo '{\\"status\\": \\"done\\", \\"confidence\\": 0.9}'"
"""


def test_who_needs_two_changes_of_files_starts_from_both(tmp_path: Path) -> None:
    (tmp_path / "agent-run.toml").write_text(HANDS)
    (tmp_path / "plan.yaml").write_text(FAN_IN.format(right="right"))

    done = agent_run(tmp_path, "run", "plan.yaml", "--run", "r", "--json")

    assert done.returncode == 0, done.stdout + done.stderr
    assert agent_run(tmp_path, "apply", "r/both").returncode == 0
    assert (tmp_path / "both.txt").read_text() == "left\nright\n"


def test_changes_that_conflict_wait_for_a_person_and_the_end_still_runs(tmp_path: Path) -> None:
    (tmp_path / "agent-run.toml").write_text(HANDS)
    (tmp_path / "plan.yaml").write_text(FAN_IN.format(right="rival"))

    done = agent_run(tmp_path, "run", "plan.yaml", "--run", "r", "--json")

    told = json.loads(done.stdout)
    status = {task["task_id"]: task["status"] for task in told["tasks"]}
    assert done.returncode == 7, done.stderr
    assert (status["both"], status["end"]) == ("escalated", "accepted")
    assert "conflict in 'left.txt'" in agent_run(tmp_path, "inbox", "--json").stdout
