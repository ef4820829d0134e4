"""Which operations of a file are offered as tools, and why the others are left out."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adp.rollouts.environment import LeftOut
from adp.rollouts.environments.openapi.access import Credentials, Hosts, Scheme, read_schemes
from adp.rollouts.environments.openapi.document import ApiDocument, OperationError, read_document
from adp.rollouts.environments.openapi.operations import ApiOperation, read_operations
from adp.rollouts.environments.openapi.settings import OpenApiSettings
from adp.rollouts.tools import FunctionTool
from adp_schema.errors import InputError, UsageError


@dataclass(frozen=True)
class OfferedOperation:
    """An operation that is offered.

    Attributes:
        operation: the operation.
        base: address of its server.
        requirement: the security schemes that it is called with.
        tool: its schema and the check of its arguments, which all episodes share.
    """

    operation: ApiOperation
    base: str
    requirement: Sequence[str]
    tool: FunctionTool


@dataclass(frozen=True)
class ApiOffer:
    """What settings offer of a file.

    Attributes:
        tools: what is offered.
        left_out: the other operations.
        schemes: ways to sign in.
        hosts: hosts that may be asked.
    """

    tools: Sequence[OfferedOperation]
    left_out: Sequence[LeftOut]
    schemes: Mapping[str, Scheme]
    hosts: Hosts

    @property
    def total(self) -> int:
        """All operations of the file."""
        return len(self.tools) + len(self.left_out)


@dataclass(frozen=True)
class _CheckedTool(FunctionTool):
    """The check of arguments.

    What is not part of the body becomes a text anyway: a number that is given as a text is sent
    like the number, so it fits.
    """

    texts: frozenset[str] = frozenset()

    def wrong(self, arguments: Mapping[str, Any]) -> str | None:
        """What is wrong with arguments; None when they fit."""
        properties = self.parameters["properties"]
        read = {
            name: _as_number(value, properties.get(name)) if name in self.texts else value
            for name, value in arguments.items()
        }
        return super().wrong(read)


def _as_number(value: Any, schema: Any) -> Any:
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    if not isinstance(value, str) or kind not in ("integer", "number", "boolean"):
        return value
    try:
        number = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return number if isinstance(number, int | float) else value


def offer_of(settings: OpenApiSettings) -> ApiOffer:
    """What settings offer of their file, and what is left out.

    Raises:
        InputError: the file cannot be read.
        UsageError: it is no OpenAPI, or settings name what it does not have.
    """
    path = settings.file.resolve()
    try:
        status = path.stat()
    except OSError as error:
        raise InputError(f"{settings.file} cannot be read: {error.strerror}") from error
    changed = (status.st_mtime_ns, status.st_size)
    return _offer(path, changed, settings.model_dump_json())


def left_out(settings: OpenApiSettings) -> Sequence[LeftOut]:
    """The operations that are not offered, with the reasons."""
    return offer_of(settings).left_out


@functools.lru_cache(maxsize=4)
def _read(
    path: Path, changed: tuple[int, int], longest_name: int
) -> tuple[ApiDocument, list[ApiOperation], list[LeftOut]]:
    document = read_document(path)
    return (document, *read_operations(document, longest_name))


@functools.lru_cache(maxsize=8)
def _offer(path: Path, changed: tuple[int, int], text: str) -> ApiOffer:
    """All episodes share what does not change."""
    settings = OpenApiSettings.model_validate_json(text)
    document, operations, faults = _read(path, changed, settings.longest_name)
    if faults and settings.strict:
        first = faults[0]
        raise UsageError(
            f"{settings.file}: {first.operation}: {first.reason} - at {first.place}; {len(faults)} "
            f"of {len(faults) + len(operations)} operations cannot be tools, which strict=true "
            "refuses"
        )
    schemes = read_schemes(document)
    credentials = Credentials(schemes, settings.auth_env, is_live=False)
    hosts = Hosts(settings.hosts, settings.server)
    unknown = sorted(set(settings.only or ()) - {operation.name for operation in operations})
    if unknown:
        raise UsageError(
            f"{settings.file} has no tool {', '.join(unknown[:5])}; adp collect --list shows them"
        )
    tools, behind = [], list(faults)
    for operation in operations:
        try:
            base = _permitted(operation, document, settings, hosts)
            requirement = credentials.chosen(operation.security)
            if isinstance(requirement, str):
                raise OperationError(requirement, operation.place)
        except OperationError as error:
            behind.append(LeftOut(operation.label, error.place, error.reason, wrong=False))
        else:
            tools.append(OfferedOperation(operation, base, requirement, _tool(operation)))
    return ApiOffer(tuple(tools), tuple(behind), schemes, hosts)


def _permitted(
    operation: ApiOperation, document: ApiDocument, settings: OpenApiSettings, hosts: Hosts
) -> str:
    """The server of an operation that the settings permit.

    Raises:
        OperationError: they do not.
    """
    if settings.only is not None and operation.name not in settings.only:
        raise OperationError("only=[...] does not name it", operation.place)
    if operation.method != "GET" and not settings.allow_writes:
        reason = "it may change something: allow_writes=true offers it"
        raise OperationError(reason, operation.place)
    return hosts.base(operation, document)


def _tool(operation: ApiOperation) -> FunctionTool:
    texts = frozenset(item.name for item in operation.arguments if item.where != "body")
    about = (operation.name, operation.description, operation.parameters)
    return _CheckedTool(*about, run=str, read_only=operation.method == "GET", texts=texts)
