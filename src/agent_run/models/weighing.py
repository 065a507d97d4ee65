"""How much a question may take at most, before it is asked."""

import json
from collections.abc import Iterator
from decimal import Decimal
from math import ceil
from typing import Final

from agent_run.contract.budget import Spend
from agent_run.ports.meter import Meter
from agent_run.ports.model import (
    Model,
    ModelRequest,
    Observation,
    Prompt,
    Reply,
    Usage,
)

_PER_MESSAGE: Final = 8
_PER_REQUEST: Final = 32
_OWN_COUNTER: Final = 1.1
_OTHER_COUNTER: Final = 2.0


def words_of(request: ModelRequest) -> str:
    """Return all that the model must read, as one text."""
    return "\n".join(_words(request))


def safety(model: Model) -> float:
    """Return by how much our count may be too small for `model`.

    Models of OpenAI count as our meter does but for tool definitions; Claude was seen to count
    up to 1.9 times as many, and nothing is known about the rest.
    """
    return _OWN_COUNTER if model.name.startswith("openai:") else _OTHER_COUNTER


def at_most(request: ModelRequest, model: Model, meter: Meter, factor: float) -> Spend:
    """Return what the answer may take; the price is left out where nobody knows it."""
    counted = meter.count(words_of(request)) + _PER_REQUEST
    tokens_in = ceil((counted + _PER_MESSAGE * len(request.messages)) * factor)
    usage = Usage(tokens_in=tokens_in, tokens_out=request.max_output_tokens)
    cost = model.price(usage)
    return Spend(
        tokens=usage.tokens,
        requests=1,
        cost_usd=cost or Decimal(0),
        unpriced_requests=1 if cost is None else 0,
    )


def _words(request: ModelRequest) -> Iterator[str]:
    yield request.instructions
    for message in request.messages:
        match message:
            case Prompt(text=text) | Observation(text=text):
                yield text
            case Reply():
                yield message.text
                for call in message.calls:
                    yield call.name + json.dumps(call.arguments)
                if message.opaque is not None:
                    yield json.dumps(message.opaque)
    for tool in request.tools:
        yield tool.model_dump_json()
    if request.output_schema is not None:
        yield json.dumps(request.output_schema)
