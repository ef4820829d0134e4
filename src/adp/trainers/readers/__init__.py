"""Readers for the configurations of other systems: M3 (LLaMA-Factory), Tiny Tool Use, SAGE."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adp.trainers.readers.foreign import Foreign
from adp.trainers.readers.llamafactory import is_llamafactory, read_llamafactory
from adp.trainers.readers.playground import is_playground, read_playground
from adp.trainers.readers.sage import is_sage, read_sage


def read_foreign(given: Mapping[str, Any]) -> Foreign | None:
    """Read another system's configuration.

    Args:
        given: its keys and values.

    Returns:
        It in our terms; None when it is none of those that are known.

    Raises:
        UsageError: it is about a training that there is not here.
    """
    for claims, read in (
        (is_playground, read_playground),
        (is_llamafactory, read_llamafactory),
        (is_sage, read_sage),
    ):
        if claims(given):
            return read(given)
    return None
