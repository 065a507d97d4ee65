"""The whole agent through a provider's real library, over a real connection."""

from pathlib import Path

import pytest

from tests.executors.agent.working import RECORD, RIGHT, bench
from tests.models.wire import DIALECTS, Json, model_at, said, wire
from tests.support.model_server.ask import Ask
from tests.support.model_server.toolbox import Call

CHECK = "python3 -c 'import calc; assert calc.add(1, 2) == 3'"
SCRIPT = (
    Call("read", {"path": "calc.py"}),
    Call("edit", {"path": "calc.py", "old": "a - b", "new": "a + b"}),
    Call("run", {"command": CHECK}),
    Call("final_result", {**RECORD, "status": "great"}),
    Call("final_result", {**RECORD, "commands_run": [CHECK]}),
)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_task_is_done_over_the_wire(dialect: str, tmp_path: Path) -> None:
    results: list[tuple[str, ...]] = []

    def answers(ask: Ask, _body: Json) -> tuple[int, Json]:
        results.append(ask.results)
        return 200, said(ask, SCRIPT[len(ask.results)])

    place = bench(tmp_path)
    with wire(answers) as server:
        work = place.work(model_at(server, dialect))

    assert (place.workspace / "calc.py").read_text() == RIGHT
    assert work.record is not None
    assert (work.record.status, work.record.confidence) == ("done", 0.9)
    assert work.record.commands_run == work.seen.commands_run == (CHECK,)
    assert (work.seen.requests_made, work.seen.tokens_used) == (5, 550)
    assert work.seen.cost_usd is None  # nobody knows the price at this address
    assert "return a - b" in results[1][0]
    assert results[3][2].startswith("exit 0")
    assert "The record is refused" in results[4][3]
    assert [body["model"] for body in server.bodies] == [server.bodies[0]["model"]] * 5
