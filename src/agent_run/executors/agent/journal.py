"""Tool calls that are written down: done once, read back when a run is taken up again.

The name of a call holds the question that led to it, so that another course of the same work
never finds the results of this one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import anyio
from pydantic import ValidationError
from typing_extensions import TypeVar

from agent_run.contract.base import Contract, Flag
from agent_run.contract.budget import NOTHING
from agent_run.contract.manifest import OnCrash
from agent_run.errors import ContractError, OutcomeUnknown
from agent_run.executors.agent.acting import Hands, Outcome
from agent_run.executors.agent.changes import Changes, put_back
from agent_run.executors.agent.tools import WITH_EFFECT
from agent_run.ports.model import Purse, ToolCall

ResultT = TypeVar("ResultT")


class Kept(Contract):
    """The result of a tool call as the journal holds it."""

    text: str
    failed: Flag = False
    changes: Changes = Changes()


@dataclass(frozen=True, slots=True)
class Journal:
    """Does tool calls once, and remembers them in the purse of the task."""

    purse: Purse
    hands: Hands
    on_unknown: OnCrash
    """What follows a call with effects whose outcome nobody knows: do it, or ask a person."""
    tell: Callable[[str, str], None]

    async def done(self, call: ToolCall, key: str) -> Outcome:
        """Return the outcome of `call`, known as `key`; only if it is new is it done now.

        Raises:
            OutcomeUnknown: It was begun before a crash, and a person shall decide.
        """
        known = await _aside(partial(self.purse.recall, key))
        if known is not None and known.finished:
            kept = _kept(known.result, key)
            if not kept.changes.lost:
                return await self._taken_back(kept, call)
            self._unknown(f"what {key!r} changed was not kept: {kept.changes.lost}")
            return await self.hands.act(call.name, call.arguments)
        if known is not None and call.name in WITH_EFFECT:
            self._unknown(f"tool call {key!r} was begun and never settled")
        return await self._first_time(call, key)

    async def _taken_back(self, kept: Kept, call: ToolCall) -> Outcome:
        if kept.changes.files:
            await _aside(partial(put_back, kept.changes.files, self.hands.files))
        if call.name == "run":
            self.hands.ran.append(str(call.arguments.get("command", "")))
        return Outcome(kept.text, failed=kept.failed, changes=kept.changes)

    async def _first_time(self, call: ToolCall, key: str) -> Outcome:
        purpose = f"tool {call.name}"
        await _aside(partial(self.purse.reserve, key, NOTHING, purpose=purpose))
        outcome = await self.hands.act(call.name, call.arguments)
        kept = Kept(text=outcome.text, failed=outcome.failed, changes=outcome.changes)
        with anyio.CancelScope(shield=True):
            result = kept.model_dump(mode="json", exclude_defaults=True)
            await _aside(partial(self.purse.settle, key, NOTHING, result))
        return outcome

    def _unknown(self, said: str) -> None:
        if self.on_unknown == "escalate":
            raise OutcomeUnknown(said)
        self.tell("tool", f"{said}; it is done again")


def _kept(result: object, key: str) -> Kept:
    try:
        return Kept.model_validate(result)
    except ValidationError as error:
        msg = f"the journal holds no tool result under {key!r}"
        raise ContractError(msg) from error


async def _aside(work: Callable[[], ResultT]) -> ResultT:
    return await anyio.to_thread.run_sync(work)
