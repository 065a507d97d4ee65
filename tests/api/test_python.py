"""The package as Python users see it."""

from functools import partial
from pathlib import Path

import anyio
import pytest
from pydantic import BaseModel, JsonValue

from agent_run import (
    Brief,
    InvalidDocument,
    Manifest,
    Plan,
    Record,
    executor,
    open_desk,
    run_plan,
)
from agent_run.errors import ContractError


class Draft(BaseModel):
    text: str


class ToneReport(BaseModel):
    shouts: int


@executor("write")
async def write_draft(brief: Brief) -> Record[Draft]:
    return Record[Draft](status="done", output=Draft(text="BUY NOW"))


@executor("tone")
async def check_tone(brief: Brief[Draft]) -> Record[ToneReport]:
    assert brief.input is not None
    shouts = sum(word.isupper() for word in brief.input.text.split())
    return Record[ToneReport](status="done", output=ToneReport(shouts=shouts))


def test_a_plan_from_a_file_runs_with_functions_and_typed_values(tmp_path: Path) -> None:
    (tmp_path / "qa.yaml").write_text(
        "objective: Check a draft\n"
        "steps:\n"
        "  - {task_id: draft, objective: Write it, executor: write}\n"
        "  - {task_id: tone, objective: Check it, executor: tone, needs: [draft]}\n"
    )
    desk = open_desk(f"sqlite:///{tmp_path / 'ledger.db'}")

    async def main() -> object:
        plan = Plan.load(tmp_path / "qa.yaml")
        outcome = await run_plan(desk, plan, executors=[write_draft, check_tone])
        return outcome.output("tone")

    assert anyio.run(main) == {"shouts": 2}
    desk.close()


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"text": 5}, "input.text: is 5, expected a string; put it in quotes"),
        ({"txt": "a"}, "input.text: is missing, expected a string"),
        ([], "input: is an empty list, expected a mapping"),
        (None, "input: is missing, expected a mapping"),
    ],
)
def test_an_input_that_does_not_fit_is_refused_before_anything_is_spent(
    tmp_path: Path, given: JsonValue, fault: str
) -> None:
    step = Manifest(task_id="look", objective="Check it", executor="tone", input=given)
    desk = open_desk(f"sqlite:///{tmp_path / 'ledger.db'}")

    with pytest.raises(InvalidDocument) as refused:
        anyio.run(partial(run_plan, desk, Plan(steps=(step,)), executors=[check_tone]))

    told = f"steps[0].{fault} (task 'look', executor 'tone')"
    assert refused.value.faults == (told,)
    assert not desk.runs()
    desk.close()


def test_a_document_with_faults_is_refused_with_all_of_them(tmp_path: Path) -> None:
    file = tmp_path / "task.yaml"
    file.write_text("task_id: a b\nobjectiv: fix it\n")

    with pytest.raises(InvalidDocument) as refused:
        Manifest.load(file)

    assert len(refused.value.faults) == 3


@pytest.mark.parametrize("name", ["a b", "x/y", "é", "a" * 101, "a.lock", "a\n"])
def test_a_run_cannot_have_any_name(tmp_path: Path, name: str) -> None:
    plan = Plan(steps=(Manifest(task_id="a", objective="b", executor="write"),))
    desk = open_desk(f"sqlite:///{tmp_path / 'ledger.db'}")

    with pytest.raises(ContractError, match="cannot be called so"):
        anyio.run(partial(run_plan, desk, plan, executors=[write_draft], run_id=name))

    assert not desk.runs()
    desk.close()
