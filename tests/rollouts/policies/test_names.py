"""Names of models: no place on somebody's disk gets into a store."""

from __future__ import annotations

import pytest

from adp.rollouts.policies.names import model_name


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
        ("gpt-4.1-mini", "gpt-4.1-mini"),
        ("tiny", "tiny"),
        ("/home/me/runs/sft", "sft"),
        ("/home/me/runs/sft/", "sft"),
        ("/home/me/runs/sft/adapter", "sft/adapter"),
        ("./sft", "sft"),
        ("~/models/x", "x"),
        ("C:\\Users\\me\\x", "x"),
        ("/", ""),
        ("/model", "model"),
    ],
)
def test_a_folder_is_called_by_its_name(model, name):
    assert model_name(model) == name


def test_a_folder_that_is_there(tmp_path, monkeypatch):
    (tmp_path / "runs" / "sft" / "model").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "runs")
    assert model_name("sft") == "sft"
    assert model_name("sft/model") == "sft/model"
    assert model_name(".") == "runs"
