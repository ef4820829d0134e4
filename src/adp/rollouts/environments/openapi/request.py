"""From the arguments of a call to a request: paths, queries, headers, cookies and bodies.

The styles are those of OpenAPI 3.1 (Parameter Object, "Style Values"), which follow RFC 6570.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from adp.rollouts.environments.configured_command import word_of
from adp.rollouts.environments.http_request import HttpRequest
from adp.rollouts.environments.openapi.body import RequestBody
from adp.rollouts.environments.openapi.operations import ApiOperation
from adp.rollouts.environments.openapi.parameters import ApiArgument, Style
from adp.rollouts.tools import ToolError
from adp.rollouts.turns import ErrorType

_PLACE = re.compile(r"\{([^{}]*)\}")
_RESERVED = ":/?@!$'()*,;"
"""Reserved characters that may stand in a query; others would end a part of it."""
_IN_PATH = "/:@!$&'()*+,;=~"
_BETWEEN = {
    **dict.fromkeys(("form", "simple", "matrix"), ","),
    **{"spaceDelimited": "%20", "pipeDelimited": "%7C", "tabDelimited": "%09", "label": ","},
}


@dataclass
class RequestParts:
    """The parts of a request, encoded.

    Attributes:
        path: the path.
        query: ``name=value`` each.
        headers: headers by name.
        cookies: ``name=value`` each.
        content: the body; None: there is none.
    """

    path: str
    query: list[str] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    cookies: list[str] = field(default_factory=list)
    content: bytes | None = None

    def request(self, method: str, base: str) -> HttpRequest:
        """The request.

        Args:
            method: such as ``GET``.
            base: address of the server, with the beginning of the path.
        """
        query = "&".join(self.query)
        headers = {"Accept": "application/json, */*;q=0.5", **self.headers}
        if self.cookies:
            headers["Cookie"] = "; ".join(self.cookies)
        url = base.rstrip("/") + self.path + (f"?{query}" if query else "")
        return HttpRequest(method, url, headers, self.content)


def parts_of(operation: ApiOperation, arguments: Mapping[str, Any]) -> RequestParts:
    """Write the arguments of a call.

    Args:
        operation: what is called.
        arguments: they fit its schema.

    Raises:
        ToolError: one cannot be written where it belongs.
    """
    given = {item: arguments[item.name] for item in operation.arguments if item.name in arguments}
    segments = {a.wire: _segment(a, value) for a, value in given.items() if a.where == "path"}
    pieces = _PLACE.split(operation.path)
    path = "".join(
        segments[piece] if number % 2 else quote(piece, safe=_IN_PATH)
        for number, piece in enumerate(pieces)
    )
    result = RequestParts(path)
    for argument, value in given.items():
        if value is None or argument.style is None:
            continue
        if argument.where == "query":
            result.query += _pairs(argument.wire, value, argument.style)
        elif argument.where == "cookie":
            result.cookies += _pairs(argument.wire, value, argument.style)
        elif argument.where == "header":
            result.headers[argument.wire] = _header(argument, value)
    if operation.body is not None:
        in_body = {a: value for a, value in given.items() if a.where == "body"}
        _write_body(result, operation.body, in_body)
    return result


def _write_body(result: RequestParts, body: RequestBody, given: Mapping[ApiArgument, Any]) -> None:
    if not given and not (body.required and not body.whole):
        return
    plain = "text/plain; charset=utf-8" if body.kind == "text" else "application/json"
    result.headers["Content-Type"] = plain if "*" in body.media else body.media
    if body.kind == "form":
        pairs = [
            pair
            for argument, value in given.items()
            if value is not None and argument.style is not None
            for pair in _pairs(argument.wire, value, argument.style)
        ]
        result.content = "&".join(pairs).encode("ascii")
        return
    value: Any = {argument.wire: value for argument, value in given.items()}
    if body.whole:
        value = next(iter(given.values()))
    text = value if body.kind == "text" else _json(value)
    result.content = str(text).encode("utf-8", "replace")


def _segment(argument: ApiArgument, value: Any) -> str:
    """A parameter in the path.

    Raises:
        ToolError: the path would be another one.
    """
    style = argument.style or Style("simple")
    if style.name == "json":
        text = _quoted(_json(value), style)
    else:
        text = _items(value, style, "." if style.name == "label" and style.explode else None)
        if style.name == "label":
            text = f".{text}"
        elif style.name == "matrix":
            text = _matrix(argument.wire, value, style)
    if text in ("", ".", ".."):
        raise ToolError(f"'{argument.name}' must not be empty, . or ..", ErrorType.INVALID_ARGS)
    return text


def _matrix(wire: str, value: Any, style: Style) -> str:
    name = quote(wire, safe="")
    if style.explode and isinstance(value, list):
        return "".join(f";{name}={_quoted(word_of(item), style)}" for item in value)
    if style.explode and isinstance(value, Mapping):
        return "".join(
            f";{quote(str(key), safe='')}={_quoted(word_of(item), style)}"
            for key, item in value.items()
        )
    return f";{name}={_items(value, style)}"


def _header(argument: ApiArgument, value: Any) -> str:
    """A header; values are not percent-encoded.

    Raises:
        ToolError: it would be no header.
    """
    style = argument.style or Style("simple")
    if style.name == "json":
        text = _json(value, ascii_alone=True)
    elif isinstance(value, list):
        text = ",".join(map(word_of, value))
    elif isinstance(value, Mapping):
        sign = "=" if style.explode else ","
        text = ",".join(f"{key}{sign}{word_of(item)}" for key, item in value.items())
    else:
        text = word_of(value)
    if not (text.isascii() and text.isprintable()):
        raise ToolError(
            f"'{argument.name}' is sent in a header, which takes printable ASCII alone",
            ErrorType.INVALID_ARGS,
        )
    return text.strip()


def _pairs(wire: str, value: Any, style: Style) -> list[str]:
    """``name=value`` for a query, a cookie or a form, encoded."""
    name = quote(wire, safe="")
    if style.name == "json" or (style.name == "formBody" and isinstance(value, Mapping)):
        return [f"{name}={_quoted(_json(value), style)}"]
    if style.name == "deepObject" and isinstance(value, Mapping | list):
        return _deep(name, value, style)
    if style.explode and isinstance(value, list):
        return [f"{name}={_quoted(word_of(item), style)}" for item in value]
    if style.explode and isinstance(value, Mapping):
        return [
            f"{quote(str(key), safe='')}={_quoted(word_of(item), style)}"
            for key, item in value.items()
        ]
    return [f"{name}={_items(value, style)}"]


def _deep(name: str, value: Any, style: Style) -> list[str]:
    """``name[key]=value``; the standard has one level, and more of them are in use."""
    if isinstance(value, Mapping):
        return [
            pair
            for key, child in value.items()
            for pair in _deep(f"{name}%5B{quote(str(key), safe='')}%5D", child, style)
        ]
    if isinstance(value, list):
        return [pair for child in value for pair in _deep(name, child, style)]
    return [f"{name}={_quoted(word_of(value), style)}"]


def _items(value: Any, style: Style, between: str | None = None) -> str:
    """A value as one text: lists and objects with a sign between their parts."""
    sign = between or _BETWEEN.get(style.name, ",")
    if isinstance(value, list):
        return sign.join(_quoted(word_of(item), style) for item in value)
    if isinstance(value, Mapping):
        inner = "=" if style.explode else sign
        return sign.join(
            f"{_quoted(str(key), style)}{inner}{_quoted(word_of(item), style)}"
            for key, item in value.items()
        )
    return _quoted(word_of(value), style)


def _json(value: Any, ascii_alone: bool = False) -> str:
    try:
        return json.dumps(value, ensure_ascii=ascii_alone, separators=(",", ":"), allow_nan=False)
    except ValueError:
        raise ToolError("a number is none of JSON", ErrorType.INVALID_ARGS) from None


def _quoted(text: str, style: Style) -> str:
    return quote(text, safe=_RESERVED if style.reserved else "", errors="replace")
