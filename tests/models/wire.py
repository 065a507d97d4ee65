"""A model server that answers with whatever body a test wants, in any of the three dialects."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

from agent_run.models import ModelOptions, open_model
from agent_run.ports.model import Model, ModelRequest, Prompt
from tests.support.model_server import chat, messages, responses
from tests.support.model_server.ask import Ask
from tests.support.model_server.toolbox import Call, Say

Json: TypeAlias = dict[str, Any]
Answers: TypeAlias = Callable[[Ask, Json], tuple[int, Json | bytes | None]]
"""From what was asked to a status and a body; a body of `None` closes the connection."""

DIALECTS = ("chat", "responses", "messages")
_ENDS = {"chat": "/chat/completions", "responses": "/responses", "messages": "/messages"}
_MODULES: Any = {"chat": chat, "responses": responses, "messages": messages}


def said(ask: Ask, reply: Call | Say) -> Json:
    """Return the body of a proper answer."""
    body: Json = _MODULES[ask.dialect].whole(ask, reply)
    return body


def cut(ask: Ask, text: str) -> Json:
    """Return the body of an answer that stopped at the limit of output tokens."""
    body = said(ask, Say(text))
    match ask.dialect:
        case "chat":
            body["choices"][0]["finish_reason"] = "length"
        case "responses":
            body |= {"status": "incomplete", "usage": body["usage"]}
            body["incomplete_details"] = {"reason": "max_output_tokens"}
        case "messages":
            body["stop_reason"] = "max_tokens"
    return body


def model_at(server: "Wire", dialect: str) -> Model:
    """Return a model that is asked in `dialect`."""
    names = {
        "chat": f"openai-chat:gpt-5-mini@{server.url}/v1",
        "responses": f"openai:gpt-5-mini@{server.url}/v1",
        "messages": f"anthropic:claude-haiku-4-5@{server.url}",
    }
    return open_model(names[dialect], ModelOptions(api_key="k", timeout_sec=20))


def question(text: str = "hello", **more: Any) -> ModelRequest:
    return ModelRequest(messages=(Prompt(text=text),), **more)


@dataclass(slots=True)
class Wire:
    """Where the server listens, and what it was sent."""

    url: str = ""
    bodies: list[Json] = field(default_factory=list)


@contextmanager
def wire(answers: Answers) -> Iterator[Wire]:
    """Serve `answers` on loopback."""
    seen = Wire()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
            """Stay silent."""

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            dialect = next(one for one in DIALECTS if self.path.endswith(_ENDS[one]))
            seen.bodies.append(body)
            status, answer = answers(_MODULES[dialect].read(body), body)
            self.close_connection = True
            if answer is None:
                return
            raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(raw)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    seen.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
