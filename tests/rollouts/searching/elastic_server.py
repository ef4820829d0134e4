"""A server of this machine that answers as Elasticsearch does, and keeps what it is asked."""

from __future__ import annotations

import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class Handler(BaseHTTPRequestHandler):
    """Answers as Elasticsearch does."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append((self.path, self.headers, body))
        status, answer = self.server.answer(self.path, body)
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("X-Elastic-Product", "Elasticsearch")
        self.send_header("Content-Type", self.headers["Accept"])
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def hits(path, body):
    listed = [{"_id": name, "_score": score, "_index": "i", "_source": {"text": f"text {name}"}}
             for name, score in (("b", 1.5), ("a", 1.5), ("c", 2.0))]  # fmt: skip
    return 200, {"took": 1, "timed_out": False, "hits": {"hits": listed[: body["size"]]}}


@contextlib.contextmanager
def elastic_server():
    """The server; skips the test where the client is not installed."""
    pytest.importorskip("elasticsearch")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.seen, server.answer = [], hits
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
