"""Values as source of Java or JavaScript, which their entries expect inside texts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from adp_bfcl.categories import Language


def source_of(value: Any, documented: Mapping[str, Any], language: Language) -> str:
    """A value as a text that the checker reads back as this value.

    Args:
        value: the value.
        documented: documentation of the parameter, with BFCL's types.
        language: Java or JavaScript.
    """
    declared = str(documented.get("type") or "any")
    items = str((documented.get("items") or {}).get("type") or "any")
    if language is Language.JAVA:
        return _java(value, declared, items)
    if declared == "Bigint" and isinstance(value, int) and not isinstance(value, bool):
        return f"{value}n"
    if declared == "array" and items == "Bigint" and isinstance(value, list):
        return "[" + ", ".join(f"{item}n" for item in value) + "]"
    if declared == "array" and items in ("any", "float") and isinstance(value, list):
        # Such items are read as they stand, quotes included.
        return (
            "[" + ", ".join(item if isinstance(item, str) else _json(item) for item in value) + "]"
        )
    return value if isinstance(value, str) else _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _java(value: Any, declared: str, items: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        suffix = {"long": "L", "float": "f"}.get(declared, "")
        return f"{value}{suffix}"
    if isinstance(value, list):
        quote = declared == "ArrayList" and items in ("String", "char")
        parts = [f'"{item}"' if quote else _java(item, items, "any") for item in value]
        if declared == "ArrayList":
            return (
                f"new ArrayList<>(Arrays.asList({', '.join(parts)}))"
                if parts
                else ("new ArrayList<>()")
            )
        return f"new {items if items.isalnum() else 'Object'}[]{{{', '.join(parts)}}}"
    if isinstance(value, Mapping):
        puts = [f'put("{key}", {_literal(child)});' for key, child in value.items()]
        return f"new HashMap<String, Object>() {{{{ {' '.join(puts)} }}}}"
    return str(value)


def _literal(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else _java(value, "any", "any")
