"""Tools that ask an HTTP server, from a configuration.

    {"name": "stock", "type": "api", "url": "https://api.example.com/stock/{symbol}",
     "method": "GET", "headers": {"Authorization": "Bearer ${STOCK_TOKEN}"}, "parameters": {...}}

``{symbol}`` in the path or the query is an argument, quoted so that it cannot be more than one part
of the path. Arguments that the address does not name go to the query (GET) or are the JSON body
(POST). ``${STOCK_TOKEN}`` in a header is an environment variable; its value is taken out of what
the agent reads. The host is fixed: redirects to another one are not followed, proxies of the
environment are not used.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, TypeVar
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

import httpx2
from pydantic import Field

from adp.core.json_values import json_or_none
from adp.rollouts.environments.configured_command import PLACE, ToolEntry, word_of
from adp.rollouts.environments.variables import expanded, variables_of
from adp.rollouts.tools import LONGEST_REASON, ToolError
from adp.rollouts.turns import ErrorType, Result
from adp_schema.errors import UsageError

_T = TypeVar("_T")

MOST_REDIRECTS = 3
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_STATUS = {
    400: ErrorType.INVALID_ARGS,
    408: ErrorType.TIMEOUT,
    422: ErrorType.INVALID_ARGS,
    429: ErrorType.LIMIT,
    504: ErrorType.TIMEOUT,
}
_SHORTEST_SECRET = 4
"""Characters from which on the value of a variable is taken out of what the agent reads."""


class ApiEntry(ToolEntry):
    """A tool that asks an HTTP server."""

    type: Literal["api"]
    url: str
    """Address; {name} in its path or query is an argument."""
    method: Literal["GET", "POST"] = "POST"
    """GET or POST."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Headers; ${NAME} is an environment variable."""
    timeout: float = Field(default=30.0, gt=0)
    """Seconds that a call may take."""
    longest: int = Field(default=100_000, ge=1)
    """Bytes that an answer may have."""

    def check(self) -> None:
        """Check the address and the headers.

        Raises:
            UsageError: the address is none of HTTP, its host is not fixed, it names an argument
                that the tool does not have, or an environment variable is not set.
        """
        try:
            parts = urlsplit(self.url)
            bad = parts.scheme not in ("http", "https") or not parts.hostname
        except ValueError:
            bad = True
        if bad or PLACE.search(parts.netloc) or PLACE.search(parts.fragment):
            raise UsageError(
                f"the tool '{self.name}' needs a url that begins with http:// or https:// and a "
                "host; arguments may stand in its path and its query"
            )
        unknown = sorted(set(PLACE.findall(self.url)) - self.known)
        if unknown:
            raise UsageError(
                f"the url of the tool '{self.name}' names '{unknown[0]}', no parameter"
            )
        for value in self.headers.values():
            expanded(value)

    def run(self, **arguments: Any) -> Result:
        """Ask the server.

        Raises:
            ToolError: it cannot be asked like this, it refuses, fails or takes too long.
        """
        url, body = self.address(arguments)
        headers = {name: expanded(value) for name, value in self.headers.items()}
        # What is not packed cannot grow when it is unpacked.
        headers["Accept-Encoding"] = "identity"
        try:
            status, text = _alone(self._asked(url, body, headers))
        except (httpx2.TimeoutException, TimeoutError):
            raise ToolError("the server took too long", ErrorType.TIMEOUT) from None
        except httpx2.InvalidURL as error:
            raise ToolError(f"this is no address: {error}", ErrorType.INVALID_ARGS) from None
        except httpx2.HTTPError as error:
            reason = self._quiet(str(error))[:LONGEST_REASON]
            raise ToolError(f"the server cannot be asked: {reason}") from None
        text = self._quiet(text)
        if status >= 400:
            kind = _STATUS.get(status, ErrorType.EXECUTION)
            raise ToolError(f"HTTP {status}: {text[:LONGEST_REASON]}", kind)
        return Result(text=text, structured=json_or_none(text))

    def address(self, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any] | None]:
        """The address of a call, and its JSON body; None without one.

        Raises:
            ToolError: an argument would be ``.`` or ``..`` in the path.
        """
        named = set(PLACE.findall(self.url))
        for name in named:
            if word_of(arguments.get(name)) in (".", ".."):
                raise ToolError(f"'{name}' must not be . or ..", ErrorType.INVALID_ARGS)
        parts = urlsplit(
            PLACE.sub(lambda item: quote(word_of(arguments.get(item[1])), safe=""), self.url)
        )
        rest = {name: value for name, value in arguments.items() if name not in named}
        if self.method == "POST":
            return parts.geturl(), rest
        words = {
            name: [word_of(item) for item in value] if isinstance(value, list) else word_of(value)
            for name, value in rest.items()
        }
        query = "&".join(filter(None, (parts.query, urlencode(words, doseq=True))))
        return urlunsplit(parts._replace(query=query)), None

    async def _asked(
        self, url: str, body: Mapping[str, Any] | None, headers: Mapping[str, str]
    ) -> tuple[int, str]:
        """Status and text of the answer.

        The time of the client holds for each part that arrives; a server that sends its headers
        byte by byte would never be late. So the time of all is limited, too.
        """
        method: str = self.method
        async with (
            asyncio.timeout(self.timeout),
            httpx2.AsyncClient(
                timeout=self.timeout, trust_env=False, verify=_certificates()
            ) as client,
        ):
            for _ in range(MOST_REDIRECTS + 1):
                sent: dict[str, Any] = {"json": body} if method == "POST" else {}
                async with client.stream(method, url, headers=headers, **sent) as response:
                    where = response.headers.get("location")
                    if response.status_code not in _REDIRECTS or where is None:
                        return response.status_code, await self._read(response)
                    target = response.url.join(where)
                    if _origin(target) != _origin(response.url):
                        raise ToolError(
                            "the server redirects to another host, which is not followed"
                        )
                    if response.status_code not in (307, 308):
                        method = "GET"
                    url = str(target)
        raise ToolError("the server redirects again and again")

    async def _read(self, response: Any) -> str:
        data = bytearray()
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise ToolError("the server packs its answer, though it was asked not to")
        async for chunk in response.aiter_raw():
            data += chunk
            if len(data) > self.longest:
                raise ToolError(f"the answer has more than {self.longest:,} bytes", ErrorType.LIMIT)
        try:
            return data.decode(response.charset_encoding or "utf-8", "replace")
        except LookupError:
            return data.decode("utf-8", "replace")

    def _quiet(self, text: str) -> str:
        """A text without the values of the variables that the headers name."""
        for header in self.headers.values():
            for name in variables_of(header):
                value = expanded(f"${{{name}}}")
                if len(value) >= _SHORTEST_SECRET:
                    text = text.replace(value, f"[{name}]")
        return text


def _alone(work: Coroutine[Any, Any, _T]) -> _T:
    """The result of a coroutine, from a loop that it has for itself."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(lambda: _alone(work)).result()
    # asyncio.run would wait at its end for a name that the system still looks up.
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(work)
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


@functools.cache
def _certificates() -> Any:
    """The certificates that are trusted; reading them takes long."""
    return httpx2.create_ssl_context()


def _origin(url: Any) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port
