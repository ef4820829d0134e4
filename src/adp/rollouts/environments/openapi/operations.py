"""The operations of an OpenAPI document: what each is called, takes and needs; and what is wrong.

    operations, faults = read_operations(document)

An argument of a tool is a parameter of the path, the query, a header or a cookie, or a property of
the body. A body that is no plain object is one argument, ``body``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adp.rollouts.environment import LeftOut
from adp.rollouts.environments.openapi.body import RequestBody, read_body
from adp.rollouts.environments.openapi.document import ApiDocument, OperationError, below
from adp.rollouts.environments.openapi.parameters import ApiArgument, read_parameters
from adp.rollouts.environments.openapi.schemas import References, Schemas
from adp.rollouts.tools import arguments_schema
from adp_schema.ids import digest

METHODS = frozenset({"get", "put", "post", "delete", "options", "head", "patch", "trace"})
LONGEST_DESCRIPTION = 1024
"""Characters of a description: services take no more."""

_PLACE = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True)
class ApiOperation:
    """An operation of an API.

    Attributes:
        name: name of the tool.
        method: such as ``GET``.
        path: with ``{name}`` for its parameters.
        place: its JSON path.
        description: what it does.
        parameters: JSON Schema of the arguments.
        arguments: the arguments.
        body: the body; None: there is none.
        servers: the addresses that the document names, the first one first.
        security: alternatives, each with the names of the schemes that it needs together; an
            empty one needs none.
    """

    name: str
    method: str
    path: str
    place: str
    description: str
    parameters: Mapping[str, Any]
    arguments: Sequence[ApiArgument]
    body: RequestBody | None
    servers: Any
    security: Sequence[Sequence[str]]

    @property
    def label(self) -> str:
        """Method and path."""
        return f"{self.method} {self.path}"


def read_operations(
    document: ApiDocument, longest_name: int
) -> tuple[list[ApiOperation], list[LeftOut]]:
    """Read the operations of a document, in its order.

    Args:
        document: the document.
        longest_name: characters of the name of a tool.

    Returns:
        Those that can be tools, and those that are wrong or not supported. Together they are all.
    """
    reader = _Reader(document, longest_name)
    operations: list[ApiOperation] = []
    faults: list[LeftOut] = []
    for label, place, path, item, method in _listed(document, faults):
        try:
            operations.append(reader.read(place, path, item, method))
        except OperationError as error:
            faults.append(LeftOut(label, error.place, error.reason))
        except RecursionError:
            faults.append(LeftOut(label, place, "its schemas stand too deep in one another"))
    return operations, faults


def _listed(
    document: ApiDocument, faults: list[LeftOut]
) -> Iterator[tuple[str, str, str, Mapping[str, Any], str]]:
    """Label, JSON path, path, entry of the path, and method of each operation."""
    for path, given in document.root.get("paths", {}).items():
        if path.startswith("x-"):
            continue
        place = below("$.paths", path)
        try:
            item, place = document.follow(given, place)
            if not isinstance(item, Mapping):
                raise OperationError("it is no object", place)
        except OperationError as error:
            faults.append(LeftOut(path, error.place, error.reason))
            continue
        for method in item:
            if method in METHODS:
                yield f"{method.upper()} {path}", below(place, method), path, item, method


class _Reader:
    """Reads operations, and keeps their names apart."""

    def __init__(self, document: ApiDocument, longest_name: int) -> None:
        self._document = document
        self._schemas = Schemas(document)
        self._longest = longest_name
        self._ids: dict[str, str] = {}
        self._names: set[str] = set()

    def read(self, place: str, path: str, item: Mapping[str, Any], method: str) -> ApiOperation:
        """Read an operation.

        Raises:
            OperationError: it cannot be a tool.
        """
        about = item[method]
        if not isinstance(about, Mapping):
            raise OperationError("it is no object", place)
        name_id = self._id(about, f"{method.upper()} {path}", place)
        if not path.startswith("/"):
            raise OperationError("its path does not begin with /", place)
        references: References = {}
        given = read_parameters(self._document, self._schemas, item, about, place, references)
        _check_path(path, given.arguments, place)
        body, more = read_body(self._document, self._schemas, about, given, place, references)
        arguments = [*given.arguments, *more]
        parameters = arguments_schema(
            {argument.name: argument.schema for argument in arguments},
            {argument.name for argument in arguments if not argument.required},
        )
        definitions = self._schemas.definitions(references)
        if definitions:
            parameters["$defs"] = definitions
        return ApiOperation(
            name=self._name(name_id or re.sub(r"[^A-Za-z0-9]+", "_", f"{method}_{path}")),
            method=method.upper(),
            path=path,
            place=place,
            description=_description(about, item, f"{method.upper()} {path}"),
            parameters=parameters,
            arguments=tuple(arguments),
            body=body,
            servers=about.get("servers", item.get("servers", self._document.root.get("servers"))),
            security=_security(about.get("security", self._document.root.get("security")), place),
        )

    def _id(self, about: Mapping[str, Any], label: str, place: str) -> str | None:
        value = about.get("operationId")
        if value is None:
            return None
        where = below(place, "operationId")
        if not isinstance(value, str) or not value.strip():
            raise OperationError("its operationId is no text", where)
        first = self._ids.setdefault(value, label)
        if first != label:
            raise OperationError(f"its operationId {value[:80]!r} is that of {first}, too", where)
        return value

    def _name(self, text: str) -> str:
        """A name of a tool that is valid and not taken."""
        base = re.sub(r"[^A-Za-z0-9_-]+", "_", text).strip("_") or "operation"
        name, number = _cut(base, self._longest), 1
        while name in self._names:
            number += 1
            ending = f"_{number}"
            name = _cut(base, self._longest - len(ending)) + ending
        self._names.add(name)
        return name


def _cut(name: str, longest: int) -> str:
    """A name that is not longer; a hash stands for what is cut."""
    if len(name) <= longest:
        return name
    return f"{name[: longest - 9]}_{digest(name.encode())[:8]}"


def _check_path(path: str, arguments: Sequence[ApiArgument], place: str) -> None:
    """Check that the path has its parameters, and they have their place.

    Raises:
        OperationError: one is missing.
    """
    named = set(_PLACE.findall(path))
    given = {argument.wire for argument in arguments if argument.where == "path"}
    for name in sorted(named - given):
        raise OperationError(f"its path names {{{name[:80]}}}, which is no parameter", place)
    for name in sorted(given - named):
        raise OperationError(f"the parameter {name[:80]!r} has no place in its path", place)


def _description(about: Mapping[str, Any], item: Mapping[str, Any], label: str) -> str:
    texts = [about.get("summary"), about.get("description")]
    if not any(isinstance(text, str) and text.strip() for text in texts):
        texts = [item.get("summary"), item.get("description")]
    words = [text.strip() for text in texts if isinstance(text, str) and text.strip()]
    text = "\n\n".join(dict.fromkeys(words)) or label
    return text if len(text) <= LONGEST_DESCRIPTION else f"{text[: LONGEST_DESCRIPTION - 3]}..."


def _security(given: Any, place: str) -> tuple[tuple[str, ...], ...]:
    if given is None:
        return ()
    where = below(place, "security")
    if not isinstance(given, list) or not all(isinstance(entry, Mapping) for entry in given):
        raise OperationError("it is no list of requirements", where)
    return tuple(tuple(map(str, requirement)) for requirement in given)
