"""Which of several trajectories stays, against a plain sort."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.curation.survivors import DEFAULT_KEEP, check_keep, in_order, keep_columns
from adp_schema.errors import RecipeError

rows = st.lists(
    st.tuples(
        st.none() | st.sampled_from([0.0, 0.5, 1.0, float("nan")]),
        st.none() | st.integers(0, 3),
        st.integers(0, 3),
    ),
    max_size=8,
)


def _frame(values: list[tuple[float | None, int | None, int]], tokens: bool) -> pl.DataFrame:
    schema = {"reward": pl.Float64, "tokens": pl.Int64, "size": pl.Int64}
    frame = pl.DataFrame(values, schema=schema, orient="row")
    names = [f"id{(7 * place) % 11}-{place}" for place in range(len(values))]
    frame = frame.with_columns(
        pl.Series("trajectory_id", names, dtype=pl.String),
        pl.Series("seq", range(len(values)), dtype=pl.Int64),
    )
    return frame if tokens else frame.drop("tokens")


@given(rows, st.booleans())
def test_default_order(values: list[tuple[float | None, int | None, int]], tokens: bool) -> None:
    def key(row: dict[str, object]) -> tuple[object, ...]:
        reward, count = row["reward"], row["tokens" if tokens else "size"]
        known = isinstance(reward, float) and reward == reward
        return (
            *((0, -reward) if known and isinstance(reward, float) else (1, 0)),
            *((0, count) if count is not None else (1, 0)),
            row["trajectory_id"],
        )

    frame = _frame(values, tokens)
    result = in_order(frame, DEFAULT_KEEP)["seq"].to_list()
    assert result == [row["seq"] for row in sorted(frame.iter_rows(named=True), key=key)]


def test_wrong_keep() -> None:
    for wrong in ("reward", "reward down", " desc", ""):
        with pytest.raises(ValueError, match="asc or desc"):
            check_keep([wrong])
    assert keep_columns(["score desc", "tokens asc"]) == ["score"]
    frame = _frame([(1.0, 1, 1)], True).with_columns(pl.lit([[1]]).alias("many"))
    with pytest.raises(RecipeError, match="many"):
        in_order(frame, ["many asc"])
