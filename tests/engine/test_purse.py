"""A purse on a real ledger: what was paid for is never paid for again."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_run.contract.budget import Spend
from agent_run.desk import Desk
from agent_run.engine.purse import DeskPurse
from agent_run.errors import OverBudget, StaleClaim
from agent_run.ledger.commands import Release
from agent_run.wiring import open_desk
from tests.support.stories import TASK, claim, post

RUN = "run"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = open_desk(f"sqlite:///{tmp_path / 'ledger.db'}")
    made.handle(RUN, post(budget={"max_tokens": 100}), claim())
    yield made
    made.close()


def test_a_finished_call_is_remembered_with_its_result(desk: Desk) -> None:
    purse = DeskPurse(desk, RUN, TASK, 2, "ada")

    purse.reserve("ask", Spend(tokens=60))
    purse.settle("ask", Spend(tokens=40), {"text": "yes"})

    known = purse.recall("ask")
    assert known is not None
    assert (known.finished, known.result) == (True, {"text": "yes"})
    assert purse.recall("other") is None


def test_what_cannot_be_afforded_is_refused_before_the_call(desk: Desk) -> None:
    purse = DeskPurse(desk, RUN, TASK, 2, "ada")
    purse.reserve("ask", Spend(tokens=60))

    with pytest.raises(OverBudget, match="tokens 110 > 100"):
        purse.reserve("more", Spend(tokens=50))


def test_a_call_that_was_begun_and_never_settled_is_unknown_to_the_next_attempt(
    desk: Desk,
) -> None:
    DeskPurse(desk, RUN, TASK, 2, "ada").reserve("ask", Spend(tokens=10))
    desk.handle(RUN, Release(task_id=TASK, actor="ada", claim=2), claim("bob"))

    page = desk.run(RUN).tasks[TASK].claim or 0
    known = DeskPurse(desk, RUN, TASK, page, "bob").recall("ask")

    assert known is not None
    assert not known.finished


def test_nobody_pays_under_a_lost_claim(desk: Desk) -> None:
    desk.handle(RUN, Release(task_id=TASK, actor="ada", claim=2), claim("bob"))

    with pytest.raises(StaleClaim):
        DeskPurse(desk, RUN, TASK, 2, "ada").reserve("ask", Spend(tokens=10))
