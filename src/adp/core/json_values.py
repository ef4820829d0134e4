"""Values of JSON texts that somebody else wrote, such as those in columns of a store."""

from __future__ import annotations

import json
from typing import Any


def json_or_none(text: Any) -> Any:
    """The value of a JSON text; None when there is no text, or it is no JSON."""
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


def json_object(text: Any) -> dict[str, Any]:
    """The object that a JSON text is; an empty one when it is none."""
    value = json_or_none(text)
    return value if isinstance(value, dict) else {}


def json_list(text: Any) -> list[Any]:
    """The list that a JSON text is; an empty one when it is none."""
    value = json_or_none(text)
    return value if isinstance(value, list) else []
