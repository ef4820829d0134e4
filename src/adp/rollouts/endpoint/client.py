"""A client of OpenAI-compatible chat endpoints: pooled, patient, and clear about whose fault it is.

    endpoint = Endpoint(EndpointSettings(base_url="http://localhost:8000/v1"))
    body = (await endpoint.chat({"model": ..., "messages": [...]}, seed=7)).body
    await endpoint.close()

Tries are made again after a rate limit, a server error, a lost connection, a timeout and an answer
that is cut or no JSON: with exponential backoff and full jitter (Brooker 2015, "Exponential Backoff
and Jitter"), as long as the server asks, and never beyond a number of tries and a time. Two equal
answers with HTTP 500 to one request may mean that the server cannot read what the model wrote: its
parser of tool calls raised. Asking further would not end (transformers serve, llama.cpp). They mean
this only where the server works: it has answered before, and has not said the same in another
conversation. Else it is the server that is broken.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx2

from adp.rendering.arguments import whole_text
from adp.rollouts.endpoint.errors import (
    ADVICE,
    BadRequestError,
    ContextError,
    EndpointError,
    FailedTry,
    FormatError,
    KeyRefusedError,
    check_status,
    error_in,
)
from adp.rollouts.endpoint.masking import SecretMask, secret_headers, secret_parameters
from adp.rollouts.endpoint.secret_names import secrets_in
from adp.rollouts.endpoint.settings import EndpointSettings
from adp.rollouts.endpoint.stream import StreamedAnswer
from adp_schema.errors import UsageError
from adp_schema.ids import digest

LARGEST = 64 << 20
"""Bytes of an answer."""

_REFUSED_WORDS = 40
_MOST_ERRORS = 1_000
"""Errors that are remembered, with the conversation that met them."""
_SEVERAL = ""
"""Stands for the conversation of an error that more than one met."""


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer.

    Attributes:
        body: its JSON object, with at least one choice that has a message.
        tries: how often the request was made.
    """

    body: dict[str, Any]
    tries: int


