"""The body of a request: JSON, a form, or a text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from adp.rollouts.environments.openapi.document import ApiDocument, OperationError, below
from adp.rollouts.environments.openapi.parameters import (
    ApiArgument,
    Parameters,
    Style,
    described,
    is_json_media,
    swagger_schema,
)
from adp.rollouts.environments.openapi.schemas import References, Schemas, is_read_only

FORM = "application/x-www-form-urlencoded"
_FORM_STYLES = ("form", "spaceDelimited", "pipeDelimited", "deepObject")
_MOST_PARTS = 50
"""Schemas of ``allOf`` that are put together."""


@dataclass(frozen=True)
class RequestBody:
    """The body of a request.

    Attributes:
        media: its media type, as it is sent.
        kind: how it is written.
        required: whether there must be one.
        whole: whether one argument is all of it.
    """

    media: str
    kind: Literal["json", "form", "text"]
    required: bool
    whole: bool


@dataclass
class _Properties:
    """Properties of an object, put together from ``allOf``."""

    raw: dict[str, tuple[Any, str]] = field(default_factory=dict)
    required: set[str] = field(default_factory=set)
    parts: int = 0


def read_body(
    document: ApiDocument,
    schemas: Schemas,
    about: Mapping[str, Any],
    known: Parameters,
    place: str,
    references: References,
) -> tuple[RequestBody | None, list[ApiArgument]]:
    """Read the body of an operation.

    Args:
        document: the document.
        schemas: its schemas.
        about: entry of the operation.
        known: its parameters.
        place: JSON path of the operation.
        references: gets what the schemas refer to.

    Returns:
        The body, and its arguments.

    Raises:
        OperationError: it is wrong, or of a type that is not supported.
    """
    if document.is_swagger:
        return _swagger_body(document, schemas, about, known, place, references)
    given = about.get("requestBody")
    if given is None:
        return None, []
    given, at = document.follow(given, below(place, "requestBody"))
    content = given.get("content") if isinstance(given, Mapping) else None
    if not isinstance(content, Mapping) or not content:
        raise OperationError("it has no content", at)
    media, kind = _media(list(content), below(at, "content"))
    entry = content[media]
    if not isinstance(entry, Mapping):
        raise OperationError("it is no object", below(at, "content", media))
    where = below(at, "content", media)
    body = RequestBody(media, kind, given.get("required") is True, True)
    arguments = _Arguments(document, schemas, known, references, entry.get("encoding"), where)
    return arguments.of(body, entry.get("schema", {}), below(where, "schema"), given)


def _media(types: list[str], place: str) -> tuple[str, Literal["json", "form", "text"]]:
    """The media type that is sent, and how it is written."""
    for media in types:
        if is_json_media(media):
            return media, "json"
    for media in types:
        if media.partition(";")[0].strip().lower() == FORM:
            return media, "form"
    for media in types:
        if media.lower().startswith("text/"):
            return media, "text"
    if any(media.strip() == "*/*" for media in types):
        return next(media for media in types if media.strip() == "*/*"), "json"
    listed = ", ".join(media[:60] for media in types[:3])
    raise OperationError(f"a body of {listed} is not supported", place)


class _Arguments:
    """Makes arguments of the schema of a body."""

    def __init__(
        self,
        document: ApiDocument,
        schemas: Schemas,
        known: Parameters,
        references: References,
        encoding: Any,
        place: str,
    ) -> None:
        self._document, self._schemas = document, schemas
        self._known, self._references = known, references
        self._encoding = encoding if isinstance(encoding, Mapping) else {}
        self._place = place

    def of(
        self, body: RequestBody, schema: Any, place: str, given: Mapping[str, Any]
    ) -> tuple[RequestBody, list[ApiArgument]]:
        """The body and its arguments: its properties, or all of it as one."""
        parts = _Properties() if body.kind != "text" else None
        if parts is not None and not self._collect(schema, place, parts):
            parts = None
        if body.kind == "form" and parts is None:
            raise OperationError("a form that is no plain object is not supported", place)
        if parts is not None and parts.raw and (body.required or not parts.required):
            results = [
                self._argument(name, raw, at, name in parts.required, body.kind == "form")
                for name, (raw, at) in parts.raw.items()
            ]
            return RequestBody(body.media, body.kind, body.required, False), results
        if body.kind == "form":
            raise OperationError("a form that may be left out is not supported", place)
        name = self._known.name("body", "body")
        converted = self._schemas.converted(schema, place, self._references)
        if body.kind == "text":
            converted = {"type": "string"}
        argument = ApiArgument(
            name, "body", "body", described(converted, given, "body", name), body.required, None
        )
        return body, [argument]

    def _collect(self, schema: Any, place: str, parts: _Properties) -> bool:
        """Collect the properties of a plain object; whether it is one."""
        parts.parts += 1
        schema, place = self._document.follow(schema, place)
        if parts.parts > _MOST_PARTS or not isinstance(schema, Mapping):
            return False
        if {"anyOf", "oneOf", "not", "if", "patternProperties", "enum", "const"} & set(schema):
            return False
        if schema.get("type", "object") != "object" or schema.get("additionalProperties"):
            return False
        if schema.get("nullable") or schema.get("x-nullable") or schema.get("minProperties"):
            return False
        properties, listed = schema.get("properties", {}), schema.get("allOf", [])
        required = schema.get("required", [])
        if not all(
            isinstance(value, kind)
            for value, kind in ((properties, Mapping), (listed, list), (required, list))
        ):
            return False
        for number, part in enumerate(listed):
            if not self._collect(part, below(place, "allOf", number), parts):
                return False
        for name, child in properties.items():
            if not is_read_only(child):
                parts.raw[name] = (child, below(place, "properties", name))
        parts.required |= {name for name in required if isinstance(name, str)}
        return bool(properties or listed)

    def _argument(
        self, wire: str, raw: Any, place: str, required: bool, is_form: bool
    ) -> ApiArgument:
        schema = self._schemas.converted(raw, place, self._references)
        style = self._style(wire, schema) if is_form else None
        name = self._known.name(wire, "body")
        return ApiArgument(name, wire, "body", described(schema, {}, wire, name), required, style)

    def _style(self, wire: str, schema: Any) -> Style:
        """How a property of a form is written: objects as JSON, unless a style is named."""
        given = self._encoding.get(wire)
        if isinstance(given, Mapping) and {"style", "explode"} & set(given):
            name = given.get("style", "form")
            if name not in _FORM_STYLES:
                reason = f"there is no style {str(name)[:40]!r} of a form"
                raise OperationError(reason, below(self._place, "encoding", wire))
            explode = given.get("explode")
            return Style(name, name == "form" if explode is None else explode is True)
        return Style("formBody", True)


def _swagger_body(
    document: ApiDocument,
    schemas: Schemas,
    about: Mapping[str, Any],
    known: Parameters,
    place: str,
    references: References,
) -> tuple[RequestBody | None, list[ApiArgument]]:
    consumes = about.get("consumes", document.root.get("consumes"))
    types = [str(media) for media in consumes] if isinstance(consumes, list) else []
    at = below(place, "consumes")
    if known.body is not None:
        given, where = known.body
        media, kind = _media(types or ["application/json"], at)
        body = RequestBody(media, kind, given.get("required") is True, True)
        arguments = _Arguments(document, schemas, known, references, None, where)
        return arguments.of(body, given.get("schema", {}), below(where, "schema"), given)
    if not known.form:
        return None, []
    if types and FORM not in [media.partition(";")[0].strip().lower() for media in types]:
        raise OperationError(f"a body of {', '.join(types)[:80]} is not supported", at)
    results = []
    for given, where in known.form:
        if given.get("type") == "file":
            raise OperationError("files are not supported", where)
        schema = schemas.converted(swagger_schema(given), where, references)
        name = known.name(given["name"], "body")
        required = given.get("required") is True
        explode = given.get("collectionFormat") == "multi"
        results.append(
            ApiArgument(name, given["name"], "body", described(schema, given, given["name"], name),
                     required, Style("formBody", explode))
        )  # fmt: skip
    return RequestBody(FORM, "form", False, False), results
