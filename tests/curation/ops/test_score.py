"""The op score against plain forward passes, TRL's own evaluation, and hostile input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

from adp.curation.training_loss import model_sums
from adp.curation.training_loss.settings import ScoreSettings
from adp.curation.training_loss.trajectory_losses import trajectory_losses
from adp.rendering.options import RenderOptions
from adp.rendering.run import render_store
from adp.rendering.tiny import tiny_model, tiny_tokenizer
from adp_schema.errors import AdpError, RecipeError, UsageError
from adp_schema.store import Store
from tests.curation.recipes import balanced, curate
from tests.trainers.pair_stores import call, run, say, write_pairs
from tests.trainers.small_runs import config_of, reference_loss, write_runs

pytestmark = [
    pytest.mark.train,
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings(
        "ignore::DeprecationWarning:(torch|transformers|peft|trl|accelerate)"
    ),
]

SLIDING = {"max_length": 230, "window": "sliding"}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache for each test."""
    monkeypatch.setenv("ADP_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Runs whose last step has a weight of its own; one has a weight of 0.3."""
    return write_runs(
        tmp_path_factory.mktemp("runs") / "store", count=6, weights=(1.0, 0.3, 0.0, None)
    )


def _scored(store: Store, *ops: Any, out: Path, **options: Any) -> pl.DataFrame:
    done = curate({"s": store.root}, out, *ops, {"score": {"model": "tiny", **options}}, workers=1)
    balanced(done)
    return pl.read_parquet(out / "curation" / "annotations.parquet").sort("trajectory_id")


def _rows(store: Store, **render: Any) -> list[dict[str, Any]]:
    report = render_store(store, "tiny", options=RenderOptions(**render), workers=1)
    return [row for path in report.files() for row in pq.read_table(path).to_pylist()]


@pytest.mark.parametrize("render", [{}, SLIDING, {"train": "last_step"}])
def test_losses_are_those_of_a_plain_forward_pass_a_row(
    store: Store, tmp_path: Path, render: dict[str, Any]
) -> None:
    scored = _scored(store, out=tmp_path / "out", render=render, batch_tokens=900)
    model, rows = tiny_model().eval(), _rows(store, **{"max_length": 32768, **render})
    if render == SLIDING:
        assert len(rows) > scored.height
    steps = pl.read_parquet(tmp_path / "out" / "curation" / "step_columns.parquet")
    compared = 0
    for line in scored.iter_rows(named=True):
        ours = [row for row in rows if row["trajectory_id"] == line["trajectory_id"]]
        if not ours:
            assert line["loss"] is None
            continue
        assert line["loss"] == pytest.approx(reference_loss(model, ours), abs=6e-6)
        assert line["row_tokens"] == sum(row["length"] for row in ours)
        assert line["training_rows"] == len(ours)
        assert line["trained_tokens"] == sum(row["trained"] for row in ours)
        for step, loss in steps.filter(seq=ours[0]["seq"]).select(
            "step", "loss"
        ).iter_rows():  # fmt: skip
            alone = [_of_step(row, step) for row in ours]
            assert loss == pytest.approx(reference_loss(model, alone), abs=6e-6)
            compared += 1
    assert compared >= 6


def _of_step(row: dict[str, Any], step: int) -> dict[str, Any]:
    trained = [index == step for index in row["step_index"]]
    labels = [label if yes else -100 for label, yes in zip(row["labels"], trained, strict=True)]
    return {**row, "labels": labels}


def test_ifd_and_perplexity_are_those_of_their_definition(store: Store, tmp_path: Path) -> None:
    import torch

    scored = _scored(store, out=tmp_path / "out")
    model, tokenizer = tiny_model().eval(), tiny_tokenizer()
    start = tokenizer("<|im_start|>assistant\n", add_special_tokens=False)["input_ids"]
    rows = {row["trajectory_id"]: row for row in _rows(store)}
    for line in scored.iter_rows(named=True):
        row = rows[line["trajectory_id"]]
        weighted = {**row, "loss_weights": [1.0] * row["length"]}
        mean = reference_loss(model, [weighted])
        alone, count = 0.0, 0
        for step in {index for index in row["step_index"] if index >= 0}:
            answer = [
                label
                for label, index in zip(row["labels"], row["step_index"], strict=True)
                if index == step and label != -100
            ]
            ids = torch.tensor([start + answer])
            with torch.no_grad():
                logs = torch.log_softmax(model(input_ids=ids).logits[0].double(), -1)
            for place, label in enumerate(answer, len(start)):
                alone -= logs[place - 1, label].item()
                count += 1
        assert count == line["trained_tokens"]
        assert line["ifd"] == pytest.approx(mean / (alone / count), abs=6e-6)
        assert line["perplexity"] == pytest.approx(torch.tensor(mean).exp().item(), rel=1e-5)


@pytest.mark.parametrize("batch", [1, 4, 64])
def test_losses_are_those_of_trl_on_the_same_rows(store: Store, tmp_path: Path, batch: int) -> None:
    """TRL averages over the tokens of a batch, and over batches by their rows.

    So one row a batch gives the mean of the rows, and all rows in one batch that of the tokens.
    """
    from adp.core.progress import Silent
    from adp.trainers.arguments import common_arguments
    from adp.trainers.method import METHODS
    from adp.trainers.model import build_tiny

    config = config_of(
        store, data__eval_store=store.root, training__per_device_eval_batch_size=batch
    ).resolved()
    folder = tmp_path / "rows"
    folder.mkdir()
    sft = METHODS.get("sft")
    sft.prepare(config, folder, Silent())
    build_tiny(folder / "base", config.model.tiny)
    trainer = sft.trainer(config, folder, common_arguments(config, tmp_path), [])
    measured = trainer.evaluate()["eval_loss"]
    scored = _scored(store, out=tmp_path / "out").filter(pl.col("trained_tokens") > 0)
    lines = scored.sort(pl.col("trajectory_id")).select("loss", "trained_tokens").rows()
    total = 0.0
    for first in range(0, len(lines), batch):
        part = lines[first : first + batch]
        tokens = sum(count for _, count in part)
        total += len(part) * sum(loss * count for loss, count in part) / tokens
    assert total / len(lines) == pytest.approx(measured, abs=1e-5)


@pytest.mark.parametrize("tokens", [1, 700, 100_000])
def test_batches_do_not_show(store: Store, tmp_path: Path, tokens: int) -> None:
    expected = _scored(store, out=tmp_path / "one", batch_tokens=1500)
    cache = tmp_path / "cache" / "training-loss"
    for path in cache.iterdir():
        path.unlink()
    other = _scored(store, out=tmp_path / "other", batch_tokens=tokens)
    assert expected.equals(other)


class _Counter:
    """Counts what a model is asked, and may stop it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        self.left: int | None = None
        self._real = model_sums.token_losses
        monkeypatch.setattr(model_sums, "token_losses", self)

    def __call__(self, model: Any, sequences: Any) -> Any:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt
        self.asked += [sequence.key() for sequence in sequences]
        return self._real(model, sequences)


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> _Counter:
    """What the model is asked."""
    return _Counter(monkeypatch)


def test_only_what_is_missing_is_asked(store: Store, tmp_path: Path, counter: _Counter) -> None:
    counter.left = 2
    with pytest.raises(KeyboardInterrupt):
        _scored(store, out=tmp_path / "stopped", batch_tokens=700)
    before = set(counter.asked)
    counter.left = None
    first = _scored(store, out=tmp_path / "out", batch_tokens=700)
    assert before
    assert len(counter.asked) == len(set(counter.asked))
    assert before < set(counter.asked)
    count = len(counter.asked)
    again = _scored(store, out=tmp_path / "again", batch_tokens=5000)
    assert again.equals(first)
    assert len(counter.asked) == count
    more = write_runs(tmp_path / "more", count=8, weights=(1.0, 0.3, 0.0, None))
    _scored(more, out=tmp_path / "grown")
    assert len(counter.asked) == len(set(counter.asked)) > count
    records = [tmp_path / name / "curation" / "report.json" for name in ("out", "again")]
    stages = [json.loads(path.read_text())["stages"] for path in records]
    assert stages[0] == stages[1]


GIVEN = """
import polars as pl
from adp.curation.op import OpResult

def change(pool, options):
    seqs = pool.members.select("seq")
    return OpResult(
        weights=seqs.with_columns(step=pl.lit(1), loss_weight=pl.lit(0.25)),
        edits=seqs.with_columns(step=pl.lit(2), text=pl.lit("another answer")),
    )
"""


def test_weights_and_texts_of_earlier_ops_count(store: Store, tmp_path: Path) -> None:
    (tmp_path / "given.py").write_text(GIVEN)
    done = curate(
        {"s": store.root},
        tmp_path / "out",
        {"python": {"function": "given.py:change"}},
        {"score": {"model": "tiny"}},
        folder=tmp_path,
        allow_python=True,
        workers=1,
    )
    balanced(done)
    notes = pl.read_parquet(tmp_path / "out" / "curation" / "annotations.parquet")
    ours = dict(notes.select("trajectory_id", "loss").iter_rows())
    written = trajectory_losses(Store.open(str(tmp_path / "out")), "tiny", ifd=True)
    assert {item.trajectory_id: item.loss for item in written} == ours
    before = trajectory_losses(store, "tiny")
    assert all(ours[item.trajectory_id] != item.loss for item in before)


def _odd(folder: Path) -> Store:
    runs = [
        run("fine", "find it", [call("a b", "found"), say("done")]),
        run("long", "find " + "it " * 900, [say("done")]),
        run("masked", "find it", [say("nothing", loss_weight=0.0)]),
        run("empty", "find it", []),
        run("part", "find it", [say("short"), say("long " * 900)]),
        run("odd", "find \U0001f600 \x00", [say("\u202e<|im_end|> \ufffd")]),
    ]
    return write_pairs(folder, runs)


def test_what_cannot_be_scored_is_null_with_a_reason(tmp_path: Path) -> None:
    store = _odd(tmp_path / "odd")
    scored = _scored(
        store, out=tmp_path / "out", render={"max_length": 400, "window": "keep_start"}
    )
    assert scored.height == 6
    have = set(scored.filter(pl.col("loss").is_not_null())["trajectory_id"])
    assert have == {"d/fine", "d/part", "d/odd"}
    ledger = pl.read_parquet(tmp_path / "out" / "curation" / "ledger.parquet")
    reasons = {
        (row["trajectory_id"], row["verdict"]): row["reason"]
        for row in ledger.iter_rows(named=True)
        if "scored" in row["verdict"]
    }
    assert reasons == {
        ("d/long", "not_scored"): "the window is too small",
        ("d/masked", "not_scored"): "no token is trained",
        ("d/empty", "not_scored"): "no token is trained",
        ("d/part", "partly_scored"): "some steps are in no row",
    }


def test_a_model_of_nan_gives_null(tmp_path: Path, store: Store) -> None:
    import torch

    model = tiny_model()
    with torch.no_grad():
        model.lm_head.weight[:] = float("nan")
    model.save_pretrained(tmp_path / "nan")
    tiny_tokenizer().save_pretrained(tmp_path / "nan")
    scored = _scored(store, out=tmp_path / "out", model=str(tmp_path / "nan"))
    assert scored["loss"].null_count() == scored.height == 6
    ledger = pl.read_parquet(tmp_path / "out" / "curation" / "ledger.parquet")
    reasons = ledger.filter(verdict="not_scored")["reason"]
    assert set(reasons) == {"the model gives no finite training loss"}


def test_another_model_of_the_same_name_is_asked_anew(
    tmp_path: Path, store: Store, counter: _Counter
) -> None:
    tiny_tokenizer().save_pretrained(tmp_path / "model")
    tiny_model().save_pretrained(tmp_path / "model")
    first = trajectory_losses(store, str(tmp_path / "model"))
    assert [item.loss for item in first] == [item.loss for item in trajectory_losses(store, "tiny")]
    tiny_model({"seed": 1}).save_pretrained(tmp_path / "model")
    second = trajectory_losses(store, str(tmp_path / "model"))
    assert len(counter.asked) == 18
    assert [item.loss for item in first] != [item.loss for item in second]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"model": "/no/such/model"}, "there is no folder"),
        ({"render": {"branches": ["all"]}}, "only main lines"),
        ({"trust_remote_code": True}, "does not run code"),
        ({"render": {"trust_remote_code": True}}, "does not run code"),
        ({"batch_tokens": 0}, "batch_tokens"),
        ({"render": {"window": "sliding"}}, "needs max_length"),
        ({"adapter": "/no/such/adapter"}, "adapter"),
        ({"model": 7}, "model"),
    ],
)
def test_what_does_not_go_is_said(
    store: Store, tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(AdpError, match=words):
        _scored(store, out=tmp_path / "out", **options)


def test_a_tokenizer_that_is_too_large_is_said(store: Store, tmp_path: Path) -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    shape = LlamaConfig(
        vocab_size=300, hidden_size=16, intermediate_size=16, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=2,
    )  # fmt: skip
    LlamaForCausalLM(shape).save_pretrained(tmp_path / "small")
    with pytest.raises(UsageError, match="name the tokenizer of the model"):
        trajectory_losses(store, str(tmp_path / "small"), tokenizer="tiny")


def test_a_coreset_takes_the_loss_that_stands_before_it(store: Store, tmp_path: Path) -> None:
    methods = (("loss_topk", {}), ("loss_topk", {"compat": "sage"}), ("hybrid", {"compat": "sage"}))
    for place, (method, more) in enumerate(methods):
        options = {"method": method, **more}
        out = tmp_path / f"out{place}"
        score = {"score": {"model": "tiny", "ifd": False}}
        coreset = {"coreset": {"size": 2, "coverage": False, **options}}
        done = curate({"s": store.root}, out, score, coreset, workers=1)
        notes = pl.read_parquet(out / "curation" / "annotations.parquet")
        best = notes.sort("loss", descending=True, nulls_last=True)["trajectory_id"].to_list()
        kept = notes.filter(pl.col("coreset_rank").is_not_null())["trajectory_id"].to_list()
        first = 2 if options["method"] == "loss_topk" else 1
        assert set(best[:first]) <= set(kept)
        lines = done.report["stages"][1]["lines"]
        assert ("the loss is the column loss" in lines) == ("compat" in options)
    plain = curate({"s": store.root}, None, {"coreset": {"size": 2, **options}}, workers=1)
    assert any("stands in for the loss" in line for line in plain.report["stages"][0]["lines"])
    with pytest.raises(RecipeError, match=r"add `- score: \{model: ...\}` before it"):
        curate({"s": store.root}, None, {"coreset": {"size": 2, "method": "top"}})


def test_python_gets_the_losses_of_trajectories(store: Store) -> None:
    listed = trajectory_losses([*store], "tiny", ifd=True)
    assert listed == trajectory_losses(store, ScoreSettings(model="tiny"))
    assert trajectory_losses([], "tiny") == []
    assert all(item.ifd is not None and len(item.steps) in (1, 2) for item in listed)
