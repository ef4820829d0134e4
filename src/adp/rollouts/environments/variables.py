"""Environment variables in settings: ``Bearer ${MY_TOKEN}``."""

from __future__ import annotations

import os
import re

from adp_schema.errors import UsageError

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z_0-9]*)\}")


def variables_of(text: str) -> list[str]:
    """The names of the variables in a text."""
    return _VARIABLE.findall(text)


def expanded(text: str) -> str:
    """A text with the values of its variables.

    Raises:
        UsageError: a variable is not set.
    """
    return _VARIABLE.sub(lambda item: variable(item[1], "the settings name it"), text)


def variable(name: str, why: str) -> str:
    """The value of an environment variable.

    Args:
        name: its name.
        why: who needs it, for the message.

    Raises:
        UsageError: it is not set.
    """
    if name not in os.environ:
        raise UsageError(f"the environment variable {name} is not set; {why}")
    return os.environ[name]
