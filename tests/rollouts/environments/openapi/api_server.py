"""A local server that keeps what it is asked, and answers as a test says."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit


@dataclass
class Asked:
    """A request as it came in."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes


Answer = Callable[[Asked], tuple[int, dict[str, str], bytes]]


class Handler(BaseHTTPRequestHandler):
    """Gives each request to the server's function ``answer``."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def handle(self):
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # of one who went away
            super().handle()

    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Asked(self.command, parts.path, parts.query, headers, body)
        self.server.seen.append(request)
        answered = self.server.answer(request)
        if callable(answered):
            answered(self)
            return
        status, headers, data = answered
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_POST = do_PUT = do_DELETE = do_PATCH = do_GET


def as_json(value: Any, status: int = 200, **headers: str) -> tuple[int, dict[str, str], bytes]:
    """An answer in JSON."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return status, {"Content-Type": "application/json", **named}, json.dumps(value).encode()


@contextmanager
def serving(answer: Any = lambda request: as_json({"ok": True})) -> Iterator[Any]:
    """A server on a free port; ``url``, ``seen`` and ``answer`` are its attributes."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.seen, server.answer = [], answer
        server.daemon_threads, server.block_on_close = True, False
        server.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()
