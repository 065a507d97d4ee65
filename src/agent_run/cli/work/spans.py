"""The way to telemetry: loaded only when something is to be sent."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from agent_run.cli.speech import Speech
from agent_run.desk import Desk
from agent_run.errors import AgentRunError, Unfit
from agent_run.ledger.metrics.facts import Run
from agent_run.ledger.metrics.report import Metrics
from agent_run.ledger.pages import Page
from agent_run.wiring.opening import wall_clock


@dataclass(frozen=True, slots=True)
class Sending:
    """Sends one thing and lets go of the connection."""

    sender: Any

    def spans(self, pages: Sequence[Page], *, after: int = 0, content: bool = False) -> int:
        """Send what ended behind page `after`, and return how many spans it was."""
        try:
            count: int = self.sender.spans(pages, after=after, content=content)
        finally:
            self.sender.close()
        return count

    def metrics(self, metrics: Metrics, runs: Sequence[Run]) -> None:
        """Send the metrics of a ledger as it stands."""
        try:
            self.sender.metrics(metrics, runs, now=wall_clock())
        finally:
            self.sender.close()


def sending() -> Sending:
    """Return the way that the OTEL_ variables describe.

    Raises:
        Unfit: Telemetry is not installed, or the variables ask for what is not here.
    """
    try:
        module = import_module("agent_run.telemetry.sending")
    except ModuleNotFoundError as error:
        msg = f"telemetry needs {error.name!r}, which is not installed; install agent-run[otel]"
        raise Unfit(msg) from error
    return Sending(module.open_sender(os.environ))  # noqa: TID251 - standard variables, not ours


@contextmanager
def sent_aside(desk: Desk, speech: Speech) -> Iterator[None]:
    """Send what is written in between when it ends; a failure is told and stops nothing."""
    before = desk.store.heads()
    try:
        yield
    finally:
        for run_id, head in desk.store.heads().items():
            if head > before.get(run_id, 0):
                _sent(speech, desk.pages(run_id), after=before.get(run_id, 0))


def _sent(speech: Speech, pages: Sequence[Page], *, after: int) -> None:
    try:
        sending().spans(pages, after=after)
    except AgentRunError as error:
        speech.warn(f"telemetry: {error}")
