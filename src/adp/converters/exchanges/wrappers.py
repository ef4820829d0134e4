"""A request to a model with its reply, or one of them, in the wrappers that logs put around them.

``{request, response}``, each with a ``body`` or as a string of JSON or of server-sent events;
lines of batches: ``{custom_id, body}``, ``{custom_id, params}``, ``{custom_id, response}``,
``{custom_id, result}``; and records that are a request with a ``response`` in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Raw

from adp.converters.exchanges.apis import ModelApis, reply_kind, request_kind
from adp.converters.exchanges.streams import encoded, events_of, join
from adp.converters.kit.drafts import StepDraft
from adp.converters.kit.source_object import SourceObject, embedded
from adp.converters.reading import BRACE, BRACKET
from adp_schema import jsontext
from adp_schema.losses import Losses

REQUESTS = ("request", "body", "params", "request_body", "requestBody", "proxy_server_request",
            "raw_request", "input", "inputs")  # fmt: skip
REPLIES = ("response", "result", "response_body", "responseBody", "raw_response", "output",
           "outputs", "completion")  # fmt: skip
_FIRST = 4000
"""A text of server-sent events has a line of data among its first characters."""
_INNER = (
    "body",
    "body_raw",
    "json",
    "message",
    "data",
    "__data__",
    "response",
    "postData",
    "content",
    "text",
)


@dataclass
class Exchange:
    """A request with its reply.

    Attributes:
        record: what wraps them; what is left of it is for ``extra``.
        request: the prompt; None when there is none.
        reply: the reply; None when there is none.
        request_kind: API of the request; empty when there is none.
        reply_kind: API of the reply.
        pieces: replies of a stream that are not joined, as Gemini's are; the first is ``reply``.
        loose: objects that stood in strings, by their key: their rest is for ``extra``, too.
    """

    record: SourceObject
    request: SourceObject | None = None
    reply: SourceObject | None = None
    request_kind: str = ""
    reply_kind: str = ""
    pieces: list[SourceObject] = field(default_factory=list)
    loose: dict[str, SourceObject] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """The API: that of the reply, which is surer, or that of the request."""
        return self.reply_kind or self.request_kind

    def read_reply(self, apis: ModelApis) -> StepDraft | None:
        """Read the reply as a turn of the model; None when there is none."""
        if self.pieces:
            return apis.contents.replies(self.pieces)
        return None if self.reply is None else apis.reply(self.reply, self.reply_kind)

    def rest(self) -> dict[str, Any]:
        """The keys that no column took of objects in strings, and of the pieces of a stream."""
        left = {key: rest for key, it in self.loose.items() if (rest := it.rest())}
        pieces = [rest for piece in self.pieces if (rest := piece.rest())]
        return left | ({"pieces": pieces} if pieces else {})


def open_exchange(record: SourceObject) -> Exchange:
    """Find the request and the reply in a record.

    Args:
        record: the record; both stay in it, so that what nobody takes of them is in its rest.
    """
    exchange = Exchange(record)
    kind = reply_kind(record.values)
    if kind:
        exchange.reply, exchange.reply_kind = record, kind
        return exchange
    for key in REPLIES:
        if _open_reply(exchange, record, key):
            break
    for key in REQUESTS:
        if _open_request(exchange, record, key):
            if exchange.kind == "chat" and _is_refused(record):
                exchange.request_kind = "anthropic"
            return exchange
    exchange.request_kind = request_kind(record.values)
    if exchange.request_kind:
        exchange.request = record
    elif exchange.reply_kind == "responses" and "input" in record:
        exchange.request, exchange.request_kind = record, "responses"
    return exchange


def _is_refused(record: SourceObject) -> bool:
    """Whether there is an error as Anthropic writes it, ``{type: error, error: {type}}``."""
    places = [record.peek(key) for key in ("response", "result")]
    places += [place.peek("body") for place in places]
    return any(it.word("type") == "error" and it.peek("error").word("type") for it in places)


def _open_reply(exchange: Exchange, outer: SourceObject, key: str, depth: int = 0) -> bool:
    """Whether the reply is under a key, or in an object there."""
    if outer.first(key) == BRACKET:
        return _open_pieces(exchange, outer, key)
    if (text := outer.word(key)) and "data:" in text[:_FIRST]:
        return _joined(exchange, outer, key, events_of(text))
    inner = _object(exchange, outer, key)
    if inner is None:
        return False
    kind = reply_kind(inner.values)
    if kind:
        exchange.reply, exchange.reply_kind = inner, kind
        return True
    return depth < len(_INNER) and any(
        _open_reply(exchange, inner, name, depth + 1) for name in _INNER if name in inner
    )


def _open_request(exchange: Exchange, outer: SourceObject, key: str, depth: int = 0) -> bool:
    inner = _object(exchange, outer, key)
    if inner is None:
        return False
    kind = request_kind(inner.values)
    if kind:
        batch = kind == "chat" and key == "params" and "custom_id" in outer
        exchange.request, exchange.request_kind = inner, "anthropic" if batch else kind
        return True
    return depth < len(_INNER) and any(
        _open_request(exchange, inner, name, depth + 1) for name in _INNER if name in inner
    )


def _open_pieces(exchange: Exchange, outer: SourceObject, key: str) -> bool:
    """A streamed reply as a list: replies of Gemini, or events."""
    items = jsontext.decode_array(outer.values[key])
    if not items or any(jsontext.first_byte(item) != BRACE for item in items):
        return False
    if all(reply_kind(jsontext.decode_object(item)) == "gemini" for item in items):
        exchange.pieces = outer.objects(key)
        exchange.reply, exchange.reply_kind = exchange.pieces[0], "gemini"
        return True
    try:
        events = [msgspec.json.decode(item) for item in items]
    except msgspec.DecodeError:
        return False
    return _joined(exchange, outer, key, events)


def _joined(
    exchange: Exchange, outer: SourceObject, key: str, events: list[dict[str, object]]
) -> bool:
    replies = join(events)
    if not replies:
        return False
    path = f"{outer.path}.{key}"
    reply = SourceObject(encoded(replies[0]), path, outer.losses)
    kind = reply_kind(reply.values)
    if not kind or len(replies) > 1:
        return False
    outer.losses.add(path, "the events of the stream are joined to the reply that they tell")
    outer.drop(key)
    exchange.reply, exchange.reply_kind = reply, kind
    exchange.loose[key] = reply
    return True


def _object(exchange: Exchange, outer: SourceObject, key: str) -> SourceObject | None:
    """The object under a key, or the one that a string there holds as JSON."""
    if inner := outer.child(key):
        return inner
    text = outer.word(key)
    if text.lstrip().startswith("{"):
        inner = embedded(text, f"{outer.path}.{key}", outer.losses)
        if inner:
            outer.losses.add(inner.path, "the layout of the JSON in the string is not kept")
            outer.drop(key)
            exchange.loose[key] = inner
            return inner
    return None


def kinds_of_record(record: Mapping[str, Raw], losses: Losses) -> tuple[str, str]:
    """The API of the request, and of the reply, in a record that is sniffed."""
    source = SourceObject(None, "$", losses)
    source.values = dict(record)
    try:
        exchange = open_exchange(source)
    except (msgspec.DecodeError, RecursionError):
        return "", ""
    return exchange.request_kind, exchange.reply_kind
