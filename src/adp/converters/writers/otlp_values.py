"""Attributes as OTLP writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def attribute_list(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Attributes as OTLP writes them, a list of pairs.

    Args:
        attributes: plain values by their names; `Raw` is a string.
    """
    return [{"key": key, "value": _written(value)} for key, value in attributes.items()]


def _written(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_written(item) for item in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": attribute_list(value)}}
    return {"stringValue": value}
