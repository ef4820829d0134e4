"""Searching by a server that takes POST ``/search`` with ``query`` and ``top_n``.

Ours (`adp.rollouts.searching.server`) is one, FlashRAG's and ET-Agent's are others. Answers are
read in their forms: a list of documents, one with scores beside it, or an object that holds it as
``result``, ``results``, ``docs`` or ``documents``. A document is a text, or an object with
``contents``, ``text`` or ``content``, perhaps within ``document``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import httpx2

from adp.rollouts.environments.corpus import ID_NAMES, TEXT_NAMES, Document
from adp.rollouts.policy import InfrastructureError
from adp.rollouts.tools import LONGEST_REASON, ToolError
from adp.rollouts.turns import ErrorType
from adp_schema.errors import UsageError

LARGEST = 16 << 20
"""Bytes of an answer."""

_LISTS = ("result", "results", "docs", "documents", "data")
_WAIT = 0.5
_REFUSES_QUERY = (400, 413, 422)
"""Statuses that are about the query; others are about the server or its address."""


class RemoteDocuments:
    """Documents behind a search server.

    Args:
        url: address of the server, without ``/search``.
        timeout: seconds of a request.
        retries: tries after the first one, when it fails.

    Raises:
        UsageError: the address is none.
    """

    def __init__(self, url: str, timeout: float = 60.0, retries: int = 3) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"'{url}' is no address of a search server, such as http://HOST:PORT")
        self._url = url.rstrip("/") + "/search"
        # Without a name and a password that stand before the host.
        self._shown = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
        self._retries = retries
        self._timeout = timeout

    def search(self, query: str, limit: int) -> Sequence[tuple[Document, float]]:
        """The documents that the server finds, with its scores (0 where it gives none).

        Raises:
            ToolError: it refuses the query, or takes too long.
            InfrastructureError: it fails, or its answer cannot be read.
        """
        try:
            return self._search(query, limit)
        except InfrastructureError as error:
            raise InfrastructureError(error.kind, f"{self._shown}: {error}") from error

    def _search(self, query: str, limit: int) -> Sequence[tuple[Document, float]]:
        body = json.dumps({"query": query, "top_n": limit}).encode("ascii")
        for tries in range(self._retries + 1):
            try:
                status, content = self._post(body)
            except httpx2.TimeoutException:
                raise ToolError("Execution Timeout: the search took too long",
                                ErrorType.TIMEOUT) from None  # fmt: skip
            except httpx2.HTTPError as error:
                reason = f"the search server cannot be asked: {str(error)[:LONGEST_REASON]}"
            else:
                if status < 400:
                    return documents_of(content, limit)
                reply = content[:LONGEST_REASON].decode("utf-8", "replace")
                if status in _REFUSES_QUERY:
                    raise ToolError(f"the search server refuses: {reply}", ErrorType.INVALID_ARGS)
                reason = f"the search server fails with HTTP {status}: {reply}"
                if status < 500 and status not in (408, 429):
                    break
            if tries < self._retries:
                time.sleep(_WAIT * 2**tries)
        raise InfrastructureError("search_server", reason)

    def _post(self, body: bytes) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        with (
            # One for each request: episodes come and go in threads, and nothing closes them all.
            httpx2.Client(timeout=self._timeout, trust_env=False) as client,
            client.stream("POST", self._url, content=body, headers=headers) as answer,
        ):
            content = bytearray()
            for part in answer.iter_bytes():
                content += part
                if len(content) > LARGEST:
                    raise InfrastructureError(
                        "search_server", f"the search server answers with over {LARGEST:,} bytes"
                    )
            return answer.status_code, bytes(content)


def documents_of(content: bytes, limit: int) -> list[tuple[Document, float]]:
    """The documents in an answer.

    Args:
        content: the answer.
        limit: how many are taken.

    Raises:
        InfrastructureError: it cannot be read.
    """
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        raise InfrastructureError("search_server", "the search server answers no JSON") from None
    if isinstance(value, Mapping):
        value = next((value[name] for name in _LISTS if name in value), None)
    scores: Any = ()
    if isinstance(value, list) and len(value) == 2 and all(isinstance(v, list) for v in value):
        value, scores = value
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]
    if not isinstance(value, list):
        raise InfrastructureError("search_server", "the search server answers no list of documents")
    results = []
    for number, item in enumerate(value[:limit]):
        score = scores[number] if number < len(scores) else None
        results.append(read_document(item, number, score))
    return results


def read_document(item: Any, number: int, score: Any) -> tuple[Document, float]:
    """A document of an answer, and its score.

    Args:
        item: a text, or an object with the text as ``contents``, ``text``, ...
        number: its place, for one without an id.
        score: its score; None takes that of the object, else 0.

    Raises:
        InfrastructureError: it has no text.
    """
    if isinstance(item, Mapping) and score is None:
        score = item.get("score")
    if isinstance(item, Mapping) and isinstance(item.get("document"), Mapping):
        item = item["document"]
    value = float(score) if isinstance(score, int | float) else 0.0
    if isinstance(item, str):
        return Document(str(number + 1), "", item), value
    text = next((item[name] for name in TEXT_NAMES if isinstance(item.get(name), str)), None) \
        if isinstance(item, Mapping) else None  # fmt: skip
    if text is None:
        raise InfrastructureError("search_server", "a document of the search server has no text")
    first = next((item[name] for name in ID_NAMES if item.get(name) is not None), number + 1)
    title = item.get("title")
    title = title if isinstance(title, str) else ""
    return Document(str(first), title, text.removeprefix(f"{title}\n") if title else text), value
