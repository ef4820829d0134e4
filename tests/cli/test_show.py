from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from adp.stores.transcript import TranscriptView, transcript
from adp_schema.model import Observation, Step, ToolCall, Trajectory
from tests.cli.conftest import LONG


def test_a_trajectory_reads_well(run, store):
    out = run("show", store.root, "swe/django-11099").out
    lines = [line.rstrip() for line in out.splitlines()]
    assert lines[0] == "swe/django-11099"
    assert "outcome  success, reward 1" in lines
    assert "tools    bash" in lines
    assert "source   logs.jsonl#1 (openai_chat)" in lines
    at = lines.index("  → bash  c1")
    assert lines[at + 1 : at + 6] == [
        "      command:",
        "        ls -l",
        "        pwd",
        "  ← error · exit code 2",
        "      no such file",
    ]
    assert "[1] agent  100 + 20 tokens" in lines


def test_long_texts_are_cut_unless_full(run, store):
    cut = run("show", store.root, "swe/django-11099").out
    assert f"... {len(LONG) - 2000:,} more characters (--full)" in cut
    full = run("show", store.root, "swe/django-11099", "--full").out
    assert LONG.strip() in full
    assert "more characters" not in full


def test_a_late_result_stands_with_its_call(run, store):
    lines = run("show", store.root, "django-22").out.splitlines()
    at = lines.index("  → build  slow")
    assert lines[at + 1] == "  ← arrived after step 2"
    assert lines[at + 2].strip() == "built"
    assert sum("built" in line for line in lines) == 1


def test_media_is_named(run, store):
    assert "  [image png 12 kB " in run("show", store.root, "django-22").out


def test_control_characters_and_markup_are_shown_as_they_are(run, store):
    out = run("show", store.root, "chat/hostile").out
    assert "␛[2Jgone [bold]not bold[/]" in out
    assert "\x1b" not in out


def test_a_branch_begins_with_the_steps_of_its_parent(run, store):
    out = run("show", store.root, "branch-1").out
    assert "rewind of swe/django-22" in out
    assert "Look at this" in out
    assert "Another way." in out
    assert "still there?" not in out


def test_kinds_and_steps_choose_lines(run, store):
    out = run("show", store.root, "11099", "--kind", "result").out
    assert "no such file" in out
    assert "Mend the test" not in out
    out = run("show", store.root, "11099", "--steps", "0:1").out
    assert "Mend the test" in out
    assert "I look." not in out


@pytest.mark.parametrize("steps", ["x", "1-2", "5:2", "3:3", "-1:2", ":1:2", ""])
def test_bad_steps(run, store, steps):
    done = run("show", store.root, "11099", f"--steps={steps}")
    assert done.code == 2
    assert done.err.startswith("error: --steps ")


def test_unknown_kind(run, store):
    done = run("show", store.root, "11099", "--kind", "cal")
    assert (done.code, done.err) == (2, "error: unknown kind 'cal'; did you mean call?\n")


def test_unknown_id_names_near_ones(run, store):
    done = run("show", store.root, "swe/django-11098")
    assert done.code == 5
    assert done.err.startswith("error: the store has no trajectory 'swe/django-11098'; ")
    assert "did you mean swe/django-11099" in done.err
    assert "it holds swe/" in run("show", store.root, "zzz").err


def test_an_ambiguous_part_lists_what_it_names(run, store):
    done = run("show", store.root, "swe/django")
    assert done.code == 2
    assert done.err == (
        "error: 'swe/django' names 2 trajectories: swe/django-11099, swe/django-22\n"
    )


def test_json_is_whole(run, store):
    tree = json.loads(run("show", store.root, "11099", "--json").out)
    assert tree["trajectory_id"] == "swe/django-11099"
    assert [len(step["calls"]) for step in tree["steps"]] == [0, 1, 0]
    assert tree["steps"][1]["calls"][0]["arguments"] == '{"command": "ls -l\\npwd"}'
    assert tree["steps"][1]["observations"][0]["exit_code"] == 2
    assert tree["steps"][2]["text"] == LONG


def test_events_and_results_without_a_text():
    """What stands in ``structured`` alone is shown, and events when they are asked for."""
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    trajectory = Trajectory(
        trajectory_id="t",
        steps=[
            Step(step=0, source="environment", kind="event", extra='{"mode": "plan"}'),
            Step(
                step=1, source="agent", kind="llm_turn", timestamp=moment,
                timestamp_text="1767225600",
                calls=[ToolCall(step=1, call=0, name="read")],
                observations=[Observation(step=1, call_step=1, call=0, structured='{"lines": 3}')],
            ),
        ],
    )  # fmt: skip
    lines = [line.plain for line in transcript(trajectory)]
    assert "[1] agent  2026-01-01T00:00:00Z" in lines
    assert lines[-1].strip() == '{"lines": 3}'
    assert not any("plan" in line for line in lines)
    lines = [line.plain for line in transcript(trajectory, TranscriptView(kinds=["event"]))]
    assert lines[-1].strip() == '{"mode": "plan"}'


def test_reasoning_is_marked_without_colours():
    step = Step(step=0, source="agent", kind="llm_turn", reasoning="I hesitate.", text="Yes.")
    run = Trajectory(trajectory_id="d/run", steps=[step])
    lines = [line.plain for line in transcript(run)]
    assert lines[-3:] == ["  reasoning:", "    I hesitate.", "  Yes."]
