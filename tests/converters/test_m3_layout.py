"""Runs of other formats in the layout of M3: numbered files that its readers glob."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import adp
from adp_schema.model import Step, Trajectory
from adp_schema.store import Store


def runs(policy: str | None = None) -> list[Trajectory]:
    """Three runs of collected rollouts."""
    made = []
    for number in range(3):
        steps = [
            Step(step=0, source="user", kind="message", text=f"Question {number}?"),
            Step(step=1, source="agent", kind="llm_turn", actor="expert", text=f"Answer {number}."),
        ]
        made.append(
            Trajectory(
                trajectory_id=f"d/{number}", source_format="adp_rollout", dataset="d",
                task_id=str(40 + number) if number else "first", success=number != 1,
                terminated=True, truncated=False, policy_tool_availability=policy, steps=steps,
            )
        )  # fmt: skip
    return made


def grow(root: Path, trajectories: list[Trajectory]) -> Store:
    with Store.grow(root) as store:
        for trajectory in trajectories:
            store.append(trajectory)
    return Store.open(str(root))


def globbed(folder: Path) -> dict[int, tuple[dict[str, Any], dict[str, Any]]]:
    """What M3's readers take: each ``trajectory_{i}.json`` with ``metadata_{i}.json``."""
    out = {}
    for path in folder.glob("trajectory_*.json"):
        number = int(path.stem.split("_")[-1])
        metadata = json.loads((folder / f"metadata_{number}.json").read_text("utf-8"))
        out[number] = (json.loads(path.read_text("utf-8")), metadata)
    return out


@pytest.mark.parametrize("policy", [None, "only_api", "made up"])
def test_collected_runs_are_numbered_files_with_their_outcome(tmp_path, policy):
    store = grow(tmp_path / "store", runs(policy))
    report = adp.export(store, "m3", tmp_path / "out")
    assert report.files == report.records == 3
    folder = tmp_path / "out" / ("only_api" if policy == "only_api" else "")
    found_files = globbed(folder)
    assert sorted(found_files) == [0, 1, 2]
    for number, (run, metadata) in found_files.items():
        assert f"Answer {number}." in run["interactions"]["0"]["output"]["content"]
        assert metadata["success"] is (number != 1)
        assert metadata["sample_id"] == (40 + number if number else "first")
        assert metadata["total_time_steps"] == len(run["interactions"]) == 1
        assert metadata["expert_assistance"]["tracker"] == [1]
    assert not {"$.success", "$.task_id"} & {path.partition(":")[0] for path in report.losses}


def test_they_are_read_again_with_their_outcome(tmp_path):
    store = grow(tmp_path / "store", runs())
    adp.export(store, "m3", tmp_path / "out")
    back = adp.convert(tmp_path / "out", tmp_path / "back")
    assert back.manifest.counts.rejected == 0
    read = sorted((run.task_id, run.success, run.terminated) for run in back.trajectories())
    assert read == sorted((run.task_id, run.success, run.terminated) for run in runs())


def test_a_source_file_becomes_a_folder_and_numbers_begin_in_each(tmp_path):
    rows = [{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}]
    for name in ("one.jsonl", "two.jsonl"):
        lines = "".join(json.dumps(row) + "\n" for row in rows * 2)
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / "in" / name).write_text(lines)
    store = adp.convert(tmp_path / "in", tmp_path / "store")
    adp.export(store, "m3", tmp_path / "out")
    names = sorted(path.relative_to(tmp_path / "out").as_posix()
                   for path in (tmp_path / "out").rglob("trajectory_*"))  # fmt: skip
    assert [name.split("/")[-2:] for name in names] == [
        [folder, f"trajectory_{n}.json"] for folder in ("one", "two") for n in range(2)
    ]


def test_one_file_is_a_list_as_before(tmp_path):
    store = grow(tmp_path / "store", runs())
    report = adp.export(store, "m3", tmp_path / "out", single="all.json")
    assert len(json.loads((tmp_path / "out" / "all.json").read_text())) == 3
    assert not list((tmp_path / "out").glob("metadata_*"))
    assert report.losses["$.success: the target format has no place for it"] == 3


def test_probabilities_and_limits_are_those_of_m3(tmp_path):
    run = runs()[0]
    record = {"mode": "random", "recent_limit": 2, "init_limit": 2, "expert_probability": 0.25}
    run.extra = json.dumps({"run_metadata": {"expert_assistance": record}})
    adp.export(grow(tmp_path / "store", [run]), "m3", tmp_path / "out")
    (_, metadata) = globbed(tmp_path / "out")[0]
    assist = metadata["expert_assistance"]
    assert assist["random_epsilon"] == 0.75
    assert (assist["mode"], assist["recent_limit"]) == ("random", -2)


def test_an_alternate_stands_in_the_file_of_its_run(tmp_path):
    made = runs()
    other = Step(step=1, source="agent", kind="llm_turn", actor="agent", text="Another.")
    branch = Trajectory(
        trajectory_id="d/0/other", source_format="adp_rollout", dataset="d", parent_id="d/0",
        parent_step=1, branch_kind="alternate", steps=[other], task_id="first",
    )  # fmt: skip
    made[0].branches = [branch]
    adp.export(grow(tmp_path / "store", made), "m3", tmp_path / "out")
    read = globbed(tmp_path / "out")
    assert sorted(read) == [0, 1, 2]
    traces = [run["interactions"]["0"]["alternate_trace"] for run, _ in read.values()]
    assert sorted(map(len, traces)) == [0, 0, 1]
