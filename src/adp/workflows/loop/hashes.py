"""Hashes of what stages make and take."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from adp.rollouts.collecting.run_file import digest_folder
from adp.stores.shards import manifest_hash
from adp_schema.ids import digest, digest_file
from adp_schema.store import Store

_WEIGHTS = ("*.safetensors", "*.bin", "*.pt")


def store_hash(folder: Path) -> str:
    """Hash of a finished store: that of its manifest, which holds those of its files."""
    return manifest_hash(Store.open(str(folder)))


def model_hash(folder: Path) -> str:
    """Hash of the weights of a model or an adapter; where it was trained is no part of it."""
    files = sorted({file for pattern in _WEIGHTS for file in folder.glob(pattern)})
    return digest(json.dumps([[file.name, digest_file(str(file))] for file in files]).encode())


def combined(hashes: Mapping[str, str]) -> str:
    """One hash of several, by their names."""
    return digest(json.dumps(dict(sorted(hashes.items()))).encode())


class GivenFiles:
    """Hashes of the files and folders that options name and that no stage makes."""

    def __init__(self) -> None:
        self._known: dict[Path, str] = {}

    def hashes(self, options: Any, inside: Path) -> dict[str, str]:
        """Name of a file or folder -> hash.

        Args:
            options: options of a stage, as plain values.
            inside: folder of the loop; what lies in it is made by stages, and left out.
        """
        results = {}
        for text in _texts(options):
            for name in {text, *re.split(r"[=,\s]|(?<=\.py):", text)}:
                place = _place(name)
                if place is None or inside in (place, *place.parents):
                    continue
                if place not in self._known:
                    folder = place.is_dir()
                    file_hash = digest_folder(place) if folder else digest_file(str(place))
                    self._known[place] = file_hash
                results[place.name] = self._known[place]
        return results


def _place(name: str) -> Path | None:
    """The file or folder that a text names; most texts name none."""
    if not name.startswith(("/", ".")) and "/" not in name and "." not in name:
        return None
    try:
        place = Path(name).resolve()
        return place if place.exists() and place.parent != place else None
    except (OSError, ValueError):  # too long for a name, or a null character in it
        return None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)
