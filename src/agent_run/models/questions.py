"""What was asked, written down so that another model can be asked the same.

A conversation says everything again at each turn. Written down whole, its turns would take the
square of its length; so a turn names the call it goes on from, and holds only what is new.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue, TypeAdapter, ValidationError

from agent_run.contract.base import Contract
from agent_run.contract.values import in_words
from agent_run.errors import ContractError
from agent_run.ports.model import Message, ModelRequest


class _Continued(Contract):
    """A question that goes on from the one asked under the key `after`."""

    after: str
    step: str
    messages: tuple[Message, ...]


_WRITTEN: TypeAdapter[ModelRequest | _Continued] = TypeAdapter(ModelRequest | _Continued)


@dataclass(slots=True)
class Questions:
    """Writes down the questions of one conversation."""

    _last: tuple[str, ModelRequest] | None = None

    def written(self, request: ModelRequest) -> JsonValue:
        """Return `request` as data: whole, or as what it adds to the question before it."""
        if self._last is not None:
            key, before = self._last
            if _goes_on(request, before):
                new = request.messages[len(before.messages) :]
                said = _Continued(after=key, step=request.step, messages=new)
                return said.model_dump(mode="json")
        return request.model_dump(mode="json")

    def asked(self, key: str, request: ModelRequest) -> None:
        """Take note that `request` stands in the journal under `key`."""
        self._last = key, request


def read_question(
    written: JsonValue, earlier: Mapping[str, ModelRequest]
) -> ModelRequest | None:
    """Return the question that `written` stands for; `None` if the one before it is not known.

    Raises:
        ContractError: It is no question.
    """
    try:
        found = _WRITTEN.validate_python(written)
    except ValidationError as error:
        said = in_words(error, wanted=ModelRequest | _Continued, value=written)
        msg = f"no question to a model is written there: {said}"
        raise ContractError(msg) from error
    if isinstance(found, ModelRequest):
        return found
    before = earlier.get(found.after)
    if before is None:
        return None
    messages = (*before.messages, *found.messages)
    return before.model_copy(update={"messages": messages, "step": found.step})


def _goes_on(request: ModelRequest, before: ModelRequest) -> bool:
    known = len(before.messages)
    if request.messages[:known] != before.messages:
        return False
    return before == request.model_copy(
        update={"messages": before.messages, "step": before.step}
    )
