"""Formats of the user's own, with what they need not say.

A format that is only read has ``name``, ``title``, ``sniff`` and ``read``; all else has a default.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from adp.converters.format import Format
from adp_schema.errors import UsageError
from adp_schema.protocols import Converter


class UserFormat(Format):
    """A format with defaults for what it does not define.

    Args:
        converter: the object of the user's.
    """

    def __init__(self, converter: Any) -> None:
        members = (name for name in dir(converter) if not name.startswith("_"))
        vars(self).update({name: getattr(converter, name) for name in members})


def complete(value: Any, name: str, file: Path | None = None) -> Any:
    """A format with all that `adp_schema.protocols.Converter` asks for, but perhaps ``write``.

    Args:
        value: a format, or a class that makes one without arguments.
        name: what the user called it.
        file: where it is defined.

    Raises:
        UsageError: it is a class that needs arguments.
    """
    if inspect.isclass(value):
        try:
            value = value()
        except TypeError as error:
            raise UsageError(f"'{name}' is a class that needs arguments: {error}") from error
    needed = ("name", "title", "sniff", "read")
    if not all(hasattr(value, part) for part in needed):
        return value  # the registry says what is missing
    return UserFormat(value)


def is_written(converter: Converter) -> bool:
    """Whether a format is written, too; others are only read."""
    return hasattr(converter, "write")


def check_written(converter: Converter) -> None:
    """Refuse to write a format that is only read.

    Raises:
        UsageError: it has no ``write``.
    """
    if not is_written(converter):
        raise UsageError(
            f"{converter.name} is a format that is only read; adp formats lists what is written"
        )
