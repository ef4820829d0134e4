"""Keys from what users ask: the same whatever is in memory at a time."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.stores.tasks import words
from adp_schema.builder import Origin, RowBuilder
from adp_schema.ids import digest
from adp_schema.store import Store
from tests.store_builders import write_store

RUNS = st.lists(
    st.tuples(
        st.sampled_from(["one", "two"]),
        st.lists(st.tuples(st.sampled_from(["user", "agent"]), st.sampled_from("abc")), max_size=6),
    ),
    min_size=1,
    max_size=12,
)
"""Runs of two data sets that say so little that many begin alike."""


def store_of(folder: Path, runs: list[tuple[str, list[tuple[str, str]]]]) -> Store:
    """A store of two shards with these runs."""
    builders = [RowBuilder(), RowBuilder()]
    for number, (dataset, messages) in enumerate(runs):
        builder = builders[number >= len(runs) // 2]
        builder.begin(Origin(seq=10 * number, dataset=dataset))
        builder.trajectory({"source_id": f"run-{number}"})
        for source, text in messages:
            builder.step({"source": source, "kind": "message", "text": text})
        builder.finish()
    return write_store(folder, *builders)


def plain_keys(store: Store) -> dict[int, str]:
    """The keys by a walk over all trajectories, none of them read in chunks."""
    keys = {}
    for dataset in ("one", "two"):
        runs = {
            run.seq: [
                (step.source == "user", digest((step.text or "").encode())) for step in run.steps
            ]
            for run in store.trajectories()
            if run.dataset == dataset
        }
        keys |= words.keys_of(runs)
    return keys


@given(runs=RUNS, chunk=st.integers(1, 5))
def test_chunks_change_no_key(runs: list[tuple[str, list[tuple[str, str]]]], chunk: int) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        store = store_of(Path(folder) / "store", runs)
        patch.setattr(words, "CHUNK", chunk)
        frame = words.word_keys(store)
        assert dict(frame.iter_rows()) == plain_keys(store)
        assert frame["seq"].is_sorted()
