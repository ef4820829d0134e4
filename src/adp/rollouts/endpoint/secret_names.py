"""Settings that hold secrets, told by their names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_SECRET = re.compile(
    r"(?:^|[-_. ])(?:tokens?|secrets?|passwords?|passwd|passphrase|pwd|bearer|jwt|api[-_ ]?keys?"
    r"|(?:access|secret|private|subscription|account|auth|signing)[-_ ]?keys?"
    r"|authori[sz]ation|auth|cookies?|credentials?|signature)$|^key$",
    re.IGNORECASE,
)
_COUNT = re.compile(r"tokens$", re.IGNORECASE)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def is_secret(name: str, value: Any) -> bool:
    """Whether a setting of this name and value is a secret: ``x-api-key``, ``accessToken``, ...

    A number of tokens, ``max_tokens=64``, is none.
    """
    if value is None or isinstance(value, bool):
        return False
    number = isinstance(value, int | float)
    if number and _COUNT.search(name):
        return False
    return _SECRET.search(_HUMP.sub("_", name.strip())) is not None


def secrets_in(settings: Mapping[str, Any]) -> Iterator[str]:
    """The texts that stand under names of secrets, however deep."""
    for name, value in settings.items():
        if is_secret(str(name), value):
            yield from _texts(value)
        elif isinstance(value, Mapping):
            yield from secrets_in(value)
        elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
            for item in value:
                if isinstance(item, Mapping):
                    yield from secrets_in(item)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for item in value:
            yield from _texts(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)
