"""Telling people that something waits for them: by a command of theirs, or by a webhook.

What they are told is the item of the inbox, and what happened. It runs beside the work and
never holds it up for long; whatever could not be told is named, and stays in the inbox.
"""

import json
import os
import queue
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from time import monotonic
from typing import Final, TypeAlias
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from pydantic import JsonValue

from agent_run.contract.base import RunId, TaskId
from agent_run.errors import AgentRunError
from agent_run.ledger.inbox import inbox_row, item_json
from agent_run.ledger.pages import Page
from agent_run.ledger.state import TaskState
from agent_run.ledger.words import first_line, named, stamp
from agent_run.wiring.opening import wall_clock

_KINDS: Final = frozenset(
    {"task_escalated", "question_asked", "task_posted", "deadline_set", "deadline_missed"}
)
_EACH: Final = 10.0
_ALL: Final = 30.0

_Place: TypeAlias = tuple[RunId, TaskId]
Look: TypeAlias = Callable[[RunId, TaskId], TaskState]
"""Returns a task as it stands now."""


class _Untold(Exception):
    """Why somebody could not be told."""


@dataclass(slots=True)
class Notifier:
    """Hears of every commit and passes on what a person has to see."""

    target: str
    """A shell command, which gets the message as JSON on its standard input, or a URL."""
    warn: Callable[[str], None]
    look: Look
    clock: Callable[[], datetime] = wall_clock
    each: float = _EACH
    """Seconds that telling one item may take."""
    all: float = _ALL
    """Seconds that telling what is left may take once the work is done."""
    _waiting: "queue.SimpleQueue[Page | None]" = field(default_factory=queue.SimpleQueue)
    _left: dict[_Place, None] = field(default_factory=dict)
    """What was not told yet, in order."""
    _until: float | None = None
    _thread: threading.Thread | None = None

    def __call__(self, pages: Sequence[Page]) -> None:
        """Take note of pages that were written: one for each task that a person must see."""
        for place, page in _telling(pages).items():
            self._left[place] = None
            self._waiting.put(page)
            self._begin()

    def close(self) -> None:
        """Pass on what is left, for a while at most, and name what nobody was told of."""
        if self._thread is None:
            return
        self._until = monotonic() + self.all
        self._waiting.put(None)
        self._thread.join(self.all + self.each)
        left = [named(*place) for place in list(self._left)]
        if left:
            self.warn(
                f"nobody was told that {_wait(left)} for a person: telling of all items"
                f" took longer than {self.all:g} s; agent-run inbox shows what waits"
            )

    def _begin(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._pass_on, daemon=True)
            self._thread.start()

    def _pass_on(self) -> None:
        while (page := self._waiting.get()) is not None:
            if self._until is not None and monotonic() >= self._until:
                return
            place = (page.run_id, page.task_id)
            try:
                message = self._message(page)
                if message is not None:
                    self._tell(json.dumps(message).encode())
            except (_Untold, AgentRunError) as error:
                self.warn(
                    f"nobody was told that task {named(*place)!r} waits for a person: {error}"
                )
            self._left.pop(place, None)

    def _message(self, page: Page) -> dict[str, JsonValue] | None:
        """Return what a person is told; None if nothing waits for one any more."""
        row = inbox_row(page.run_id, self.look(page.run_id, page.task_id))
        if row is None:
            return None
        event = page.event()
        happened: dict[str, JsonValue] = {
            "event": event.kind,
            "at": stamp(event.at),
            "by": event.actor,
            "page": page.seq,
        }
        return item_json(row, self.clock()) | {"happened": happened}

    def _tell(self, body: bytes) -> None:
        left = self.each
        if self._until is not None:
            left = max(0.1, min(left, self._until - monotonic()))
        if self.target.startswith(("http://", "https://")):
            _post(self.target, body, left)
        else:
            _command(self.target, body, left)


def _wait(names: Sequence[str]) -> str:
    several = " and ".join(map(repr, names))
    return f"task {several} waits" if len(names) == 1 else f"tasks {several} wait"


def _telling(pages: Sequence[Page]) -> dict[_Place, Page]:
    """Return the page that says most about each task that may wait for a person now."""
    found: dict[_Place, Page] = {}
    for page in pages:
        place = (page.run_id, page.task_id)
        if page.kind not in _KINDS or (page.kind == "deadline_set" and place in found):
            continue
        if page.kind == "task_posted" and "approve_before_claim" not in page.body:
            continue  # it needs nobody, and most pages of a large plan are such
        found[place] = page
    return found


def _post(url: str, body: bytes, seconds: float) -> None:
    headers = {"Content-Type": "application/json"}
    try:
        request = Request(url, data=body, headers=headers, method="POST")  # noqa: S310
        with urlopen(request, timeout=seconds):  # noqa: S310 - the user's own address
            return
    except HTTPError as error:
        with error:
            msg = f"the address of notify answered {error.code}"
        raise _Untold(msg) from error
    except (URLError, OSError, ValueError) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, TimeoutError):
            msg = f"the address of notify did not answer in {seconds:.2g} s"
        else:
            said = getattr(reason, "strerror", None) or str(reason)
            msg = f"the address of notify could not be reached: {said}"
        raise _Untold(msg) from error


def _command(command: str, body: bytes, seconds: float) -> None:
    try:
        process = subprocess.Popen(  # noqa: S603 - the user's own command
            ["/bin/sh", "-c", command],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        msg = f"the command of notify could not be started: {error.strerror}"
        raise _Untold(msg) from error
    with process:
        try:
            _, said = process.communicate(body, timeout=seconds)
        except subprocess.TimeoutExpired as error:
            _end(process)
            msg = f"the command of notify did not end in {seconds:.2g} s"
            raise _Untold(msg) from error
    if process.returncode:
        line = first_line(said.decode("utf-8", "backslashreplace"))
        told = f" and said {line!r}" if line else ""
        msg = f"the command of notify ended with exit code {process.returncode}{told}"
        raise _Untold(msg)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the command and all that it started, so that nothing holds our end of its pipes."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
