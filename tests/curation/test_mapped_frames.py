"""Frames in files hold the same rows as frames in memory, and recipes over them write the same."""

from __future__ import annotations

import tempfile
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adp.curation import mapped_frames
from adp_schema.errors import EmptyResultError
from tests.curation.recipes import contents, curate
from tests.curation.small_runs import make
from tests.curation.test_random_recipes import OPS, named
from tests.effort import examples

FRAME = pl.DataFrame(
    {
        "seq": [2, 3, 5, 9],
        "text": ["a", None, "longer than twelve bytes", "é"],
        "list": [[1], [], None, [2, 3]],
        "flag": [True, None, False, True],
    }
)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped_frames, "MAPPED_ROWS", 3)


@pytest.mark.usefixtures("few")
def test_the_rows_are_the_same(tmp_path: Path) -> None:
    held = mapped_frames.mapped(FRAME, tmp_path / "a.arrow")
    assert (tmp_path / "a.arrow").exists()
    assert held.equals(FRAME)
    lazy = mapped_frames.mapped(FRAME.lazy().select("seq"), tmp_path / "b.arrow")
    assert lazy.equals(FRAME.select("seq"))
    wanted = pl.Series([True, False, True, True])
    assert mapped_frames.filtered(held, wanted, tmp_path / "c.arrow").equals(FRAME.filter(wanted))
    assert mapped_frames.filtered(held, wanted | True, tmp_path / "d.arrow") is held
    more = pl.DataFrame({"seq": [9, 2], "n": [1, 2]})
    both = mapped_frames.with_columns_by_seq(held, more, tmp_path / "e.arrow")
    assert both.equals(FRAME.with_columns(n=pl.Series([2, None, None, 1])))


def test_few_rows_stay_in_memory(tmp_path: Path) -> None:
    assert mapped_frames.mapped(FRAME, tmp_path / "a.arrow") is FRAME
    assert not list(tmp_path.iterdir())


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store of attempts, doubles and errors, and a benchmark."""
    return make(tmp_path_factory.mktemp("runs"))


@settings(max_examples=examples(8), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ops=st.lists(st.sampled_from(OPS), min_size=1, max_size=5), seed=st.integers(0, 9))
def test_recipes_write_the_same(runs: Path, ops: list[dict[str, object]], seed: int) -> None:
    results = []
    for rows in (mapped_frames.MAPPED_ROWS, 7):
        with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            patch.setattr(mapped_frames, "MAPPED_ROWS", rows)
            out, inputs = Path(folder) / "out", {"runs": str(runs / "store")}
            try:
                curate(inputs, out, *named(ops), folder=runs, seed=seed, workers=1)
            except EmptyResultError as error:
                results.append({"error": str(error)})
            else:
                results.append(contents(out))
    assert results[0] == results[1]
