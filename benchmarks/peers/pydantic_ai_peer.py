"""The experiment about budgets on pydantic-ai: eight agents share one usage and one limit.

E1, E2 and E4 are left out: an agent of pydantic-ai keeps nothing that could be resumed,
claimed or stored unless another system does it for it.
"""

# mypy: ignore-errors
# What is imported here stands in an environment of its own.

import asyncio
import sys
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from pydantic_ai import Agent, ModelResponse, TextPart
from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage, RunUsage, UsageLimits

import experiments as same

PEER = f"pydantic-ai {version('pydantic-ai-slim')}"


async def one_budget() -> list[object]:
    """E3: the limit is checked before and after each request, but nothing is reserved."""
    paid: list[str] = []

    async def answer(_messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        await asyncio.sleep(0.05)
        paid.append("yes")
        half = same.ANSWER // 2
        usage = RequestUsage(input_tokens=half, output_tokens=half)
        return ModelResponse(parts=[TextPart("yes")], usage=usage)

    agent = Agent(FunctionModel(answer))
    shared, limits = RunUsage(), UsageLimits(total_tokens_limit=same.LIMIT)

    async def ask() -> bool:
        try:
            await agent.run("Well?", usage=shared, usage_limits=limits)
        except UsageLimitExceeded:
            return False
        return True

    used = await asyncio.gather(*(ask() for _ in range(same.AGENTS)))
    spent = same.ANSWER * len(paid)
    return same.budget_rows(PEER, spent=spent, paid=len(paid), used=sum(used))


def results() -> Iterable[object]:
    """Yield the rows of all it can do."""
    yield from asyncio.run(one_budget())


def both(_folder: Path, _number: int) -> None:
    """Be one of two processes: there is nothing to meet about."""


if __name__ == "__main__":
    sys.exit(same.main(__file__, results, both))
