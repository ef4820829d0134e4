"""Parameters of an operation: of the path, the query, headers and cookies."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from adp.rollouts.environments.openapi.document import ApiDocument, OperationError, below
from adp.rollouts.environments.openapi.schemas import References, Schemas

Where = Literal["path", "query", "header", "cookie", "body"]
STYLES: Mapping[str, tuple[str, ...]] = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject", "tabDelimited"),
    "header": ("simple",),
    "cookie": ("form",),
}
"""Styles by place, the default first. ``tabDelimited`` is Swagger's collectionFormat ``tsv``."""

_COLLECTIONS = {
    "csv": ("", False),
    "ssv": ("spaceDelimited", False),
    "tsv": ("tabDelimited", False),
    "pipes": ("pipeDelimited", False),
    "multi": ("", True),
}
_IGNORED = frozenset({"accept", "content-type", "authorization"})
"""Headers that are no parameters, by the standard."""
_OURS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "cookie", "upgrade", "te",
     "trailer", "expect", "proxy-authorization", "accept-encoding"}
)  # fmt: skip
"""Headers that the connection sets, not an agent."""
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_COOKIE = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z\[\]-]+")
_LONGEST_NAME = 64
SWAGGER_SCHEMA = (
    *("type", "format", "items", "default", "enum", "x-nullable", "pattern", "uniqueItems"),
    *("maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "multipleOf"),
    *("maxLength", "minLength", "maxItems", "minItems"),
)
"""Keywords of a parameter of Swagger 2.0 that are its schema."""


@dataclass(frozen=True)
class Style:
    """How a value becomes a text.

    Attributes:
        name: ``form``, ``simple``, ``deepObject``, ...; ``json``: as JSON text; ``formBody``: as
            ``form``, but objects as JSON text.
        explode: whether each part of a list or an object stands for itself.
        reserved: whether reserved characters stay as they are.
    """

    name: str
    explode: bool = False
    reserved: bool = False


@dataclass(frozen=True, eq=False)
class ApiArgument:
    """An argument of a tool, and where it goes.

    Attributes:
        name: its name for the agent.
        wire: its name in the request.
        where: the part of the request.
        schema: JSON Schema.
        required: whether it must be given.
        style: how it becomes a text; None within JSON.
    """

    name: str
    wire: str
    where: Where
    schema: Any
    required: bool
    style: Style | None


@dataclass
class Parameters:
    """The parameters of an operation.

    Attributes:
        arguments: of path, query, headers and cookies.
        form: parameters of Swagger's forms, with their JSON paths.
        body: parameter of Swagger's body, with its JSON path.
        taken: names of arguments.
    """

    arguments: list[ApiArgument] = field(default_factory=list)
    form: list[tuple[Mapping[str, Any], str]] = field(default_factory=list)
    body: tuple[Mapping[str, Any], str] | None = None
    taken: set[str] = field(default_factory=set)

    def name(self, wire: str, where: Where) -> str:
        """A name for an argument that is valid and not taken."""
        base = re.sub(r"[^A-Za-z0-9_.-]+", "_", wire).strip("_")[: _LONGEST_NAME - 12] or "value"
        name, number = (base if wire.strip("_") != base else wire), 1
        if name in self.taken:
            name = f"{where}_{base}"
        while name in self.taken:
            number += 1
            name = f"{where}_{base}_{number}"
        self.taken.add(name)
        return name


def read_parameters(
    document: ApiDocument,
    schemas: Schemas,
    item: Mapping[str, Any],
    about: Mapping[str, Any],
    place: str,
    references: References,
) -> Parameters:
    """Read the parameters of an operation and of its path.

    Args:
        document: the document.
        schemas: its schemas.
        item: entry of the path.
        about: entry of the operation.
        place: JSON path of the operation.
        references: gets what the schemas refer to.

    Raises:
        OperationError: one is wrong.
    """
    result = Parameters()
    for (where, name), (given, at) in _listed(document, item, about, place).items():
        if where == "body":
            result.body = (given, at)
        elif where == "formData":
            result.form.append((given, at))
        elif where == "header" and name.lower() in _IGNORED:
            continue
        elif where == "header" and name.lower() in _OURS:
            if given.get("required") is True:
                raise OperationError(f"the header {name!r} is set by the connection alone", at)
        else:
            result.arguments.append(_argument(document, schemas, result, given, at, references))
    return result


def _listed(
    document: ApiDocument, item: Mapping[str, Any], about: Mapping[str, Any], place: str
) -> dict[tuple[str, str], tuple[Mapping[str, Any], str]]:
    """The parameters by place and name; those of the operation replace those of the path."""
    results: dict[tuple[str, str], tuple[Mapping[str, Any], str]] = {}
    for owner, at in ((item, place.rpartition(".")[0]), (about, place)):
        seen: set[tuple[str, str]] = set()
        for key, (given, where) in _entries(document, owner, below(at, "parameters")):
            if key in seen:
                raise OperationError(f"the parameter {key[1][:80]!r} stands twice", where)
            seen.add(key)
            results[key] = (given, where)
    return results


def _entries(
    document: ApiDocument, owner: Mapping[str, Any], place: str
) -> Iterator[tuple[tuple[str, str], tuple[Mapping[str, Any], str]]]:
    listed = owner.get("parameters")
    if listed is None:
        return
    if not isinstance(listed, list):
        raise OperationError("it is no list", place)
    for number, entry in enumerate(listed):
        given, where = document.follow(entry, below(place, number))
        if not isinstance(given, Mapping):
            raise OperationError("it is no object", where)
        name, kind = given.get("name"), given.get("in")
        known = [*STYLES, *(("body", "formData") if document.is_swagger else ())]
        if not isinstance(kind, str) or kind not in known:
            raise OperationError(f"a parameter cannot be in {str(kind)[:40]!r}", below(where, "in"))
        if not isinstance(name, str) or not name:
            raise OperationError("a parameter has no name", where)
        yield (kind, name), (given, where)


def _argument(
    document: ApiDocument,
    schemas: Schemas,
    known: Parameters,
    given: Mapping[str, Any],
    place: str,
    references: References,
) -> ApiArgument:
    where, wire = given["in"], given["name"]
    if where in ("header", "cookie"):
        valid = _HEADER if where == "header" else _COOKIE
        if not valid.fullmatch(wire):
            raise OperationError(f"{wire[:80]!r} is no name of a {where}", below(place, "name"))
    if document.is_swagger:
        raw, at = swagger_schema(given), place
        style = _collection(given, where, place)
    else:
        raw, at, is_json = _schema_of(given, place)
        style = Style("json") if is_json else _style(given, where, place)
    name = known.name(wire, where)
    schema = described(schemas.converted(raw, at, references), given, wire, name)
    required = where == "path" or given.get("required") is True
    return ApiArgument(name, wire, where, schema, required, style)


def described(schema: Any, given: Mapping[str, Any], wire: str, name: str) -> Any:
    """A schema with the description of its parameter, and the name in the request if it differs."""
    result = dict(schema) if isinstance(schema, Mapping) else {} if schema else {"not": {}}
    text = given.get("description")
    if isinstance(text, str) and text.strip():
        result["description"] = text.strip()
    if name != wire:
        before = f"{result['description']} " if "description" in result else ""
        result["description"] = f"{before}({wire!r} in the request)"
    return result


def swagger_schema(given: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a parameter of Swagger 2.0."""
    return {key: given[key] for key in SWAGGER_SCHEMA if key in given}


def _schema_of(given: Mapping[str, Any], place: str) -> tuple[Any, str, bool]:
    """Schema of a parameter, its JSON path, and whether its value is sent as JSON."""
    content = given.get("content")
    if content is None:
        return given.get("schema", {}), below(place, "schema"), False
    at = below(place, "content")
    if not isinstance(content, Mapping) or len(content) != 1:
        raise OperationError("the content of a parameter has one media type", at)
    media, entry = next(iter(content.items()))
    if not is_json_media(media):
        raise OperationError(f"a parameter of {media[:80]!r} is not supported", at)
    raw = entry.get("schema", {}) if isinstance(entry, Mapping) else {}
    return raw, below(at, media, "schema"), True


def is_json_media(media: str) -> bool:
    """Whether a media type is JSON."""
    kind = media.partition(";")[0].strip().lower()
    return kind == "application/json" or kind.endswith("+json")


def _style(given: Mapping[str, Any], where: str, place: str) -> Style:
    name = given.get("style", STYLES[where][0])
    if name not in STYLES[where] or name == "tabDelimited":
        reason = f"the style {str(name)[:40]!r} is none of a parameter in {where}"
        raise OperationError(reason, below(place, "style"))
    explode = given.get("explode")
    reserved = given.get("allowReserved") is True
    return Style(name, name == "form" if explode is None else explode is True, reserved)


def _collection(given: Mapping[str, Any], where: str, place: str) -> Style:
    form = given.get("collectionFormat", "csv")
    if not isinstance(form, str) or form not in _COLLECTIONS:
        reason = f"there is no collectionFormat {str(form)[:40]!r}"
        raise OperationError(reason, below(place, "collectionFormat"))
    name, explode = _COLLECTIONS[form]
    if where != "query" and (name or explode):
        reason = f"the collectionFormat {form!r} in {where} is not supported"
        raise OperationError(reason, below(place, "collectionFormat"))
    return Style(name or STYLES[where][0], explode)
