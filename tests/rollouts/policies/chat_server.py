"""A chat endpoint that answers by a script: a real server on this machine."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Step = Callable[["Handler", dict[str, Any]], None]


class Handler(BaseHTTPRequestHandler):
    """Answers each request with the next step of the script; the last one goes on."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self):
        length = int(self.headers["content-length"])
        body = json.loads(self.rfile.read(length))
        with self.server.lock:
            seen = self.server.seen
            seen.append(Seen(self.path, body, {k.lower(): v for k, v in self.headers.items()}))
            step = self.server.script[min(len(seen), len(self.server.script)) - 1]
        step(self, body)

    def send(self, status, body=b"", headers=None):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        self.send_response(status)
        given = {"content-type": "application/json", "content-length": str(len(body))}
        for name, value in {**given, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)

    def log_message(self, *_):
        pass


@dataclass
class Seen:
    path: str
    body: dict[str, Any]
    headers: dict[str, str]


@dataclass
class Server(ThreadingHTTPServer):
    """The server; ``seen`` are the requests."""

    script: list[Step]
    seen: list[Seen] = field(default_factory=list)
    lock: Any = field(default_factory=threading.Lock)
    daemon_threads = True
    request_queue_size = 128
    """Of five, the system resets some of those that many clients open at once."""

    def __post_init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.over = threading.Event()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request, client_address):
        pass  # a client that went away


@contextlib.contextmanager
def serving(*script: Step) -> Iterator[Server]:
    server = Server(list(script))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        thread.join()
        server.server_close()


# ---- steps -----------------------------------------------------------------------------------


def message(**parts) -> dict[str, Any]:
    finish = parts.pop("finish_reason", "stop")
    choice = {"index": 0, "message": {"role": "assistant", **parts}, "finish_reason": finish}
    usage = {"prompt_tokens": 10, "completion_tokens": 3}
    return {"id": "r1", "model": "m", "choices": [choice], "usage": usage}


def say(text) -> Step:
    return answer(message(content=text))


def calling(name="add", arguments='{"a": 2, "b": 3}', call_id="c1") -> Step:
    function = {"name": name, "arguments": arguments}
    call = {"id": call_id, "type": "function", "function": function}
    return answer(message(content=None, tool_calls=[call], finish_reason="tool_calls"))


def answer(body, status=200, **headers) -> Step:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler, _: handler.send(status, body, named)


def slow(seconds) -> Step:
    def step(handler, body):
        handler.server.over.wait(seconds)
        say("late")(handler, body)

    return step


def dripping(handler, body):
    """A byte now and then: no single read takes long, and no answer ever comes."""
    handler.send_response(200)
    handler.send_header("content-type", "application/json")
    handler.send_header("content-length", "100000")
    handler.end_headers()
    with contextlib.suppress(OSError):
        while not handler.server.over.is_set():
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.02)


def cut(handler, body):
    """Half of an answer, then the end of the connection."""
    content = json.dumps(message(content="4"))
    handler.send_response(200)
    handler.send_header("content-type", "application/json")
    handler.send_header("content-length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content[: len(content) // 2].encode())
    handler.close_connection = True


def reset(handler, body):
    """The connection is reset instead of answered."""
    linger = struct.pack("ii", 1, 0)
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    handler.close_connection = True
    handler.rfile.close()
    handler.wfile.close()
    handler.connection.close()


def events(*pieces, done=True) -> Step:
    def step(handler, body):
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream; charset=utf-8")
        handler.send_header("connection", "close")
        handler.end_headers()
        for piece in pieces:
            text = piece if isinstance(piece, str) else json.dumps(piece)
            handler.wfile.write(f"data: {text}\n\n".encode())
        if done:
            handler.wfile.write(b"data: [DONE]\n\n")
        handler.close_connection = True

    return step


def delta(finish_reason=None, **parts) -> dict[str, Any]:
    choice = {"index": 0, "delta": parts, "finish_reason": finish_reason}
    return {"id": "r1", "model": "m", "choices": [choice]}
