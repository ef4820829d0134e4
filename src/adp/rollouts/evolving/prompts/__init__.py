"""What judge, refiner, analyser and policy are told; a file a text."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

import yaml

_FOLDER = Path(__file__).parent


@functools.cache
def prompt(name: str) -> str:
    """The text of a file of this folder."""
    return (_FOLDER / f"{name}.md").read_text(encoding="utf-8").strip() + "\n"


@functools.cache
def hints(kind: str) -> Sequence[str]:
    """The hints of a kind: ``python``, ``search`` or ``general``."""
    listed = yaml.safe_load((_FOLDER / "hints.yaml").read_text(encoding="utf-8"))
    return tuple(listed[kind])
