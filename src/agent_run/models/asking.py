"""A typed answer: asked for with a schema, checked, and what is wrong said back, some times."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import JsonValue

from agent_run.errors import AnswerUnusable, InvalidDocument
from agent_run.ports.model import Model, ModelAnswer, ModelRequest, Prompt

ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True)
class Given(Generic[ValueT]):
    """A typed answer, and every answer that it took to get there."""

    value: ValueT
    answers: tuple[ModelAnswer, ...]


async def ask_for(
    model: Model,
    request: ModelRequest,
    check: Callable[[JsonValue], ValueT],
    *,
    tries: int = 3,
) -> Given[ValueT]:
    """Return what `check` makes of the answer; a refused answer is said back with its faults.

    `check` raises `InvalidDocument` for a value that will not do.

    Raises:
        AnswerUnusable: No answer would do in all the tries; the last faults are named.
    """
    answers: list[ModelAnswer] = []
    asked = request
    faults: tuple[str, ...] = ("nothing was asked",)
    for number in range(1, tries + 1):
        step = f"{request.step or 'ask'}.{number}"
        answer = await model.ask(asked.model_copy(update={"step": step}))
        answers.append(answer)
        faults = answer.faults
        if not faults:
            try:
                return Given(check(answer.output), tuple(answers))
            except InvalidDocument as error:
                faults = tuple(map(str, error.faults)) or (str(error),)
        said = Prompt(text=_said_back(faults))
        messages = (*asked.messages, answer.as_reply(), said)
        asked = asked.model_copy(update={"messages": messages})
    msg = f"model {model.name!r} gave no usable answer in {tries} tries: " + "; ".join(faults)
    raise AnswerUnusable(msg, answers[-1] if answers else None)


def _said_back(faults: tuple[str, ...]) -> str:
    lines = "\n".join(f"- {fault}" for fault in faults)
    return f"That answer cannot be used:\n{lines}\nGive the whole answer again, corrected."
