"""`adp train` on configurations of Tiny Tool Use: from the JSON to an adapter that was tried."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.trainers.small_runs import TRAINING
from tests.workflows.test_made_training import ROWS, configuration

PLAYGROUND = Path(__file__).parents[2].parent / "shared" / "data" / "playground"

MARKS = [mark for mark in TRAINING if mark.name != "usefixtures"]
SHORT = {
    "model.model_name_or_path": "tiny",
    "render.max_length": 4096,
    "training.max_steps": 2,
    "training.gradient_accumulation_steps": 1,
    "training.gradient_checkpointing": "false",
    # What asks for a GPU, or a package that is not among those of the tests.
    "training.use_cpu": "true",
    "training.fp16": "false",
    "training.bf16": "false",
    "training.optim": "adamw_torch",
    "report.tensorboard": "false",
    "data.workers": 1,
    "data.make.count": 20,
    "data.make.test_count": 2,
    "data.make.max_tokens": 8,
    "data.make.file": ROWS,
    # A hundredth of its two rows is none.
    "data.eval_share": 0,
}


def settings(**changes: object) -> list[str]:
    named = {**SHORT, **{path.replace("__", "."): value for path, value in changes.items()}}
    return [word for path, value in named.items() for word in ("--set", f"{path}={value}")]


@pytest.mark.slow
@pytest.mark.skipif(not PLAYGROUND.is_dir(), reason="the real samples are not here")
@pytest.mark.parametrize(
    ("method", "name", "cases"),
    [
        ("dpo", "dpo_config", 2),
        ("sft", "sft_toolbench_config", None),
        ("sft", "teacher_mode_config", 2),
    ],
)
class TestRealConfigurations:
    pytestmark = MARKS

    def test_it_runs_from_its_json_to_figures(self, run, tmp_path, method, name, cases):
        out, words = tmp_path / "out", settings()
        done = run("train", method, "--config", PLAYGROUND / f"{name}.json", "-o", out, *words)
        assert done.code == 0, done.err
        assert "data.make.strategy" in done.out
        assert (out / "adapter" / "adapter_model.safetensors").exists()
        check(out, cases)


def check(out: Path, cases: int | None) -> None:
    results = out / "evaluation_results.json"
    if cases is None:
        assert not results.exists()
        return
    assert json.loads(results.read_text())["total_cases"] == cases


class TestOwnConfiguration:
    pytestmark = MARKS

    def test_it_runs_with_test_cases_and_a_killed_trial_is_gone_on_with(self, run, tmp_path):
        (tmp_path / "c.json").write_text(json.dumps(configuration(training__method="dpo")))
        case = {"prompt": "Human: 25 times 4?", "expected_tool": "calculator"}
        (tmp_path / "cases.json").write_text(json.dumps([case]))
        out = tmp_path / "out"
        words = ("train", "dpo", "--config", tmp_path / "c.json", "-o", out,
                 *settings(data__make__test_cases=tmp_path / "cases.json"))  # fmt: skip
        done = run(*words)
        assert done.code == 0, done.err
        check(out, 1)
        first = (out / "evaluation_results.json").read_bytes()
        (out / "evaluation_results.json").unlink()
        assert run(*words).code != 0
        again = run(*words, "--resume")
        assert again.code == 0, again.err
        assert (out / "evaluation_results.json").read_bytes() == first


def test_a_dry_run_says_what_would_be_made(run, tmp_path):
    (tmp_path / "c.json").write_text(json.dumps(configuration()))
    done = run("train", "sft", "--config", tmp_path / "c.json", "--dry-run")
    assert done.code == 0, done.err
    assert "nothing was made" in done.out
    plain = run("train", "sft", "--config", tmp_path / "c.json", "--dry-run", "--json")
    assert json.loads(plain.out)["make"]["strategy"] == "manual_templates"
    assert {path.name for path in tmp_path.iterdir()} == {"c.json"}
