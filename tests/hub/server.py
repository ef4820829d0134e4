"""A local Hub: answers what huggingface_hub asks, as the Hub does, with Xet off.

    with LocalHub() as hub:
        hub.repos.tokens["hf_me"] = ("me", set())
        hub.faults.add("POST .*/commit/", "429")
        ...                                 # HF_ENDPOINT=hub.url HF_TOKEN=hf_me
        hub.calls                           # everything that was asked

Large files are given out by a second server, as the Hub's CDN does: another origin, which must
never see a token.
"""

from __future__ import annotations

import json
import re
import socket
import struct
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

from tests.hub import answers
from tests.hub.faults import RETRY_AFTER, Fault, Plan
from tests.hub.repos import HubRefusal, Repos

_API = r"/api/(?P<kind>datasets|models)/(?P<repo>[^/]+/[^/]+)"
_GIT = r"(?:/(?P<kind>datasets))?/(?P<repo>[^/]+/[^/]+)"
"""Data sets and models may have the same name; an address says which it is."""

HUB = [
    ("GET", r"/api/whoami-v2", answers.whoami),
    ("POST", r"/api/repos/create", answers.create),
    ("POST", r"/api/validate-yaml", answers.validate_yaml),
    ("GET", _API, answers.info),
    ("GET", _API + r"/revision/(?P<rev>[^/]+)", answers.info),
    ("GET", _API + r"/tree/(?P<rev>[^/]+)(?:/(?P<path>.+))?",
     answers.tree),
    ("POST", _API + r"/paths-info/(?P<rev>[^/]+)", answers.paths_info),
    ("GET", _API + r"/refs", answers.refs),
    ("POST", _API + r"/tag/(?P<rev>[^/]+)", answers.tag),
    ("POST", _API + r"/preupload/(?P<rev>[^/]+)", answers.preupload),
    ("POST", _API + r"/commit/(?P<rev>[^/]+)", answers.commit),
    ("POST", _GIT + r"\.git/info/lfs/objects/batch", answers.lfs_batch),
    ("POST", _GIT + r"\.git/info/lfs/objects/verify", answers.lfs_verify),
    ("POST", _GIT + r"\.git/info/lfs/objects/complete",
     answers.lfs_complete),
    ("GET", _GIT + r"/resolve/(?P<rev>[^/]+)/(?P<path>.+)",
     answers.resolve),
]  # fmt: skip
CDN = [
    ("PUT", r"/objects/(?P<sha>[0-9a-f]{64})", answers.put_object),
    ("PUT", r"/objects/(?P<sha>[0-9a-f]{64})/(?P<part>\d+)", answers.put_part),
    ("GET", r"/objects/(?P<sha>[0-9a-f]{64})", answers.get_object),
]

_TEMPLATES = (
    (r"^/objects/[0-9a-f]{64}/\d+$", "/objects/SHA256/PART"),
    (r"^/objects/[0-9a-f]{64}$", "/objects/SHA256"),
    (r"(/(?:api/)?(?:datasets|models)/)[^/]+/[^/.]+", r"\1OWNER/NAME"),
    (r"/resolve/[^/]+/.+$", "/resolve/REVISION/PATH"),
    (r"/tree/[^/]+/.+$", "/tree/REVISION/PATH"),
    (r"/(revision|tree|tag|commit|preupload|paths-info)/[^/]+$", r"/\1/REVISION"),
)


@dataclass
class Call:
    """A request and what became of it.

    Attributes:
        origin: ``hub`` or ``cdn``.
        method: HTTP method.
        path: path without the query.
        query: the query.
        status: status of the answer; 0 when there was none.
        received: bytes of the body that was sent to us.
        sent: bytes of the body that we sent.
        token: whether it carried a token.
        fault: the kind of fault that it met; empty when none.
        body: the body of a POST.
    """

    origin: str
    method: str
    path: str
    query: str = ""
    status: int = 0
    received: int = 0
    sent: int = 0
    token: bool = False
    fault: str = ""
    body: bytes = b""

    @property
    def template(self) -> str:
        """The call with names in the place of what differs from call to call."""
        path = self.path
        for pattern, name in _TEMPLATES:
            path = re.sub(pattern, name, path)
        origin = "" if self.origin == "hub" else "CDN "
        return f"{origin}{self.method} {path}"


