"""The sequences of a pool, rendered by its workers."""

from __future__ import annotations

import polars as pl

from adp.curation.pool import Pool
from adp.curation.training_loss.sequences import (
    INDEX,
    RenderPlan,
    TokenFiles,
    answer_start,
    render_partition,
)
from adp.curation.training_loss.settings import ScoreSettings, renderer_of
from adp.rendering.worker_tokenizer import save_lean


def render_pool(pool: Pool, settings: ScoreSettings) -> tuple[pl.DataFrame, TokenFiles]:
    """Render the members of a pool.

    Args:
        pool: the pool; what is rendered lies in its scratch folder.
        settings: the model and the options.

    Returns:
        Rows of `INDEX`, and the tokens.

    Raises:
        UsageError: the model has no tokenizer that can be used.
    """
    renderer = renderer_of(settings)
    tokenizer = pool.scratch / "tokenizer.json"
    save_lean(renderer.tokenizer, tokenizer, renderer.stops)
    names = {"weights": "", "edits": ""}
    for name in names:
        frame: pl.DataFrame | None = getattr(pool, name)
        if frame is not None:
            path = pool.scratch / f"given-{name}.parquet"
            frame.write_parquet(path)
            names[name] = str(path)
    plan = RenderPlan(
        tokenizer=str(tokenizer),
        options=renderer.options.model_dump_json(),
        start=answer_start(renderer) if settings.ifd else None,
        folder=str(pool.scratch),
        **names,
    )
    index = pool.map(render_partition, plan, "rendered")
    if not index.width:
        index = pl.DataFrame(schema=INDEX)
    parts = index.filter(pl.col("row").is_not_null())["part"].unique().to_list()
    return index, TokenFiles(plan, parts)
