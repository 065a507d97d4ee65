"""What every command that works needs: settings, a desk, a rehearsal of what it would write."""

import tempfile
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from agent_run.cli.speech import Speech
from agent_run.contract.base import RunId
from agent_run.desk import Desk
from agent_run.errors import UnknownRun
from agent_run.ledger.commands import Command
from agent_run.ledger.fold import EMPTY, evolve
from agent_run.ledger.pages import Page
from agent_run.ledger.rules import decide
from agent_run.ledger.state import RunState
from agent_run.wiring.opening import open_desk, wall_clock
from agent_run.wiring.settings import Configured, Settings, configure

_SQLITE: Final = "sqlite:///"


@dataclass(frozen=True, slots=True)
class Door:
    """A desk and the settings it was opened with."""

    desk: Desk
    settings: Settings
    speech: Speech
    dry_run: bool = False

    def handle(self, run_id: RunId, *commands: Command) -> RunState:
        """Ask the desk, or in a dry run find out what it would answer."""
        if not self.dry_run:
            return self.desk.handle(run_id, *commands)
        state = self.run_or_empty(run_id)
        for command in commands:
            for event in decide(state, command, now=wall_clock()):
                state = evolve(state, event)
        self.speech.tell("a dry run: nothing was written")
        return state

    def pages(self, run_id: RunId) -> list[Page]:
        """Return the pages of a run.

        Raises:
            UnknownRun: There is no such run.
        """
        pages = self.desk.pages(run_id)
        if not pages:
            msg = f"no run {run_id!r} in this ledger"
            raise UnknownRun(msg)
        return pages

    def run_or_empty(self, run_id: RunId) -> RunState:
        """Return the run as it stands; a run that is not there is empty."""
        try:
            return self.desk.run(run_id)
        except UnknownRun:
            return EMPTY


def configured(speech: Speech) -> Configured:
    """Return the settings that hold here, and say which variables mean nothing."""
    found = configure(flags={"store": speech.store})
    if speech.verbose:
        for name in found.unknown:
            speech.tell(f"{name} is no setting of ours and was not read")
    return found


@contextmanager
def opened(
    speech: Speech, *, writes: bool = False, dry_run: bool = False
) -> Generator[Door, None, None]:
    """Open the ledger that the settings name.

    A command that writes nothing leaves nothing behind: a ledger that is not there reads like
    an empty one.
    """
    settings = configured(speech).settings
    if (writes and not dry_run) or not absent(settings.store_url):
        with _desk(settings.store_url) as desk:
            told = writes and settings.telemetry
            heard = _notified(desk, settings, speech) if writes else nullcontext()
            with heard, _sent_aside(desk, speech) if told else nullcontext():
                yield Door(desk, settings, speech, dry_run)
        return
    speech.tell(f"there is no ledger yet at {settings.store_url}")
    with tempfile.TemporaryDirectory(prefix="agent-run-") as folder:
        url = _SQLITE + quote(f"{folder}/ledger.db")
        with _desk(url) as desk:
            yield Door(desk, settings, speech, dry_run)


def absent(url: str) -> bool:
    """Say whether `url` names a file that is not there."""
    return url.startswith(_SQLITE) and not Path(unquote(url.removeprefix(_SQLITE))).exists()


@contextmanager
def _notified(desk: Desk, settings: Settings, speech: Speech) -> Generator[None, None, None]:
    """Let people know of what waits for them while this command works."""
    if settings.notify is None:
        yield
        return
    notifier = import_module("agent_run.wiring.notifying").Notifier(
        settings.notify, speech.warn, lambda run_id, task_id: desk.run(run_id).tasks[task_id]
    )
    desk.listen(notifier)
    try:
        yield
    finally:
        notifier.close()


def _sent_aside(desk: Desk, speech: Speech) -> AbstractContextManager[None]:
    """Return what sends the pages that are written meanwhile as telemetry."""
    aside: AbstractContextManager[None]
    aside = import_module("agent_run.cli.work.spans").sent_aside(desk, speech)
    return aside


@contextmanager
def _desk(url: str) -> Generator[Desk, None, None]:
    desk = open_desk(url)
    try:
        yield desk
    finally:
        desk.close()
