"""``adp train`` and ``adp merge-adapter``: what they print and refuse."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from adp.cli.main import main
from tests.trainers.small_runs import write_runs

pytestmark = [
    pytest.mark.train,
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:(torch|transformers|peft|trl|accelerate)"),
]  # fmt: skip

QUICK = ["--set=training.max_steps=2", "--set=training.use_cpu=true", "--set=data.workers=1"]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("ADP_CACHE", str(tmp_path / "cache"))
    return write_runs(tmp_path / "store", 4).root


def test_from_a_store_to_a_merged_model(
    store: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("adp.trainers.precision.bf16_is_native", lambda device: False)
    monkeypatch.setattr("adp.core.progress.ConsoleProgress._PAUSE", 0.0)
    out = str(tmp_path / "run")
    assert main(["train", "sft", store, "--model", "tiny", "-o", out, *QUICK]) == 0
    printed = capsys.readouterr()
    started = ["preparing: rendering rows", "training: loading the libraries"]
    assert [line for line in printed.err.splitlines() if line in started] == started
    assert "training: loading the model" in printed.err
    pace = r"^training: step 2 of 2, loss \d+\.\d{4}, [\d.]+ (s/step|steps/s)$"
    assert re.search(pace, printed.err, re.MULTILINE)
    output = printed.out
    assert "4 rows: " in output
    assert "2 steps of 8 rows" in output
    assert "bf16 is emulated on this processor: training in float32\n" in output
    assert f"next: adp merge-adapter {out}" in output
    assert main(["merge-adapter", out, "-o", str(tmp_path / "merged"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["dtype"] == "float32"
    assert main(["train", "sft", store, "--model", "tiny", "-o", out, *QUICK]) == 5
    assert main(["merge-adapter", store, "-o", str(tmp_path / "no")]) == 3
    assert "no adapter" in capsys.readouterr().err


def test_a_dry_run_trains_nothing(
    store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", "sft", store, "--model", "tiny", "--dry-run", *QUICK]
    before = sorted(tmp_path.iterdir())
    assert main(words) == 0
    assert "nothing was trained" in capsys.readouterr().out
    assert main([*words, "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)["plan"]
    assert (plan["rows"], plan["steps"]) == (4, 2)
    assert set(tmp_path.iterdir()) - set(before) <= {tmp_path / "cache"}


def test_other_systems_and_faults(
    store: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "train_lora.json"
    given = {"stage": "sft", "finetuning_type": "lora", "lora_rank": 4, "cutoff_len": 2000,
             "model_name_or_path": "tiny", "template": "qwen", "dataset": "a"}  # fmt: skip
    file.write_text(json.dumps(given))
    assert main(["train", "sft", store, "--config", str(file), "--dry-run", *QUICK]) == 0
    out = capsys.readouterr().out
    assert "lora_rank = 4 -> lora.r = 4" in out
    assert 'template = "qwen" -> nothing' in out
    assert main(["train", "sft", store, "--model", "tiny"]) == 2
    assert "-o OUT" in capsys.readouterr().err
    assert main(["train", "sft", "-o", str(tmp_path / "out")]) == 2
    assert "data.store" in capsys.readouterr().err
    assert main(["train", "sft", store, "-o", str(tmp_path / "out"), "--set", "lora.rank=3"]) == 2
    assert "did you mean" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_strict_stops_before_a_drop(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADP_CACHE", str(tmp_path / "cache"))
    store = write_runs(tmp_path / "store", 4).root
    out = tmp_path / "run"
    words = ["train", "sft", store, "--model", "tiny", "--strict", *QUICK]
    assert main([*words, "--dry-run", "--json"]) == 0
    longest = json.loads(capsys.readouterr().out)["plan"]["longest"]
    words.append(f"--set=render.max_length={longest - 1}")
    for more in (["--dry-run"], ["-o", str(out)]):
        assert main([*words, *more]) == 4
        assert "the window is too small: " in capsys.readouterr().err
    assert not out.exists()
