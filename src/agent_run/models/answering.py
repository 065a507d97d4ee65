"""From the words of a model to data: read strictly, checked by the schema, faults named."""

import json
import re
from collections.abc import Mapping
from typing import Final

from pydantic import JsonValue

from agent_run.contract.payload import payload_faults
from agent_run.contract.reading import read_document
from agent_run.errors import AnswerUnusable, InvalidDocument
from agent_run.ports.model import ModelAnswer, ModelRequest, ToolCall

_FENCED: Final = re.compile(r"\A```(?:json)?[ \t]*\n(.*)\n```\Z", re.DOTALL)


def read_output(
    text: str, schema: Mapping[str, JsonValue]
) -> tuple[JsonValue, tuple[str, ...]]:
    """Return the value that `text` is, or why it is none that `schema` allows."""
    stripped = text.strip()
    fenced = _FENCED.match(stripped)
    try:
        document = read_document(
            fenced.group(1) if fenced else stripped, source="answer", format="json"
        )
    except InvalidDocument as error:
        return None, tuple(str(error).splitlines())
    faults = tuple(payload_faults(document.value, schema))
    return (None, faults) if faults else (document.value, ())


def read_arguments(
    raw: str | Mapping[str, JsonValue] | None,
) -> tuple[dict[str, JsonValue], str]:
    """Return the arguments of a tool call, or why they cannot be read."""
    if not raw:
        return {}, ""
    text = raw if isinstance(raw, str) else json.dumps(dict(raw))
    try:
        value = read_document(text, source="arguments", format="json").value
    except InvalidDocument as error:
        return {}, str(error)
    if not isinstance(value, dict):
        return {}, f"the arguments are {type(value).__name__}, expected an object"
    return value, ""


def whole(answer: ModelAnswer, request: ModelRequest) -> ModelAnswer:
    """Return `answer` with its output read, if it is one that can be used at all.

    Raises:
        AnswerUnusable: It is cut, withheld or empty; it was paid for all the same.
    """
    if answer.ended == "length":
        msg = (
            f"model {answer.model!r} stopped at the limit of {request.max_output_tokens} "
            "output tokens, so its answer is cut and cannot be used"
        )
        raise AnswerUnusable(msg, answer)
    if answer.ended == "filtered":
        msg = f"the answer of model {answer.model!r} was withheld by its provider"
        raise AnswerUnusable(msg, answer)
    if not answer.text.strip() and not answer.calls:
        msg = f"model {answer.model!r} answered with nothing"
        raise AnswerUnusable(msg, answer)
    if request.output_schema is None or (answer.calls and request.tools):
        return answer
    output, faults = read_output(answer.text, request.output_schema)
    return answer.model_copy(update={"output": output, "faults": faults})


def call_of(call_id: str, name: str, raw: str | Mapping[str, JsonValue] | None) -> ToolCall:
    """Return the tool call that a provider's words stand for."""
    arguments, fault = read_arguments(raw)
    return ToolCall(call_id=call_id, name=name, arguments=arguments, fault=fault)


def one_line(said: object) -> str:
    """Return `said` as one line of a sensible length, for an error message."""
    return " ".join(str(said).split())[:500]
