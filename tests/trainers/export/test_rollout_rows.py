"""Rows of any rollout: every token once, masks kept, rewards and groups; by plain references."""

from __future__ import annotations

import json
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from adp.trainers.export.exporter import ExportCounts, ExportItem
from adp.trainers.export.openrlhf_rollouts import EXPORTER as OPENRLHF
from adp.trainers.export.registry import exporters
from adp.trainers.export.rollout_rows import (
    advantage_of,
    group_of,
    recorded_rows,
    reward_of,
)
from adp.trainers.export.rollouts import RolloutOptions
from adp.trainers.export.verifiers_traces import EXPORTER as VERIFIERS
from adp_schema.model import Step, Task, Trajectory

ids = st.integers(0, 50)


@st.composite
def episodes(draw: st.DrawFn) -> Trajectory:
    """Any episode: prompts that go on or not, turns without a weight, masks, log probabilities."""
    known: list[int] = []
    steps = [Step(step=0, source="user", kind="message", text="Go.")]
    for number in range(1, draw(st.integers(1, 5)) + 1):
        goes_on = draw(st.booleans())
        prompt = (known if goes_on else []) + draw(st.lists(ids, min_size=1, max_size=4))
        written = draw(st.lists(ids, min_size=1, max_size=5))
        mask = st.lists(st.integers(0, 1), min_size=len(written), max_size=len(written))
        steps.append(
            Step(
                step=number,
                source="agent",
                kind="llm_turn",
                text=f"turn {number}",
                prompt_token_ids=prompt,
                completion_token_ids=written,
                logprobs=[-token / 7 for token in written],
                loss_weight=draw(st.sampled_from([None, None, 0.0, 0.5, 1.0])),
                token_mask=draw(st.none() | mask),
            )
        )
        known = prompt + written
    extra = draw(st.sampled_from([None, '{"advantage": -0.5}', '{"group": "g", "advantage": 2}']))
    run = Trajectory(
        trajectory_id="d/run", task_id="t", dataset="d", steps=steps, reward=0.25, extra=extra
    )
    run.task = Task(task_id="t", answers='["a"]')
    return run


def trained(step: Step) -> list[bool]:
    """Which tokens of a step are trained."""
    count = len(step.completion_token_ids)
    if step.loss_weight == 0:
        return [False] * count
    return [True] * count if step.token_mask is None else [bool(value) for value in step.token_mask]


@given(episodes())
def test_each_trained_token_stands_once_behind_its_prompt(run: Trajectory) -> None:
    rows = recorded_rows(run, 0, Counter())
    steps = {step.step: step for step in run.steps if step.source == "agent"}
    seen = set()
    for row in rows:
        everything = [*row.prompt_ids, *row.response_ids]
        assert len(row.response_ids) == len(row.response_mask) == len(row.logprobs)
        for number, (begin, end) in zip(row.steps, row.spans, strict=True):
            at = len(row.prompt_ids)
            step = steps[number]
            assert everything[: at + begin] == step.prompt_token_ids
            assert list(row.response_ids[begin:end]) == step.completion_token_ids
            assert list(row.response_mask[begin:end]) == trained(step)
            assert list(row.logprobs[begin:end]) == step.logprobs
            assert number not in seen
            seen.add(number)
    lost = [step for number, step in steps.items() if number not in seen]
    assert not any(any(trained(step)) for step in lost)


@given(episodes())
def test_every_exporter_keeps_the_counts_and_the_reward(run: Trajectory) -> None:
    written = sum(sum(trained(step)) for step in run.steps if step.completion_token_ids is not None)
    for exporter in exporters.all():
        if exporter.takes != "rollouts":
            continue
        tally = ExportCounts()
        item = ExportItem(None, None, run, dataset="d")
        rows = list(exporter.rows(item, exporter.options(), tally))
        assert bool(rows) != bool(tally.left_out)
        assert sum(tally.left_out.values()) <= 1
        if rows and exporter.name != "nemo-gym-rollouts":
            json.dumps(rows, default=lambda array: array.tolist())
            assert sum(map(masked, rows)) == written


