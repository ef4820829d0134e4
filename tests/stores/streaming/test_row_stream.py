"""Streams of trajectories, against `Store.trajectories`."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adp
from adp.stores.streaming.row_stream import RowStream
from adp_schema.builder import Origin, RowBuilder
from adp_schema.errors import UsageError
from adp_schema.model import Trajectory
from adp_schema.store import Store
from tests.effort import examples


def add(builder: RowBuilder, seq: int, shape: list[tuple[int, int]], early: int) -> None:
    """A trajectory: early observations, and for each step its calls and observations."""
    builder.begin(Origin(seq=seq, dataset="d", columns={"source_hash": f"{seq:032x}"}))
    builder.trajectory({"source_id": f"t{seq}", "success": seq % 2 == 0})
    for number in range(early):
        builder.observation({"source": "environment", "text": f"early {seq} {number}"})
    for calls, observations in shape:
        builder.step({"source": "agent", "kind": "llm_turn", "text": f"step {seq}"})
        for _ in range(calls):
            builder.call({"kind": "function", "name": f"f{seq}", "arguments": "{}"})
        for number in range(observations):
            builder.observation({"source": "environment", "text": f"{seq} {number}"})
    builder.finish()


steps = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), max_size=3)
runs = st.tuples(steps, st.integers(0, 2))
shards = st.lists(st.lists(st.lists(runs, max_size=4), max_size=3), min_size=1, max_size=3)
"""Shards of row groups of runs."""


def made(folder: Path, described: list[Any]) -> Store:
    """A store: shards with several row groups each."""
    from adp_schema.manifest import Manifest
    from adp_schema.writer import ShardWriter, place

    seq = 0
    manifest = Manifest()
    for index, groups in enumerate(described):
        writer = ShardWriter(folder / "staged")
        builder = RowBuilder()
        for group in groups:
            for shape, early in group:
                add(builder, seq, shape, early)
                seq += 7
            writer.flush(builder)
        for table in writer.close():
            file = folder / "staged" / f"{table}.parquet"
            shard = place(file, folder, table, index, writer.rows.get(table, 0))
            manifest.tables.setdefault(table, []).append(shard)
    manifest.counts.records = manifest.counts.used = manifest.counts.trajectories = seq // 7
    manifest.write(folder)
    return Store.open(str(folder))


def plain(trajectory: Trajectory) -> dict[str, Any]:
    """A trajectory as its nested row is to be."""
    result = trajectory.model_dump()
    result["steps"] = [
        {
            **step.model_dump(),
            "calls": [call.model_dump() for call in step.calls],
            "observations": [row.model_dump() for row in step.observations],
        }
        for step in trajectory.steps
    ]
    result["early_observations"] = [row.model_dump() for row in trajectory.early_observations]
    return result


def rows(stream: Any) -> list[Any]:
    return [row for batch in stream for row in batch.to_pylist()]


def ids(stream: Any) -> list[str]:
    return [row["trajectory_id"] for row in rows(stream)]


@settings(max_examples=examples(200))
@given(shards, st.integers(1, 5))
def test_the_rows_are_the_trajectories(described: list[Any], size: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = made(Path(folder), described)
        stream = adp.stream(store, batch_size=size)
        batches = list(stream)
        assert rows(batches) == [plain(trajectory) for trajectory in store]
        assert [batch.num_rows for batch in batches[:-1]] == [size] * len(batches[:-1])
        for batch in batches:
            batch.validate(full=True)
            assert batch.schema == stream.schema


@settings(max_examples=examples(200))
@given(shards, st.integers(0, 6), st.integers(0, 3), st.integers(1, 4), st.integers(1, 3))
def test_the_parts_are_the_whole_and_each_goes_on(
    described: list[Any], buffer: int, seed: int, count: int, workers: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = made(Path(folder), described)
        options: dict[str, Any] = {"shuffle": buffer, "seed": seed, "columns": ["trajectory_id"]}
        whole = ids(adp.stream(store, **options))
        assert sorted(whole) == sorted(t.trajectory_id or "" for t in store)
        parts = [adp.stream(store, rank=rank, world_size=count, **options) for rank in range(count)]
        assert [name for part in parts for name in ids(part)] == whole
        assert max(map(len, parts)) - min(map(len, parts)) <= 1
        cut = [part.part(worker, workers) for part in parts for worker in range(workers)]
        assert [name for part in cut for name in ids(part)] == whole


@settings(max_examples=examples(200))
@given(shards, st.integers(0, 6), st.data())
def test_a_stream_goes_on_at_every_place(described: list[Any], buffer: int, data: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = made(Path(folder), described)
        stream = adp.stream(store, shuffle=buffer, batch_size=2, columns=["trajectory_id"])
        expected = ids(stream)
        states = [stream.state_dict() for _ in stream]
        for index, state in enumerate(states):
            again = adp.stream(store, shuffle=buffer, batch_size=3, columns=["trajectory_id"])
            again.load_state_dict(state)
            assert again.state_dict() == state
            assert ids(again) == expected[2 * index + 2 :]
            assert ids(again) == expected  # the next pass is whole


@pytest.fixture
def store(tmp_path: Path) -> Store:
    described = [[[([(1, 1)], 0)] * 5] * 4] * 3
    return made(tmp_path, described)


def test_a_shuffled_stream_is_another_one_each_epoch_and_seed(store: Store) -> None:
    stream = adp.stream(store, shuffle=10)
    first = ids(stream)
    assert first == ids(adp.stream(store, shuffle=10))
    stream.set_epoch(1)
    orders = [
        ids(adp.stream(store)),
        first,
        ids(stream),
        ids(adp.stream(store, shuffle=10, seed=1)),
    ]
    assert len({tuple(order) for order in orders}) == 4
    assert len({frozenset(order) for order in orders}) == 1
    shards_of = {name: place // 20 for place, name in enumerate(orders[0])}
    assert len({shards_of[name] for name in first[:10]}) > 1  # of several shards


def test_only_what_is_asked_for_is_read(store: Store) -> None:
    stream = adp.stream(store, columns=["success", "steps.text", "steps.observations.text"])
    row = next(iter(stream)).to_pylist()[0]
    assert row == {
        "success": True,
        "steps": [{"text": "step 0", "observations": [{"text": "0 0"}]}],
    }
    early = adp.stream(store, columns=["early_observations.text"])
    assert next(iter(early)).to_pylist()[0] == {"early_observations": []}
    calls = adp.stream(store, columns=["steps.calls"])
    assert next(iter(calls)).to_pylist()[0]["steps"][0]["calls"][0]["name"] == "f0"


@pytest.mark.parametrize("buffer", [0, 7])
def test_a_condition_chooses(store: Store, buffer: int) -> None:
    stream = adp.stream(store, where="success", shuffle=buffer, rank=1, world_size=2)
    other = adp.stream(store, where="success", shuffle=buffer, rank=0, world_size=2)
    assert len(stream) == len(other) == 15
    expected = sorted(t.trajectory_id or "" for t in store if t.success)
    assert sorted(ids(stream) + ids(other)) == expected


def test_what_is_wrong_is_said(store: Store) -> None:
    with pytest.raises(UsageError, match=r"unknown column 'steps.txt'; did you mean steps.text"):
        adp.stream(store, columns=["steps.txt"])
    with pytest.raises(UsageError, match="no part 2 of 2"):
        adp.stream(store, rank=2, world_size=2)
    with pytest.raises(UsageError, match="batch_size is 0"):
        adp.stream(store, batch_size=0)
    state = adp.stream(store, seed=1).state_dict()
    with pytest.raises(UsageError, match="another order"):
        adp.stream(store).load_state_dict(state)
    state = adp.stream(store, rank=1, world_size=2).state_dict()
    with pytest.raises(UsageError, match="another part"):
        adp.stream(store).load_state_dict(state)


def test_a_growing_store_and_one_that_is_sealed(tmp_path: Path, store: Store) -> None:
    root = str(tmp_path / "grown")
    with adp.grow(root, seal_count=3) as growing:
        growing.extend(list(store)[:5])
        held = adp.stream(root)
        assert rows(held) == [plain(trajectory) for trajectory in adp.open(root)]
        assert len(held) == 5
        growing.append(list(store)[6])
        assert len(rows(held)) == 5  # what it held when it was opened
    sealed = adp.seal(root)
    assert ids(adp.stream(sealed)) == [t.trajectory_id for t in sealed]


def test_a_store_of_an_older_version(tmp_path: Path) -> None:
    from tests.adp_schema.test_store import make_old

    root = tmp_path / "old"
    make_old(made(root, [[[([(1, 1), (2, 0)], 1)] * 3]]), root)
    store = Store.open(str(root))
    assert store.renamed
    assert rows(adp.stream(store)) == [plain(trajectory) for trajectory in store]


def test_a_stream_is_pickled(store: Store) -> None:
    stream = adp.stream(store, shuffle=5)
    next(iter(stream))
    again = pickle.loads(pickle.dumps(stream))
    assert ids(again) == ids(stream)


def test_rendered_rows(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    from adp.rendering.report import RenderReport

    table = pa.table({"input_ids": [[n, n] for n in range(40)], "length": [2] * 40})
    (tmp_path / "rows").mkdir()
    parts = {}
    for index in range(2):
        path = tmp_path / "rows" / f"{index}.parquet"
        pq.write_table(table.slice(index * 20, 20), path, row_group_size=6)
        parts[path.name] = path.stat().st_size
    report = RenderReport(folder=str(tmp_path), parts=parts)
    assert rows(adp.stream(report, batch_size=7)) == table.to_pylist()
    shuffled = rows(adp.stream(report, shuffle=9, columns=["input_ids"]))
    assert sorted(row["input_ids"][0] for row in shuffled) == list(range(40))
    assert [row["input_ids"][0] for row in shuffled] != list(range(40))
    with pytest.raises(UsageError, match="unknown column 'labels'"):
        adp.stream(report, columns=["labels"])
    with pytest.raises(UsageError, match="where"):
        adp.stream(report, where="success")


def test_a_stream_over_a_url(store: Store) -> None:
    far = adp.stream(f"file://{store.root}", shuffle=10)
    assert isinstance(far, RowStream)
    near = ids(adp.stream(store, shuffle=10))
    assert ids(far) == near


@settings(max_examples=5)
@given(st.integers(0, 2**31))
def test_the_shuffle_is_even(seed: int) -> None:
    """Each row comes first about as often: chi-squared over 40 rows, far in its tail."""
    from adp.stores.streaming.order import RowOrder

    first = [int(RowOrder(1, seed, epoch)._shuffled(40, "x")[0]) for epoch in range(4000)]
    counts = [first.count(row) for row in range(40)]
    assert sum((count - 100) ** 2 / 100 for count in counts) < 95
