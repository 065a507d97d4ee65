"""A model reads the change against the constraints; it can refuse, but never overrule."""

from dataclasses import replace
from typing import Any

import pytest

from agent_run.contract.budget import Budget
from agent_run.contract.manifest import Manifest
from agent_run.contract.record import Record
from agent_run.gates.cache import NoCache
from agent_run.gates.review import ReviewGate
from agent_run.models import BytesMeter, MemoryPurse, ScriptedModel, Turn
from agent_run.ports.gate import Case

pytestmark = pytest.mark.anyio
DIFF = b"-delay = 10\n+delay = 99\n"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def case(*constraints: str, diff: str | None = "d1") -> Case:
    manifest = Manifest(task_id="t", objective="Add backoff", constraints=constraints)
    return Case(manifest, Record(), {"diff": diff}, None, None, NoCache(), MemoryPurse())


def gate(*opinions: dict[str, Any], blob: bytes = DIFF) -> ReviewGate:
    model = ScriptedModel([Turn(output=opinion) for opinion in opinions])
    return ReviewGate(model, BytesMeter(), lambda _digest: blob)


def opinion(judgement: str, *, reading: str | None = None) -> dict[str, Any]:
    said = {"constraint": "short", "judgement": reading or judgement, "quote": "+delay = 99"}
    return {"judgement": judgement, "readings": [said], "confidence_percent": 90}


@pytest.mark.parametrize(
    ("judgement", "outcome", "reason"),
    [
        ("holds", "pass", "verified"),
        ("broken", "fail", "review_rejected"),
        ("unsure", "inconclusive", "no_evidence"),
    ],
)
async def test_what_the_model_thinks_becomes_a_finding(
    judgement: str, outcome: str, reason: str
) -> None:
    (finding,) = await gate(opinion(judgement)).check(case("short"))

    assert (finding.outcome, finding.reason) == (outcome, reason)
    assert "+delay = 99" in finding.evidence


async def test_an_opinion_that_contradicts_itself_is_asked_for_again() -> None:
    contradiction = opinion("holds", reading="broken")

    (finding,) = await gate(contradiction, opinion("broken")).check(case("short"))

    assert finding.outcome == "fail"


async def test_a_change_too_large_to_be_read_is_not_cut() -> None:
    (finding,) = await gate(opinion("holds"), blob=b"x" * 60_001).check(case("short"))

    assert finding.outcome == "inconclusive"
    assert "60001 tokens (utf8-bytes), too large to be read" in finding.evidence


async def test_without_constraints_or_change_there_is_no_question() -> None:
    assert await gate(opinion("holds")).check(case()) == ()
    assert await gate(opinion("holds")).check(case("short", diff=None)) == ()


async def test_a_model_is_not_asked_where_nobody_pays() -> None:
    unpaid = replace(case("short"), purse=None)

    assert await gate(opinion("holds")).check(unpaid) == ()


async def test_the_same_change_is_not_paid_for_twice() -> None:
    model = ScriptedModel([Turn(output=opinion("holds"))])
    reading = ReviewGate(model, BytesMeter(), lambda _digest: DIFF)
    submitted = case("short")

    first = await reading.check(submitted)
    again = await reading.check(submitted)

    assert first == again
    assert len(model.asked) == 1


async def test_a_change_that_cannot_be_paid_for_is_left_to_a_person() -> None:
    poor = replace(case("short"), purse=MemoryPurse(Budget(max_tokens=10)))

    (finding,) = await gate(opinion("holds")).check(poor)

    assert finding.outcome == "inconclusive"
    assert "the budget does not allow it" in finding.evidence


async def test_a_limit_in_dollars_needs_a_known_price() -> None:
    manifest = case("short").manifest.model_copy(
        update={"budget": Budget.model_validate({"max_cost_usd": "1"})}
    )
    model = ScriptedModel([Turn(output=opinion("holds"))], rate=None)
    reading = ReviewGate(model, BytesMeter(), lambda _digest: DIFF)

    (finding,) = await reading.check(replace(case("short"), manifest=manifest))

    assert (finding.outcome, model.asked) == ("inconclusive", [])
    assert "nobody knows the price" in finding.evidence


async def test_a_model_that_gives_nothing_usable_decides_nothing() -> None:
    (finding,) = await gate({"judgement": "perfect"}).check(case("short"))

    assert finding.outcome == "inconclusive"
