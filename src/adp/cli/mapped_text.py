"""What commands say about a file of another system that they read as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from adp.cli.text import say
from adp.core.config_mapping import MappedConfig


def say_mapped(mapped_config: MappedConfig, path: str) -> None:
    """Print what became of the settings of another system's file."""
    say(f"{Path(path).name} is a configuration of {mapped_config.system}")
    for line in mapped_config.lines():
        say(f"  {line}")


def mapped_facts(mapped_config: MappedConfig | None) -> dict[str, Any]:
    """The same, for JSON; empty for a file of adp itself."""
    if mapped_config is None:
        return {}
    mapped = [vars(item) for item in mapped_config.mapped]
    return {"read_from": mapped_config.system, "mapped": mapped,
            "without_counterpart": [vars(item) for item in mapped_config.left]}  # fmt: skip
