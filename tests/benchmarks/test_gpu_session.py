"""The session on a GPU: each part as far as a CPU goes; one that fails stops no other."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"

pytestmark = [pytest.mark.train, pytest.mark.slow]


def _call(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(FOLDER / "gpu_session.py"), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _parts(tmp_path: Path, *words: str) -> tuple[int, dict[str, dict]]:
    out = tmp_path / "parts.json"
    done = _call("--tiny", "--data", str(tmp_path / "data"), "--out", str(out), *words)
    entries = json.loads(out.read_text(encoding="utf-8"))["found"]
    return done.returncode, {entry["part"]: entry for entry in entries}


def test_what_a_cpu_can_do_is_done_and_the_rest_is_said(tmp_path: Path) -> None:
    names = "attention,qlora,vllm,grpo,throughput"
    status, parts = _parts(tmp_path, "--slack", "20", "--only", names)
    assert status == 0, parts
    assert parts["attention"]["equal"]
    assert set(parts["attention"]["losses"]) == {"sdpa", "eager"}
    assert parts["qlora"]["not_run"]
    assert parts["vllm"]["not_run"]
    assert len(parts["grpo"]["steps"]) == 3
    assert parts["grpo"]["episodes"] == 3 * 4
    sides = [entry["side"] for entry in parts["throughput"]["found"]]
    assert sides == ["ours", "same", "ours-padded", "same-padded", "trl"]


def test_the_study_runs_in_small(tmp_path: Path) -> None:
    status, parts = _parts(tmp_path, "--slack", "20", "--only", "study")
    assert status == 0, parts
    assert set(parts["study"]["summary"]) == {"curated", "raw"}


def test_a_part_that_takes_too_long_stops_no_other(tmp_path: Path) -> None:
    status, parts = _parts(tmp_path, "--slack", "0.001", "--only", "grpo,qlora")
    assert status == 1
    assert list(parts) == ["grpo", "qlora"]
    assert "took longer than" in parts["grpo"]["failed"]


def test_an_unknown_part_is_one_sentence() -> None:
    done = _call("--only", "nothing")
    assert done.returncode == 2
    assert "there is no part 'nothing'" in done.stderr
