"""What the readers of other systems' trainings share, over `adp.core.config_mapping`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adp.core.config_mapping import (
    Convert,
    Left,
    MappedConfig,
    Target,
    flat,
    given_only,
    put,
    translate,
    when,
)

__all__ = [
    "NO_TRACKER",
    "Convert",
    "MappedConfig",
    "Target",
    "flat",
    "given_only",
    "keep_to",
    "names",
    "not_for",
    "put",
    "trackers",
    "translate",
    "when",
]

_OTHER = frozenset({"dpo", "kto", "grpo", "reward", "distill"})
"""Sections of `TrainConfig` that hold for one method alone."""


def keep_to(config: MappedConfig, method: str) -> None:
    """Take out what holds for other methods than the one that is trained, and say so.

    Args:
        config: what was mapped.
        method: what is trained.
    """
    kept = []
    for setting in config.mapped:
        other = [path for path in setting.to if path.partition(".")[0] in _OTHER - {method}]
        if setting.to.get("method", method) != method:
            why = f"this call trains {method}"
        elif other:
            why = not_for(other[0].partition(".")[0].upper(), method)
        else:
            kept.append(setting)
            continue
        config.left.append(Left(setting.name, setting.value, why))
    config.mapped = kept
    for section in _OTHER - {method}:
        config.plain.pop(section, None)
    config.plain["method"] = method


def not_for(wanted: str, method: str) -> str:
    """Why a setting of one method is left out when another is trained."""
    return f"it is for {wanted}, and this call trains {method}"


def names(path: str) -> Convert:
    """A list of names, also as text with commas; ``all`` is PEFT's ``all-linear``."""

    def convert(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
        if value in (None, "", []):
            return {}
        if value == "all":
            return {path: "all-linear"}
        if isinstance(value, str):
            value = [part.strip() for part in value.split(",") if part.strip()]
        return {path: list(value)}

    return convert


NO_TRACKER = "no tracker; metrics.jsonl and loss.svg are always written"


def trackers(value: Any, given: Mapping[str, Any]) -> Mapping[str, Any]:
    """``report_to``: a name, a list, or none."""
    named = [value] if isinstance(value, str) else list(value or [])
    named = [name for name in named if name not in ("none", "")]
    results: dict[str, Any] = {}
    if "tensorboard" in named:
        results["report.tensorboard"] = True
    others = [name for name in named if name != "tensorboard"]
    if others:
        results["report.report_to"] = others
    return results
