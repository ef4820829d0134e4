"""The benchmark of a GPU runs as a whole on the CPU, with a tiny shape."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "gpu_train.py"

pytestmark = pytest.mark.train


def _call(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_without_a_gpu_it_says_so() -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    done = _call("--shape", "tiny")
    assert done.returncode == 2
    assert done.stderr.startswith("no GPU was found: ")
    assert done.stderr.count("\n") == 1


def test_other_tokens_are_said_and_compared_with_nothing() -> None:
    sys.path.insert(0, str(SCRIPT.parent))
    try:
        from gpu_train import DIFFERENT, goals_of
    finally:
        sys.path.remove(str(SCRIPT.parent))
    speeds = {
        "tokens_per_second": 2.0,
        "padding_share": 0.0,
        "peak_gb": None,
        "share_of_peak": None,
    }

    def entry(side: str, trained: float, *batches: str) -> dict[str, object]:
        job = {"method": "dpo", "window": 8, "side": side, "batches": list(batches)}
        return {**job, **speeds, "trained_tokens_per_second": trained}

    same = goals_of([entry("ours", 3.0, "a", "b"), entry("same", 2.0, "a", "b")])
    assert [goal.measured for goal in same if "same tokens" in goal.name] == [1.5]
    assert "2 batches, all equal: " in same[1].note
    other = goals_of([entry("ours", 3.0, "a", "b"), entry("same", 2.0, "b", "a")])
    assert [goal.name.strip() for goal in other if goal.unit == "x"] == [DIFFERENT]


@pytest.mark.slow
def test_the_whole_on_a_cpu(tmp_path: Path) -> None:
    out = tmp_path / "found.json"
    words = "--shape tiny --device cpu --windows 2048 --steps 1 --warm 1 --batch-tokens 2048"
    done = _call(*words.split(), "--runs", "6", "--data", str(tmp_path), "--out", str(out))
    assert done.returncode == 0, done.stderr
    result = json.loads(out.read_text(encoding="utf-8"))["found"]
    sides = [(entry["method"], entry["side"]) for entry in result]
    assert sides == [
        *(("sft", side) for side in ("ours", "same", "ours-padded", "same-padded", "trl")),
        *(("dpo", side) for side in ("ours", "same", "trl")),
    ]
    assert done.stdout.count("batches, all equal: ") == 3
    sft = {entry["side"]: entry for entry in result if entry["method"] == "sft"}
    for side, other in (("ours", "same"), ("ours-padded", "same-padded")):
        # The same tokens, labels and padding in every batch, and so the same loss; after a step the
        # adapters differ, which begin with other random numbers.
        assert sft[side]["batches"] == sft[other]["batches"]
        losses, others = sft[side]["losses"], sft[other]["losses"]
        assert losses[0] == pytest.approx(others[0], rel=1e-6)
        assert losses == pytest.approx(others, rel=1e-4)
    assert sft["ours"]["batches"] != sft["ours-padded"]["batches"]
    dpo = {entry["side"]: entry for entry in result if entry["method"] == "dpo"}
    assert dpo["ours"]["batches"] == dpo["same"]["batches"]
    # The first loss is log 2 whatever the tokens are; how likely they are is not.
    first, other = (dpo[side]["chosen_log_probabilities"] for side in ("ours", "same"))
    assert first[0] == pytest.approx(other[0], rel=1e-6)
    assert first == pytest.approx(other, rel=1e-4)
    for item in result:
        # A step is more than its two passes.
        assert item["seconds"] > item["seconds_of_passes"] > 0
        assert 0 < item["trained"] < item["tokens"] <= item["slots"]
        assert item["tokens_per_second"] > 0
        # What has not learned anything yet says each of the 32,768 tokens equally often.
        expected = 10.4 if item["method"] == "sft" else 0.693
        assert item["losses"][0] == pytest.approx(expected, abs=0.05)
