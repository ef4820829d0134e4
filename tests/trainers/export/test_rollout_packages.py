"""What the trainers' own packages hold of exported rollouts: ids, masks, log probabilities.

``make rl-tests`` installs the packages in environments of their own, and names their Pythons in
``ADP_RL_VERL`` (verl, OpenRLHF), ``ADP_RL_VERIFIERS`` (verifiers, tinker) and ``ADP_RL_NEMO``
(NeMo Gym); without them these tests are skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from adp.trainers.export.run import export_rows
from adp_schema.store import Store
from tests.trainers.export.rollout_runs import Dictated, rollout_store, written_by_hand

pytestmark = pytest.mark.train

ROOT = Path(__file__).parents[3]
PYTHONS = {
    "verl": ("ADP_RL_VERL", "verl-rollouts"),
    "openrlhf": ("ADP_RL_VERL", "openrlhf-rollouts"),
    "verifiers": ("ADP_RL_VERIFIERS", "verifiers-traces"),
    "tinker": ("ADP_RL_VERIFIERS", "tinker-datums"),
    "nemo_gym": ("ADP_RL_NEMO", "nemo-gym-rollouts"),
}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Store]:
    """Rollouts that go on from turn to turn, and some whose history is rewritten."""
    folder = tmp_path_factory.mktemp("rollouts")
    return {
        "plain": rollout_store(folder / "plain"),
        "rewritten": rollout_store(folder / "rewritten", Dictated(space="\n")),
    }


def asked(package: str, store: Store, folder: Path) -> list[dict[str, Any]]:
    """What a package holds of the rollouts of a store."""
    variable, exporter = PYTHONS[package]
    python = os.environ.get(variable)
    if python is None:
        pytest.skip(f"make rl-tests installs {package}")
    export_rows(store, exporter, str(folder / "out"))
    job = {
        "what": package,
        "folder": str(folder / "out"),
        "work": str(folder / "work"),
        "episodes": [
            {
                "group": run.task_id,
                "reward": run.reward,
                "turns": [
                    {
                        "prompt": step.prompt_token_ids,
                        "written": step.completion_token_ids,
                        "logprobs": step.logprobs,
                    }
                    for step in run.steps
                    if step.completion_token_ids
                ],
            }
            for run in store.trajectories()
        ],
    }
    jobs, result = folder / "jobs.json", folder / "result.json"
    jobs.write_text(json.dumps({"job": job}), encoding="utf-8")
    script = ROOT / "tools" / "oracle" / "rollout_rows.py"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run(
        [python, str(script), str(jobs), "--out", str(result)],
        check=True,
        env={**environment, "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""},
        cwd=folder,
    )
    answers = json.loads(result.read_text(encoding="utf-8"))["answers"]["job"]
    assert "error" not in answers, answers
    rows: list[dict[str, Any]] = answers["rows"]
    return rows


def close(left: list[float], right: list[float]) -> bool:
    """Whether numbers are equal as float32."""
    return len(left) == len(right) and all(
        abs(a - b) <= 1e-6 * max(1.0, abs(b)) for a, b in zip(left, right, strict=True)
    )


@pytest.mark.parametrize("package", PYTHONS)
def test_ids_masks_and_log_probabilities_are_equal(package, stores, tmp_path) -> None:
    rows = asked(package, stores["plain"], tmp_path)
    runs = list(stores["plain"].trajectories())
    assert len(rows) == len(runs)
    for row, run in zip(rows, runs, strict=True):
        ids, mask, logprobs = written_by_hand(run)
        assert row["ids"] == ids
        assert row["mask"] == mask
        assert close(row["logprobs"], logprobs)
        assert row.get("reward", run.reward) == run.reward


@pytest.mark.parametrize("package", PYTHONS)
def test_a_rewritten_history_is_a_row_for_each_part(package, stores, tmp_path) -> None:
    rows = asked(package, stores["rewritten"], tmp_path)
    steps = [
        (run, step)
        for run in stores["rewritten"].trajectories()
        for step in run.steps
        if step.completion_token_ids
    ]
    assert len(rows) == len(steps) == 8
    for row, (run, step) in zip(rows, steps, strict=True):
        assert row["ids"] == [*step.prompt_token_ids, *step.completion_token_ids]
        assert row["mask"] == [False] * len(step.prompt_token_ids) + [True] * len(
            step.completion_token_ids
        )
        assert close(row["logprobs"], [0.0] * len(step.prompt_token_ids) + step.logprobs)
        assert row.get("reward", run.reward) == run.reward


def test_verl_takes_groups_and_the_reward_of_the_last_token(stores, tmp_path) -> None:
    rows = asked("verl", stores["plain"], tmp_path)
    assert [row["total"] for row in rows] == [row["reward"] for row in rows]
    # Two attempts at each task, one right and one wrong: (1 - 0.5) / (std + 1e-6) over two.
    size = 0.5 / (0.5**0.5 + 1e-6)
    for row in rows:
        assert abs(row["advantage"] - (size if row["reward"] else -size)) < 1e-4
    assert [row["turns"] for row in rows] == [2] * 4
    assert len({row["group"] for row in rows}) == 2


def test_tinker_takes_the_reward_less_the_mean_of_the_group(stores, tmp_path) -> None:
    rows = asked("tinker", stores["plain"], tmp_path)
    rewards = [run.reward for run in stores["plain"].trajectories()]
    assert [row["advantage"] for row in rows] == [reward - 0.5 for reward in rewards]


def test_verifiers_reads_messages_and_calls(stores, tmp_path) -> None:
    rows = asked("verifiers", stores["plain"], tmp_path)
    for row, run in zip(rows, stores["plain"].trajectories(), strict=True):
        assert row["messages"] == ["user", "assistant", "tool", "assistant"]
        calls = [call for step in run.steps for call in step.calls]
        assert row["calls"] == [[call.name, call.arguments] for call in calls]
        assert row["turns"] == 2


def test_nemo_gym_reads_items_in_order(stores, tmp_path) -> None:
    rows = asked("nemo_gym", stores["plain"], tmp_path)
    assert {tuple(row["kinds"]) for row in rows} == {
        ("function_call", "function_call_output", "message")
    }
