"""Real coding agents work on a real project, from claim to verdict, inside the real fence.

The model is a script on loopback, the only address that the fence lets them reach.
"""

import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import pytest

from agent_run.errors import StaleClaim
from agent_run.ledger.commands import Cancel, Widen
from agent_run.ledger.state import FOR_A_PERSON, Status, TaskState
from tests.coding_agents.playing import RIGHT, RUN, TASK, Stage, reasons, staged
from tests.support.clis import CLIS
from tests.support.model_server import (
    Ask,
    ByAttempt,
    Edit,
    Finish,
    ModelServer,
    Shell,
    Turns,
    Write,
)

# The first test of a command line installs it, which may take minutes.
pytestmark = [pytest.mark.clis, pytest.mark.timeout(900)]

QUICK = ("claude", "codex")
EVERY = (
    *QUICK,
    *(pytest.param(name, marks=pytest.mark.slow) for name in CLIS if name not in QUICK),
)
REPAIR = Edit("calc.py", "    return a - b", "    return a + b")
BREAK = Edit("calc.py", "    return a - b", "    return b - a")


def record(*commands: str, files: tuple[str, ...] = ("calc.py",), **more: object) -> Finish:
    said: dict[str, object] = {
        "status": "needs_review",
        "files_changed": list(files),
        "commands_run": list(commands),
        "risks": [],
        "next_step": "review",
        "notes": "the sign was wrong",
        "confidence_percent": 90,
        "next_action": "continue",
        "wider_scope": [],
    }
    return Finish("All done.", {**said, **more})


RIGHT_FIX = Turns.of(REPAIR, Shell("cat calc.py"), record("cat calc.py"))


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    with staged(tmp_path, monkeypatch) as made:
        yield made


@pytest.mark.parametrize("name", EVERY)
def test_a_right_fix_is_seen_accepted_and_one_commit(name: str, stage: Stage) -> None:
    before = stage.print_of_user_files()
    stage.post()

    with ModelServer(RIGHT_FIX) as server:
        task = stage.execute(name, server.v1)

    assert task.status is Status.ACCEPTED, (task.verdict, task.observed)
    _assert_one_commit_holds_the_fix(stage, task)
    _assert_the_work_was_seen(name, task, tokens=110 * len(server.asks))
    assert stage.print_of_user_files() == before
    assert stage.alive() == ()
    assert server.strays == ()


def _assert_one_commit_holds_the_fix(stage: Stage, task: TaskState) -> None:
    ref = f"refs/agent-run/{TASK}"
    assert isinstance(task.result, dict)
    assert task.result["commit"] == stage.result()
    assert stage.git("show", f"{ref}:calc.py") == RIGHT
    assert stage.git("diff", "--name-only", "main", ref) == "calc.py\n"
    assert stage.git("rev-parse", f"{ref}^") == stage.git("rev-parse", "main")


def _assert_the_work_was_seen(name: str, task: TaskState, *, tokens: int) -> None:
    seen, said = task.observed, task.record
    assert isinstance(seen, dict)
    assert said is not None
    assert seen["tokens_used"] == said.tokens_used == tokens
    assert seen["files_changed"] == ["calc.py"]
    assert seen["fence"]
    assert seen["transcript"]
    assert seen["refused_hosts"] == []
    if name == "aider":  # it has no shell, and no way to give a record
        assert said.observed_only
        assert seen["commands_run"] == []
    else:
        assert not said.observed_only
        assert said.notes == "the sign was wrong"
        assert "cat calc.py" in str(seen["commands_run"])


@pytest.mark.parametrize("name", QUICK)
def test_a_wrong_first_attempt_is_corrected_in_the_second(name: str, stage: Stage) -> None:
    stage.post(attempts=2)
    script = ByAttempt({1: Turns.of(BREAK, record()), 2: RIGHT_FIX})

    with ModelServer(script) as server:
        task = stage.execute(name, server.v1)

    assert task.status is Status.ACCEPTED, (task.verdict, task.observed)
    assert task.attempt == 2
    assert [reasons(verdict) for verdict in task.returned] == [{"verification_failed"}]
    told = {ask.attempt: ask.prompt for ask in server.asks}
    assert "What was wrong with attempt 1" not in told[1]
    assert "What was wrong with attempt 1" in told[2]
    assert "commands: verification_failed" in told[2]
    assert "assert 1 == 5" in told[2]
    assert stage.git("show", f"refs/agent-run/{TASK}:calc.py") == RIGHT


