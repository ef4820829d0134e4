"""From a store of `adp make teacher` to preference pairs: calls that went well and that failed."""

from __future__ import annotations

import os
from pathlib import Path

from adp.core.progress import Progress
from adp.curation.recipe_file import read_recipe
from adp.curation.run import CurateOptions, run

RECIPE = Path(__file__).with_name("recipes") / "made_pairs.yaml"
"""The recipe; its input is named ``made``."""


def make_pairs(
    store: str | os.PathLike[str], out: str | os.PathLike[str], *, progress: Progress | None = None
) -> int:
    """Put each failed call beside the one that went well; `adp train dpo` takes OUT/pairs.

    Args:
        store: a finished store of `adp make teacher`.
        out: folder; the pairs go into its folder ``pairs``.
        progress: told how far it is.

    Returns:
        The number of pairs.

    Raises:
        EmptyResultError: no call failed; nothing was written.
        OutputExistsError: the output holds something else.
        StoreError: the store is not finished.
    """
    recipe = read_recipe(str(RECIPE), [f"inputs.made={os.fspath(store)}"])
    curated = run(recipe, str(out), options=CurateOptions(RECIPE.parent), progress=progress)
    return int(curated.report["outputs"][0]["pairs"])
