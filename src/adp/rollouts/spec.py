"""How environments, policies and scorers are named: ``name``, ``name:key=value,key=value``, a file.

    toolworld
    toolworld:max_hops=2,failures=0.1
    openai:model=Qwen/Qwen3-8B,base_url=http://localhost:8000/v1
    my_environment.yaml                 with ``name:`` and its settings
    my_code.py:Shop,coins=3             environments and policies: code of one's own, and settings
    my_package.my_module:Shop

A value is read as YAML, so ``3``, ``true`` and ``[a, b]`` are what they look like. A comma inside
brackets, braces or quotes does not end a value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, Protocol, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from adp.core.allowed_values import wrong_value
from adp.core.code_files import CODE_NAME
from adp.core.input_files import read_text
from adp.core.registry import Registry
from adp.rollouts.environment import ENVIRONMENTS, Settings
from adp_schema.errors import InputError, UsageError, unknown_name

_NAMED = re.compile(r"[\w-]{2,}:[^/\\=]*=")
_CODE = re.compile(rf"({CODE_NAME.pattern})(?:,(?P<rest>.*))?$", re.DOTALL)
_PLAIN = re.compile(r"[\w./:@$%+-]+")
_OPENING, _CLOSING, _QUOTES, _BEFORE_QUOTES = "([{", ")]}", "\"'", "=,([{:"


Named = str | Mapping[str, Any]
"""``name:key=value,...``, or an object with ``name`` and the settings beside it."""


class Kind(Protocol):
    """What a registry of named things holds."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def settings(self) -> type[Settings]:
        """Its settings."""
        ...


AnyKind = TypeVar("AnyKind", bound=Kind)


def read_spec(text: str) -> tuple[str, dict[str, Any]]:
    """Split a spec into the name and its settings, not yet checked.

    Args:
        text: ``name``, ``name:key=value,...``, the path of a YAML file, or ``FILE.py:NAME`` and
            ``package.module:NAME`` with settings behind a comma.

    Returns:
        The name, with a colon in it when it is that of own code; and the settings.

    Raises:
        UsageError: a setting is not ``key=value``, or a file has no ``name``.
        InputError: a file cannot be read.
    """
    # The last value may be a file, too: configured:file=tools.yaml
    if text.endswith((".yaml", ".yml")) and not _NAMED.match(text):
        return _from_file(Path(text))
    code_reference = _CODE.match(text)
    name, rest = (
        (code_reference[1], code_reference["rest"] or "")
        if code_reference
        else text.partition(":")[::2]
    )
    settings: dict[str, Any] = {}
    for part in _split(rest):
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"'{part}' in '{text}' is not key=value")
        settings[key.strip()] = _value(value)
    return name.strip(), settings


def spec_text(named: Mapping[str, Any]) -> str:
    """A named thing with its settings on one line, as `read_spec` reads it.

    Args:
        named: ``name`` and settings beside it, which JSON can hold.
    """
    parts = [f"{key}={_written(value)}" for key, value in named.items() if key != "name"]
    return f"{named['name']}:{','.join(parts)}" if parts else str(named["name"])


def _written(value: Any) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and _value(value) == value:
        return value
    return json.dumps(value, ensure_ascii=False)


def split_named(given: Named) -> tuple[str, dict[str, Any]]:
    """The spec of a named thing, and settings beside it.

    Raises:
        UsageError: an object has no ``name``.
    """
    if isinstance(given, str):
        return given, {}
    more = {str(key): value for key, value in given.items()}
    name = more.pop("name", None)
    if not isinstance(name, str):
        raise UsageError(f"{dict(given)} needs a name")
    return name, more


def load(registry: Registry[AnyKind], text: str, **more: Any) -> tuple[AnyKind, Any]:
    """Look a spec up and check its settings.

    Args:
        registry: where its name is looked up.
        text: the spec.
        **more: further settings, which win.

    Returns:
        What the registry holds, and its settings.

    Raises:
        UsageError: the name or a setting is unknown, or a value is wrong.
        InputError: a file cannot be read.
    """
    name, given = read_spec(text)
    kind = registry.get(name)
    if not _is_kind(kind):
        raise UsageError(
            f"the {registry.kind} '{name}' is a {type(kind).__name__} and not what describes one; "
            f"mend the entry point of its package in the group {registry.group}"
        )
    return kind, checked(kind, f"{registry.kind} '{name}'", given | more)


