"""What is allowed: every rule of the house, as pure functions.

`decide` reads the state and a command and answers with events, or raises. It never reads a
clock, a file or a database: time comes in as `now`.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from agent_run.ledger import claiming, judging, posting, spending, waiting
from agent_run.ledger import commands as wished
from agent_run.ledger.commands import Command
from agent_run.ledger.events import AnyEvent
from agent_run.ledger.state import RunState

RULES: Final[
    Mapping[type[Command], Callable[[RunState, Any, datetime], tuple[AnyEvent, ...]]]
] = {
    wished.OpenRun: posting.open_run,
    wished.CancelRun: posting.cancel_run,
    wished.Post: posting.post,
    wished.Approve: posting.approve,
    wished.HandOver: posting.hand_over,
    wished.Claim: claiming.claim,
    wished.Heartbeat: claiming.heartbeat,
    wished.Release: claiming.release,
    wished.Expire: claiming.expire,
    wished.Reserve: spending.reserve,
    wished.Settle: spending.settle,
    wished.Submit: judging.submit,
    wished.Judge: judging.judge,
    wished.Ask: judging.ask,
    wished.Answer: judging.answer,
    wished.Widen: judging.widen,
    wished.Lapse: waiting.lapse,
    wished.Decide: judging.decide_as_person,
    wished.Escalate: posting.escalate,
    wished.Fail: posting.fail,
    wished.Cancel: posting.cancel,
    wished.Skip: posting.skip,
    wished.NoteApplied: posting.note_applied,
    wished.NoteRolledBack: posting.note_rolled_back,
    wished.WriteNote: posting.write_note,
}


def decide(run: RunState, command: Command, *, now: datetime) -> tuple[AnyEvent, ...]:
    """Return what happens when `command` is granted, or raise and change nothing.

    Time never goes back within a run: a clock that stepped backwards is read as the time of
    the newest page, so that nobody's claim ends early or lasts longer by it.
    """
    if run.at is not None and now < run.at:
        now = run.at
    events = RULES[type(command)](run, command, now)
    if type(command) is wished.Lapse:
        return events  # what comes of silence has had its time
    return waiting.with_deadlines(run, events, now)
