"""A real language model on this machine, asked through the real wire.

It is far too small to plan or to program; it proves that everything on the way is real.
"""

import importlib
import socket
from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from agent_run.contract.budget import Budget
from agent_run.errors import AnswerUnusable
from agent_run.models import MemoryPurse, ModelOptions, open_meter, open_model, paid
from agent_run.ports.model import ModelRequest, Prompt
from tests.support.local_model import installed

pytestmark = pytest.mark.slow

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "colour": {"type": "string", "enum": ["red", "green", "blue"]},
        "confidence_percent": {"type": "integer"},
    },
    "required": ["colour", "confidence_percent"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    path = installed()
    xllamacpp: Any = importlib.import_module("xllamacpp")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.hostnames, params.port, params.verbosity = ["127.0.0.1"], port, 0
    params.n_ctx, params.n_parallel = 2_048, 1
    params.cpuparams.n_threads = 2
    server = xllamacpp.Server(params)
    yield f"{server.listening_address}/v1"
    del server


def asks(text: str, **more: Any) -> ModelRequest:
    return ModelRequest(messages=(Prompt(text=text),), temperature=0.0, **more)


def test_a_real_model_answers_with_data_and_is_paid_for(address: str) -> None:
    purse = MemoryPurse(Budget(max_tokens=2_000))
    own = ModelOptions(timeout_sec=100)
    model = paid(open_model(f"openai-chat:smollm2@{address}", own), purse, open_meter())
    request = asks(
        "Which colour has the sky? Answer as JSON.",
        output_schema=SCHEMA,
        max_output_tokens=60,
        step="sky",
    )

    answer = anyio.run(model.ask, request)
    again = anyio.run(model.ask, request)

    assert answer.faults == ()
    assert isinstance(answer.output, dict)
    assert answer.output["colour"] in {"red", "green", "blue"}
    assert answer.usage.counter == "provider"
    assert 0 < purse.spent.tokens == answer.usage.tokens
    assert purse.spent.unpriced_requests == 1
    assert (again.output, again.replayed) == (answer.output, True)


def test_a_real_model_that_is_cut_off_is_heard(address: str) -> None:
    model = open_model(f"openai-chat:smollm2@{address}", ModelOptions(timeout_sec=100))

    with pytest.raises(AnswerUnusable, match="limit of 5 output tokens"):
        anyio.run(model.ask, asks("Tell me a long story about the sea.", max_output_tokens=5))
