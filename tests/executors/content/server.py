"""A real web server on this machine, which behaves as badly as servers do."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final


@dataclass(slots=True)
class Site:
    """A server and what it was asked."""

    url: str
    asked: Counter[str] = field(default_factory=Counter)
    at_once: int = 0
    most_at_once: int = 0
    quiet: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)


MOVED: Final = {
    "/moved": (301, "/ok"),
    "/found": (302, "/ok"),
    "/circle-a": (302, "/circle-b"),
    "/circle-b": (302, "/circle-a"),
    "/to-script": (302, "javascript:alert(1)"),
    "/inside": (302, "http://169.254.1.1/secret"),
    "/to-port": (302, "http://127.0.0.1:99999/"),
    "/to-name": (302, "http://xn--/"),
    "/page-moved": (301, "/page"),
}
PAGES: Final = {
    "/page": ("text/html; charset=utf-8", b"<h1 id=here>x</h1><a name='caf\xc3\xa9'></a>"),
    "/own": ("text/html", b"<h1 id='user-content-here'>x</h1>"),
    "/scripted": ("text/html", b"<script src=a.js></script><p id=here>"),
    "/long": ("text/html", b"<p id=here>" + b" " * 1_000_000),
    "/report.pdf": ("application/pdf", b"%PDF"),
    "/strange": ("text/html; charset=nobody-knows", b"<p id=here>"),
}
PLAIN: Final = {"/missing": 404, "/gone": 410, "/private": 401, "/wrong": 500}


def _reply(site: Site, handler: BaseHTTPRequestHandler) -> tuple[int, dict[str, str]]:
    path, head = handler.path, handler.command == "HEAD"
    answer: tuple[int, dict[str, str]] = PLAIN.get(path, 200), {}
    if path in MOVED:
        answer = MOVED[path][0], {"Location": MOVED[path][1]}
    elif path.startswith("/deeper/"):
        answer = 302, {"Location": f"/deeper/{int(path.rsplit('/', 1)[1]) + 1}"}
    elif path == "/no-head" and head:
        answer = 405, {}
    elif path == "/busy" and site.asked["HEAD /busy"] < 2:
        answer = 429, {"Retry-After": "0"}
    elif path == "/very-busy":
        answer = 429, {"Retry-After": "3600"}
    elif path == "/flaky" and site.asked["HEAD /flaky"] < 3:
        answer = 503, {}
    return answer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: Site

    def do_HEAD(self) -> None:
        self._serve()

    def do_GET(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass

    def _serve(self) -> None:
        with self.site.lock:
            self.site.asked[f"{self.command} {self.path}"] += 1
            self.site.at_once += 1
            self.site.most_at_once = max(self.site.most_at_once, self.site.at_once)
        try:
            self._answer()
        except OSError:
            self.close_connection = True
        finally:
            with self.site.lock:
                self.site.at_once -= 1

    def _answer(self) -> None:
        if self.path.startswith("/slow"):
            self.site.quiet.wait(30)
            return
        if self.path == "/drip":
            self._drip()
            return
        status, headers = _reply(self.site, self)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        huge = self.path == "/huge"
        kind, body = PAGES.get(self.path, ("", b""))
        if kind:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(10**12 if huge else len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)
        if huge and self.command == "GET":
            for _ in range(100_000):
                self.wfile.write(b"x" * 65_536)

    def _drip(self) -> None:
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        while not self.site.quiet.wait(0.1):
            self.wfile.write(b"X-Wait: yes\r\n")
            self.wfile.flush()


@contextmanager
def served() -> Iterator[Site]:
    """Serve on a port of this machine until the end of the block."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    running = Site(f"http://127.0.0.1:{server.server_address[1]}")
    server.RequestHandlerClass = type("_Bound", (_Handler,), {"site": running})
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield running
    finally:
        running.quiet.set()
        server.shutdown()
        server.server_close()
        thread.join()
