"""Trajectories of SAGE in memory: lines, and the filter against a plain loop over its rules."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adp.workflows.sage.trajectories import (
    AgentTrajectory,
    TrajectoryFilter,
    TrajectoryStep,
    load_trajectories,
)
from adp_schema.errors import InputError, UsageError


def run(number: int, actions: list[str], *, success: bool, reward: float) -> AgentTrajectory:
    steps = [
        TrajectoryStep(place, "I look.", action, {"q": "x"}, "Found it.")
        for place, action in enumerate(actions)
    ]
    return AgentTrajectory(
        f"t{number}", "Find it.", steps, success, reward, trajectory_id=f"run{number}"
    )


runs = st.lists(
    st.tuples(
        st.lists(st.sampled_from(["search", "open", "finish", "error"]), max_size=4),
        st.booleans(),
        st.sampled_from([-1.0, 0.0, 0.25, 0.5, 2.0]),
    ),
    max_size=6,
)


@settings(max_examples=15, deadline=None)
@given(runs, st.sampled_from([0.0, 0.5]), st.booleans(), st.sampled_from([None, 2]))
def test_the_filter_keeps_what_its_rules_say(
    drawn: list[tuple[list[str], bool, float]], least: float, success: bool, most: int | None
) -> None:
    given_runs = [
        run(number, actions, success=ok, reward=reward)
        for number, (actions, ok, reward) in enumerate(drawn)
    ]
    passing = [
        item
        for item in given_runs
        if item.total_reward >= least
        and (item.success or not success)
        and (most is None or len(item.steps) <= most)
    ]
    kept = TrajectoryFilter(least, success, most).filter(given_runs)
    assert kept == passing
    stats = TrajectoryFilter(least, success, most).get_stats(given_runs)
    assert (stats["kept"], stats["total"]) == (len(passing), len(given_runs))
    assert stats["successful"] == sum(item.success for item in given_runs)


def test_a_line_and_back(tmp_path: Path) -> None:
    first = run(1, ["search", "finish"], success=True, reward=1.5)
    file = tmp_path / "runs.jsonl"
    file.write_text(first.to_json() + "\n\n" + first.to_json() + "\n")
    assert list(load_trajectories(file)) == [first, first]
    assert first.tools_used == ["search"]
    assert first.num_steps == 2
    assert first.duration_seconds == 0.0


@pytest.mark.parametrize("line", ["[]", "{", '{"task_id": 1}', '{"steps": 3}', '{"steps": [1]}'])
def test_a_line_that_is_no_run_is_named(tmp_path: Path, line: str) -> None:
    good = run(1, [], success=True, reward=0).to_json()
    file = tmp_path / "runs.jsonl"
    file.write_text(f"{good}\n{line}\n")
    with pytest.raises(InputError, match=r"runs\.jsonl, line 2: "):
        list(load_trajectories(file))


def test_a_file_that_is_missing_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        list(load_trajectories(tmp_path / "none.jsonl"))
    (tmp_path / "bytes.jsonl").write_bytes(b"\xff\xfe\n")
    with pytest.raises(InputError, match="is not UTF-8"):
        list(load_trajectories(tmp_path / "bytes.jsonl"))


def test_samples_of_no_format_are_refused() -> None:
    with pytest.raises(UsageError, match="samples cannot be read"):
        TrajectoryFilter().filter([{"nothing": 1}])  # type: ignore[list-item]
