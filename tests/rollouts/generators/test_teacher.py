"""A teacher: what fails stands beside what went well, and is never a sample."""

import json

import pytest

from adp.rendering.chat import PairChats
from adp.rendering.pairs import pairs_of
from adp.workflows.made_pairs import make_pairs
from adp_schema.errors import EmptyResultError, RolloutError
from adp_schema.store import Store
from tests.rollouts.generators.made import TEACHER, calls_of, main_lines, make


def test_failed_calls_become_pairs(tmp_path):
    report = make(tmp_path / "made", "teacher", "weather", policy=TEACHER, count=40)
    assert report.failed_beside > 4
    assert set(report.failures) <= {"no usable answer", "unknown_tool", "duplicate"}
    assert make_pairs(tmp_path / "made", tmp_path / "out") == report.failed_beside
    pairs = list(pairs_of(Store.open(str(tmp_path / "out" / "pairs"))))
    assert all(isinstance(pair, PairChats) for pair in pairs)
    good = {run.trajectory_id for run in main_lines(tmp_path / "made")}
    for pair in pairs:
        assert pair.pair.chosen_id in good
        assert pair.chosen.messages[: pair.shared] == pair.rejected.messages[: pair.shared]
        chosen, rejected = (side.messages[pair.shared] for side in (pair.chosen, pair.rejected))
        assert chosen.calls[0].name == "weather"
        call = rejected.calls[0]
        assert call.name != "weather" or "unknown" in str(call.arguments)


def script(tmp_path, *turns):
    lines = [json.dumps({"turns": [{"text": text} for text in turns]})]
    (tmp_path / "script.jsonl").write_text("\n".join(lines))
    return f"scripted:file={tmp_path}/script.jsonl"


def test_a_script_can_be_a_teacher(tmp_path):
    policy = script(
        tmp_path,
        '{"question": "How is Rome?", "name": "wether", "arguments": {"location": "Rome"}}',
        "none",
        '```json\n{"name": "weather", "arguments": {"location": "Rome"}}\n```',
    )
    report = make(tmp_path / "made", "teacher", "weather", policy=policy, count=1)
    (run,) = main_lines(tmp_path / "made")
    assert (run.task.instruction, calls_of(run)[0][:2]) == (
        "How is Rome?", ("weather", {"location": "Rome"}),
    )  # fmt: skip
    (branch,) = Store.open(str(tmp_path / "made")).query(
        "SELECT parent_id, branch_kind FROM all_trajectories WHERE parent_id IS NOT NULL"
    ).to_pylist()  # fmt: skip
    assert branch == {"parent_id": run.trajectory_id, "branch_kind": "alternate"}
    assert report.failed_beside == 1


@pytest.mark.parametrize(
    "answer",
    ["", "null", "[]", "{", '{"question": 3}', '{"question": "q"}', '{"question": "", "name": "n"}',
     '{"question": "q", "name": 7}', '{"question": "q", "name": "weather", "arguments": "{"}',
     '{"question": "q", "name": "weather", "arguments": [NaN]}', "[" * 5000],
)  # fmt: skip
def test_answers_that_cannot_be_used(tmp_path, answer):
    with pytest.raises(EmptyResultError, match="no sample was kept"):
        make(tmp_path / "made", "teacher", "weather", policy=script(tmp_path, *[answer] * 9),
             count=1, tries=2)  # fmt: skip


def test_a_teacher_that_cannot_be_reached_stops_the_run(tmp_path):
    policy = "openai:model=m,base_url=http://127.0.0.1:9/v1,retries=0"
    with pytest.raises(RolloutError, match="3 episodes in a row broke"):
        make(tmp_path / "made", "teacher", "weather", policy=policy, count=5, tries=1,
             max_failures=3, concurrency=2)  # fmt: skip