def checked(kind: Kind, name: str, given: Mapping[str, Any]) -> Any:
    """The settings of a kind, out of what is given.

    Args:
        kind: what it is about.
        name: what to call it in a message.
        given: settings by name.

    Raises:
        UsageError: a setting is unknown or missing, or a value is wrong.
    """
    try:
        return kind.settings.model_validate(dict(given))
    except ValidationError as error:
        message = wrong_setting(error, kind.settings)
        raise UsageError(f"{name}: {message}") from error


def wrong_setting(error: ValidationError, settings: type[BaseModel]) -> str:
    """What is wrong with the first wrong setting, and which ones there are.

    Args:
        error: what validation says.
        settings: the settings.
    """
    first = error.errors(include_url=False)[0]
    place = ".".join(map(str, first["loc"]))
    known = list(settings.model_fields)
    if first["type"] != "extra_forbidden":
        if (words := wrong_value(first, settings)) is not None:
            return words
        text = first["msg"].removeprefix("Value error, ")
        text = "it must be given" if first["type"] == "missing" else text
        text = f"{place}: {text}" if place else text  # a fault of several settings has no place
        return f"{text}; its settings: {', '.join(known) or 'none'}"
    if len(first["loc"]) > 1:
        return f"{place}: there is no such setting"
    if f"{place}_env" in known:
        return (
            f"secrets are not written into a call; put it into an environment variable, and give "
            f"the name of that: {place}_env=NAME"
        )
    return unknown_name("setting", place, known)


def _is_kind(value: Any) -> bool:
    settings = getattr(value, "settings", None)
    return isinstance(settings, type) and issubclass(settings, BaseModel)


def load_environment(text: str, *, unsafe_python: bool = False, **more: Any) -> tuple[Any, Any]:
    """Look the spec of an environment up, and check its settings.

    Args:
        text: the spec.
        unsafe_python: run programs without a sandbox; for the environment ``python`` alone.
        **more: further settings, which win.

    Returns:
        The kind of environment, and its settings.

    Raises:
        UsageError: as for `load`, or ``unsafe_python`` is for another environment.
        InputError: a file cannot be read.
    """
    if unsafe_python:
        name, _ = read_spec(text)
        if name != "python":
            raise UsageError(
                f"--unsafe-python is for the environment 'python', not '{name}'; leave it out"
            )
        more["unsafe"] = True
    return load(ENVIRONMENTS, text, **more)


def _from_file(path: Path) -> tuple[str, dict[str, Any]]:
    if not path.exists():
        raise InputError(f"{path} is not there")
    try:
        result = yaml.safe_load(read_text(path))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise InputError(f"{path} cannot be read as YAML: {error}") from error
    if not isinstance(result, dict) or not isinstance(result.get("name"), str):
        raise UsageError(f"{path} needs a line 'name: ...' and the settings beside it")
    return result.pop("name"), {str(key): value for key, value in result.items()}


def _split(text: str) -> list[str]:
    """Cut at the commas that stand outside brackets and quotes."""
    parts, depth, quote, current, escaped = [], 0, "", "", False
    for letter in text:
        if escaped:
            escaped = False
        elif quote:
            escaped = letter == "\\" and quote == '"'
            quote = "" if letter == quote else quote
        elif letter in _QUOTES and current.rstrip()[-1:] in _BEFORE_QUOTES:
            quote = letter  # elsewhere it is an apostrophe
        elif letter in _OPENING:
            depth += 1
        elif letter in _CLOSING:
            depth -= 1
        if letter == "," and depth <= 0 and not quote:
            parts.append(current)
            current = ""
        else:
            current += letter
    return [part for part in [*parts, current] if part.strip()]


def _value(text: str) -> Any:
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    return text if isinstance(value, date) else value
