"""Whatever the recipe, every trajectory is accounted for, and workers do not matter."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adp_schema.errors import EmptyResultError
from adp_schema.store import Store
from tests.curation.recipes import balanced, contents, curate
from tests.curation.small_runs import make
from tests.effort import examples

OPS = [
    {"measure": {"only": ["sizes", "errors", "loops", "steps"]}},
    {"filter": {"sql": "reward > 0.2"}},
    {"filter": {"preset": "success", "unknown": "keep"}},
    {"filter": {"per_task_cap": 2}},
    {"dedup_exact": {}},
    {"dedup_exact": {"of": "actions", "normalise": True}},
    {"dedup_near": {"alarm": "warn", "attempts": "together"}},
    {"dedup_semantic": {"threshold": 0.9, "alarm": "warn", "attempts": "together"}},
    {"decontaminate": {"against": [{"file": "benchmark.jsonl"}]}},
    {"coreset": {"method": "random", "share": 0.7, "coverage": False}},
    {"coreset": {"method": "k_center", "size": 9, "coverage": False}},
    {"coreset": {"method": "top", "by": "reward", "size": 9, "coverage": False}},
    {"mix": {"by": "agent_model", "method": "balanced", "epochs": 2, "total": 14}},
    {"mix": {"by": "agent_model", "method": "temperature"}},
    {"mask": {"policy": ["errors", "history"]}},
    {"pareto": {"count": 3, "contrast": "none"}},
    {"pairs": {"rule": "attempts"}},
    {"pairs": {"rule": "format_corruption"}},
    {"pairs": {"rule": "ranked"}},
    {"split": {"shares": {"train": 0.5, "test": 0.5}}},
    {"annotate": {"expressions": {"n": "rows + 1"}}},
]


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    """A folder with a store of attempts, doubles and errors, and a benchmark."""
    return make(tmp_path_factory.mktemp("runs"))


def named(ops: list[dict]) -> list[dict]:
    """The same ops, each a stage with a name of its own, since two may add the same columns."""
    return [{**op, "as": f"s{number}"} for number, op in enumerate(ops)]


@settings(max_examples=examples(24), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ops=st.lists(st.sampled_from(OPS), min_size=1, max_size=5), seed=st.integers(0, 9))
def test_every_trajectory_is_accounted_for(runs, ops, seed):
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        try:
            done = curate(
                {"runs": str(runs / "store")}, out, *named(ops), folder=runs, seed=seed, workers=1
            )
        except EmptyResultError:
            assert not out.exists()
            return
        balanced(done)
        store = Store.open(str(out))
        kept = done.ledger.filter(done.ledger["verdict"] == "kept")["trajectory_id"]
        made = set(store.scan("trajectories").collect()["trajectory_id"])
        assert set(kept) <= made
        pairs = store.scan("pairs").collect()
        for side in ("context_id", "chosen_id", "rejected_id"):
            assert set(pairs[side].drop_nulls()) <= made


@pytest.mark.slow
def test_the_bytes_do_not_depend_on_the_workers(runs, tmp_path, monkeypatch):
    from adp.curation import partitions, write

    # So small that this little store has several partitions and shards.
    monkeypatch.setattr(partitions, "PARTITION_BYTES", 15_000)
    monkeypatch.setattr(write, "SHARD_BYTES", 15_000)
    monkeypatch.setattr("adp.stores.stage.SMALL", 0)
    monkeypatch.setattr("adp.stores.stage.SMALL", 0)
    names = ("measure", "dedup_near", "decontaminate", "mask", "split")
    ops = [op for op in OPS if any(name in op for name in names)]
    mix = {"by": "agent_model", "method": "balanced", "epochs": 2, "total": 20}
    ops += [{"pairs": {"rule": "attempts"}}, {"mix": mix}]
    results = []
    for workers in (1, 2, 4):
        out = tmp_path / f"out{workers}"
        inputs = {"runs": str(runs / "store")}
        curate(inputs, out, *named(ops), folder=runs, seed=3, workers=workers)
        results.append(contents(out))
        results[-1]["manifest"] = (out / "adp.json").read_text()
        results[-1]["report"] = (out / "curation/report.json").read_text()
    assert results[0] == results[1] == results[2]
    assert sum(name.startswith("steps/") for name in results[0]) > 1