class LocalHub:
    """A Hub on this machine, on two free ports.

    Args:
        page: entries on a page of a tree.
        part: bytes of a part of an upload; larger objects come in parts.

    Attributes:
        repos: what it keeps.
        faults: what it does wrong.
        calls: what it was asked, in order.
    """

    def __init__(self, page: int = 1000, part: int = 5 << 20) -> None:
        self.repos = Repos()
        self.faults = Plan()
        self.calls: list[Call] = []
        self.page, self.part = page, part
        self._servers = [_serve(self, "hub"), _serve(self, "cdn")]
        self.url, self.cdn = (f"http://127.0.0.1:{server.server_port}" for server in self._servers)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def asked(self, pattern: str) -> list[Call]:
        """The calls that a pattern finds in ``METHOD /path``."""
        return [call for call in self.calls if re.search(pattern, f"{call.method} {call.path}")]

    def kinds(self) -> Counter[str]:
        """How often each kind of call came."""
        return Counter(call.template for call in self.calls)

    def forget(self) -> None:
        """Forget the calls so far."""
        self.calls.clear()

    @property
    def sent(self) -> int:
        """Bytes of files that were given out."""
        return sum(call.sent for call in self.asked("^GET /(objects|datasets)/"))


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed is no fault of ours."""


def _serve(hub: LocalHub, origin: str) -> ThreadingHTTPServer:
    class Handler(_Handler):
        pass

    Handler.hub, Handler.origin, Handler.routes = hub, origin, HUB if origin == "hub" else CDN
    server = _Quiet(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    return server


class _Cut(Exception):
    """The connection is to be ended."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # or each answer would wait 40 ms
    hub: LocalHub
    origin: str
    routes: list[Any]

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""

    def _call(self) -> None:
        parts = urlsplit(self.path)
        token = self.headers.get("authorization", "").removeprefix("Bearer ") or None
        path = unquote(parts.path)
        call = Call(self.origin, self.command, path, parts.query, token=token is not None)
        self.hub.calls.append(call)
        fault = self.hub.faults.next(self.command, path)
        call.fault = fault.kind if fault else ""
        with suppress(_Cut, ConnectionError):
            body = self._body(call, fault)
            if fault and fault.kind.isdigit():
                return self._send(call, refusal(fault), None)
            if fault and fault.kind == "slow":
                time.sleep(fault.seconds)
            self._send(call, self._answer(call, parts.path, token, body), fault)
            return None
        self._end(reset=fault is not None and fault.kind == "reset")

    do_GET = do_HEAD = do_POST = do_PUT = _call

    def _body(self, call: Call, fault: Fault | None) -> bytes:
        """Read the body of the request, or half of it."""
        length = int(self.headers.get("content-length") or 0)
        if fault and fault.kind == "cut_request":
            call.received = len(self.rfile.read(length // 2))
            raise _Cut
        if self.headers.get("transfer-encoding") == "chunked":
            body = self._chunks()
        else:
            body = self.rfile.read(length)
            if len(body) < length:
                raise _Cut
        call.received = len(body)
        call.body = body if self.command == "POST" else b""
        return body

    def _chunks(self) -> bytes:
        body = b""
        while size := int(self.rfile.readline().strip() or b"0", 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _answer(self, call: Call, raw: str, token: str | None, body: bytes) -> answers.Answer:
        """Find and call what answers a path."""
        method = "GET" if self.command == "HEAD" else self.command
        for verb, pattern, function in self.routes:
            if verb == method and (match := re.fullmatch(pattern, raw)):
                results = {name: unquote(part) for name, part in match.groupdict().items() if part}
                query = {name: values[0] for name, values in parse_qs(call.query).items()}
                request = answers.Request(self.hub, token, body, query, self.headers, results)
                try:
                    with self.hub.repos.lock:
                        return function(request)
                except HubRefusal as refused:
                    return answers.refused(refused)
        return answers.refused(HubRefusal(404, f"no answer for {self.command} {raw}"))

    def _send(self, call: Call, answer: answers.Answer, fault: Fault | None) -> None:
        """Send an answer, or as much of it as a fault leaves."""
        kind = fault.kind if fault else ""
        cut = kind in ("cut_response", "reset")
        if kind == "no_response" or (cut and not answer.body):
            raise _Cut
        call.status = answer.status
        self.send_response(answer.status)
        self.send_header("Content-Length", str(len(answer.body)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        body = b"" if self.command == "HEAD" else answer.body
        if cut:
            body = body[: len(body) // 2]
        call.sent = len(body)
        self.wfile.write(body)
        self.wfile.flush()
        if cut:
            raise _Cut

    def _end(self, *, reset: bool) -> None:
        self.close_connection = True
        with suppress(OSError):
            if reset:
                time.sleep(0.01)  # what was sent before must arrive, or nothing would
                linger = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self.connection.close()
            else:
                self.connection.shutdown(socket.SHUT_RDWR)


def refusal(fault: Fault) -> answers.Answer:
    """The answer that a fault puts in the place of the right one."""
    headers = {"Content-Type": "application/json"}
    if fault.kind == "429":
        headers |= {
            "Retry-After": str(RETRY_AFTER),
            "RateLimit": f'"api";r=0;t={RETRY_AFTER}',
            "RateLimit-Policy": '"fixed window";"api";q=500;w=300',
        }
    body = json.dumps({"error": fault.message}).encode()
    return answers.Answer(int(fault.kind), body, headers)
