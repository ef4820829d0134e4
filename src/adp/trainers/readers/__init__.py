"""Readers for the configurations of other systems: M3 (LLaMA-Factory), Tiny Tool Use, SAGE."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adp.trainers.readers.llamafactory import is_llamafactory, read_llamafactory
from adp.trainers.readers.mapping import MappedConfig, keep_to
from adp.trainers.readers.playground import is_playground, read_playground
from adp.trainers.readers.sage import is_sage, read_sage
from adp.trainers.readers.sage_rl import is_sage_rl, read_sage_rl


def read_foreign(given: Mapping[str, Any], method: str | None = None) -> MappedConfig | None:
    """Read another system's configuration.

    Args:
        given: its keys and values.
        method: what the call trains, whatever the file says; None takes what the file says.

    Returns:
        It in our terms; None when it is none of those that are known.

    Raises:
        UsageError: it is about a training that there is not here.
    """
    if is_playground(given):
        config = read_playground(given)
    elif is_llamafactory(given):
        config = read_llamafactory(given, method)
    elif is_sage(given):
        config = read_sage(given)
    elif is_sage_rl(given):
        config = read_sage_rl(given)
    else:
        return None
    keep_to(config, method or config.plain.get("method") or "sft")
    return config
