"""A rendered store: the same bytes however it is made, and counts that add up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

from adp.converters.run import convert
from adp.rendering import run as module
from adp.rendering.options import RenderOptions
from adp.rendering.render import Renderer
from adp.rendering.run import RenderJob, render_store
from adp.rendering.table import ROWS
from adp_schema.builder import Origin, RowBuilder
from adp_schema.ids import digest_file
from adp_schema.store import Store
from tests.store_builders import write_store

DATA = Path(__file__).parents[2].parent / "shared" / "data"
shared = pytest.mark.skipif(not DATA.exists(), reason="the reference data are not here")
SAMPLES = ("m3/bird-latest", "adp_v1/openhands", "adp_v1/swe-smith", "adp_atif/toucan_1_5m")


def small_store(folder: Path, dataset: str = "runs") -> Store:
    """Twelve runs; some steps have no weight, one run a branch, some arguments that are no JSON."""
    builder = RowBuilder()
    for number in range(12):
        builder.begin(Origin(seq=number * 10, dataset=dataset))
        builder.trajectory({"source_id": str(number)})
        builder.step({"source": "user", "text": f"question {number}"})
        builder.step({"source": "agent", "text": "I look.", "loss_weight": number % 3 / 2})
        broken = {"arguments_raw": "{no", "arguments_kind": "invalid"}
        builder.call({"name": "look", **(broken if number % 4 == 0 else {"arguments": '{"n": 1}'})})
        builder.observation({"text": "seen"})
        builder.step({"source": "agent", "text": f"answer {number} " + "word " * number})
        builder.finish()
    return write_store(folder, builder)


def hashes(folder: Path) -> dict[str, str]:
    """Hashes of all files."""
    return {
        str(path.relative_to(folder)): digest_file(str(path))
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs of few rows, so that there are several."""
    monkeypatch.setattr(module, "JOB_ROWS", 16)


@pytest.mark.usefixtures("few_rows")
def test_the_same_bytes_however_it_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = small_store(tmp_path / "store")
    report = render_store(store, "tiny", str(tmp_path / "one"), workers=1)
    assert len(report.files()) > 2
    render_store(store, "tiny", str(tmp_path / "two"), workers=2)
    wanted = hashes(tmp_path / "one")
    assert hashes(tmp_path / "two") == wanted

    def fails(job: RenderJob) -> Any:
        if job.index == 2:
            raise KeyboardInterrupt
        return work(job)

    work = module.work
    monkeypatch.setattr(module, "work", fails)
    with pytest.raises(KeyboardInterrupt):
        render_store(store, "tiny", str(tmp_path / "three"), workers=1)
    monkeypatch.setattr(module, "work", work)
    assert not (tmp_path / "three" / "render.json").exists()
    again = render_store(store, "tiny", str(tmp_path / "three"), workers=1)
    assert hashes(tmp_path / "three") == wanted
    assert {**vars(again), "folder": ""} == {**vars(report), "folder": ""}


def test_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADP_CACHE", str(tmp_path / "cache"))
    result, other = small_store(tmp_path / "one"), small_store(tmp_path / "other", "others")
    first = render_store(result, "tiny", workers=1)
    again = render_store(result, "tiny", workers=1)
    assert not first.cached
    assert again.cached
    assert again.folder == first.folder
    assert {**vars(again), "cached": False} == vars(first)
    second = render_store(other, "tiny", workers=1)
    shorter = render_store(result, "tiny", options=RenderOptions(max_length=64), workers=1)
    folders = {first.folder, second.folder, shorter.folder}
    assert len(folders) == 3
    assert not second.cached
    assert not shorter.cached


@pytest.mark.usefixtures("few_rows")
def test_rows_and_losses_add_up(tmp_path: Path) -> None:
    store = small_store(tmp_path / "store")
    for limit in (None, 120, 60):
        folder = tmp_path / str(limit)
        options = RenderOptions(max_length=limit)
        report = render_store(store, "tiny", str(folder), options, workers=1)
        rows = pl.concat([pl.read_parquet(path) for path in report.files()])
        for path in report.files():
            assert pq.read_schema(path).equals(ROWS)
        lost = [pl.read_parquet(path) for path in sorted((folder / "lost").glob("*.parquet"))]
        gone = int(pl.concat(lost)["steps"].sum()) if lost else 0
        weighed = sum(number % 3 > 0 for number in range(12)) + 12
        assert report.steps == weighed == report.trained + gone
        assert gone == report.lost.total()
        assert rows.height == report.rows
        assert rows["length"].to_list() == rows["input_ids"].list.len().to_list()
        assert rows["length"].sum() == report.tokens
        assert rows["trained"].sum() == report.trained_tokens
        assert rows["length"].max() == report.longest
        assert limit is None or report.longest <= limit
        kept = (rows["labels"].explode() != -100) == (rows["loss_weights"].explode() > 0)
        assert kept.all()
        assert report.fractional
        messages = json.loads((folder / "render.json").read_text())
        assert messages["steps"] == report.steps
        made = Renderer.load("tiny", options)
        alone = [row for run in store.trajectories() for row in made.trajectory(run).rows]
        assert rows["input_ids"].to_list() == [row.input_ids.tolist() for row in alone]
        assert rows["labels"].to_list() == [row.labels.tolist() for row in alone]


@pytest.mark.slow
@shared
@pytest.mark.parametrize("sample", SAMPLES)
def test_real_samples(sample: str, tmp_path: Path) -> None:
    """Real runs, in several templates: every step is trained or counted, and none twice."""
    from tests.rendering.families import renderer

    convert([str(DATA / sample)], str(tmp_path / "store"))
    store = Store.open(str(tmp_path / "store"))
    resolves = [store.resolve(run) for run, _ in zip(store.trajectories(), range(3), strict=False)]
    trained = 0
    for name in ("qwen2_5", "qwen3", "llama3_1", "gptoss", "mistral_tekken"):
        for options in (RenderOptions(), RenderOptions(max_length=3000, window="sliding")):
            made = renderer(name, "bytes", options)
            for run in resolves:
                if len(run.steps) > 40:
                    continue
                trajectory = made.trajectory(run)
                steps = [set(row.step_index.tolist()) - {-1} for row in trajectory.rows]
                assert trajectory.steps == trajectory.trained + trajectory.lost.total()
                assert trajectory.trained == sum(map(len, steps)) == len(set().union(*steps))
                assert all(
                    len(row.input_ids) <= (options.max_length or 1 << 30) for row in trajectory.rows
                )
                trained += trajectory.trained
    assert trained
