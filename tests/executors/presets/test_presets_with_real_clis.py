"""The presets drive the real command lines, which talk to a scripted model on loopback."""

import socket
from pathlib import Path

import pytest

from agent_run.executors.presets import CommandRun, Endpoint
from tests.executors.presets.running import RIGHT, WRONG, run
from tests.support.model_server import ByAttempt, Edit, Finish, ModelServer, Shell, Turns, Write

# The first test of a command line installs it, which may take minutes.
pytestmark = [pytest.mark.clis, pytest.mark.timeout(900)]

CLIS = (
    "claude",
    "codex",
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("mini-swe-agent", "opencode")),
    pytest.param("aider", marks=pytest.mark.slow),
)
RECORD: dict[str, object] = {
    "status": "needs_review",
    "files_changed": ["calc.py"],
    "commands_run": ["cat calc.py"],
    "risks": [],
    "next_step": "review",
    "notes": "the sign was wrong",
    "confidence_percent": 90,
    "next_action": "continue",
    "wider_scope": [],
}
DONE = Finish("All done.", RECORD)
REPAIR = Edit("calc.py", "    return a - b", "    return a + b")
RIGHT_FIX = Turns.of(REPAIR, Shell("cat calc.py"), DONE)
SECOND_TRY = ByAttempt(
    {1: Turns.of(Edit("calc.py", "    return a - b", "    return b - a"), DONE), 2: RIGHT_FIX}
)


@pytest.mark.parametrize("name", CLIS)
def test_a_right_fix_is_made_and_its_record_commands_and_tokens_are_seen(
    name: str, tmp_path: Path
) -> None:
    with ModelServer(RIGHT_FIX) as server:
        ran = run(name, tmp_path, Endpoint(server.v1, "scripted"))

    assert ran.observation.error is None
    assert ran.text("calc.py") == RIGHT
    assert ran.observation.tokens_in == 100 * len(server.asks)
    assert ran.observation.tokens_out == 10 * len(server.asks)
    assert ran.observation.cost_usd is None
    assert server.strays == ()
    if name == "aider":
        assert ran.observation.record is None
    else:
        assert ran.observation.record == RECORD
        assert CommandRun("cat calc.py", 0) in ran.observation.commands_run


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_a_wrong_first_attempt_is_made_right_in_the_second(name: str, tmp_path: Path) -> None:
    texts = []
    with ModelServer(SECOND_TRY) as server:
        for attempt in (1, 2):
            place = tmp_path / str(attempt)
            place.mkdir()
            brief = f"Repair the function add. AGENT_RUN_ATTEMPT={attempt}"
            ran = run(name, place, Endpoint(server.v1, "scripted"), brief=brief)
            texts.append(ran.text("calc.py"))

    assert texts == [WRONG.replace("a - b", "b - a"), RIGHT]


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_an_edit_out_of_scope_is_made_and_left_for_the_gates(name: str, tmp_path: Path) -> None:
    with ModelServer(Turns.of(Write("elsewhere.py", "x = 1\n"), REPAIR, DONE)) as server:
        ran = run(name, tmp_path, Endpoint(server.v1, "scripted"))

    assert ran.observation.error is None
    assert ran.text("elsewhere.py") == "x = 1\n"


@pytest.mark.slow
@pytest.mark.parametrize("name", CLIS)
def test_a_dead_endpoint_is_an_error_within_the_wall_clock(name: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    endpoint = Endpoint(f"http://127.0.0.1:{port}/v1", "scripted")

    ran = run(name, tmp_path, endpoint, seconds=15)

    assert ran.observation.error is not None
    assert ran.observation.record is None
    assert ran.text("calc.py") == WRONG
