"""The HTTP side: listens on a free loopback port, writes down every request, answers in kind.

A request nobody foresaw gets a 404 and is written down too, so that a test can say that a
command line called home.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType, TracebackType
from typing import Final, Self, TypeAlias

from tests.support.model_server import chat, messages, responses
from tests.support.model_server.ask import Ask, Dialect, Json
from tests.support.model_server.scenario import Refuse, Scenario
from tests.support.model_server.toolbox import Call, Reply, Say, reply_to

Events: TypeAlias = Iterator[tuple[str | None, Json | str]]

_READ: Final[Mapping[str, Callable[[Json], Ask]]] = MappingProxyType(
    {
        "chat/completions": chat.read,
        "responses": responses.read,
        "messages": messages.read,
    }
)
_WHOLE: Final[Mapping[Dialect, Callable[[Ask, Call | Say], Json]]] = MappingProxyType(
    {"chat": chat.whole, "responses": responses.whole, "messages": messages.whole}
)
_STREAM: Final[Mapping[Dialect, Callable[[Ask, Call | Say], Events]]] = MappingProxyType(
    {"chat": chat.stream, "responses": responses.stream, "messages": messages.stream}
)


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it came in."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Json
    ask: Ask | None = None
    """`None` means that it was no question to a model."""
    reply: Reply | None = None


@dataclass(slots=True)
class ModelServer:
    """A scripted model on loopback; use it as a context manager."""

    scenario: Scenario
    received: list[Received] = field(default_factory=list)
    _http: "_Http | None" = None

    def __enter__(self) -> Self:
        self._http = _Http(self)
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._http is not None:
            self._http.shutdown()
            self._http.server_close()

    @property
    def url(self) -> str:
        """The address without a path, as the messages dialect wants it."""
        if self._http is None:
            msg = "the model server is not running: enter its context first"
            raise RuntimeError(msg)
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def v1(self) -> str:
        """The address as the chat and responses dialects want it."""
        return f"{self.url}/v1"

    @property
    def asks(self) -> tuple[Ask, ...]:
        """The questions to the model, in the order they came."""
        return tuple(one.ask for one in self.received if one.ask is not None)

    @property
    def strays(self) -> tuple[str, ...]:
        """The paths of requests that this server does not know."""
        known = ("/models", "/count_tokens")
        return tuple(
            one.path
            for one in self.received
            if one.ask is None and one.method == "POST" and not one.path.endswith(known)
        )


class _Http(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, owner: ModelServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.owner = owner

    def handle_error(self, request: object, client_address: object) -> None:
        """Stay silent: a command line that is killed leaves its connections half open."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Http

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Stay silent: what came in stands in `received`."""

    def do_HEAD(self) -> None:
        self._note({})
        self._send_json(200, {})

    def do_GET(self) -> None:
        self._note({})
        path = self.path.partition("?")[0].rstrip("/")
        if path.endswith("/models"):
            self._send_json(200, {"object": "list", "data": [], "models": []})
        else:
            self._send_json(404, {"error": {"message": f"no such page: {path!r}"}})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            body = {"unreadable": repr(raw[:200])}
        path = self.path.partition("?")[0].rstrip("/")
        if path.endswith("/count_tokens"):
            self._note(body)
            self._send_json(200, {"input_tokens": chat.TOKENS_IN})
            return
        read = next((read for end, read in _READ.items() if path.endswith(f"/{end}")), None)
        if read is None or not isinstance(body, dict):
            self._note(body if isinstance(body, dict) else {"unreadable": repr(body)})
            self._send_json(404, {"error": {"message": f"no such call: {path!r}"}})
            return
        ask = read(body)
        reply = reply_to(ask, self.server.owner.scenario(ask))
        self._note(body, ask, reply)
        self._answer(ask, reply)

    def _note(self, body: Json, ask: Ask | None = None, reply: Reply | None = None) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        received = Received(self.command, self.path, headers, body, ask, reply)
        self.server.owner.received.append(received)

    def _answer(self, ask: Ask, reply: Reply) -> None:
        if isinstance(reply, Refuse):
            error = {"type": "scripted", "message": reply.message}
            self._send_json(reply.status, {"type": "error", "error": error})
        elif ask.stream:
            self._send_events(_STREAM[ask.dialect](ask, reply))
        else:
            self._send_json(200, _WHOLE[ask.dialect](ask, reply))

    def _send_json(self, status: int, body: Json) -> None:
        raw = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(raw)

    def _send_events(self, events: Events) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for name, body in events:
            text = body if isinstance(body, str) else json.dumps(body)
            head = f"event: {name}\n" if name else ""
            self.wfile.write(f"{head}data: {text}\n\n".encode())
        self.close_connection = True
