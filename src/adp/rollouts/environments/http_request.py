"""Asking an HTTP server on behalf of an agent: limited in time and size, and on one host alone.

Redirects to another host are not followed, proxies of the environment are not used, and what is
packed is not taken, for it could grow when it is unpacked.
"""

from __future__ import annotations

import asyncio
import functools
import socket
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx2

from adp.rollouts.tools import LONGEST_REASON, ToolError
from adp.rollouts.turns import ErrorType

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

AddressCheck = Callable[[str, str], None]
"""Host and one of its IP addresses; raises when that address must not be asked."""


class ServerUnreachableError(ToolError):
    """The server cannot be reached, or breaks off: no fault of what it is asked."""


@dataclass(frozen=True)
class HttpRequest:
    """What is asked.

    Attributes:
        method: such as ``GET``.
        url: the address.
        headers: the headers.
        content: bytes of the body; None: there is none.
    """

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None


@dataclass(frozen=True)
class HttpAnswer:
    """What came back.

    Attributes:
        status: the status.
        headers: the headers, their names in lower case.
        data: bytes of the body.
        charset: the encoding that the server names.
    """

    status: int
    headers: Mapping[str, str]
    data: bytes
    charset: str | None = None

    @property
    def text(self) -> str:
        """The body as a text; what cannot be decoded is replaced."""
        try:
            return self.data.decode(self.charset or "utf-8", "replace")
        except LookupError:
            return self.data.decode("utf-8", "replace")


def refusal(status: int, text: str) -> ToolError:
    """The error that a status of 400 or more is."""
    kind = _STATUS.get(status, ErrorType.EXECUTION)
    return ToolError(f"HTTP {status}: {text[:LONGEST_REASON]}", kind)


def ask(
    request: HttpRequest,
    *,
    timeout: float,
    longest: int,
    quiet: Callable[[str], str] = str,
    check: AddressCheck | None = None,
) -> HttpAnswer:
    """Ask a server.

    Args:
        request: what is asked.
        timeout: seconds that all of it may take.
        longest: bytes that the answer may have.
        quiet: takes secrets out of a text.
        check: looks at each address of the host before it is connected to; the connection then goes
            to that address, so that the name cannot lead to another one. None: any.

    Raises:
        ToolError: the server cannot be asked like this, fails, or takes too long.
    """
    # What is not packed cannot grow when it is unpacked.
    headers = {**request.headers, "Accept-Encoding": "identity"}
    try:
        return _alone(_asked(request, headers, timeout, longest, check))
    except (httpx2.TimeoutException, TimeoutError):
        raise ToolError("the server took too long", ErrorType.TIMEOUT) from None
    except httpx2.InvalidURL as error:
        reason = quiet(str(error))
        raise ToolError(f"this is no address: {reason}", ErrorType.INVALID_ARGS) from None
    except (httpx2.HTTPError, OSError) as error:
        reason = quiet(str(error))[:LONGEST_REASON]
        raise ServerUnreachableError(f"the server cannot be asked: {reason}") from None


async def _asked(
    request: HttpRequest,
    headers: Mapping[str, str],
    timeout: float,
    longest: int,
    check: AddressCheck | None,
) -> HttpAnswer:
    """The answer.

    The time of the client holds for each part that arrives; a server that sends its headers byte
    by byte would never be late. So the time of all is limited, too.
    """
    method, content = request.method, request.content
    url = httpx2.URL(request.url)
    async with (
        asyncio.timeout(timeout),
        httpx2.AsyncClient(timeout=timeout, trust_env=False, verify=_certificates()) as client,
    ):
        address = await _address(url, check) if check is not None else None
        for _ in range(MOST_REDIRECTS + 1):
            options: dict[str, Any] = {"headers": dict(headers), "content": content}
            place = url
            if address is not None:
                options["headers"]["Host"] = url.netloc.decode("ascii")
                options["extensions"] = {"sni_hostname": url.host}
                place = url.copy_with(host=address)
            async with client.stream(method, place, **options) as response:
                where = response.headers.get("location")
                if response.status_code not in _REDIRECTS or where is None:
                    return await _read(response, longest)
                target = url.join(where)
                if _origin(target) != _origin(url):
                    raise ToolError("the server redirects to another host, which is not followed")
                if response.status_code not in (307, 308):
                    method, content = "GET", None
                    headers = {k: v for k, v in headers.items() if k.lower() != "content-type"}
                url = target
    raise ToolError("the server redirects again and again")


async def _read(response: Any, longest: int) -> HttpAnswer:
    data = bytearray()
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise ToolError("the server packs its answer, though it was asked not to")
    async for chunk in response.aiter_raw():
        data += chunk
        if len(data) > longest:
            raise ToolError(f"the answer has more than {longest:,} bytes", ErrorType.LIMIT)
    named = {name.lower(): value for name, value in response.headers.items()}
    return HttpAnswer(response.status_code, named, bytes(data), response.charset_encoding)


async def _address(url: httpx2.URL, check: AddressCheck) -> str:
    """The address of the host that is connected to: the first, but one of IPv4 where there is one.

    Raises:
        OSError: the name leads nowhere.
    """
    loop = asyncio.get_running_loop()
    infos = await loop.getaddrinfo(url.host, url.port or 0, type=socket.SOCK_STREAM)
    entries = sorted(infos, key=lambda entry: entry[0] != socket.AF_INET)
    for entry in entries:
        check(url.host, str(entry[4][0]))
    return str(entries[0][4][0])


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