class Endpoint:
    """A chat endpoint.

    Args:
        settings: where it is. The key, and the values of headers, are in no error.
        body: members of each request; what is a secret among them is told nowhere.
        sleep: waits for some seconds; tests give another one.

    Raises:
        UsageError: the URL or the key cannot be used, or the environment does not hold what is
            named.
    """

    def __init__(
        self,
        settings: EndpointSettings,
        body: Mapping[str, Any] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.settings = settings
        self._key, self._headers = settings.key(), settings.sent_headers()
        self._url, self._place = _checked(settings.base_url, self._headers)
        secrets = [
            self._key,
            *(self._headers[name] for name, value in settings.headers.items() if value[:1] == "$"),
            *secrets_in(body or {}),
            *secret_parameters(settings.base_url),
            *secret_headers(self._headers),
        ]
        # A header like "x-user: anna" is hidden where a server complains, not in what a model says.
        self._secrets = SecretMask(secrets)
        self._sent = SecretMask([*secrets, *self._headers.values()])
        self._sleep = sleep
        self._client: httpx2.AsyncClient | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._slots = asyncio.Semaphore(settings.concurrency)
        self._answered = False
        self._errors: dict[str, str] = {}  # what the server said -> in which conversation first

    async def chat(self, request: Mapping[str, Any], seed: int = 0) -> Reply:
        """Ask for an answer.

        Args:
            request: the body of the request; with ``stream`` the pieces are put together.
            seed: of the waits' jitter.

        Raises:
            EndpointError: no answer could be had.
            FormatError: the server cannot read what the model wrote.
            ContextError: the conversation is too long.
            UsageError: the key, the URL, the model or an option is wrong.
        """
        content = whole_text(json.dumps(request, ensure_ascii=False)).encode("utf-8")
        self._connected()
        draw = random.Random(seed)
        end = time.monotonic() + self.settings.retry_seconds
        before: FailedTry | None = None
        tries = 0
        while True:
            tries += 1
            try:
                body = await self._try(content, end)
            except FailedTry as failure:
                if self._is_unreadable(failure, before, request):
                    raise FormatError(self._clean(f"twice {failure.reason}")) from None
                await self._patience(failure, tries, end, draw)
                before = failure
            except BadRequestError as error:
                if self._answered:
                    text = self._clean(str(error)).replace(self._place, "the endpoint")
                    raise EndpointError("bad_request", text) from None
                raise UsageError(self._clean(str(error))) from None
            except KeyRefusedError as error:
                raise UsageError(self._clean(f"{error}; {self._key_advice()}")) from None
            except (UsageError, ContextError) as error:
                raise type(error)(self._clean(str(error))) from None
            else:
                self._answered = True
                return Reply(body, tries)

    def _is_unreadable(
        self, failure: FailedTry, before: FailedTry | None, request: Mapping[str, Any]
    ) -> bool:
        """Whether the server works, but cannot read what the model wrote."""
        if failure.kind != "http_500":
            return False
        if len(self._errors) >= _MOST_ERRORS:
            del self._errors[next(iter(self._errors))]
        where = _conversation(request)
        alone = self._errors.setdefault(failure.reason, where) == where
        if not alone:  # from now on for the first conversation as well
            self._errors[failure.reason] = _SEVERAL
        return alone and self._answered and failure.equals(before)

    def _key_advice(self) -> str:
        """What to do when the server refuses the key, or that there is none."""
        if self._key is not None:
            name = self.settings.api_key_env
            return f"put a key into {name} that may use this model, or name another as api_key_env"
        if any(header.lower() in ("authorization", "api-key") for header in self._headers):
            return "check the key in the setting headers"
        return "no key was sent: name the environment variable that holds it as api_key_env"

    async def close(self) -> None:
        """Close the connections. It may be called twice."""
        client, self._client = self._client, None
        if client is not None and self._loop is asyncio.get_running_loop():
            await client.aclose()

    async def _patience(
        self, failure: FailedTry, tries: int, end: float, draw: random.Random
    ) -> None:
        """Wait before the next try.

        Raises:
            EndpointError: there is no next try.
        """
        options = self.settings
        longest = min(options.longest_wait, options.first_wait * 2.0 ** min(tries - 1, 60))
        wait = draw.uniform(0, longest)
        if failure.wait is not None:
            wait = min(failure.wait, options.longest_wait) + draw.uniform(0, options.first_wait)
        if tries > options.retries or time.monotonic() + wait >= end:
            times = "once" if tries == 1 else f"{tries} times"
            # Without the URL: the message is kept with the trajectory, which may be published.
            reason = f"the endpoint failed {times}, the last time with {failure.reason}"
            if failure.kind in ADVICE:
                reason += f"; {ADVICE[failure.kind]}"
            raise EndpointError(failure.kind, self._clean(reason)) from None
        await self._sleep(wait)

    async def _try(self, content: bytes, end: float) -> dict[str, Any]:
        """Make the request once.

        Raises:
            Failure: another try may help.
        """
        async with self._slots:
            try:
                left = min(self.settings.timeout, end - time.monotonic())
                async with asyncio.timeout(left):
                    return await self._ask(content)
            except (TimeoutError, httpx2.TimeoutException):
                raise FailedTry("timeout", f"no answer in {self.settings.timeout:g} s") from None
            except (
                httpx2.UnsupportedProtocol,
                httpx2.InvalidURL,
                httpx2.LocalProtocolError,
            ) as bad:
                raise UsageError(f"{self._place} cannot be asked: {bad}") from None
            except (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.DecodingError) as error:
                raise FailedTry(
                    "cut_answer", f"an answer that was cut: {_reason_of(error)}"
                ) from None
            except httpx2.TransportError as error:
                raise FailedTry("connection", f"no connection: {_reason_of(error)}") from None

    async def _ask(self, content: bytes) -> dict[str, Any]:
        client = self._connected()
        async with client.stream("POST", self._url, content=content) as answer:
            headers = {key.lower(): value for key, value in answer.headers.items()}
            streamed = headers.get("content-type", "").startswith("text/event-stream")
            if not streamed or answer.status_code >= 300:
                body = await self._read(answer)
                cleaned = self._sent.data(body)
                check_status(answer.status_code, headers, cleaned, self._place)
                body = body if b'"choices"' in body else cleaned
                return self._without_secrets(checked_body(body, self._place))
            pieces = StreamedAnswer(self._place)
            size = 0
            async for line in answer.aiter_lines():
                size += len(line)
                self._check_size(size)
                pieces.line(line)
                if pieces.done:
                    break
            return self._without_secrets(checked(pieces.body()))

    async def _read(self, answer: httpx2.Response) -> bytes:
        parts: list[bytes] = []
        size = 0
        async for part in answer.aiter_bytes():
            size += len(part)
            self._check_size(size)
            parts.append(part)
        return b"".join(parts)

    def _check_size(self, size: int) -> None:
        if size > LARGEST:
            raise FailedTry("too_large", f"an answer of more than {LARGEST} bytes")

    def _connected(self) -> httpx2.AsyncClient:
        """The client of this event loop: connections do not outlive a loop."""
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            options = self.settings
            headers = {"content-type": "application/json", **self._headers}
            if self._key is not None:
                headers["authorization"] = f"Bearer {self._key}"
            self._client = httpx2.AsyncClient(
                headers=headers,
                timeout=httpx2.Timeout(None, connect=min(30.0, options.timeout)),
                limits=httpx2.Limits(
                    max_connections=options.concurrency,
                    max_keepalive_connections=options.concurrency,
                ),
            )
            self._loop = loop
            self._slots = asyncio.Semaphore(options.concurrency)
        return self._client

    def _clean(self, text: str) -> str:
        """A message without what was sent; servers repeat it when it is wrong."""
        return self._sent.text(text)

    def _without_secrets(self, body: dict[str, Any]) -> dict[str, Any]:
        try:
            value: dict[str, Any] = self._secrets.value(body)
        except RecursionError:
            raise FailedTry("bad_answer", "an answer that is nested too deeply") from None
        return value


def checked_body(body: bytes, place: str = "") -> dict[str, Any]:
    """Read the body of an answer.

    Raises:
        Failure: it is no answer of a chat.
    """
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        start = body[:_REFUSED_WORDS].decode("utf-8", "replace")
        text = f"an answer that is no JSON ({error}): {start!r}"
        raise FailedTry("bad_answer", text) from None
    fault = error_in(value)
    if fault is not None:
        check_status(fault[0] or 500, {}, body, place)
    return checked(value)


def checked(value: Any) -> dict[str, Any]:
    """Check that there is a choice with a message.

    Raises:
        Failure: there is none.
    """
    choices = value.get("choices") if isinstance(value, dict) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(first, dict) or not isinstance(first.get("message"), dict):
        raise FailedTry("bad_answer", "an answer without a message")
    if first.get("finish_reason") == "error":
        raise FailedTry("bad_answer", "an answer that says that it ended with an error")
    body: dict[str, Any] = value
    return body


def _checked(base_url: str, headers: Mapping[str, str]) -> tuple[str, str]:
    """The URL that is asked, and what to call it in messages: without parameters."""
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"base_url '{base_url}' is no URL; it is like http://host:8000/v1")
    if parts.username or parts.password:
        raise UsageError("base_url holds a password; put the key into an environment variable")
    for name, value in headers.items():
        # HTTP clients refuse them with a message that shows them.
        if not (value.isascii() and value.isprintable()) or not name.isascii():
            raise UsageError(f"the header {name!r} is not plain ASCII; servers do not take it")
    path = parts.path.rstrip("/") + "/chat/completions"
    bare = parts._replace(path=path, query="", fragment="")
    return urlunsplit(bare._replace(query=parts.query)), urlunsplit(bare)


def _conversation(request: Mapping[str, Any]) -> str:
    """What the requests of a conversation have in common: all before the first answer."""
    opening = []
    for message in request.get("messages") or ():
        if message.get("role") not in ("system", "developer", "user"):
            break
        opening.append(message)
    return digest(json.dumps(opening).encode())


def _reason_of(error: Exception) -> str:
    return str(error) or type(error).__name__
