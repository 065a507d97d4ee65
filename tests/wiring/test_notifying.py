"""People are told of what waits for them, by a command or a webhook of their own."""

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from agent_run.ledger.commands import Command
from agent_run.ledger.fold import fold
from agent_run.ledger.inbox import inbox_row, item_json
from agent_run.ledger.pages import FIRST, Page, seal
from agent_run.ledger.rules import decide
from agent_run.ledger.state import RunState
from agent_run.wiring.notifying import Notifier
from tests.support.stories import NOON, answer, claim, given, post, submit

ASKS = (post(answer_within="1h"), claim(), submit(question="Which branch?"))


class Ledger:
    """One run, whose last commit is told of."""

    def __init__(self, *commands: Command) -> None:
        self.run: RunState = given(*commands[:-1])
        events = decide(self.run, commands[-1], now=NOON)
        after = self.run.seq + 1
        self.run = fold(events, onto=self.run)
        self.pages = [
            seal("run", seq, "t", event, previous=FIRST)
            for seq, event in enumerate(events, start=after)
        ]

    def item(self, task_id: str = "repo-142") -> dict[str, object]:
        row = inbox_row("run", self.run.tasks[task_id])
        assert row is not None
        return dict(item_json(row, NOON))

    def told(self, target: str, *, each: float = 10, whole: float = 30) -> list[str]:
        """Tell of the last commit, and return what was said about it."""
        warnings: list[str] = []
        notifier = Notifier(
            target,
            warnings.append,
            lambda _, task_id: self.run.tasks[task_id],
            clock=lambda: NOON,
            each=each,
            all=whole,
        )
        notifier(self.pages)
        notifier.close()
        return warnings


def test_a_command_gets_the_item_of_the_inbox_and_what_happened(tmp_path: Path) -> None:
    ledger = Ledger(*ASKS)

    warnings = ledger.told(f"cat > {tmp_path / 'heard.json'}")

    heard = json.loads((tmp_path / "heard.json").read_text())
    happened = heard.pop("happened")
    assert warnings == []
    assert heard == ledger.item()
    assert (heard["kind"], heard["text"], heard["owner"]) == (
        "question",
        "Which branch?",
        "ada",
    )
    assert heard["deadline"] == "2026-11-15T13:00:00Z"
    assert happened == {
        "event": "question_asked",
        "at": "2026-11-15T12:00:00Z",
        "by": "ada",
        "page": 4,
    }


def test_one_commit_about_one_task_tells_of_it_once(tmp_path: Path) -> None:
    stuck = submit(status="blocked", notes="no access")
    ledger = Ledger(post(answer_within="1h"), claim(), stuck)
    assert [page.kind for page in ledger.pages][1:] == ["task_escalated", "deadline_set"]

    ledger.told(f"cat >> {tmp_path / 'heard.json'}; echo >> {tmp_path / 'heard.json'}")

    (line,) = (tmp_path / "heard.json").read_text().splitlines()
    heard = json.loads(line)
    assert (heard["kind"], heard["text"]) == ("decision", "no access")
    assert heard["happened"]["event"] == "task_escalated"


def test_what_was_decided_meanwhile_is_not_told(tmp_path: Path) -> None:
    ledger = Ledger(*ASKS)
    ledger.run = fold(decide(ledger.run, answer("main"), now=NOON), onto=ledger.run)

    assert ledger.told(f"cat > {tmp_path / 'heard.json'}") == []
    assert not (tmp_path / "heard.json").exists()


class Hook(BaseHTTPRequestHandler):
    """Notes what it gets, and answers with what its server is told to."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.heard.append(json.loads(body))  # type: ignore[attr-defined]
        self.send_response(self.server.answers)  # type: ignore[attr-defined]
        self.end_headers()

    def log_message(self, *_arguments: object) -> None:
        """Stay quiet."""


@pytest.mark.parametrize(
    ("answers", "warned"),
    [
        (204, []),
        (
            500,
            [
                (
                    "nobody was told that task 'run/repo-142' waits for a person:"
                    " the address of notify answered 500"
                )
            ],
        ),
    ],
)
def test_a_webhook_gets_a_post(answers: int, warned: list[str]) -> None:
    with HTTPServer(("127.0.0.1", 0), Hook) as server:
        server.heard, server.answers = [], answers  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        warnings = Ledger(*ASKS).told(f"http://127.0.0.1:{server.server_port}/hook")
        server.shutdown()

    assert [message["kind"] for message in server.heard] == ["question"]  # type: ignore[attr-defined]
    assert warnings == warned


def test_an_address_that_nobody_answers_is_said_in_our_words() -> None:
    with HTTPServer(("127.0.0.1", 0), Hook) as server:
        port = server.server_port

    (warning,) = Ledger(*ASKS).told(f"http://127.0.0.1:{port}/hook")

    assert warning == (
        "nobody was told that task 'run/repo-142' waits for a person:"
        " the address of notify could not be reached: Connection refused"
    )


def test_a_command_that_fails_is_said_with_its_own_words_and_holds_nothing_up() -> None:
    (warning,) = Ledger(*ASKS).told("echo no such channel >&2; exit 3")

    assert warning == (
        "nobody was told that task 'run/repo-142' waits for a person:"
        " the command of notify ended with exit code 3 and said 'no such channel'"
    )


def test_a_slow_command_is_ended_and_every_item_is_named(tmp_path: Path) -> None:
    ledger = Ledger(post())
    ledger.run = given(*(post(name, approve_before_claim=True) for name in "abcd"))
    events = [
        decide(given(), post(name, approve_before_claim=True), now=NOON)[0] for name in "abcd"
    ]
    ledger.pages = [
        seal("run", seq, "t", event, previous=FIRST)
        for seq, event in enumerate(events, start=1)
    ]
    slow = f"cat >> {tmp_path / 'heard.json'}; sleep 100; true"

    warnings = ledger.told(slow, each=0.5, whole=1.2)

    said = "\n".join(warnings)
    assert [name for name in "abcd" if f"'run/{name}'" in said] == ["a", "b", "c", "d"]
    assert "'run/a' waits for a person: the command of notify did not end in 0.5 s" in said
    assert "Command" not in said
    assert (tmp_path / "heard.json").read_text().count("happened") >= 2, "the rest is tried"


def test_what_needs_nobody_starts_nothing() -> None:
    notifier = Notifier("exit 3", print, lambda *_: given(post()).tasks["repo-142"])
    page: Page = seal("run", 1, "t", decide(given(), post(), now=NOON)[0], previous=FIRST)

    notifier([page])

    assert notifier._thread is None


def test_an_escalation_at_the_command_line_reaches_the_command(tmp_path: Path) -> None:
    heard = tmp_path / "heard.json"
    (tmp_path / "agent-run.toml").write_text(f"notify = 'cat > {heard}'\n")
    (tmp_path / "task.yaml").write_text(
        "task_id: t\nobjective: do it\napprove_before_claim: true\n"
    )

    subprocess.run(
        [sys.executable, "-m", "agent_run", "post", "task.yaml"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
    )

    assert json.loads(heard.read_text())["kind"] == "approval"
