"""Opening the way to telemetry; loaded, and its libraries with it, when something is sent."""

import os
from collections.abc import Sequence
from datetime import datetime
from importlib import import_module
from typing import Protocol

from agent_run.errors import Unfit
from agent_run.ledger.metrics.facts import Run
from agent_run.ledger.metrics.report import Metrics
from agent_run.ledger.pages import Page


class Sender(Protocol):
    """Sends what the pages of runs say."""

    def spans(self, pages: Sequence[Page], *, after: int = 0, content: bool = False) -> int:
        """Send what ended behind page `after` of one run, and return how many spans it was."""
        ...

    def metrics(self, metrics: Metrics, runs: Sequence[Run], *, now: datetime) -> None:
        """Send the metrics of a ledger as it stands."""
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...


def open_telemetry() -> Sender:
    """Return the sender that the standard `OTEL_` variables describe.

    Raises:
        Unfit: Telemetry is not installed, or the variables ask for what is not here.
    """
    try:
        module = import_module("agent_run.telemetry.sending")
    except ModuleNotFoundError as error:
        msg = f"telemetry needs {error.name!r}, which is not installed; install agent-run[otel]"
        raise Unfit(msg) from error
    sender: Sender = module.open_sender(os.environ)
    return sender
