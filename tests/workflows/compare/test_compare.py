"""Comparing methods: shared work, equal tokens, failures that are named, right differences."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="needs the train extra")

from adp.cli.main import main
from adp.rollouts.collecting.collect_options import CollectOptions, prepare_collect
from adp.trainers.config_file import read_config
from adp.trainers.run import plan_run
from adp.workflows.compare import Measurement, MethodComparison, compare, plan_comparison
from adp.workflows.loop import LoopOptions
from adp.workflows.methods import read_method
from adp_schema.errors import OutputExistsError, UsageError
from tests.kill import command
from tests.workflows.loop.kills import environment, finish, kill_in, results

pytestmark = [pytest.mark.train, pytest.mark.filterwarnings("ignore")]

TRAIN = ("training.use_cpu=true", "training.bf16=false", "training.gradient_checkpointing=false",
         "training.gradient_accumulation_steps=2", "lora.r=2", "data.workers=1",
         "training.save_strategy=no", "training.learning_rate=0.01")  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six runs of an expert."""
    out = tmp_path_factory.mktemp("data") / "runs"
    options = CollectOptions(env="toolworld", policy="expert", tasks="train:6:1", no_times=True)
    prepare_collect(options).run(out, seal=True).check()
    return out


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ADP_CACHE", str(tmp_path / "cache"))
    return tmp_path


def comparison(data: Path, *names: str, **more) -> MethodComparison:
    """A comparison by the loss on the data themselves."""
    methods = tuple(read_method(name, {"size": 3, "parts": 2}) for name in names)
    measured = Measurement(store=str(data))
    return MethodComparison(methods, str(data), measured, changes=TRAIN, **more)


def record(out: Path, stage: str) -> dict:
    return json.loads((out / "round-1" / stage / "run.json").read_text())


BAD = "method: 1\nrecipe: {ops: [{filter: {sql: 'reward > 100'}}]}\n" \
      "training: {render: {max_length: 4096}}\n"  # fmt: skip


def test_a_failed_method_is_named_and_the_others_go_on(data, alone, capsys):
    (alone / "bad.yaml").write_text(BAD)
    out = alone / "out"
    words = ["compare", "A_baseline", str(alone / "bad.yaml"), "B4_coreset_random"]
    words += ["--data", str(data), "--eval", str(data), "-o", str(out), "--set", "size=3"]
    words += [item for change in TRAIN for item in ("--train", change)]
    assert main(words) == 1
    printed = capsys.readouterr()
    assert "1 method of 3 failed: bad" in printed.err
    result = json.loads((out / "all_results.json").read_text())
    assert [method["failed"] is None for method in result["methods"]] == [True, False, True]
    # What the table says is what the trainings noted, by a plain difference.
    losses = [record(out, f"{name}-s0")["result"]["eval_loss"]
              for name in ("A_baseline", "B4_coreset_random")]  # fmt: skip
    last = result["methods"][2]
    assert last["figures"]["eval_loss"]["value"] == pytest.approx(losses[1])
    difference = last["differences"]["eval_loss"]["figure"]["value"]
    assert difference == pytest.approx(losses[1] - losses[0])
    assert difference != 0
    assert last["seeds"][0]["trajectories"] == 3
    report = (out / "report.md").read_text().replace("\\", "")
    assert "B4_coreset_random" in report


def test_what_is_the_same_is_done_once_and_nothing_twice(data, alone):
    two = comparison(data, "C_continual", "J_loraplus_continual")
    plan = plan_comparison(two)
    curated = [stage.context.name for stage in plan.loop.stages if stage.kind.name == "curate"]
    assert len(curated) == 3  # the parts, and the data of both
    assert plan.runs[0].shared == plan.runs[1].shared
    out, begun = alone / "out", []

    def watch(news):
        if news.what == "begins":
            begun.append(news.key)

    first = compare(comparison(data, "C_continual"), out, LoopOptions(watch=watch))
    assert len(begun) == 5
    again = compare(comparison(data, "C_continual"), out, LoopOptions(watch=watch))
    assert len(begun) == 5
    assert again.plain() == first.plain()
    # The second part sees replayed ones of the first, and goes on with its model.
    run = first.methods[0].seeds[0]
    assert run.trajectories is not None
    assert run.trajectories > 6
    model = record(out, "C_continual-s0-part2")["config"]["model"]
    assert model["adapter_name_or_path"] == "round-1/C_continual-s0-part1/adapter"
    with pytest.raises(OutputExistsError, match="--redo"):
        compare(
            MethodComparison(two.methods[:1], str(data), Measurement(store=str(data)),
                       changes=(*TRAIN, "lora.r=4")),
            out,
        )  # fmt: skip


