"""The experiment about budgets on the OpenAI Agents SDK: eight runs, one usage, one check.

It has no limit of tokens. What it offers are hooks around each request, which see the usage
so far; here one of them stops a run before it asks, once the limit is reached.
E1, E2 and E4 are left out: it keeps no steps that could be resumed or claimed.
"""

# mypy: ignore-errors
# What is imported here stands in an environment of its own.

import asyncio
import sys
from collections.abc import AsyncIterator, Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from agents import Agent, Model, ModelResponse, RunHooks, Runner, Usage, set_tracing_disabled
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

import experiments as same

PEER = f"openai-agents {version('openai-agents')}"


class LimitReached(Exception):
    """The runs together have used more than they may."""


class Slow(Model):
    """A model that takes a moment and 400 tokens."""

    def __init__(self) -> None:
        self.paid = 0

    async def get_response(self, *_given: Any, **_more: Any) -> ModelResponse:
        await asyncio.sleep(0.05)
        self.paid += 1
        text = ResponseOutputText(text="yes", type="output_text", annotations=[])
        message = ResponseOutputMessage(
            id="m", content=[text], role="assistant", status="completed", type="message"
        )
        usage = Usage(requests=1, total_tokens=same.ANSWER)
        return ModelResponse(output=[message], usage=usage, response_id=None)

    def stream_response(self, *_given: Any, **_more: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


class Watch(RunHooks[None]):
    """Adds up what all runs used, and stops a run that would ask for more."""

    used = 0

    async def on_llm_start(self, *_given: Any, **_more: Any) -> None:
        if self.used >= same.LIMIT:
            raise LimitReached

    async def on_llm_end(self, _context: Any, _agent: Any, response: ModelResponse) -> None:
        self.used += response.usage.total_tokens


async def one_budget() -> list[object]:
    """E3: nothing is reserved, so whoever asks before the first answer came is let through."""
    set_tracing_disabled(disabled=True)
    model, watch = Slow(), Watch()

    async def ask() -> bool:
        try:
            await Runner.run(Agent(name="a", model=model), "Well?", hooks=watch)
        except LimitReached:
            return False
        return True

    used = await asyncio.gather(*(ask() for _ in range(same.AGENTS)))
    spent = same.ANSWER * model.paid
    return same.budget_rows(PEER, spent=spent, paid=model.paid, used=sum(used))


def results() -> Iterable[object]:
    """Yield the rows of all it can do."""
    yield from asyncio.run(one_budget())


def both(_folder: Path, _number: int) -> None:
    """Be one of two processes: there is nothing to meet about."""


if __name__ == "__main__":
    sys.exit(same.main(__file__, results, both))
