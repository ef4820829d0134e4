"""Data by the references of SAGE's configuration: ``agent_sft:train`` is the split of a set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from adp.converters.run import ConvertOptions, convert
from adp.curation.recipe_file import read_recipe
from adp.curation.run import CurateOptions, run
from adp_schema.errors import InputError
from adp_schema.store import Store

_ENDINGS = ("", ".jsonl", ".json", ".parquet")


def store_of_reference(reference: Any, work: Path) -> str:
    """The store that a reference names.

    Args:
        reference: a store, files that `adp convert` reads, or one of these as ``NAME:SPLIT``;
            without an ending, NAME may be that of a ``.jsonl``, ``.json`` or ``.parquet`` file.
        work: folder for stores that have to be made.

    Raises:
        InputError: there is no such store or file, or it cannot be read.
    """
    text = str(reference)
    name, _, split = text.rpartition(":") if not Path(text).exists() else (text, "", "")
    found = _existing(name if name else text)
    if found is None:
        raise InputError(f"{text}: there is no store and no file of that name; give its path")
    if not name:
        split = ""
    path = str(found)
    if not (found / "adp.json").is_file():
        path = str(work / f"{found.stem}-store")
        if not Path(path, "adp.json").is_file():
            convert([str(found)], path, options=ConvertOptions(workers=1))
    return _only(path, split, work) if split else path


def _existing(name: str) -> Path | None:
    return next((path for end in _ENDINGS if (path := Path(name + end)).exists()), None)


def _only(store: str, split: str, work: Path) -> str:
    """The trajectories of a split."""
    out = work / f"{Path(store).name}-{split}"
    rows = Store.open(store).scan("trajectories").select("split").unique().collect()
    splits = rows["split"].to_list()
    if split not in splits:
        known = ", ".join(sorted(str(value) for value in splits))
        raise InputError(f"{store} has no split {split!r}, only {known}")
    if not Path(out, "adp.json").is_file():
        recipe = {"recipe": 1, "inputs": {"data": store},
                  "ops": [{"filter": {"sql": f"split = '{split}'"}}]}  # fmt: skip
        run(read_recipe(recipe), str(out), options=CurateOptions(Path(), 1))
    return str(out)
