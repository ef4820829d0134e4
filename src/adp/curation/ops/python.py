"""An op of the user's own: a function or an `Op`. It runs only when the call allows it.

``my_op.py:OP: {limit: 3}`` in a recipe stands for ``python: {function: my_op.py:OP, options:
{limit: 3}}``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
from pydantic import Field, ValidationError

from adp.core.code_files import attribute_of, load_code
from adp.core.option_errors import names, sentence
from adp.curation.op import Op, OpOptions, OpResult
from adp.curation.pool import Pool
from adp_schema.errors import AdpError, RecipeError


class Python(OpOptions):
    """Options of `python`."""

    function: str = Field(pattern=r"^[^:]+:[A-Za-z_]\w*$")
    """FILE.py:NAME, relative to the recipe, or MODULE:NAME. It is called with the pool and the
    options, and returns an `OpResult` or a frame of seq and new columns. NAME may also be an
    `Op`, whose options these then are."""
    options: dict[str, Any] = Field(default_factory=dict)
    """What the function gets as its second argument."""


def run(pool: Pool, options: Python) -> OpResult:
    """Call the function."""
    function = _load(options.function, pool.folder)
    given: Any = options.options
    if isinstance(function, Op):
        given = _options(function, options)
        function = function.run
    try:
        result = function(pool, given)
    except Exception as error:
        name = type(error).__name__
        raise RecipeError(f"the function {options.function} failed: {name}: {error}") from error
    if isinstance(result, pl.DataFrame):
        return OpResult(columns=result)
    if not isinstance(result, OpResult):
        kind = type(result).__name__
        raise RecipeError(
            f"the function {options.function} returned {kind}; return an OpResult or a DataFrame"
        )
    return result


def _options(op: Op, given: Python) -> OpOptions:
    try:
        return op.options.model_validate(given.options)
    except ValidationError as error:
        message = sentence(error, names(op.options))
        raise RecipeError(f"{given.function}: {message}") from None


def _load(text: str, folder: Path) -> Any:
    try:
        if text.partition(":")[0].endswith(".py"):
            return load_code(str(folder / text))[0]
        return attribute_of(text)
    except AdpError as error:
        raise RecipeError(f"cannot load the function {text}: {error}") from error


OP = Op(
    name="python",
    title="Call a function of your own; only with --allow-python.",
    options=Python,
    run=run,
    cost="That of the function.",
    source="Yours.",
)
