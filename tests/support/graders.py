"""Executors and scorers that tests of evaluations name by their place."""

from collections.abc import Mapping

from pydantic import JsonValue

from agent_run.contract.brief import Brief
from agent_run.contract.plan import Plan
from agent_run.contract.record import Record
from agent_run.evals.rubric import Rubric
from agent_run.executors.function import executor


@executor("shouting")
def shouting(brief: Brief) -> Record:
    """Fail a draft that shouts; be unsure of one that whispers."""
    text = str(brief.input)
    return Record(
        status="failed" if text.isupper() else "passed",
        confidence=0.5 if text.startswith("psst") else 0.95,
        output={"report": f"looked at {text!r}"},
        tokens_used=len(text),
        requests_made=1,
    )


@executor("deaf")
def deaf(brief: Brief) -> Record:
    """Pass everything."""
    return Record(status="passed", confidence=0.95, tokens_used=1)


def one_step(given: JsonValue) -> Plan:
    """Make a plan of a case."""
    step = {
        "task_id": "tone",
        "objective": "listen",
        "executor": "shouting",
        "input": given,
        "min_confidence": 0.7,
        "budget": {"max_attempts": 1},
    }
    return Plan.model_validate({"steps": [step]})


async def by_length(rubric: Rubric, report: str) -> Mapping[str, JsonValue]:
    """Score a report by how long it is."""
    return {one.name: min(one.highest, 1 + len(report) // 20) for one in rubric.criteria}
