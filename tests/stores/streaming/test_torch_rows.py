"""Streams as data sets of torch: each row once, and gone on with to the row."""

from __future__ import annotations

from typing import Any

import pytest

import adp
from adp_schema.store import Store
from tests.stores.streaming.test_row_stream import ids, made

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.train

OPTIONS: dict[str, Any] = {"shuffle": 10, "columns": ["trajectory_id"], "batch_size": 4}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return made(tmp_path_factory.mktemp("s"), [[[([(1, 1)], 0)] * 4] * 3] * 2)


def given(loader: Any) -> list[str]:
    return [row["trajectory_id"] for row in loader]


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_each_row_once(store: Store, workers: int) -> None:
    rows = adp.stream(store, rank=1, world_size=2, **OPTIONS).torch()
    loader = torch.utils.data.DataLoader(rows, batch_size=None, num_workers=workers)
    expected = ids(adp.stream(store, rank=1, world_size=2, **OPTIONS))
    assert len(loader) == len(expected) == 12
    assert sorted(given(loader)) == sorted(expected)
    assert (given(loader) == expected) is (workers < 2)
    rows.set_epoch(1)
    assert set(given(loader)) != set(expected)


def test_it_goes_on_at_every_row(store: Store) -> None:
    rows = adp.stream(store, **OPTIONS).torch()
    expected = ids(adp.stream(store, **OPTIONS))
    assert rows.state_dict()["rows"] == 0
    for count, _ in enumerate(rows, 1):
        again = adp.stream(store, **OPTIONS).torch()
        again.load_state_dict(rows.state_dict())
        assert again.state_dict() == rows.state_dict()
        assert given(again) == expected[count:]
    assert given(again) == expected


@pytest.mark.filterwarnings("ignore")  # torchdata 0.11 calls what torch has taken back
@pytest.mark.parametrize("workers", [0, 2])
def test_a_stateful_loader_goes_on(store: Store, workers: int) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader

    def loader() -> Any:
        return stateful(adp.stream(store, **OPTIONS).torch(), batch_size=None, num_workers=workers)

    expected = given(loader())
    assert sorted(expected) == sorted(t.trajectory_id or "" for t in store)
    first = loader()
    for count, _ in enumerate(first, 1):
        if count in (7, 8, 13):
            again = loader()
            again.load_state_dict(first.state_dict())
            assert given(again) == expected[count:]
