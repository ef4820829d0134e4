"""An OpenAPI file as it is read: JSON or YAML, with limits, and its ``$ref`` followed.

Only references within the file are followed: one that leads out of it could read any file or ask
any host. Packages that resolve references (jsonref, prance) fetch those by default, and write
references out without a limit; what is needed of them are the few lines here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from adp.core.input_files import LARGEST, read_text
from adp.core.json_yaml import parse_json_yaml
from adp.core.yaml_text import measure, too_deep, too_large
from adp_schema.errors import InputError, UsageError

MOST_VALUES = 6_000_000
"""Values of a file; the largest that are published have about one million."""
DEEPEST = 100
LARGEST_YAML = 32 << 20
"""Bytes of YAML: it takes several times as long as JSON."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


class OperationError(Exception):
    """An operation cannot be offered as a tool.

    Args:
        reason: why, in a sentence without the place.
        place: JSON path of what is wrong.
    """

    def __init__(self, reason: str, place: str) -> None:
        super().__init__(reason, place)
        self.reason = reason
        self.place = place


def below(place: str, *keys: str | int) -> str:
    """The JSON path of a value inside another one."""
    for key in keys:
        if isinstance(key, int):
            place += f"[{key}]"
        else:
            place += f".{key}" if _PLAIN.fullmatch(key) else f"[{json.dumps(key)}]"
    return place


class ApiDocument:
    """A file.

    Args:
        root: what it holds.

    Attributes:
        root: what it holds.
        is_swagger: whether it is Swagger 2.0.

    Raises:
        UsageError: it is no description of an API, or of a version that is not known.
    """

    def __init__(self, root: Any) -> None:
        if not isinstance(root, dict) or not {"openapi", "swagger"} & set(root):
            raise UsageError("it is no OpenAPI document: it has no 'openapi' and no 'swagger'")
        version = str(root.get("openapi", root.get("swagger")))
        if not re.match(r"(2\.0|3\.[012](\.|$))", version):
            raise UsageError(f"it is of the version {version[:20]}; 2.0, 3.0 and 3.1 are read")
        if not isinstance(root.get("paths", {}), dict):
            raise UsageError("its 'paths' is no object")
        self.root = root
        self.is_swagger = version.startswith("2")

    def follow(self, value: Any, place: str) -> tuple[Any, str]:
        """A value, or what its ``$ref`` leads to in the end.

        Args:
            value: the value.
            place: its JSON path.

        Returns:
            What it leads to, and the JSON path of that.

        Raises:
            OperationError: a reference leads nowhere, out of the file, or in a circle.
        """
        passed: set[str] = set()
        while isinstance(value, Mapping) and "$ref" in value:
            pointer = value["$ref"]
            if not isinstance(pointer, str):
                raise OperationError(f"its $ref {str(pointer)[:100]} is no text", place)
            if pointer in passed:
                raise OperationError(f"its $ref '{pointer[:100]}' goes in a circle", place)
            passed.add(pointer)
            value, place = self.at(pointer, place)
        return value, place

    def at(self, pointer: str, place: str) -> tuple[Any, str]:
        """What stands at a reference, and its JSON path.

        Raises:
            OperationError: nothing does, or it leads out of the file.
        """
        place = below(place, "$ref")
        shown = pointer[:200]
        if not pointer.startswith("#"):
            raise OperationError(f"'{shown}' leads out of the file, and is not followed", place)
        if pointer != "#" and not pointer.startswith("#/"):
            raise OperationError(f"'{shown}' is no path within the file", place)
        value: Any = self.root
        path = "$"
        for part in pointer.split("/")[1:]:
            key = unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(value, dict) and key in value:
                value, path = value[key], below(path, key)
            elif isinstance(value, list) and key.isdecimal() and int(key[:9]) < len(value):
                value, path = value[int(key[:9])], below(path, int(key[:9]))
            else:
                raise OperationError(f"'{shown}' leads nowhere", place)
        return value, path


def read_document(path: Path) -> ApiDocument:
    """Read a file.

    Raises:
        InputError: it cannot be read.
        UsageError: it is no OpenAPI, or larger or deeper than it may be.
    """
    try:
        text = read_text(path, "utf-8-sig")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    is_yaml = path.suffix in (".yaml", ".yml")
    if path.suffix == ".json" or (not is_yaml and text.lstrip()[:1] == "{"):
        root = _json(text, path)
    elif len(text) > LARGEST_YAML:
        raise UsageError(
            f"{path} has more than {LARGEST_YAML >> 20} MiB of YAML; write it as JSON, of which "
            f"{LARGEST >> 20} MiB are read"
        )
    else:
        root = parse_json_yaml(text, str(path), "file", largest=MOST_VALUES, deepest=DEEPEST)
    try:
        return ApiDocument(root)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


def _json(text: str, path: Path) -> Any:
    # What holds too much is not even made; signs within texts are few beside the limit.
    if sum(map(text.count, ",[{")) > MOST_VALUES:
        raise UsageError(f"{path}: {too_large('file', MOST_VALUES)}")
    try:
        root = json.loads(text, object_pairs_hook=_unique)
        measure(root, "file", MOST_VALUES, DEEPEST)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
    except RecursionError:
        raise UsageError(f"{path}: {too_deep(DEEPEST)}") from None
    except ValueError as error:
        raise UsageError(f"{path} cannot be read as JSON: {error}") from None
    return root


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise UsageError(f"the key {twice[:100]!r} is given twice in one object")
    return result
