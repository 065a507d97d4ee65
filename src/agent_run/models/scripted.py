"""A model made of a script: for tests, demonstrations and rehearsals without a key.

Which turn comes next is read from the conversation, not remembered: a question that is asked
again, or by many at once, gets the same answer.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TypeAlias

from pydantic import Field, JsonValue, RootModel

from agent_run.contract.base import Contract, Whole
from agent_run.contract.files import content_of
from agent_run.contract.reading import load, read_document
from agent_run.errors import ContractError
from agent_run.models.answering import whole
from agent_run.models.meter import BytesMeter
from agent_run.models.options import FREE, Price
from agent_run.models.weighing import words_of
from agent_run.ports.meter import Meter
from agent_run.ports.model import (
    Ended,
    ModelAnswer,
    ModelRequest,
    Reply,
    ToolCall,
    Usage,
)


class ScriptedCall(Contract):
    """One call of a tool."""

    name: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict)


class Turn(Contract):
    """What the model says at one turn."""

    text: str = ""
    output: JsonValue = None
    """Said as JSON in place of `text`."""
    calls: tuple[ScriptedCall, ...] = ()
    ended: Ended = "stop"
    tokens_in: Whole | None = None
    """`None` counts what was asked."""
    tokens_out: Whole | None = None
    """`None` counts what is said."""


class _Turns(RootModel[tuple[Turn, ...]]):
    """What stands in a file."""


Script: TypeAlias = Sequence[Turn] | Callable[[ModelRequest], Turn]
"""Turns one after the other, the last one for ever; or a function of what was asked."""


@dataclass(slots=True)
class ScriptedModel:
    """Says what it was told to say."""

    script: Script
    name: str = "scripted"
    meter: Meter = field(default_factory=BytesMeter)
    rate: Price | None = FREE
    asked: list[ModelRequest] = field(default_factory=list)
    """Every question that really came here."""

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        """Return what the script says at this turn."""
        self.asked.append(request)
        turn = self._turn(request)
        said = turn.text if turn.output is None else json.dumps(turn.output)
        number = _replies(request)
        calls = tuple(
            ToolCall(call_id=f"call-{number}-{place}", name=one.name, arguments=one.arguments)
            for place, one in enumerate(turn.calls)
        )
        spoken = said + "".join(json.dumps(one.arguments) for one in calls)
        usage = Usage(
            tokens_in=_given(turn.tokens_in, self.meter, words_of(request)),
            tokens_out=_given(turn.tokens_out, self.meter, spoken),
            counter=self.meter.name,
        )
        answer = ModelAnswer(
            model=self.name,
            text=said,
            calls=calls,
            ended="tools" if calls and turn.ended == "stop" else turn.ended,
            usage=usage,
            cost_usd=self.price(usage),
        )
        return whole(answer, request)

    def price(self, usage: Usage) -> Decimal | None:
        """Return what the script is said to cost."""
        return None if self.rate is None else self.rate.of(usage)

    def _turn(self, request: ModelRequest) -> Turn:
        if callable(self.script):
            return self.script(request)
        return self.script[min(_replies(request), len(self.script) - 1)]


def load_script(path: Path) -> ScriptedModel:
    """Return the model whose turns stand in the file at `path`, a list in YAML or JSON.

    Raises:
        ContractError: There is no such file, or no script in it.
    """
    turns = load(_Turns, read_document(content_of(path), source=str(path))).root
    if not turns:
        msg = f"script {str(path)!r} has no turn"
        raise ContractError(msg)
    return ScriptedModel(turns, name=f"scripted:{path.name}")


def _replies(request: ModelRequest) -> int:
    return sum(isinstance(one, Reply) for one in request.messages)


def _given(count: int | None, meter: Meter, text: str) -> int:
    return meter.count(text) if count is None else count
