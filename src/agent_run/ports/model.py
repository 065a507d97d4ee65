"""How a language model is asked, how tokens are counted, and how a call is paid for.

A question and its answer are plain data that JSON can hold: a finished call is written down
whole, and a run that was killed reads it back instead of asking again.
"""

import hashlib
from decimal import Decimal
from typing import Annotated, Literal, Protocol, TypeAlias

from pydantic import Field, JsonValue

from agent_run.contract.base import Contract, Duration, Flag, Whole
from agent_run.contract.budget import Spend
from agent_run.contract.payload import canonical

Ended: TypeAlias = Literal["stop", "tools", "length", "filtered", "unknown"]
"""Why the model stopped: by itself, to use tools, at the limit, or because it was kept from
going on. `unknown` means that the provider did not say."""


class ToolOffer(Contract):
    """A tool the model may ask for."""

    name: str = Field(min_length=1, max_length=64)
    description: str = ""
    parameters: dict[str, JsonValue]
    """JSON Schema of an object: what the tool is called with."""


class ToolCall(Contract):
    """What the model asks a tool for."""

    call_id: str
    name: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    fault: str = ""
    """Why the arguments cannot be read. Empty means that they can."""


class Prompt(Contract):
    """Words to the model."""

    kind: Literal["prompt"] = "prompt"
    text: str


class Reply(Contract):
    """What the model said before."""

    kind: Literal["reply"] = "reply"
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    opaque: JsonValue = None
    """What only the adapter of the provider understands, and gives back unchanged."""


class Observation(Contract):
    """What a tool gave back."""

    kind: Literal["observation"] = "observation"
    call_id: str
    name: str
    text: str
    failed: Flag = False


Message: TypeAlias = Annotated[Prompt | Reply | Observation, Field(discriminator="kind")]


class ModelRequest(Contract):
    """One question to a model."""

    messages: tuple[Message, ...] = Field(min_length=1)
    instructions: str = ""
    tools: tuple[ToolOffer, ...] = ()
    must_use_tool: Flag = False
    output_schema: dict[str, JsonValue] | None = None
    """JSON Schema of the answer. `None` asks for text."""
    output_name: str = "answer"
    max_output_tokens: Whole = Field(default=4_096, ge=1)
    temperature: float | None = None
    """`None` is the provider's default."""
    timeout: Duration | None = None
    """How long one try may take. `None` is ten minutes."""
    step: str = ""
    """Names this question among those of its task: asked again, it is the same call."""

    def digest(self) -> str:
        """Return a hash of everything that may change the answer."""
        shown = self.model_dump(mode="json", exclude={"step", "timeout"})
        return hashlib.sha256(canonical(shown).encode()).hexdigest()


class Usage(Contract):
    """What one request used, by the provider's own count."""

    tokens_in: Whole = Field(default=0, ge=0)
    tokens_out: Whole = Field(default=0, ge=0)
    cached_in: Whole = Field(default=0, ge=0)
    """Of `tokens_in`, those that were read from a cache."""
    requests: Whole = Field(default=1, ge=0)
    counter: str = "provider"
    """Who counted; where the provider said nothing, the name of our meter."""

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out


class ModelAnswer(Contract):
    """What came of one question."""

    model: str
    """The model that answered, as the provider names it."""
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    output: JsonValue = None
    """The answer as data, where a schema was given and it holds."""
    faults: tuple[str, ...] = ()
    """Why the answer breaks the schema that was given. Empty means that it does not."""
    ended: Ended = "stop"
    usage: Usage = Usage()
    cost_usd: Decimal | None = None
    """`None` means that the price is unknown, which is not free."""
    warnings: tuple[str, ...] = ()
    opaque: JsonValue = None
    replayed: Flag = False
    """Whether this was paid for earlier and read back."""

    def as_reply(self) -> Reply:
        """Return the answer as a message of the conversation that goes on."""
        return Reply(text=self.text, calls=self.calls, opaque=self.opaque)

    @property
    def spend(self) -> Spend:
        """What the answer took from the budget."""
        return Spend(
            tokens=self.usage.tokens,
            requests=self.usage.requests,
            cost_usd=self.cost_usd or Decimal(0),
            unpriced_requests=self.usage.requests if self.cost_usd is None else 0,
        )


class Model(Protocol):
    """A language model, wherever it runs."""

    @property
    def name(self) -> str:
        """What it is configured as, such as `anthropic:claude-haiku-5-5`."""
        ...

    async def ask(self, request: ModelRequest) -> ModelAnswer:
        """Return the answer to `request`, whole.

        Raises:
            ModelUnreachable: No answer came; a later try may get one.
            ModelRefused: The provider does not take the request as it is.
            AnswerUnusable: An answer came and was paid for, but it is cut or withheld.
            OverBudget: Nothing was asked, because it could not be paid for.
        """
        ...

    def price(self, usage: Usage) -> Decimal | None:
        """Return what `usage` costs; `None` if nobody knows."""
        ...


class Remembered(Contract):
    """A call that was begun before."""

    finished: Flag
    """False: it was paid for or at least begun, and nobody knows what came of it."""
    result: JsonValue = None


class Purse(Protocol):
    """Pays for the calls of one task, and remembers what they gave."""

    def recall(self, key: str) -> Remembered | None:
        """Return what is known of the call `key`; `None` if it was never begun."""
        ...

    def reserve(
        self, key: str, amount: Spend, *, purpose: str = "", question: JsonValue = None
    ) -> None:
        """Set `amount` aside for the call `key`, before it is made to ask `question`.

        Raises:
            OverBudget: It cannot be afforded; the call must not be made.
        """
        ...

    def settle(self, key: str, spent: Spend, result: JsonValue = None) -> None:
        """Write down what the call `key` took and gave, in one step."""
        ...
