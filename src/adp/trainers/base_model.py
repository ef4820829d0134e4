"""What is known of a base model without asking anybody: its name on the Hub, and its license."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from adp.trainers.config import TINY

_ON_HUB = re.compile(r"[\w-][\w.-]{0,95}/[\w-][\w.-]{0,95}", re.ASCII)


@dataclass(frozen=True)
class BaseModel:
    """A base model, as a card names it.

    Attributes:
        name: its name for people; of a folder the last part of its path.
        repo: its name on the Hub; None when it has none.
        license: its license, as its own card says; None when that is not known.
        license_name: the name of a license that the Hub has no id for.
        license_link: where that one stands.
    """

    name: str
    repo: str | None = None
    license: str | None = None
    license_name: str | None = None
    license_link: str | None = None


def base_model(name: str) -> BaseModel:
    """What is known of a model.

    Args:
        name: a folder, a name on the Hub, or tiny.
    """
    if name == TINY:
        return BaseModel(TINY)
    folder = Path(name)
    if folder.is_dir():
        head = _head(folder / "README.md")
        repo = _stated(folder, head)
        return BaseModel(repo or folder.resolve().name, repo, *_license(head))
    repo = name if _ON_HUB.fullmatch(name) else None
    head = _head(_cached(name)) if repo is not None else {}
    return BaseModel(name, repo, *_license(head))


def _stated(folder: Path, head: dict[str, Any]) -> str | None:
    """The name on the Hub that a folder's own files state."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        named = config.get("_name_or_path")
    except (OSError, ValueError, AttributeError):
        named = None
    for value in (named, head.get("base_model")):
        if isinstance(value, str) and _ON_HUB.fullmatch(value) and not Path(value).exists():
            return value
    return None


def _cached(name: str) -> Path | None:
    """The card of a model in the cache of the Hub, which was filled when it was loaded."""
    from huggingface_hub import try_to_load_from_cache

    place = try_to_load_from_cache(name, "README.md")
    return Path(place) if isinstance(place, str) else None


def _head(card: Path | None) -> dict[str, Any]:
    """The YAML at the head of a card; empty when there is none that can be read."""
    try:
        text = card.read_text(encoding="utf-8") if card is not None else ""
        match = re.match(r"---\r?\n(.*?)\r?\n---", text, re.DOTALL)
        plain = yaml.safe_load(match[1]) if match else None
    except (OSError, ValueError, yaml.YAMLError, RecursionError):
        return {}
    return plain if isinstance(plain, dict) else {}


def _license(head: dict[str, Any]) -> tuple[str | None, str | None, str | None]:
    def text(name: str) -> str | None:
        value = head.get(name)
        value = value[0] if isinstance(value, list) and value else value
        return value if isinstance(value, str) and 0 < len(value) < 200 else None

    return text("license"), text("license_name"), text("license_link")
