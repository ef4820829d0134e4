"""One op as a function: on stores, without a recipe."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from adp.core.option_errors import names, sentence
from adp.curation.inputs import open_inputs
from adp.curation.load import load
from adp.curation.op import OpResult
from adp.curation.registry import OPS
from adp_schema.errors import RecipeError
from adp_schema.scratch import ScratchFolder
from adp_schema.store import Store

Given = str | os.PathLike[str] | Store


def apply(
    op: str,
    stores: Given | Sequence[Given] | Mapping[str, Given],
    *,
    seed: int = 0,
    workers: int | None = None,
    reserve: Sequence[str] = (),
    **options: Any,
) -> OpResult:
    """Run one op on all trajectories of some stores, and return what it says.

    Nothing is written. ``outcome.columns`` are the columns that it adds, ``outcome.dropped`` the
    trajectories that it would leave out; see `OpResult`.

    Args:
        op: name of the op.
        stores: a store or several; with names, when they matter.
        seed: seed of the op.
        workers: number of processes; None takes one a core. The outcome does not depend on it.
        reserve: names of stores whose trajectories are out at first, as a replay buffer's.
        **options: options of the op, as in a recipe.

    Raises:
        UsageError: there is no such op.
        RecipeError: an option is wrong, or a column is missing.
        StoreError: there is no finished store.
    """
    chosen = OPS.get(op)
    try:
        checked = chosen.options.model_validate(options)
    except ValidationError as error:
        message = sentence(error, names(chosen.options))
        raise RecipeError(f"the op {op} does not take this: {message}") from None
    if not isinstance(stores, Mapping):
        several = [stores] if isinstance(stores, str | os.PathLike | Store) else list(stores)
        stores = {
            f"store{number}" if number else "store": result for number, result in enumerate(several)
        }
    paths = {
        name: store.root if isinstance(store, Store) else os.fspath(store)
        for name, store in stores.items()
    }
    inputs = open_inputs(paths, reserve)
    with ScratchFolder("apply") as scratch:
        pool = load(inputs, scratch).pool(scratch, seed=seed, workers=workers)
        missing = [name for name in chosen.needs(checked) if name not in pool.members.columns]
        if missing:
            raise RecipeError(f"the op {op} needs the column {missing[0]}, which is not there")
        try:
            return chosen.run(pool, checked)
        finally:
            pool.close()
