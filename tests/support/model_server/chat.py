"""The chat-completions dialect: `POST /v1/chat/completions`, plain and streamed."""

import json
from collections.abc import Iterator

from tests.support.model_server.ask import Ask, Json, Tool, as_object, as_objects, text_of
from tests.support.model_server.toolbox import Call, Say

TOKENS_IN, TOKENS_OUT = 100, 10


def read(body: Json) -> Ask:
    messages = as_objects(body.get("messages"))
    functions = [as_object(tool.get("function")) for tool in as_objects(body.get("tools"))]
    form = as_object(body.get("response_format"))
    schema = as_object(form.get("json_schema")).get("schema")
    return Ask(
        dialect="chat",
        model=str(body.get("model")),
        system=_said(messages, "system", "developer"),
        prompt=_said(messages, "user"),
        turn=sum(message.get("role") == "assistant" for message in messages),
        tools={
            str(one["name"]): Tool(
                str(one["name"]), parameters=as_object(one.get("parameters"))
            )
            for one in functions
        },
        results=tuple(text_of(one.get("content")) for one in messages if one["role"] == "tool"),
        output_schema=as_object(schema) if schema is not None else None,
        stream=bool(body.get("stream")),
    )


def whole(ask: Ask, reply: Call | Say) -> Json:
    message: Json = {"role": "assistant", "content": None}
    if isinstance(reply, Say):
        message["content"] = reply.text
    else:
        message["tool_calls"] = [_call(ask, reply)]
    choice = {"index": 0, "message": message, "finish_reason": _reason(reply)}
    return {**_head(ask, "chat.completion"), "choices": [choice], "usage": usage()}


def stream(ask: Ask, reply: Call | Say) -> Iterator[tuple[str | None, Json | str]]:
    head = _head(ask, "chat.completion.chunk")

    def chunk(delta: Json, reason: str | None = None) -> Json:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    yield None, chunk({"role": "assistant", "content": ""})
    if isinstance(reply, Say):
        yield None, chunk({"content": reply.text})
    else:
        yield None, chunk({"tool_calls": [{"index": 0, **_call(ask, reply)}]})
    yield None, chunk({}, _reason(reply))
    yield None, {**head, "choices": [], "usage": usage()}
    yield None, "[DONE]"


def usage() -> Json:
    total = TOKENS_IN + TOKENS_OUT
    return {"prompt_tokens": TOKENS_IN, "completion_tokens": TOKENS_OUT, "total_tokens": total}


def _said(messages: list[Json], *roles: str) -> str:
    return "\n".join(
        text_of(one.get("content")) for one in messages if one.get("role") in roles
    )


def _head(ask: Ask, kind: str) -> Json:
    return {
        "id": f"chatcmpl-{ask.turn}",
        "object": kind,
        "created": 1_700_000_000,
        "model": ask.model,
    }


def _call(ask: Ask, call: Call) -> Json:
    function = {"name": call.name, "arguments": json.dumps(call.arguments)}
    return {"id": f"call_{ask.turn}", "type": "function", "function": function}


def _reason(reply: Call | Say) -> str:
    return "stop" if isinstance(reply, Say) else "tool_calls"