@pytest.mark.slow
def test_equal_tokens_are_equal_to_half_a_row(data, alone):
    out = alone / "out"
    result = compare(comparison(data, "A_baseline", "B4_coreset_random", equal_tokens=True), out)
    tokens = [method.seeds[0].trained_tokens for method in result.methods]
    assert result.tokens == tokens[0] == record(out, "A_baseline-s0")["plan"]["trained"]
    for trained in tokens:
        assert abs(trained - tokens[0]) <= tokens[0] / 6  # a row is about a sixth of them
    assert record(out, "B4_coreset_random-s0")["plan"]["rows"] >= 5


@pytest.mark.parametrize("share", [0.01, 0.5, 1, 1.7, 3])
def test_rows_are_taken_until_there_are_so_many_tokens(share, data):
    changes = [change for change in TRAIN if not change.startswith("lora")]
    given = {"data": str(data)}

    def planned(*more):
        return plan_run(read_config(given, [*changes, *more])[0])

    whole = planned()
    wanted = max(1, round(share * whole.trained))
    plan = planned(f"data.trained_tokens={wanted}")
    assert abs(plan.trained - wanted) <= max(whole.longest / 2, 1) or plan.rows == 1
    assert plan.rows == plan.sequences
    if share in (1, 3):
        assert (plan.trained, plan.rows) == (wanted, share * whole.rows)
    with pytest.raises(UsageError, match="leave out"):
        planned("data.trained_tokens=9", "training.max_steps=2")
    with pytest.raises(UsageError, match="passes"):
        planned(f"data.trained_tokens={10**12}")


@pytest.mark.slow
def test_a_suite_is_paired_by_task(data, alone):
    measured = Measurement("toolworld", options={"tasks": "test:2"}, policy={"max_tokens": 4})
    methods = tuple(read_method(name) for name in ("A_baseline", "G_dora"))
    result = compare(
        MethodComparison(methods, str(data), measured, changes=(*TRAIN, "training.max_steps=1")),
        alone / "out",
    )
    assert not result.failures
    difference = result.methods[1].differences["success"]
    assert (difference.figure.tasks, difference.only_first, difference.equal) == (2, 0, 2)
    assert result.methods[0].figures["success"].count == 2


def test_what_is_wrong_is_said_before_anything_runs(data, alone):
    base = ["compare", "A_baseline", "--data", str(data), "--eval", str(data), "--dry-run"]
    assert main(base) == 0
    for more in (["--set", "size=3"], ["--train", "lora.rr=1"], ["--baseline", "none"],
                 ["--policy", "transformers:model=x"], ["A_baseline", "none"], ["--seeds", "1000"],
                 ["--set", "epochs=-1"], ["--env", "toolworld"]):  # fmt: skip
        assert main([*base, *more]) == 2, more
    assert main([*base[:2], "--data", "none", *base[4:]]) != 0
    assert main([*base[:5], "none", "--dry-run"]) != 0


@pytest.mark.slow
def test_a_killed_comparison_goes_on_and_gives_the_same(data, tmp_path):
    """Killed in a training and in an evaluation; what is made is byte for byte the same."""
    words = ["compare", "A_baseline", "B4_coreset_random", "--data", str(data), "--set", "size=3",
             "--eval", "toolworld", "--tasks", "test:1",
             "--policy", "transformers:max_tokens=4,batch_size=1,prefix_cache_mb=0"]  # fmt: skip
    words += [item for change in TRAIN for item in ("--train", change)]

    def begin(out: Path) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command(*words, "-o", out),
            env=environment(tmp_path / "cache"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    finish(begin(tmp_path / "whole"))
    out = tmp_path / "killed"
    for stage in ("A_baseline-s0", "B4_coreset_random-s0-eval"):
        kill_in(begin(out), out / "records" / "round-1" / f"{stage}.json", 2.0)
    finish(begin(out))
    assert results(out) == results(tmp_path / "whole")
