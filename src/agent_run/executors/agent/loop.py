"""Think, act, observe: one conversation, from the brief to the record.

It can be taken up at any point: every answer and every outcome comes from the journal if it
is there, and the words to the model depend on nothing else.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field

from pydantic import JsonValue

from agent_run.contract.budget import NOTHING, Spend
from agent_run.contract.payload import canonical
from agent_run.contract.record import Record
from agent_run.errors import AnswerUnusable, InvalidDocument
from agent_run.executors.agent.acting import Outcome
from agent_run.executors.agent.journal import Journal
from agent_run.executors.agent.prompting import INSTRUCTIONS, LAST_STEP, NO_TOOL, too_long
from agent_run.executors.agent.record import record_in
from agent_run.executors.agent.tools import FINAL
from agent_run.executors.agent.transcript import Transcript
from agent_run.ports.model import (
    Message,
    Model,
    ModelAnswer,
    ModelRequest,
    Observation,
    Prompt,
    ToolCall,
    ToolOffer,
)


@dataclass(frozen=True, slots=True)
class AgentLimits:
    """How long the agent may go on."""

    steps: int = 40
    """Questions to the model."""
    output_tokens: int = 4_096
    """Of one answer."""
    tokens: int | None = None
    """Of all answers and questions together. `None` leaves it to the budget."""
    bad_records: int = 3
    """How often a record that is none is said back before the attempt ends."""


@dataclass(slots=True)
class Talk:
    """One conversation on its way."""

    model: Model
    journal: Journal
    offers: tuple[ToolOffer, ...]
    limits: AgentLimits
    messages: list[Message]
    tell: Callable[[str, str], None]
    output_schema: dict[str, JsonValue] | None = None
    transcript: Transcript = field(default_factory=Transcript)
    spent: Spend = NOTHING
    """What was paid in this attempt; answers that were read back were paid for before."""
    tokens: int = 0
    """Of the whole conversation, whoever paid for them."""
    priced: bool = True
    answered_by: str = ""
    bad_records: int = 0
    invalid: str = ""
    """Why the last record that was given is none."""

    @property
    def out_of_tokens(self) -> bool:
        return self.limits.tokens is not None and self.tokens >= self.limits.tokens

    async def record(self) -> Record | None:
        """Return the record; None if the limits were reached first."""
        for step in range(1, self.limits.steps + 1):
            if self.out_of_tokens:
                return None
            request = ModelRequest(
                messages=tuple(self.messages),
                instructions=INSTRUCTIONS,
                tools=self.offers,
                max_output_tokens=self.limits.output_tokens,
                step=f"step-{step}",
            )
            answer = await self._asked(step, request)
            if answer is None:
                continue
            found = await self._acted(step, request, answer)
            if found is not None or self.bad_records >= self.limits.bad_records:
                return found
            if step == self.limits.steps - 1:
                self.messages.append(Prompt(text=LAST_STEP))
        return None

    async def _asked(self, step: int, request: ModelRequest) -> ModelAnswer | None:
        try:
            answer = await self.model.ask(request)
        except AnswerUnusable as error:
            cut = error.answer
            if not isinstance(cut, ModelAnswer) or cut.ended != "length":
                raise
            self._count(step, cut)
            self.tell("model", str(error))
            self.messages.append(Prompt(text=too_long(request.max_output_tokens)))
            return None
        self._count(step, answer)
        self.messages.append(answer.as_reply())
        return answer

    def _count(self, step: int, answer: ModelAnswer) -> None:
        self.transcript.answered(step, answer)
        self.tokens += answer.usage.tokens
        if not answer.replayed:
            self.spent += answer.spend
            self.priced = self.priced and answer.cost_usd is not None
        self.answered_by = answer.model

    async def _acted(
        self, step: int, request: ModelRequest, answer: ModelAnswer
    ) -> Record | None:
        if not answer.calls:
            self.messages.append(Prompt(text=NO_TOOL))
            return None
        course = request.digest()[:16]
        for place, call in enumerate(answer.calls):
            if call.name == FINAL:
                record, outcome = self._final(call)
                if record is not None:
                    return record
            else:
                key = f"step-{step}.{place}:{call.name}:{course}:{_hash(call)}"
                outcome = await self._outcome(call, key)
            self._observed(call, outcome)
        return None

    def _final(self, call: ToolCall) -> tuple[Record | None, Outcome]:
        try:
            record = record_in(call, self.output_schema)
        except InvalidDocument as error:
            self.bad_records += 1
            self.invalid = str(error)
            self.tell("record", f"refused: {error}")
            return None, Outcome(f"The record is refused: {error}", failed=True)
        self.invalid = ""
        self.transcript.add("record", record=record.model_dump(mode="json"))
        return record, Outcome("")

    async def _outcome(self, call: ToolCall, key: str) -> Outcome:
        if call.fault:
            return Outcome(f"The arguments cannot be read: {call.fault}", failed=True)
        if all(offer.name != call.name for offer in self.offers):
            offered = ", ".join(offer.name for offer in self.offers)
            said = f"There is no tool {call.name!r} for this task, expected one of {offered}."
            return Outcome(said, failed=True)
        return await self.journal.done(call, key)

    def _observed(self, call: ToolCall, outcome: Outcome) -> None:
        self.transcript.add(
            "tool",
            name=call.name,
            arguments=call.arguments,
            failed=outcome.failed,
            text=outcome.text,
        )
        self.messages.append(
            Observation(
                call_id=call.call_id, name=call.name, text=outcome.text, failed=outcome.failed
            )
        )


def _hash(call: ToolCall) -> str:
    return hashlib.sha256(canonical(dict(call.arguments)).encode()).hexdigest()[:8]