@pytest.mark.parametrize("name", QUICK)
def test_an_edit_out_of_scope_is_refused_and_reaches_nobody(name: str, stage: Stage) -> None:
    before = stage.print_of_user_files()
    stage.post()
    wander = (
        Write("elsewhere.py", "x = 1\n"),
        Shell("echo '# tampered' >> test_calc.py"),
        Shell(f"echo '# reached' >> {stage.root / 'calc.py'}"),
    )
    script = Turns.of(REPAIR, *wander, record(files=("calc.py", "elsewhere.py")))

    with ModelServer(script) as server:
        task = stage.execute(name, server.v1)

    assert task.status in FOR_A_PERSON
    assert "out_of_scope" in reasons(task.verdict)
    assert task.verdict is not None
    blamed = {path for finding in task.verdict.failures for path in finding.paths}
    assert {"elsewhere.py", "test_calc.py"} <= blamed
    assert stage.result() is None
    assert stage.print_of_user_files() == before


@pytest.mark.parametrize("name", QUICK)
def test_wider_scope_is_asked_for_granted_and_then_used(name: str, stage: Stage) -> None:
    stage.post()
    asking = Turns.of(record(files=(), status="blocked", wider_scope=["words.py"]))
    both = Turns.of(
        Write("words.py", "PLUS = 1\n"), REPAIR, record(files=("calc.py", "words.py"))
    )

    with ModelServer(ByAttempt({1: asking, 2: both})) as server:
        asked = stage.execute(name, server.v1)
        stage.desk.handle(RUN, Widen(task_id=TASK, actor="ada", paths=("words.py",)))
        task = stage.execute(name, server.v1)

    assert asked.status is Status.ASKED
    assert asked.question is not None
    assert asked.question.wider_scope == ("words.py",)
    assert task.status is Status.ACCEPTED, (task.verdict, task.observed)
    changed = stage.git("diff", "--name-only", "main", f"refs/agent-run/{TASK}")
    assert changed.split() == ["calc.py", "words.py"]


@pytest.mark.parametrize("name", EVERY)
def test_a_dead_model_endpoint_is_a_failure_that_leaves_nothing_behind(
    name: str, stage: Stage
) -> None:
    before = stage.print_of_user_files()
    stage.post(seconds=25)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    task = stage.execute(name, f"http://127.0.0.1:{port}/v1")

    assert task.status in FOR_A_PERSON
    assert reasons(task.verdict) & {"executor_failed", "timeout"}
    assert task.record is not None
    assert task.record.observed_only
    assert task.owner is None
    assert stage.alive() == ()
    assert stage.jobs_left() == ()
    assert stage.result() is None
    assert stage.print_of_user_files() == before


def test_a_silent_model_is_a_time_out_and_no_process_outlives_it(stage: Stage) -> None:
    stage.post(seconds=8)
    silence = Silence(stage)

    with ModelServer(silence) as server:
        task = stage.execute("codex", server.v1)
        left = stage.alive()
        silence.over.set()

    assert any("sleep 300" in words for words in silence.alive)
    assert left == ()
    assert task.status in FOR_A_PERSON
    assert "timeout" in reasons(task.verdict)
    assert task.owner is None


def test_a_task_cancelled_under_way_leaves_no_process_and_no_result(stage: Stage) -> None:
    stage.post()
    cancel = Cancel(task_id=TASK, actor="ada", note="not wanted any more")
    silence = Silence(stage, lambda: stage.desk.handle(RUN, cancel))

    with ModelServer(silence) as server:
        with pytest.raises(StaleClaim):
            stage.execute("claude", server.v1, ttl=timedelta(seconds=6))
        left = stage.alive()
        silence.over.set()

    assert any("sleep 300" in words for words in silence.alive)
    assert left == ()
    assert stage.task.status is Status.CANCELLED
    assert stage.jobs_left() == ()
    assert stage.result() is None


@pytest.mark.parametrize("name", QUICK)
def test_the_agent_reaches_its_model_and_no_other_address(name: str, stage: Stage) -> None:
    stage.post()

    with ModelServer(RIGHT_FIX) as other:
        connect = f"python3 -c \"import urllib.request as r; r.urlopen('{other.url}/models')\""
        script = Turns.of(REPAIR, Shell(f"{connect} || echo not to be reached"), record())
        with ModelServer(script) as server:
            task = stage.execute(name, server.v1)

    assert "not to be reached" in "\n".join(server.asks[-1].results)
    assert other.received == []
    assert task.status is Status.ACCEPTED, (task.verdict, task.observed)


@dataclass(slots=True)
class Silence:
    """Has a process started that leaves its session, and then never answers again."""

    stage: Stage
    then: Callable[[], object] = lambda: None
    """Called once, when the model falls silent."""
    over: threading.Event = field(default_factory=threading.Event)
    alive: tuple[str, ...] = ()
    """What ran when the model fell silent."""

    def __call__(self, ask: Ask) -> Turns:
        if ask.turn and not self.alive:
            self.alive = self.stage.alive()
            self.then()
        if ask.turn:
            self.over.wait(60)
        return Turns.of(Shell("(setsid sleep 300 >/dev/null 2>&1 &); echo begun"), record())
