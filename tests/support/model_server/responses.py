"""The responses dialect: `POST /v1/responses`, plain and streamed."""

import json
from collections.abc import Iterator

from tests.support.model_server.ask import Ask, Json, Tool, as_object, as_objects, text_of
from tests.support.model_server.chat import TOKENS_IN, TOKENS_OUT
from tests.support.model_server.toolbox import Call, Say

_ANSWERS = {"function_call", "custom_tool_call", "local_shell_call"}
_RESULTS = {"function_call_output", "custom_tool_call_output", "local_shell_call_output"}


def read(body: Json) -> Ask:
    given = body.get("input")
    spoken: Json = {"role": "user", "content": given}
    items = [spoken] if isinstance(given, str) else as_objects(given)
    form = as_object(as_object(body.get("text")).get("format"))
    wants_schema = form.get("type") == "json_schema"
    return Ask(
        dialect="responses",
        model=str(body.get("model")),
        system="\n".join(
            [text_of(body.get("instructions")), _said(items, "developer", "system")]
        ),
        prompt=_said(items, "user"),
        turn=sum(
            item.get("type") in _ANSWERS or item.get("role") == "assistant" for item in items
        ),
        tools={tool.name: tool for tool in _tools(as_objects(body.get("tools")))},
        results=tuple(
            text_of(one.get("output")) for one in items if one.get("type") in _RESULTS
        ),
        output_schema=as_object(form.get("schema")) if wants_schema else None,
        stream=bool(body.get("stream")),
    )


def whole(ask: Ask, reply: Call | Say) -> Json:
    return _response(ask, "completed", [_item(ask, reply)])


def stream(ask: Ask, reply: Call | Say) -> Iterator[tuple[str | None, Json | str]]:
    item = _item(ask, reply)
    where = {"item_id": item["id"], "output_index": 0}
    yield _event("response.created", 0, response=_response(ask, "in_progress", []))
    opened = {**item, "status": "in_progress", **({"content": []} if "content" in item else {})}
    yield _event("response.output_item.added", 1, output_index=0, item=opened)
    if isinstance(reply, Say):
        spot = {**where, "content_index": 0}
        part = {"type": "output_text", "text": "", "annotations": []}
        yield _event("response.content_part.added", 2, **spot, part=part)
        yield _event("response.output_text.delta", 3, **spot, delta=reply.text)
        yield _event("response.output_text.done", 4, **spot, text=reply.text)
        done = {**part, "text": reply.text}
        yield _event("response.content_part.done", 5, **spot, part=done)
    elif reply.form == "function":
        said = json.dumps(reply.arguments)
        yield _event("response.function_call_arguments.delta", 2, **where, delta=said)
        yield _event("response.function_call_arguments.done", 3, **where, arguments=said)
    yield _event("response.output_item.done", 6, output_index=0, item=item)
    yield _event("response.completed", 7, response=whole(ask, reply))


def _tools(offered: list[Json]) -> Iterator[Tool]:
    for one in offered:
        name = str(one.get("name", one.get("type")))
        if one.get("type") == "namespace":
            for inner in as_objects(one.get("tools")):
                yield Tool(
                    str(inner["name"]), "function", as_object(inner.get("parameters")), name
                )
        elif one.get("type") == "custom":
            yield Tool(name, "custom")
        else:
            yield Tool(name, "function", as_object(one.get("parameters")))


def _said(items: list[Json], *roles: str) -> str:
    return "\n".join(text_of(one.get("content")) for one in items if one.get("role") in roles)


def _item(ask: Ask, reply: Call | Say) -> Json:
    if isinstance(reply, Say):
        part = {"type": "output_text", "text": reply.text, "annotations": []}
        head = {"id": f"msg_{ask.turn}", "type": "message", "role": "assistant"}
        return {**head, "status": "completed", "content": [part]}
    call: Json = {"call_id": f"call_{ask.turn}", "name": reply.name, "status": "completed"}
    if reply.namespace is not None:
        call["namespace"] = reply.namespace
    if reply.form == "custom":
        head = {"id": f"ctc_{ask.turn}", "type": "custom_tool_call"}
        return {**head, **call, "input": reply.text}
    head = {"id": f"fc_{ask.turn}", "type": "function_call"}
    return {**head, **call, "arguments": json.dumps(reply.arguments)}


def _response(ask: Ask, status: str, output: list[Json]) -> Json:
    usage = {
        "input_tokens": TOKENS_IN,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": TOKENS_OUT,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": TOKENS_IN + TOKENS_OUT,
    }
    return {
        "id": f"resp_{ask.turn}",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": status,
        "model": ask.model,
        "output": output,
        "parallel_tool_calls": False,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "usage": usage if status == "completed" else None,
    }


def _event(kind: str, number: int, **fields: object) -> tuple[str, Json]:
    return kind, {"type": kind, "sequence_number": number, **fields}
