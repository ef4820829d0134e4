"""Patience with a server: making calls again when that may help, and waiting as it asks."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

TRIES = 5
"""How often a call is made before it counts as failed."""

CONNECT_TRIES = 3
"""How often, when there is no connection at all: most often it is just not there."""

FIRST_WAIT, LONGEST_WAIT, LONGEST_ASKED = 1.0, 30.0, 300.0
"""Seconds between tries: the first time, at most, and at most when the server asks for more."""

_TRANSIENT = frozenset({408, 429, 500, 502, 503, 504})
_NETWORK = frozenset({"httpx", "httpx2", "httpcore", "requests", "urllib3"})

Result = TypeVar("Result")


def retried(call: Callable[[], Result]) -> Result:
    """Make a call again when the server is busy or the connection fails, `TRIES` times at most."""
    for attempt in range(1, TRIES):
        try:
            return call()
        except Exception as error:
            if not transient(error) or (attempt >= CONNECT_TRIES and _is_unconnected(error)):
                raise
            wait(error, attempt)
    return call()


def wait(error: BaseException, attempt: int) -> None:
    """Wait before the next try.

    Args:
        error: why the last one failed.
        attempt: how many have failed.
    """
    time.sleep(pause(error, attempt))


def transient(error: BaseException) -> bool:
    """Whether an error may be gone when the call is made again."""
    for item in chain(error):
        if type(item).__name__ == "OfflineModeIsEnabled":
            return False
        status = _status(item)
        if status is not None:
            return status in _TRANSIENT
        if is_network(item) or isinstance(item, json.JSONDecodeError):
            return True
        if isinstance(item, OSError) and "Consistency check failed" in str(item):
            return True
    return False


def pause(error: BaseException, attempt: int) -> float:
    """Seconds to wait before the next try: what the server asks for, else twice as long each time.

    Args:
        error: why the last one failed.
        attempt: how many have failed.
    """
    for item in chain(error):
        headers = getattr(getattr(item, "response", None), "headers", None)
        if headers is None:
            continue
        asked = [headers.get("retry-after", "").strip()]
        asked += re.findall(r"\br=0\s*;\s*t=(\d+)", headers.get("ratelimit", ""))
        seconds = [float(text) for text in asked if text.isdigit()]
        if seconds:
            return min(max(seconds) + 1, LONGEST_ASKED)
    return min(FIRST_WAIT * 2.0 ** (attempt - 1), LONGEST_WAIT)


def status_of(error: BaseException) -> int | None:
    """The HTTP status that an error is about."""
    return next((status for item in chain(error) if (status := _status(item)) is not None), None)


def _status(error: BaseException) -> int | None:
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status is None and isinstance(error, ConnectionError):
        # hf_xet has no errors of its own: the status stands in the text.
        match = re.search(r"HTTP status (?:client|server) error \((\d{3})", str(error))
        status = match[1] if match else None
    return None if status is None else int(status)


def chain(error: BaseException) -> Iterator[BaseException]:
    """An error and what caused it: huggingface_hub wraps what fails in its threads."""
    known: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in known:
        known.add(id(at))
        yield at
        at = at.__cause__


def _is_unconnected(error: BaseException) -> bool:
    return any(type(item).__name__ == "ConnectError" for item in chain(error))


def is_network(error: BaseException) -> bool:
    """Whether an error is about the connection."""
    module = type(error).__module__.split(".")[0]
    return module in _NETWORK or isinstance(error, ConnectionError | TimeoutError)
