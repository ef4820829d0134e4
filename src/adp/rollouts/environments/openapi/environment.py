"""The environment ``openapi``: the operations of an OpenAPI file as tools that ask its server.

    openapi:file=pets.yaml,server=http://127.0.0.1:8000
    openapi:file=geo.json,hosts=[api.example.com],auth_env={key: GEO_KEY},record=answers/

settings.py    what may be set
document.py    the file, its limits, and ``$ref``
schemas.py     its schemas as JSON Schema
parameters.py  parameters of paths, queries, headers and cookies
body.py        bodies
operations.py  the operations, and what is wrong with them
request.py     from arguments to a request
access.py      hosts and credentials
offer.py       which operations are offered
recordings.py  recorded answers
"""

from __future__ import annotations

import functools
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from adp.core.json_values import json_or_none
from adp.rollouts.endpoint.errors import asked
from adp.rollouts.environment import CannotForkError, EnvironmentKind, Start
from adp.rollouts.environments.http_request import (
    HttpAnswer,
    HttpRequest,
    ServerUnreachableError,
    ask,
    refusal,
)
from adp.rollouts.environments.openapi.access import Credentials
from adp.rollouts.environments.openapi.offer import OfferedOperation, left_out, offer_of
from adp.rollouts.environments.openapi.recordings import ApiHistory, Recordings, as_result
from adp.rollouts.environments.openapi.request import parts_of
from adp.rollouts.environments.openapi.settings import OpenApiSettings
from adp.rollouts.policy import InfrastructureError
from adp.rollouts.tool_environment import ToolEnvironment
from adp.rollouts.tools import FunctionTool
from adp.rollouts.turns import Result
from adp_schema.errors import UsageError
from adp_schema.model import Task

_FIRST_WAIT = 0.5
_IDEMPOTENT = frozenset({"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"})
_BINARY = ("image/", "audio/", "video/", "font/", "application/octet-stream", "application/pdf",
           "application/zip", "application/gzip")  # fmt: skip


@dataclass(frozen=True)
class _EpisodeTool(FunctionTool):
    """A tool of one episode; its arguments are checked by the tool that all episodes share."""

    shared: FunctionTool | None = None

    def wrong(self, arguments: Mapping[str, Any]) -> str | None:
        """What is wrong with arguments; None when they fit."""
        return self.shared.wrong(arguments) if self.shared else super().wrong(arguments)


class OpenApiEnvironment(ToolEnvironment):
    """The operations of an OpenAPI file as tools.

    Args:
        settings: the file, and what may be asked.

    Raises:
        InputError: the file or the recorded answers cannot be read.
        UsageError: the file is no OpenAPI; with ``strict``, an operation is wrong; a name or a
            variable is not there.
    """

    blocking = True

    def __init__(self, settings: OpenApiSettings) -> None:
        self._settings = settings
        self._offer = offer = offer_of(settings)
        is_live = settings.replay is None
        self._credentials = Credentials(offer.schemes, settings.auth_env, is_live)
        self._check = offer.hosts.check()
        self._history = ApiHistory()
        folder = settings.replay or settings.record
        self._recordings = None if folder is None else Recordings(folder, is_replay=not is_live)
        super().__init__()
        self.functions = {item.tool.name: self._tool(item) for item in offer.tools}

    def _tool(self, item: OfferedOperation) -> FunctionTool:
        shared = item.tool
        about = (shared.name, shared.description, shared.parameters)
        run = functools.partial(self._called, item)
        return _EpisodeTool(*about, run=run, read_only=shared.read_only, shared=shared)

    def reset(self, task: Task | None = None, *, seed: int | None = None) -> Start:
        """Begin an episode with the instruction of the task.

        Raises:
            UsageError: there is no task with an instruction, or no operation can be called.
        """
        offer = self._offer
        if not offer.tools:
            reasons = Counter(item.reason for item in offer.left_out).most_common(3)
            why = "; ".join(f"{count} x {reason}" for reason, count in reasons)
            raise UsageError(
                f"{self._settings.file}: none of its {offer.total} operations can be called: {why}"
            )
        start = super().reset(task, seed=seed)
        self._history = ApiHistory()
        counts = {
            "operations": offer.total,
            "tools": len(offer.tools),
            "left_out": len(offer.left_out),
        }
        return Start(start.messages, {**start.info, "openapi": counts}, start.policies)

    def fork(self) -> Self:
        """A copy with the same history.

        Raises:
            CannotForkError: what it has changed on the server cannot be copied.
        """
        settings = self._settings
        if settings.allow_writes and settings.replay is None:
            raise CannotForkError("the state of a server that is written to cannot be copied")
        other = type(self)(settings)
        other.task, other.seed, other.answer = self.task, self.seed, self.answer
        other._history = self._history.copy()
        return other

    def _called(self, item: OfferedOperation, /, **arguments: Any) -> Result:
        def live() -> Result:
            return as_result(lambda: self._asked(item, arguments))

        if self._recordings is None:
            return live()
        return self._recordings.result(self._history.key(item.operation, arguments), live)

    def _asked(self, item: OfferedOperation, arguments: Mapping[str, Any]) -> Result:
        """Ask the server.

        Raises:
            ToolError: it refuses, fails or takes too long.
            InfrastructureError: it cannot be reached.
        """
        operation, mask = item.operation, self._credentials.mask
        parts = parts_of(operation, arguments)
        self._credentials.add(parts, item.requirement)
        try:
            answer = self._tried(parts.request(operation.method, item.base))
        except ServerUnreachableError as error:
            raise InfrastructureError("openapi_server", f"{operation.label}: {error}") from None
        kind = answer.headers.get("content-type", "").lower()
        if answer.status < 400 and kind.startswith(_BINARY):
            media = kind.partition(";")[0].strip()
            return Result(f"[{media}, {len(answer.data):,} bytes]")
        text = mask.text(answer.text)
        if answer.status >= 400:
            raise refusal(answer.status, text)
        return Result(text or f"HTTP {answer.status}", structured=json_or_none(text))

    def _tried(self, request: HttpRequest) -> HttpAnswer:
        """The answer, after further tries where the server is busy."""
        settings, mask = self._settings, self._credentials.mask
        end = time.monotonic() + settings.timeout
        again = {429, 503} if request.method in _IDEMPOTENT else {429}
        for tries in range(settings.retries + 1):
            answer = ask(
                request,
                timeout=max(end - time.monotonic(), 0.001),
                longest=settings.longest,
                quiet=mask.text,
                check=self._check,
            )
            wait = asked(answer.headers)
            wait = min(_FIRST_WAIT * 2**tries if wait is None else wait, settings.longest_wait)
            is_last = tries == settings.retries or time.monotonic() + wait >= end
            if answer.status not in again or is_last:
                break
            time.sleep(wait)
        return answer


KIND = EnvironmentKind(
    name="openapi",
    about="The operations of an OpenAPI file as tools that ask its server.",
    settings=OpenApiSettings,
    make=OpenApiEnvironment,
    left_out=left_out,
)
"""What the registry holds."""
