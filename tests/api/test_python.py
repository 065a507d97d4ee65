"""The package as Python users see it."""

from pathlib import Path

import anyio
import pytest
from pydantic import BaseModel

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


def test_a_document_with_faults_is_refused_with_all_of_them(tmp_path: Path) -> None:
    file = tmp_path / "task.yaml"
    file.write_text("task_id: a b\nobjectiv: fix it\n")

    with pytest.raises(InvalidDocument) as refused:
        Manifest.load(file)

    assert len(refused.value.faults) == 3
