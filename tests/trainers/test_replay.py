"""Replay inside a training: the order of rows, and trainings that follow it."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.core.reservoir import reservoir
from adp.trainers.incompatible import faults
from adp.trainers.machine import Machine
from adp.trainers.replay import ReplayPlan, new_rows, replayed
from adp.trainers.run import TrainOptions, plan_run, train
from adp_schema.errors import TrainingError, UsageError
from adp_schema.store import Store
from tests.trainers.pair_stores import call, run, say, write_pairs
from tests.trainers.small_runs import (
    TRAINING,
    config_of,
    log_of,
    losses_of,
    reference_loss,
    rows_of,
    write_runs,
)

PLANS = st.builds(
    ReplayPlan,
    new=st.integers(1, 40),
    held=st.integers(1, 12),
    total=st.integers(2, 12),
    ratio=st.sampled_from([0.1, 0.25, 0.5, 1.0]),
    seed=st.integers(0, 2**32 - 1),
    shuffle=st.booleans(),
    reservoir=st.one_of(st.none(), st.integers(1, 15)),
)


@given(st.integers(2, 64), st.floats(0.01, 2))
def test_a_step_has_as_many_new_rows_as_leave_room_for_those_of_sage(total, ratio):
    new = new_rows(total, ratio)
    assert new + replayed(new, ratio) <= total or new == 0
    assert new + 1 + max(1, int((new + 1) * ratio)) > total
    if total == 5:
        assert new_rows(5, 0.25) == 4  # SAGE: four new ones, and one replayed


@given(PLANS, st.integers(0, 2))
def test_an_epoch_has_each_new_row_once_and_whole_steps(plan, epoch):
    steps = list(plan.epoch(epoch))
    assert len(steps) == plan.steps
    assert sum(map(len, steps)) == plan.length()
    assert all(len(step) == plan.total for step in steps[:-1])
    assert 2 <= len(steps[-1]) <= plan.total
    if plan.reservoir is None:
        new = [row for step in steps for row in step if row < plan.new]
        assert sorted(new) == list(range(plan.new))
        assert all(len(set(step)) == len(step) for step in steps)
        assert new == list(range(plan.new)) or plan.shuffle
    assert {row for step in steps for row in step} >= set(range(plan.new))
    assert list(plan.epoch(epoch)) == steps


@given(PLANS)
def test_the_reservoir_is_that_of_all_new_rows_offered_at_once(plan):
    trained: list[int] = []
    for step, rows in enumerate(plan.epoch(0)):
        allowed = set(plan.buffer(step))
        size = plan.held if plan.reservoir is None else plan.reservoir
        assert len(allowed) <= max(size, plan.held if plan.reservoir is None else 0)
        new = plan._new(0, step)
        assert set(rows) - set(new) <= allowed
        assert allowed <= set(trained) | set(range(plan.new, plan.new + plan.held))
        trained += new
    held = [(row, str(row)) for row in range(plan.new, plan.new + plan.held)]
    if plan.reservoir is None:
        assert plan.buffer(plan.steps) == [row for row, _ in held]
        return
    offered = [(row, str(row)) for row in trained]
    expected = reservoir(held, offered, plan.offered, plan.reservoir, plan.seed)
    assert plan.buffer(plan.steps) == plan.buffer(10**6) == expected


NONE = Machine(gpus=0, bf16=False, tf32=False, bitsandbytes=False, deepspeed=False, launched=False)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"method": "dpo"}, "takes other rows"),
        ({"training.train_sampling_strategy": "group_by_length"}, "the order of the rows"),
        ({"training.other": {"dataloader_drop_last": True}}, "whole epochs"),
        ({"training.per_device_train_batch_size": 1}, "no room for a new row in steps of 1 rows"),
        ({"data.replay.ratio": 9}, "no room for a new row"),
        ({"data.replay.reservoir": True, "training.packing": True, "render.max_length": 700},
         "leave out training.packing"),
        ({"data.replay.size": 4}, "is that of a reservoir"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(values: dict[str, Any], words: str) -> None:
    config = config_of("store", **{"data.replay.store": "old", **values})
    assert any(words in sentence for sentence in faults(config, NONE))


WRONG = ({"ratio": 0}, {"ratio": float("nan")}, {"store": 4}, {"store": None}, {"size": "many"})


@pytest.mark.parametrize("value", [*({"store": "x", **item} for item in WRONG), {}, [], 3])
def test_what_is_no_section_is_refused(value: Any) -> None:
    with pytest.raises(UsageError, match="replay"):
        config_of("store", **{"data.replay": value})


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return write_runs(tmp_path_factory.mktemp("new") / "store")


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Rows of an earlier round; one has a weight of 0.5."""
    steps = [call("zebra", "found zebra"), say("zebra quartz", loss_weight=0.5)]
    return write_pairs(
        tmp_path_factory.mktemp("old") / "store",
        [run(f"o{number}", f"find zebra {number}", steps) for number in range(3)],
    )


