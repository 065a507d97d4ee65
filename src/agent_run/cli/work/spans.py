"""The way to telemetry: loaded only when something is to be sent."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from agent_run.cli.speech import Speech
from agent_run.desk import Desk
from agent_run.errors import AgentRunError
from agent_run.ledger.metrics.facts import Run
from agent_run.ledger.metrics.report import Metrics
from agent_run.ledger.pages import Page
from agent_run.wiring.opening import wall_clock
from agent_run.wiring.sending import open_telemetry


def send_spans(pages: Sequence[Page], *, after: int = 0, content: bool = False) -> int:
    """Send what ended behind page `after` of a run, and return how many spans it was.

    Raises:
        Unfit: Telemetry is not installed, or nobody took them.
    """
    sender = open_telemetry()
    try:
        return sender.spans(pages, after=after, content=content)
    finally:
        sender.close()


def send_metrics(metrics: Metrics, runs: Sequence[Run]) -> None:
    """Send the metrics of a ledger as it stands.

    Raises:
        Unfit: Telemetry is not installed, or nobody took them.
    """
    sender = open_telemetry()
    try:
        sender.metrics(metrics, runs, now=wall_clock())
    finally:
        sender.close()


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
        send_spans(pages, after=after)
    except AgentRunError as error:
        speech.warn(f"telemetry: {error}")
