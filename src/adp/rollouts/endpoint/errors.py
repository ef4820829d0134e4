"""What may go wrong with a chat endpoint, and whose fault it is.

the caller's     UsageError: a wrong key, URL, model or option; every request would meet it
the server's     EndpointError: no answer could be had, after retries
the model's      FormatError: it wrote what the server cannot read
                 ContextError: the conversation is longer than it can take
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from adp.rollouts.policy import InfrastructureError
from adp_schema.errors import AdpError, UsageError


class EndpointError(InfrastructureError):
    """No answer could be had from an endpoint.

    Args:
        kind: what failed, in a word: ``http_500``, ``rate_limit``, ``timeout``, ``connection``,
            ``cut_answer``, ``bad_answer``, ``too_large``.
        message: one sentence.
    """


class FormatError(AdpError):
    """The server could not read what the model wrote, twice in the same way."""


class ContextError(AdpError):
    """The conversation is longer than the model can take."""


class FailedTry(Exception):
    """One try that failed and may go well when it is made again.

    Args:
        kind: what failed, see `EndpointError`.
        reason: in a few words.
        wait: seconds that the server asks to wait; None when it does not.
    """

    def __init__(self, kind: str, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.kind, self.reason, self.wait = kind, reason, wait

    def equals(self, other: FailedTry | None) -> bool:
        """Whether another try failed in the same way."""
        return other is not None and (self.kind, self.reason) == (other.kind, other.reason)


_CONTEXT = re.compile(
    r"context.{0,20}(?:length|window|size|limit)|(?:prompt|input|conversation)\b.{0,40}too long"
    r"|too many (?:input )?tokens|exceed_context_size|max_model_len"
    r"|maximum (?:input )?(?:sequence |prompt )?length",
    re.IGNORECASE | re.DOTALL,
)
_QUOTA = re.compile(r"insufficient_quota|exceeded your current quota|billing", re.IGNORECASE)
_MODEL = re.compile(r"\bmodel\b|model_not_found", re.IGNORECASE)
_WAYS_OUT = {
    "max_completion_tokens": "set max_tokens_field=max_completion_tokens",
    "tool choice": "start the server with its parser of tool calls, or set tools_in=text",
    "support tools": "set tools_in=text",
}
"""What a server says of a request that it does not take -> the setting that helps."""

ADVICE = {
    "connection": "start the server, or set base_url to where it is",
    "rate_limit": "set a lower concurrency, or a higher retries, retry_seconds and longest_wait",
    "timeout": "set a higher timeout, or a lower concurrency",
    "bad_answer": "check that base_url is that of a chat API; it mostly ends in /v1",
}
"""Kind of a failure that stayed -> the setting that helps."""

_TRANSIENT = frozenset({408, 409, 425, 429})
_LONGEST_REASON = 300


def check_status(status: int, headers: Mapping[str, str], body: bytes, place: str) -> None:
    """Raise what an answer with an error stands for; return when it is none.

    Args:
        status: HTTP status.
        headers: of the answer; names in small letters.
        body: of the answer.
        place: the URL, for messages.

    Raises:
        Failure: another try may help.
        ContextError: the conversation is too long.
        UsageError: the call is wrong.
    """
    if 200 <= status < 300:
        return
    reason = reason_of(body)
    message = f"{place} answers HTTP {status}" + (f": {reason}" if reason else "")
    if status in (400, 413, 422) and _CONTEXT.search(reason):
        raise ContextError(message)
    if status == 429 and _QUOTA.search(reason):
        raise UsageError(f"{message}; the quota of this account is used up")
    if status in _TRANSIENT or status >= 500:
        kind = "rate_limit" if status == 429 else f"http_{status}"
        raise FailedTry(kind, f"HTTP {status}" + (f": {reason}" if reason else ""), asked(headers))
    if status in (401, 403):
        raise KeyRefusedError(message)
    if status == 404 and _MODEL.search(reason):
        raise UsageError(f"{message}; set model to one that this server has: GET base_url/models")
    if status in (404, 405):
        raise UsageError(f"{message}; check base_url: it mostly ends in /v1, and model")
    if 300 <= status < 400:
        raise UsageError(
            f"{message}, a redirect to {headers.get('location', '?')}; set base_url to it"
        )
    way_out = next((f": {do}" for words, do in _WAYS_OUT.items() if words in reason), "")
    raise BadRequestError(f"{message}; the server does not take this request{way_out}")


class KeyRefusedError(UsageError):
    """The server wants a key, another key, or one that may do more."""


class BadRequestError(UsageError):
    """The server refuses this request; others may be taken."""


def reason_of(body: bytes) -> str:
    """What a server says is wrong: the message of its error, or the beginning of its answer."""
    text = body[:20_000].decode("utf-8", "replace")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return _short(re.sub(r"<[^>]*>", " ", text))
    return _short(_message(value) or text)


def error_in(body: Any) -> tuple[int | None, str] | None:
    """The error that an answer holds though its status says that all is well.

    An answer with choices is none, whatever stands beside them, unless they say so themselves.

    Returns:
        Its code, when it is that of an error in HTTP, and its message; None when there is none.
    """
    error = body.get("error") if isinstance(body, dict) else None
    if not error or _answers(body.get("choices")):
        return None
    code = error.get("code") if isinstance(error, dict) else None
    known = isinstance(code, int) and 300 <= code < 600
    return (code if known else None), _short(_message(body) or str(error))


def _answers(choices: Any) -> bool:
    listed = choices if isinstance(choices, list) else []
    ended = [choice.get("finish_reason") for choice in listed if isinstance(choice, dict)]
    return bool(ended) and "error" not in ended


def _message(value: Any) -> str:
    """The words of an error in one of the usual shapes, its code with them."""
    if not isinstance(value, dict):
        return value if isinstance(value, str) else ""
    error = value.get("error", value)
    if isinstance(error, str):
        return error
    if not isinstance(error, dict):
        return ""
    words = [error.get(key) for key in ("code", "type", "message", "detail")]
    named = [word if isinstance(word, str) else json.dumps(word) for word in words if word]
    return " ".join(named)


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _LONGEST_REASON else words[: _LONGEST_REASON - 3] + "..."


def asked(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds that a server asks to wait (RFC 9110, 10.2.3: seconds or a date; retry-after-ms)."""
    try:
        return max(0.0, float(headers["retry-after-ms"]) / 1000)
    except (KeyError, ValueError):
        pass
    text = headers.get("retry-after", "").strip()
    try:
        seconds = float(text)
    except ValueError:
        try:
            date = parsedate_to_datetime(text)
        except (ValueError, TypeError):
            return None
        if date.tzinfo is None:
            date = date.replace(tzinfo=UTC)
        seconds = (date - (now or datetime.now(UTC))).total_seconds()
    return max(0.0, seconds) if seconds == seconds else None
