"""Supervised fine-tuning on the CPU: what is trained, what is saved, what is said about it."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from adp.trainers.merge import merge
from adp.trainers.run import TrainOptions, plan_run, train
from adp_schema.errors import (
    EmptyResultError,
    OutputExistsError,
    TrainingError,
    UsageError,
)
from adp_schema.store import Store
from tests.trainers.pair_stores import call, run, say, write_pairs
from tests.trainers.small_runs import (
    TRAINING,
    config_of,
    load,
    log_of,
    losses_of,
    reference_loss,
    rows_of,
    write_runs,
)

pytestmark = TRAINING


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return write_runs(tmp_path_factory.mktemp("runs") / "store")


@pytest.fixture(scope="module")
def weighted(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return write_runs(tmp_path_factory.mktemp("runs") / "store", weights=(0.25, 1.0, 0.0, 0.7))


KINDS: dict[str, dict[str, Any]] = {
    "lora": {},
    "dora": {"lora__use_dora": True},
    "rslora": {"lora__use_rslora": True},
    "pissa": {"lora__init_lora_weights": "pissa", "training__learning_rate": 0.003},
    "olora": {"lora__init_lora_weights": "olora", "training__learning_rate": 0.003},
    "lora+": {"lora__loraplus_lr_ratio": 8.0, "training__learning_rate": 0.003},
    "full": {"lora": None, "lora__r": None, "training__learning_rate": 0.003},
}


def _kind(store: Store, kind: str, **more: Any) -> Any:
    values = dict(KINDS[kind])
    if kind == "full":
        # Not by config_of: it sets lora.r.
        plain = config_of(store, **{k: v for k, v in values.items() if "lora" not in k}, **more)
        return plain.model_copy(update={"lora": None})
    return config_of(store, **values, **more)


SLOW = [pytest.param(kind, marks=pytest.mark.slow) for kind in ("rslora", "olora", "lora+")]
"""These go the way of lora; only PEFT is told another word."""


@pytest.mark.parametrize("kind", ["lora", "dora", "pissa", "full", *SLOW])
def test_each_kind_trains_and_what_is_saved_is_what_was_trained(
    store: Store, tmp_path: Path, kind: str
) -> None:
    config = _kind(store, kind, data__eval_store=store.root)
    done = train(config, tmp_path / "out")
    losses = losses_of(tmp_path / "out")
    assert len(losses) == 4
    assert losses[-1] < losses[0] - 0.02
    rows = rows_of(config)
    model = load(tmp_path / "out")
    # The last measurement was made after the last step, of what is saved.
    measured = [line["eval_loss"] for line in log_of(tmp_path / "out") if "eval_loss" in line][-1]
    assert reference_loss(model, rows) == pytest.approx(measured, rel=2e-4)
    assert done.record is not None
    assert done.record["result"]["last_loss"] == losses[-1]
    if kind in ("lora", "pissa", "dora"):
        _merged_is_the_same(tmp_path, model, rows)


def _merged_is_the_same(folder: Path, model: Any, rows: list[dict[str, Any]]) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    facts = merge(folder / "out", folder / "merged")
    assert facts["dtype"] == "float32"
    whole = AutoModelForCausalLM.from_pretrained(folder / "merged").eval()
    ids = torch.tensor([rows[0]["input_ids"]])
    with torch.no_grad():
        before, after = model(input_ids=ids).logits, whole(input_ids=ids).logits
    assert torch.allclose(before, after, atol=1e-4)
    assert AutoTokenizer.from_pretrained(folder / "merged").chat_template
    with pytest.raises(OutputExistsError):
        merge(folder / "out", folder / "merged")


def test_the_loss_is_that_of_the_trained_tokens_packed_or_not(store: Store, tmp_path: Path) -> None:
    plain = config_of(store, training__max_steps=3)
    packed = config_of(store, training__max_steps=3, training__packing=True, render__max_length=700)
    train(plain, tmp_path / "plain")
    done = train(packed, tmp_path / "packed")
    assert done.plan.sequences < done.plan.rows == 8
    assert losses_of(tmp_path / "packed") == pytest.approx(losses_of(tmp_path / "plain"), rel=1e-5)
    from transformers import AutoModelForCausalLM

    base = AutoModelForCausalLM.from_pretrained(tmp_path / "plain" / "base").eval()
    assert losses_of(tmp_path / "plain")[0] == pytest.approx(
        reference_loss(base, rows_of(plain)), rel=1e-5
    )


@pytest.mark.parametrize("packing", [False, True])
def test_fractional_weights(weighted: Store, tmp_path: Path, packing: bool) -> None:
    from transformers import AutoModelForCausalLM

    config = config_of(
        weighted, training__max_steps=2, training__packing=packing, render__max_length=700
    )
    done = train(config, tmp_path / "out")
    assert done.plan.facts["fractional_weights"] is True
    base = AutoModelForCausalLM.from_pretrained(tmp_path / "out" / "base").eval()
    rows = rows_of(config)
    expected = reference_loss(base, rows)
    assert losses_of(tmp_path / "out")[0] == pytest.approx(expected, rel=1e-5)
    for row in rows:
        row["loss_weights"] = [float(weight > 0) for weight in row["loss_weights"]]
    assert reference_loss(base, rows) != pytest.approx(expected, rel=1e-2)


def test_a_resumed_run_is_an_uninterrupted_one(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from adp.trainers.metrics import Metrics

    config = config_of(
        store,
        training__max_steps=6,
        training__per_device_train_batch_size=3,
        training__save_strategy="steps",
        training__save_steps=2,
        lora__lora_dropout=0.1,
    )
    (tmp_path / "whole" / "work").mkdir(parents=True)  # of a run killed at its very beginning
    (tmp_path / "whole" / "work" / "job.json.tmp").write_text('{"ha')
    whole = train(config, tmp_path / "whole", TrainOptions(resume=True))
    with monkeypatch.context() as patch:
        patch.setattr(Metrics, "on_step_end", _die_at_five)
        with pytest.raises(TrainingError, match="pulled"):
            train(config, tmp_path / "out")
    # What a kill while saving leaves behind is not gone on from.
    (tmp_path / "out" / "checkpoints" / "checkpoint-5").mkdir()
    with pytest.raises(OutputExistsError, match="--resume"):
        train(config, tmp_path / "out")
    other = config_of(store, training__seed=1)
    with pytest.raises(UsageError, match=r"training\.seed"):
        train(other, tmp_path / "out", TrainOptions(resume=True))
    again = train(config, tmp_path / "out", TrainOptions(resume=True))
    assert _bytes(tmp_path / "out") == _bytes(tmp_path / "whole")
    assert again.record is not None
    assert whole.record is not None
    assert again.record["result"] == whole.record["result"]
    with pytest.raises(OutputExistsError, match="finished"):
        train(config, tmp_path / "out", TrainOptions(resume=True))


def _die_at_five(self: Any, args: Any, state: Any, control: Any, **more: Any) -> None:
    if state.global_step == 5:
        raise RuntimeError("the plug was pulled")


def _bytes(out: Path) -> dict[str, bytes]:
    names = ("adapter/adapter_model.safetensors", "adapter/adapter_config.json", "metrics.jsonl",
             "loss.svg")  # fmt: skip
    return {name: (out / name).read_bytes() for name in names}


def test_a_masked_step_is_not_learned_and_a_trained_one_is(tmp_path: Path) -> None:
    steps = [
        call("alpha", "found", loss_weight=0.0),
        say("zebra quartz jukebox", loss_weight=0.0),
        say("violet hammock pyramid"),
    ]
    store = write_pairs(tmp_path / "store", [run("r", "say something", steps)])
    config = config_of(
        store, training__max_steps=60, training__learning_rate=0.01, training__logging_steps=60
    ).model_copy(update={"lora": None})
    train(config, tmp_path / "out")
    chances = _chances(load(tmp_path / "out"), rows_of(config)[0])
    text = f"chance a token: trained {chances['trained']:.4f}, masked {chances['masked']:.6f}"
    assert chances["trained"] > 0.9, text
    assert chances["masked"] < 0.02, text


def _chances(model: Any, row: dict[str, Any]) -> dict[str, float]:
    """Geometric mean of the probabilities of the tokens of the masked and of the trained words."""
    import torch

    from adp.rendering.tiny import tiny_tokenizer

    tokenizer = tiny_tokenizer()
    text = tokenizer.decode(row["input_ids"])
    ids = tokenizer(text, return_offsets_mapping=True, add_special_tokens=False)
    assert ids["input_ids"] == row["input_ids"]
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([row["input_ids"]])).logits[0]
    chances = torch.softmax(logits, -1)
    results = {}
    for name, words in (("masked", "zebra quartz jukebox"), ("trained", "violet hammock pyramid")):
        begin = text.index(words)
        places = [
            place
            for place, (low, high) in enumerate(ids["offset_mapping"])
            if begin <= low and high <= begin + len(words)
        ]
        assert len(places) > 3
        under = {row["labels"][place] != -100 for place in places}
        assert under == {name == "trained"}
        logs = [chances[place - 1, row["input_ids"][place]].log().item() for place in places]
        results[name] = math.exp(sum(logs) / len(logs))
    return results


def test_the_plan_and_the_record(store: Store, tmp_path: Path) -> None:
    config = config_of(
        store,
        data__eval_share=0.4,
        training__max_steps=-1,
        training__num_train_epochs=2,
        training__per_device_train_batch_size=2,
    )
    messages: list[Any] = []
    command = ["adp", "train", "sft", str(tmp_path / "store"), "--set", "report.api_key=sesame"]
    done = train(config, tmp_path / "out", TrainOptions(command=command, reporter=messages.append))
    plan = done.plan
    assert messages == [plan]
    assert plan.rows + plan.eval_rows == 8
    assert plan.eval_rows > 0
    assert done.record is not None
    assert plan.steps == len(losses_of(tmp_path / "out")) == done.record["result"]["steps"]
    assert plan_run(config).plain() == plan.plain()
    text = (tmp_path / "out" / "run.json").read_text()
    assert not re.search(r'"/|\\\\|sesame', text)
    assert str(tmp_path) not in text
    for path in ("adapter", "base", "loss.svg", "metrics.jsonl"):
        assert (tmp_path / "out" / path).exists()
    assert not (tmp_path / "out" / "work").exists()
    assert not list((tmp_path / "out" / "adapter").glob("*.bin"))
    assert json.loads(text)["stores"][0]["manifest"] == plan.facts["store"]


def test_what_leaves_nothing_writes_nothing(store: Store, tmp_path: Path) -> None:
    with pytest.raises(EmptyResultError):
        train(config_of(store, render__max_length=8), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    few = config_of(store, data__max_rows=3)
    assert plan_run(few).rows == 3
    assert plan_run(few).plain() == plan_run(few).plain()
    with pytest.raises(UsageError, match="is none"):
        plan_run(config_of(store, data__eval_share=1e-9))


def test_a_loss_that_is_no_number_stops_the_run(store: Store, tmp_path: Path) -> None:
    wild = config_of(
        store, training__learning_rate=1e30, training__max_grad_norm=0.0, training__max_steps=3
    )
    with pytest.raises(TrainingError, match="learning_rate"):
        train(wild, tmp_path / "out")


def test_an_unknown_field_of_trl_is_named(store: Store, tmp_path: Path) -> None:
    for other, output in (
        ({"neftune_noise_alpa": 5}, "neftune_noise_alpha"),
        ({"max_length": 5}, "own place"),
    ):
        with pytest.raises(UsageError, match=output):
            train(config_of(store, training__other=other), tmp_path / f"out{len(output)}")
