"""Listening to work while it goes on: the transcript, and a clean end when interrupted."""

import asyncio
import signal
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Final, TextIO, TypeVar

import anyio

from agent_run.cli.speech import Speech
from agent_run.cli.visible import visible
from agent_run.contract.base import RunId, TaskId
from agent_run.desk import Desk
from agent_run.engine.telling import Told
from agent_run.errors import AgentRunError, TransitionError, all_of
from agent_run.ledger.commands import Release
from agent_run.ledger.state import Status

ResultT = TypeVar("ResultT")

_WIDTH: Final = 10
_ENDS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Transcript:
    """Writes a line for each thing that happens, at once.

    The summary of a record waits for the tests that it is about, so that every transcript
    reads in the same order: claim, edit, test, summary, verify.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._summary: Told | None = None

    def __call__(self, told: Told) -> None:
        if told.topic != "test":
            self.finish()
        if told.topic == "summary":
            self._summary = told
        else:
            self._write(told)

    def finish(self) -> None:
        """Write what still waits."""
        if self._summary is not None:
            self._write(self._summary)
            self._summary = None

    def _write(self, told: Told) -> None:
        if self._stream is not None:
            self._stream.write(line_of(told) + "\n")
            self._stream.flush()


def transcript(speech: Speech, *, aside: bool = False) -> Transcript:
    """Return a listener for work that is done in front of the user.

    The lines are what the command has to say, so they go to stdout; `aside`, because
    something else is the answer, they go to stderr.
    """
    if not aside and not speech.as_json:
        return Transcript(sys.stdout)
    return Transcript(None if speech.quiet else sys.stderr)


def line_of(told: Told) -> str:
    """Return what was told as one line of a transcript."""
    return visible(f"[{told.topic}]".ljust(_WIDTH) + told.text)


def completed(
    work: Callable[[], Awaitable[ResultT]],
    speech: Speech,
    listener: Transcript | None = None,
) -> ResultT:
    """Do the work to its end, or stop it cleanly when the user or the system asks for it.

    Raises:
        KeyboardInterrupt: It was stopped; everything it had started has ended.
    """
    stopped: list[bool] = []
    results: list[ResultT] = []

    async def main() -> None:
        with anyio.CancelScope() as scope:
            _on_signal(lambda: _stop(scope, stopped, speech))
            results.append(await work())

    try:
        anyio.run(main)
    except ExceptionGroup as several:
        raise _first_of(several, speech) from several
    finally:
        if listener is not None:
            listener.finish()
    if not results:
        raise KeyboardInterrupt
    return results[0]


def _first_of(several: ExceptionGroup[Exception], speech: Speech) -> AgentRunError:
    """Return what the user did wrong first, and tell the rest; our own faults stay faults."""
    first, *rest = all_of(several, AgentRunError)
    for error in dict.fromkeys(map(str, rest)):
        if error != str(first):
            speech.warn(error)
    return first


def _on_signal(do: Callable[[], None]) -> None:
    if threading.current_thread() is not threading.main_thread():
        return  # only the main thread hears of signals
    loop = asyncio.get_running_loop()
    for number in _ENDS:
        loop.add_signal_handler(number, do)


def _stop(scope: anyio.CancelScope, stopped: list[bool], speech: Speech) -> None:
    if stopped:
        speech.tell("still stopping: every process of the executor must be dead first")
    else:
        speech.tell("stopping")
    stopped.append(True)
    scope.cancel()


def give_back(desk: Desk, run_id: RunId, task_id: TaskId, *, owner: str, after: int) -> None:
    """Release the claim that `owner` took behind page `after`, if it is still held."""
    task = desk.run(run_id).tasks[task_id]
    if task.status is not Status.CLAIMED or task.owner != owner or (task.claim or 0) <= after:
        return
    release = Release(
        task_id=task_id, actor=owner, claim=task.claim or 0, reason="the worker was stopped"
    )
    try:
        desk.handle(run_id, release)
    except TransitionError:
        return  # someone else took it over in this very moment
