"""A search server over documents: POST ``/search`` and ``/batch_search`` with JSON.

    {"query": "height of Etna", "top_n": 5}               -> [{"id", "title", "contents"}, ...]
    {"queries": ["height of Etna", "Etna"], "top_n": 5}   -> a list of such lists

``return_score`` true gives ``[documents, scores]`` instead. GET ``/health`` says how many documents
there are. It is the interface of FlashRAG's server, which ET-Agent and others search with; their
field ``query`` with a list is taken for ``queries``, too. What is wrong is a JSON object with
``error`` and a status of 4xx.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

from adp.rollouts.environments.corpus import Document
from adp_schema.errors import UsageError

LARGEST = 1 << 20
"""Bytes of a request."""
MOST_QUERIES, MOST_DOCUMENTS, LONGEST_QUERY = 1_000, 100, 10_000
"""Queries of a request, documents for each, characters of a query."""

_TOP = 10
_SECONDS = 30.0


class SearchableDocuments(Protocol):
    """What can be searched."""

    def search(self, query: str, limit: int) -> Sequence[tuple[Document, float]]:
        """The documents that fit a query best, with their scores."""
        ...


class CountedDocuments(SearchableDocuments, Protocol):
    """The same, and it is known how many there are."""

    def __len__(self) -> int:
        """How many documents there are."""
        ...


class _RefusedError(Exception):
    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class SearchServer(ThreadingHTTPServer):
    """Serves documents until `shutdown` is called.

    Args:
        documents: the documents.
        host: address to listen at.
        port: port; 0 takes a free one, see ``url``.

    Raises:
        UsageError: nothing can listen there.
    """

    daemon_threads = True

    def __init__(self, documents: CountedDocuments, host: str = "127.0.0.1", port: int = 0) -> None:
        self.documents = documents
        try:
            super().__init__((host, port), _Handler)
        except (OSError, OverflowError) as error:
            raise UsageError(
                f"nothing can listen at {host}:{port} ({error}); give another --host or --port"
            ) from error

    @property
    def url(self) -> str:
        """Its address."""
        host, port = self.server_address[:2]
        return f"http://{host if isinstance(host, str) else host.decode()}:{port}"


class _Handler(BaseHTTPRequestHandler):
    """Answers requests; whatever is sent, it raises nothing."""

    protocol_version = "HTTP/1.1"
    timeout = _SECONDS
    server: SearchServer

    def do_GET(self) -> None:
        """Say that the server is there."""
        if self.path.rstrip("/") in ("", "/health"):
            self._send(200, {"documents": len(self.server.documents)})
        else:
            self._send(404, {"error": f"there is no {self.path[:100]}; POST to /search"})

    def do_POST(self) -> None:
        """Search."""
        try:
            answer = self._answer()
        except _RefusedError as error:
            self.close_connection = True
            self._send(error.status, {"error": str(error)})
        except Exception as error:  # whatever searches, the server goes on
            self.close_connection = True
            self._send(500, {"error": f"the search failed: {type(error).__name__}"})
        else:
            self._send(200, answer)

    def _answer(self) -> Any:
        path = self.path.split("?", 1)[0].rstrip("/")
        if path not in ("/search", "/batch_search"):
            raise _RefusedError(404, f"there is no {self.path[:100]}; use /search or /batch_search")
        body = self._body()
        top, scored = _top(body), body.get("return_score") is True
        if path == "/search":
            documents, scores = self._search(_query(body.get("query")), top)
            return [documents, scores] if scored else documents
        queries = body.get("queries", body.get("query"))
        if not isinstance(queries, list) or len(queries) > MOST_QUERIES:
            raise _RefusedError(400, f"queries must be a list of at most {MOST_QUERIES} texts")
        hits = [self._search(query, top) for query in map(_query, queries)]
        lists = [documents for documents, _ in hits]
        return [lists, [scores for _, scores in hits]] if scored else lists

    def _body(self) -> Mapping[str, Any]:
        try:
            length = int(self.headers.get("Content-Length", ""))
        except ValueError:
            raise _RefusedError(411, "the request needs a Content-Length") from None
        if not 0 <= length <= LARGEST:
            raise _RefusedError(413, f"a request may have {LARGEST:,} bytes")
        try:
            body = json.loads(self.rfile.read(length))
        except (ValueError, RecursionError):
            raise _RefusedError(400, "the body is no JSON") from None
        if not isinstance(body, dict):
            raise _RefusedError(400, 'the body must be a JSON object, such as {"query": "words"}')
        return body

    def _search(self, query: str, top: int) -> tuple[list[dict[str, str]], list[float]]:
        hits = self.server.documents.search(query, top)
        documents = [
            {
                "id": document.id,
                "title": document.title,
                "contents": f"{document.title}\n{document.text}" if document.title
                else document.text,
            }
            for document, _ in hits
        ]  # fmt: skip
        return documents, [round(score, 6) for _, score in hits]

    def _send(self, status: int, value: Any) -> None:
        data = json.dumps(value).encode("ascii")
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except OSError:
            self.close_connection = True  # who asked has gone

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base
        """Nothing: queries are not logged."""


def _query(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _RefusedError(400, "query must be a text that is not empty")
    if len(value) > LONGEST_QUERY:
        raise _RefusedError(400, f"a query may have {LONGEST_QUERY:,} characters")
    return value


def _top(body: Mapping[str, Any]) -> int:
    top = body.get("top_n", _TOP)
    if not isinstance(top, int) or isinstance(top, bool) or not 1 <= top <= MOST_DOCUMENTS:
        raise _RefusedError(400, f"top_n must be a whole number from 1 to {MOST_DOCUMENTS}")
    return top