def _replay(store: Store, old: Store, **more: Any) -> Any:
    values = {"training__per_device_train_batch_size": 5, "data__replay__store": old.root}
    return config_of(store, **{**values, **more})


@pytest.mark.usefixtures("training_cache")
class TestTrainings:
    """Trainings with `tiny`."""

    pytestmark = TRAINING

    def test_each_step_trains_the_rows_of_the_plan(
        self, store: Store, old: Store, tmp_path: Path
    ) -> None:
        from transformers import AutoModelForCausalLM

        config = _replay(store, old, training__max_steps=4, training__learning_rate=1e-12)
        done = train(config, tmp_path / "out")
        facts = done.plan.facts["replay"]
        assert (facts["rows"], facts["new_a_step"], facts["replayed_a_step"]) == (3, 4, 1)
        assert done.plan.sequences == 10
        assert done.record is not None
        assert [item["use"] for item in done.record["stores"]] == ["train", "replay"]
        rows = rows_of(config) + rows_of(config_of(old))
        base = AutoModelForCausalLM.from_pretrained(tmp_path / "out" / "base").eval()
        plan = ReplayPlan(new=8, held=3, total=5, ratio=0.25, seed=42)
        steps = [step for epoch in (0, 1) for step in plan.epoch(epoch)]
        expected = [reference_loss(base, [rows[row] for row in step]) for step in steps]
        assert losses_of(tmp_path / "out") == pytest.approx(expected, rel=2e-5)
        assert len(set(expected)) == 4

    def test_a_resumed_run_is_an_uninterrupted_one(
        self, store: Store, old: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from adp.trainers.metrics import Metrics

        config = _replay(
            store, old, data__replay__reservoir=True, data__replay__size=4,
            training__max_steps=6, training__save_strategy="steps", training__save_steps=1,
        )  # fmt: skip
        train(config, tmp_path / "whole")
        with monkeypatch.context() as patch:
            patch.setattr(Metrics, "on_step_end", _die_at_four)
            with pytest.raises(TrainingError, match="pulled"):
                train(config, tmp_path / "out")
        train(config, tmp_path / "out", TrainOptions(resume=True))
        assert log_of(tmp_path / "out") == log_of(tmp_path / "whole")
        names = ("adapter/adapter_model.safetensors", "replay_buffer.csv")
        for name in names:
            assert (tmp_path / "out" / name).read_bytes() == (
                tmp_path / "whole" / name
            ).read_bytes()
        with (tmp_path / "out" / "replay_buffer.csv").open() as file:
            held = list(csv.DictReader(file))
        assert sum(int(row["held_rows"]) for row in held) == 4
        known = {f"d/o{number}" for number in range(3)} | {f"d/r{number}" for number in range(8)}
        assert {row["trajectory_id"] for row in held} <= known
        assert any(row["trajectory_id"].startswith("d/r") for row in held)

    def test_packs_are_replayed_as_packs(self, store: Store, old: Store, tmp_path: Path) -> None:
        config = _replay(
            store, old, training__packing=True, render__max_length=600,
            training__per_device_train_batch_size=2, training__max_steps=2,
        )  # fmt: skip
        done = train(config, tmp_path / "out")
        assert done.plan.facts["replay"]["new_a_step"] == 1
        assert len(losses_of(tmp_path / "out")) == 2

    def test_what_is_held_out_is_not_replayed(self, store: Store, tmp_path: Path) -> None:
        # The same tasks: the hash holds out the same ones of both stores.
        plan = plan_run(_replay(store, store, data__eval_share=0.5))
        assert plan.facts["replay"]["rows"] == plan.rows == 8 - plan.eval_rows < 8


def _die_at_four(self: Any, args: Any, state: Any, control: Any, **more: Any) -> None:
    if state.global_step == 4:
        raise RuntimeError("the plug was pulled")
