"""Between our messages and those of pydantic-ai.

What a provider must get back unchanged, such as signed thoughts, travels as `opaque`.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import JsonValue
from pydantic_ai import messages as theirs
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition

from agent_run.models.answering import call_of
from agent_run.ports.model import (
    Ended,
    Message,
    ModelRequest,
    Observation,
    Prompt,
    Reply,
    ToolCall,
    ToolOffer,
    Usage,
)

_ENDED: Final[Mapping[str | None, Ended]] = {
    "stop": "stop",
    "tool_call": "tools",
    "length": "length",
    "content_filter": "filtered",
}


def conversation(request: ModelRequest) -> list[theirs.ModelMessage]:
    """Return the messages of `request` in the words of pydantic-ai."""
    told: list[theirs.ModelMessage] = []
    pending: list[theirs.ModelRequestPart] = []
    for message in request.messages:
        if isinstance(message, Reply):
            if pending:
                told.append(theirs.ModelRequest(parts=pending))
            pending = []
            told.append(_reply(message))
        else:
            pending.append(_part(message))
    instructions = request.instructions or None
    told.append(theirs.ModelRequest(parts=pending, instructions=instructions))
    return told


def parameters(request: ModelRequest, *, native: bool) -> ModelRequestParameters:
    """Return the tools and the schema of `request`; without `native` the schema is a tool."""
    tools = [_tool(one) for one in request.tools]
    if request.output_schema is None:
        return ModelRequestParameters(
            function_tools=tools, allow_text_output=not request.must_use_tool
        )
    if native:
        wanted = OutputObjectDefinition(
            json_schema=dict(request.output_schema), name=request.output_name
        )
        return ModelRequestParameters(
            function_tools=tools, output_mode="native", output_object=wanted
        )
    answer = ToolDefinition(
        name=request.output_name,
        description="Give the answer.",
        parameters_json_schema=dict(request.output_schema),
        kind="output",
    )
    return ModelRequestParameters(
        function_tools=tools,
        output_mode="tool",
        output_tools=[answer],
        allow_text_output=False,
    )


def ended_of(response: theirs.ModelResponse) -> Ended:
    """Return why the model stopped."""
    return _ENDED.get(response.finish_reason, "unknown")


def text_of(response: theirs.ModelResponse) -> str:
    """Return everything that was said aloud."""
    said = (part.content for part in response.parts if isinstance(part, theirs.TextPart))
    return "".join(said)


def calls_of(response: theirs.ModelResponse) -> tuple[ToolCall, ...]:
    """Return the tools that the model asks for."""
    return tuple(
        call_of(part.tool_call_id, part.tool_name, _plain_args(part))
        for part in response.parts
        if isinstance(part, theirs.ToolCallPart)
    )


def usage_of(response: theirs.ModelResponse) -> Usage:
    """Return what the provider says that it counted."""
    used = response.usage
    return Usage(
        tokens_in=used.input_tokens,
        tokens_out=used.output_tokens,
        cached_in=min(used.cache_read_tokens, used.input_tokens),
    )


def opaque_of(response: theirs.ModelResponse) -> JsonValue:
    """Return what must be handed back unchanged; `None` where our own fields hold it all."""
    if all(_is_plain(part) for part in response.parts):
        return None
    dumped: JsonValue = theirs.ModelMessagesTypeAdapter.dump_python([response], mode="json")
    return dumped


def _is_plain(part: theirs.ModelResponsePart) -> bool:
    if not isinstance(part, theirs.TextPart | theirs.ToolCallPart):
        return False
    return part.id is None and part.provider_details is None


def _plain_args(part: theirs.ToolCallPart) -> str | None:
    """Return the arguments as they came; a provider that parsed them loses nothing by it."""
    return part.args if isinstance(part.args, str) else part.args_as_json_str()


def _reply(message: Reply) -> theirs.ModelMessage:
    if message.opaque is not None:
        return theirs.ModelMessagesTypeAdapter.validate_python(message.opaque)[0]
    return theirs.ModelResponse(parts=list(_parts(message)))


def _parts(message: Reply) -> Iterator[theirs.ModelResponsePart]:
    if message.text:
        yield theirs.TextPart(message.text)
    for call in message.calls:
        yield theirs.ToolCallPart(call.name, dict(call.arguments), tool_call_id=call.call_id)


def _part(message: Message) -> theirs.ModelRequestPart:
    match message:
        case Prompt():
            return theirs.UserPromptPart(message.text)
        case Observation():
            return theirs.ToolReturnPart(
                message.name,
                message.text,
                tool_call_id=message.call_id,
                outcome="failed" if message.failed else "success",
            )
        case Reply():
            msg = "a reply of the model is no part of a request"
            raise TypeError(msg)


def _tool(offer: ToolOffer) -> ToolDefinition:
    return ToolDefinition(
        name=offer.name,
        description=offer.description,
        parameters_json_schema=dict(offer.parameters),
    )
