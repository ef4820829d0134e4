"""`adp.render`: the call of the library."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

import adp
from adp.rendering.options import RenderOptions
from adp.rendering.render import Renderer
from adp_schema.builder import RowBuilder
from adp_schema.errors import EmptyResultError, OutputExistsError, UsageError
from tests.cli.conftest import fill
from tests.store_builders import write_store


@pytest.fixture
def store(tmp_path):
    builder = RowBuilder()
    fill(builder)
    return write_store(tmp_path / "store", builder)


def test_the_rows_are_those_of_the_renderer(store, tmp_path):
    report = adp.render(store, "tiny", tmp_path / "rows", reasoning="strip")
    table = pq.read_table(report.files()[0])
    renderer = Renderer.load("tiny", RenderOptions(reasoning="strip"))
    rows = [
        row
        for trajectory in store.trajectories()
        if trajectory.parent_id is None
        for row in renderer.trajectory(trajectory).rows
    ]
    assert table["input_ids"].to_pylist() == [row.input_ids.tolist() for row in rows]
    assert table["labels"].to_pylist() == [row.labels.tolist() for row in rows]
    again = adp.render(store.root, "tiny", tmp_path / "rows", reasoning="strip")
    assert again.cached
    assert again.rows == report.rows


def test_wrong_calls_say_what_to_do(store, tmp_path):
    with pytest.raises(UsageError, match="reasoning"):
        adp.render(store, "tiny", reasoning="maybe")
    with pytest.raises(EmptyResultError, match="no trajectory was selected"):
        adp.render(store, "tiny", tmp_path / "none", splits=["test"])
    adp.render(store, "tiny", tmp_path / "rows")
    with pytest.raises(OutputExistsError):
        adp.render(store, "tiny", tmp_path / "rows", max_length=4096)