def masked(row: dict) -> int:
    """Trained tokens of a row of any shape."""
    for name in ("response_mask", "loss_mask", "mask"):
        if name in row:
            return int(sum(row[name]))
    if "nodes" in row:
        return sum(sum(node["mask"]) for node in row["nodes"])
    return sum(end - begin for begin, end in row["action_ranges"])


@given(episodes())
def test_a_trace_holds_each_row_as_a_path(run: Trajectory) -> None:
    rows = recorded_rows(run, 0, Counter())
    traces = list(VERIFIERS.rows(ExportItem(None, None, run), RolloutOptions(), ExportCounts()))
    if not rows:
        assert not traces
        return
    (trace,) = traces
    nodes = trace["nodes"]
    parents = {node["parent"] for node in nodes}
    paths = []
    for leaf in (number for number in range(len(nodes)) if number not in parents):
        path, at = [], leaf
        while at is not None:
            path.insert(0, nodes[at])
            at = nodes[at]["parent"]
        paths.append([token for node in path for token in node["token_ids"]])
        for node in path:
            assert len(node["mask"]) == len(node["token_ids"])
            assert len(node["logprobs"]) in (0, sum(node["mask"]))
    assert paths == [[*row.prompt_ids, *row.response_ids] for row in rows]


@given(episodes())
def test_ranges_of_actions_are_the_mask(run: Trajectory) -> None:
    rows = recorded_rows(run, 0, Counter())
    written = OPENRLHF.rows(ExportItem(None, None, run), RolloutOptions(), ExportCounts())
    for row, shape in zip(rows, written, strict=bool(rows)):
        mask = [0] * len(shape["observation_tokens"])
        for begin, end in shape["action_ranges"]:
            assert begin < end
            mask[begin:end] = [1] * (end - begin)
        assert mask == [0] * len(row.prompt_ids) + list(map(int, row.response_mask))


def test_the_advantage_and_the_group_that_a_training_kept() -> None:
    run = Trajectory(trajectory_id="x", task_id="t", extra='{"group": "g", "advantage": 2}')
    assert group_of(run, "d") == "g"
    assert advantage_of(run) == 2.0
    kept = '{"grpo": {"group": "g", "step": 3, "advantage": -0.5}, "advantage": 9}'
    trained = Trajectory(trajectory_id="x", task_id="t", extra=kept)
    assert (group_of(trained, "d"), advantage_of(trained)) == ("g/step-3", -0.5)
    assert group_of(Trajectory(trajectory_id="x", task_id="t"), "d") == "d/t"
    assert group_of(Trajectory(trajectory_id="x"), "d") == "x"
    assert reward_of(Trajectory(success=False), None) == 0.0
    assert reward_of(Trajectory(reward=float("nan")), None) is None
    assert reward_of(Trajectory(rewards='{"speed": 0.5, "good": true}'), "speed") == 0.5
    assert reward_of(Trajectory(rewards='{"good": true}'), "good") is None


def test_steps_that_the_model_did_not_write_do_not_count_as_missing() -> None:
    turn = {"source": "agent", "kind": "llm_turn"}
    expert = Step(step=2, actor="expert", text="Look there.", **turn)
    model = Step(step=1, prompt_token_ids=[1], completion_token_ids=[2], actor="agent", **turn)
    notes: Counter[str] = Counter()
    (row,) = recorded_rows(Trajectory(trajectory_id="x", steps=[model, expert]), 0, notes)
    assert (row.prompt_ids, row.response_ids) == ((1,), (2,))
    assert sum(notes.values()) == 1
    missing = Step(step=3, actor="agent", text="hm", **turn)
    steps = [model, expert, missing]
    assert recorded_rows(Trajectory(trajectory_id="x", steps=steps), 0, notes) is None


def test_steps_of_a_parent_can_be_context() -> None:
    turn = {"source": "agent", "kind": "llm_turn"}
    first = Step(step=1, prompt_token_ids=[1], completion_token_ids=[2, 3], **turn)
    second = Step(step=2, prompt_token_ids=[1, 2, 3, 9], completion_token_ids=[4], **turn)
    run = Trajectory(trajectory_id="x", steps=[first, second])
    (row,) = recorded_rows(run, 2, Counter())
    assert row.response_ids == (2, 3, 9, 4)
    assert row.response_mask == (False, False, False, True)
