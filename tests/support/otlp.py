"""A collector on loopback: takes what OTLP over HTTP sends, and keeps it."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class _Receiver(BaseHTTPRequestHandler):
    """Takes what OTLP/HTTP sends, as a collector does."""

    got: list[tuple[str, bytes]]
    answer = 200

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        type(self).got.append((self.path, body))
        self.send_response(type(self).answer)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


@contextmanager
def otlp_receiver(answer: int = 200) -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    """Yield the address of a collector, and what it got: path and body of each request."""
    got: list[tuple[str, bytes]] = []
    handler = type("Receiver", (_Receiver,), {"got": got, "answer": answer})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
