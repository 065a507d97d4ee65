"""The messages dialect: `POST /v1/messages` and `/count_tokens`, plain and streamed."""

import json
from collections.abc import Iterator

from tests.support.model_server.ask import Ask, Json, Tool, as_object, as_objects, text_of
from tests.support.model_server.chat import TOKENS_IN, TOKENS_OUT
from tests.support.model_server.toolbox import Call, Say


def read(body: Json) -> Ask:
    messages = as_objects(body.get("messages"))
    parts = [part for one in messages for part in as_objects(one.get("content"))]
    form = as_object(as_object(body.get("output_config")).get("format"))
    return Ask(
        dialect="messages",
        model=str(body.get("model")),
        system=text_of(body.get("system")),
        prompt="\n".join(
            _own_text(one.get("content")) for one in messages if one.get("role") == "user"
        ),
        turn=sum(message.get("role") == "assistant" for message in messages),
        tools={
            str(one["name"]): Tool(
                str(one["name"]), parameters=as_object(one.get("input_schema"))
            )
            for one in as_objects(body.get("tools"))
        },
        results=tuple(
            text_of(part.get("content")) for part in parts if part.get("type") == "tool_result"
        ),
        output_schema=as_object(form.get("schema")) if form else None,
        stream=bool(body.get("stream")),
    )


def whole(ask: Ask, reply: Call | Say) -> Json:
    return {
        **_head(ask),
        "content": [_block(ask, reply)],
        "stop_reason": _reason(reply),
        "usage": {"input_tokens": TOKENS_IN, "output_tokens": TOKENS_OUT},
    }


def stream(ask: Ask, reply: Call | Say) -> Iterator[tuple[str | None, Json | str]]:
    block = _block(ask, reply)
    empty = {**block, "text": ""} if isinstance(reply, Say) else {**block, "input": {}}
    if isinstance(reply, Say):
        delta = {"type": "text_delta", "text": reply.text}
    else:
        delta = {"type": "input_json_delta", "partial_json": json.dumps(reply.arguments)}
    used = {"input_tokens": TOKENS_IN, "output_tokens": 1}
    opening = {**_head(ask), "content": [], "stop_reason": None, "usage": used}
    yield _event("message_start", message=opening)
    yield _event("content_block_start", index=0, content_block=empty)
    yield _event("content_block_delta", index=0, delta=delta)
    yield _event("content_block_stop", index=0)
    ending = {"stop_reason": _reason(reply), "stop_sequence": None}
    yield _event("message_delta", delta=ending, usage={"output_tokens": TOKENS_OUT})
    yield _event("message_stop")


def _own_text(content: object) -> str:
    parts = as_objects(content)
    own = [part for part in parts if part.get("type") == "text"]
    return text_of(own) if parts else text_of(content)


def _head(ask: Ask) -> Json:
    return {
        "id": f"msg_{ask.turn}",
        "type": "message",
        "role": "assistant",
        "model": ask.model,
        "stop_sequence": None,
    }


def _block(ask: Ask, reply: Call | Say) -> Json:
    if isinstance(reply, Say):
        return {"type": "text", "text": reply.text}
    head = {"type": "tool_use", "id": f"toolu_{ask.turn}"}
    return {**head, "name": reply.name, "input": reply.arguments}


def _reason(reply: Call | Say) -> str:
    return "end_turn" if isinstance(reply, Say) else "tool_use"


def _event(kind: str, **fields: object) -> tuple[str, Json]:
    return kind, {"type": kind, **fields}
