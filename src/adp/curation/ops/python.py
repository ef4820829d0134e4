"""An op of the user's own: a Python function. It runs only when the call allows it."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from adp.curation.op import Op, OpOptions, OpResult
from adp_schema.errors import RecipeError

if TYPE_CHECKING:
    from adp.curation.pool import Pool


class Python(OpOptions):
    """Options of `python`."""

    function: str = Field(
        pattern=r"^[^:]+:[A-Za-z_]\w*$",
        description="FILE.py:NAME, relative to the recipe, or MODULE:NAME. It is called with the "
        "pool and the options, and returns an Outcome or a frame of seq and new columns.",
    )
    options: dict[str, Any] = Field(
        default_factory=dict, description="What the function gets as its second argument."
    )


def run(pool: Pool, options: Python) -> OpResult:
    """Call the function."""
    import polars as pl

    function = _load(options.function, pool.folder)
    try:
        result = function(pool, options.options)
    except Exception as error:
        name = type(error).__name__
        raise RecipeError(f"the function {options.function} failed: {name}: {error}") from error
    if isinstance(result, pl.DataFrame):
        return OpResult(columns=result)
    if not isinstance(result, OpResult):
        kind = type(result).__name__
        raise RecipeError(
            f"the function {options.function} returned {kind}; return an Outcome or a DataFrame"
        )
    return result


def _load(text: str, folder: Path) -> Callable[[Pool, dict[str, Any]], Any]:
    place, _, name = text.rpartition(":")
    try:
        if place.endswith(".py"):
            spec = importlib.util.spec_from_file_location(Path(place).stem, folder / place)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        else:
            module = importlib.import_module(place)
        function: Callable[[Pool, dict[str, Any]], Any] = getattr(module, name)
    except Exception as error:
        raise RecipeError(f"cannot load the function {text}: {error}") from error
    return function


OP = Op(
    name="python",
    title="Call a function of your own; only with --allow-python.",
    options=Python,
    run=run,
    cost="That of the function.",
    source="Yours.",
)
