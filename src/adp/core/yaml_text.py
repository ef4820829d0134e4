"""Reading YAML that people write: no key twice, no more and no deeper than a file of theirs is."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import yaml

from adp_schema.errors import UsageError


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """YAML that refuses a key given twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        key_nodes = [key for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        keys = [self.construct_object(key, deep=True) for key in key_nodes]
        for number, key in enumerate(keys):
            if key in keys[:number]:
                line = key_nodes[number].start_mark.line + 1
                raise UsageError(f"line {line}: the key {key!r} is given twice")
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep=deep)
        return mapping


_LARGEST = 100_000
"""Values in a file, those behind aliases counted each time."""

_DEEPEST = 64
"""Values inside one another."""


def too_deep(deepest: int) -> str:
    """What is said of values that stand deeper in one another than they may."""
    return f"values stand more than {deepest} deep in one another; make it flatter"


def parse_yaml(text: str, name: str, what: str) -> Any:
    """Read YAML that is not larger, once its aliases are written out, than it can be.

    Args:
        text: the YAML.
        name: what errors call it.
        what: what it is, such as ``recipe``.

    Raises:
        UsageError: it cannot be read, or is too large.
    """
    try:
        plain = yaml.load(text, _Loader)
        measure(plain, what)
    except UsageError as error:
        raise UsageError(f"{name}: {error}") from None
    except RecursionError:
        raise UsageError(f"{name}: {too_deep(_DEEPEST)}") from None
    except yaml.YAMLError as error:
        raise no_yaml(error, name) from None
    except ValueError as error:  # a number of too many digits, a day that there is not
        raise UsageError(f"{name} holds a value that cannot be read: {error}") from None
    return plain


def too_large(what: str, largest: int) -> str:
    """What is said of more values than there may be."""
    return f"it holds more than {largest:,} values; a {what} is shorter"


def no_yaml(error: yaml.YAMLError, name: str) -> UsageError:
    """The error that a text is no YAML, with the line."""
    mark = getattr(error, "problem_mark", None)
    line = f" at line {mark.line + 1}" if mark else ""
    problem = getattr(error, "problem", None) or "it cannot be parsed"
    return UsageError(f"{name} is not valid YAML{line}: {problem}")


def measure(plain: Any, what: str, largest: int = _LARGEST, deepest: int = _DEEPEST) -> None:
    """Check that a value is no larger than a file can be, and is text that can be written.

    Args:
        plain: the value.
        what: what it is, such as ``recipe``.
        largest: values that it may hold.
        deepest: how deep they may stand in one another.

    Raises:
        UsageError: it is too large, too deep, or holds half a character.
    """
    count = 0
    pending = [(plain, 1)]
    while pending:
        value, depth = pending.pop()
        count += 1
        if depth > deepest:
            raise UsageError(too_deep(deepest))
        if count > largest:
            raise UsageError(too_large(what, largest))
        if isinstance(value, dict):
            pending += [(item, depth + 1) for pair in value.items() for item in pair]
        elif isinstance(value, list):
            pending += [(item, depth + 1) for item in value]
        elif isinstance(value, str) and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise UsageError("a text holds half a character (a lone surrogate); remove it")
