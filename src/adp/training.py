"""`adp.render` and the other calls of the library for training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from adp.rendering.report import RenderReport
    from adp_schema.store import Store

    PathText = str | PathLike[str]


def render(
    store: PathText | Store,
    model: PathText,
    out: PathText | None = None,
    *,
    splits: Sequence[str] | None = None,
    workers: int | None = None,
    **options: Any,
) -> RenderReport:
    """Render a store with a model's chat template: tokens, labels and weights, in Parquet.

    One trajectory alone is ``adp.rendering.render.Renderer.load(model).trajectory(t)``.

    Args:
        store: the store, or its path or URL.
        model: whose tokenizer and chat template: a folder, a name on the Hub, or ``tiny``.
        out: folder for the rows; None takes one in the cache.
        splits: only trajectories of these splits.
        workers: number of processes; None takes one a core. The rows do not depend on it.
        **options: fields of `adp.rendering.options.RenderOptions`, such as ``max_length=8192,
            window="sliding"``.

    Returns:
        Counts, and ``files()``: the Parquet files of the rows.

    Raises:
        UsageError: an option is wrong, or the model has no tokenizer that can be used.
        EmptyResultError: no row comes out.
        OutputExistsError: the folder holds something else.
    """
    import os

    from pydantic import ValidationError

    from adp.rendering.options import RenderOptions
    from adp.rendering.run import render_store
    from adp_schema.errors import UsageError
    from adp_schema.store import Store
    from adp_schema.verification import verified

    try:
        wanted = RenderOptions(**options)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        raise UsageError(f"{name or 'options of rendering'}: {first['msg']}") from error
    folder = None if out is None else os.fspath(out)
    with verified():
        opened = store if isinstance(store, Store) else Store.open(os.fspath(store), check=False)
        opened.check()
        return render_store(
            opened, os.fspath(model), folder, wanted, splits=splits, workers=workers
        )
