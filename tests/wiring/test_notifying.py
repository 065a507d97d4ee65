"""People are told of what waits for them, by a command or a webhook of their own."""

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from agent_run.ledger.pages import FIRST, Page, seal
from agent_run.ledger.rules import decide
from agent_run.wiring.notifying import Notifier
from tests.support.stories import NOON, claim, given, post, submit


def asked() -> list[Page]:
    events = decide(given(post(), claim()), submit(question="Which branch?"), now=NOON)
    return [seal("run", 3, "t", event, previous=FIRST) for event in events]


def test_a_command_gets_the_message_as_json(tmp_path: Path) -> None:
    warnings: list[str] = []
    notifier = Notifier(f"cat > {tmp_path / 'heard.json'}", warnings.append)

    notifier(asked())
    notifier.close()

    heard = json.loads((tmp_path / "heard.json").read_text())
    assert (heard["task_id"], heard["kind"], heard["text"]) == (
        "repo-142",
        "question",
        "Which branch?",
    )
    assert heard["next"] == "agent-run review run/repo-142"
    assert warnings == []


def test_a_webhook_gets_a_post(tmp_path: Path) -> None:
    heard: list[dict[str, str]] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            """Stay quiet."""

    with HTTPServer(("127.0.0.1", 0), Hook) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        notifier = Notifier(f"http://127.0.0.1:{server.server_port}/hook", heard.clear)  # type: ignore[arg-type]
        notifier(asked())
        notifier.close()
        server.shutdown()

    assert [message["kind"] for message in heard] == ["question"]


def test_a_command_that_fails_is_said_and_holds_nothing_up() -> None:
    warnings: list[str] = []
    notifier = Notifier("exit 3", warnings.append)

    notifier(asked())
    notifier.close()

    assert len(warnings) == 1
    assert "'repo-142' waits for a person, but notify failed" in warnings[0]


def test_what_needs_nobody_starts_nothing() -> None:
    notifier = Notifier("exit 3", print)

    notifier([seal("run", 1, "t", decide(given(), post(), now=NOON)[0], previous=FIRST)])

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
