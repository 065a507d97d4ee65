"""Telling people that something waits for them: by a command of theirs, or by a webhook.

It runs beside the work and never holds it up. What could not be told is said, and stays in
the inbox anyway.
"""

import json
import queue
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.error import URLError
from urllib.request import Request, urlopen

from agent_run.ledger.events import QuestionAsked, TaskEscalated, TaskPosted
from agent_run.ledger.pages import Page

_KINDS: Final = frozenset({"task_escalated", "question_asked", "task_posted"})
_PATIENCE: Final = 30.0


@dataclass(slots=True)
class Notifier:
    """Hears of every commit and passes on what a person has to see."""

    target: str
    """A shell command, which gets the message as JSON on its standard input, or a URL."""
    warn: Callable[[str], None]
    _waiting: "queue.SimpleQueue[dict[str, str] | None]" = field(
        default_factory=queue.SimpleQueue
    )
    _thread: threading.Thread | None = None

    def __call__(self, pages: Sequence[Page]) -> None:
        """Take note of pages that were written."""
        for page in pages:
            message = message_of(page) if page.kind in _KINDS else None
            if message is not None:
                self._waiting.put(message)
                self._begin()

    def close(self) -> None:
        """Pass on what is left, for half a minute at most."""
        if self._thread is None:
            return
        self._waiting.put(None)
        self._thread.join(_PATIENCE)
        if self._thread.is_alive():
            self.warn(f"notify {self.target!r} did not end in {_PATIENCE:.0f} s")

    def _begin(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._pass_on, daemon=True)
            self._thread.start()

    def _pass_on(self) -> None:
        while (message := self._waiting.get()) is not None:
            try:
                self._tell(json.dumps(message).encode())
            except (OSError, URLError, subprocess.SubprocessError, ValueError) as error:
                self.warn(
                    f"{message['task_id']!r} waits for a person, but notify failed: {error}"
                )

    def _tell(self, body: bytes) -> None:
        if self.target.startswith(("http://", "https://")):
            headers = {"Content-Type": "application/json"}
            request = Request(self.target, data=body, headers=headers, method="POST")  # noqa: S310
            with urlopen(request, timeout=_PATIENCE):  # noqa: S310 - the user's own address
                return
        subprocess.run(  # noqa: S603 - the user's own command
            ["/bin/sh", "-c", self.target],
            input=body,
            timeout=_PATIENCE,
            check=True,
            capture_output=True,
        )


def message_of(page: Page) -> dict[str, str] | None:
    """Return what a person is told about a page; None if it needs nobody."""
    match page.event():
        case TaskEscalated(reason=reason, note=note):
            kind, said = str(reason), note
        case QuestionAsked(question=question):
            kind, said = "question", question.text
        case TaskPosted(manifest=manifest) if manifest.approve_before_claim:
            kind, said = "approval", manifest.objective
        case _:
            return None
    return {
        "run_id": page.run_id,
        "task_id": page.task_id,
        "kind": kind,
        "text": said,
        "next": f"agent-run review {page.run_id}/{page.task_id}",
    }
