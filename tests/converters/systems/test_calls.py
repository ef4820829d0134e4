"""Calls and results in the files of the systems, counted by a plain walk over their texts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import adp
from adp.converters.records import RecordWriter
from adp.converters.registry import formats
from adp.converters.systems.tiny_tool_use import CONVERTER as TINY
from adp.converters.text_calls.of_file import BY_RUN
from adp_schema import jsontext
from adp_schema.losses import Losses
from adp_schema.store import Store
from tests.converters.systems.records import (
    RECORDS,
    et_flywheel,
    et_results,
    et_rollouts,
    sage_dialogs,
    sage_trajectories,
    tiny_rows,
)
from tests.converters.systems.records import ROOT as ROOT_RUN
from tests.samples import ROOT

TAGS = re.compile(r"<(search|python)>(.*?)</\1>\s*<result>\n(.*?)\n</result>", re.DOTALL)

Calls = list[tuple[str, str, str]]


def converted(tmp_path: Path, name: str) -> Store:
    source = tmp_path / "rows.jsonl"
    lines = (json.dumps(row, ensure_ascii=False) for row in RECORDS[name]())
    source.write_text("\n".join(lines) + "\n", "utf-8")
    store = adp.convert(source, tmp_path / "store")
    out = tmp_path / "out"
    assert adp.export(store, name, out).losses == {}
    assert (out / source.name).read_bytes() == source.read_bytes()
    return store


def calls_of(run: Any) -> Calls:
    """Tool, query or code, and result of each call of a run."""
    out = []
    for step in run.steps:
        for call in step.calls:
            words = json.loads(call.arguments)["query"] if call.arguments else call.arguments_raw
            results = [row.text for row in step.observations if row.call == call.call]
            assert len(results) == 1
            out.append((call.name, words, results[0].strip("\n")))
    return out


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("et_agent_rollouts", [row["rollout_outputs"] for row in et_rollouts()]),
        ("et_agent_flywheel", [row["evolve_trajectories_buffer"] for row in et_flywheel()]),
        ("et_agent_results", [[row["output"]] for row in et_results()]),
    ],
)
def test_texts_of_et_agent_have_their_calls(tmp_path, name, texts):
    """Each attempt is a trajectory; a record without attempts is one without turns."""
    runs = list(converted(tmp_path, name).trajectories())
    flat: list[str | None] = [text for row in texts for text in row or [None]]
    assert len(runs) == len(flat)
    for run, text in zip(runs, flat, strict=True):
        assert calls_of(run) == TAGS.findall(text or "")
    assert sum(map(len, map(calls_of, runs))) > 0


def test_attempts_at_a_question_have_one_task(tmp_path):
    runs = list(converted(tmp_path, "et_agent_rollouts").trajectories())
    first = et_rollouts()[0]
    same = [run for run in runs if any(step.text == first["input"] for step in run.steps)]
    assert [run.attempt for run in same] == [0, 1, 0, 1]
    assert len({run.task_id for run in same}) == 1
    assert [run.final_answer for run in same] == first["predictions"] * 2
    assert [run.reward for run in same] == [None, None, 1.0, 0.0]
    tasks = Store.open(str(tmp_path / "store")).scan("tasks").collect().to_dicts()
    answers = {row["instruction"]: json.loads(row["answers"]) for row in tasks}
    assert answers == {row["input"]: row["answer"] if isinstance(row["answer"], list)
                       else [row["answer"]] for row in et_rollouts()}  # fmt: skip


def test_verdicts_of_the_flywheel_are_successes(tmp_path):
    runs = list(converted(tmp_path, "et_agent_flywheel").trajectories())
    row = et_flywheel()[0]
    assert [run.success for run in runs[:3]] == row["evolve_trajectories_llm_judge_results"]
    assert [run.final_answer for run in runs[:3]] == row["evolve_predictions"]


def test_metrics_of_an_evaluation_are_rewards(tmp_path):
    (_, scored, _) = converted(tmp_path, "et_agent_results").trajectories()
    metrics = et_results()[1]["metrics"]
    assert json.loads(scored.rewards) == {
        key: metrics[key] for key in ("em", "acc", "f1", "math_equal", "llm_equal")
    }
    assert scored.success is True


def test_a_part_of_the_attempts_is_written_with_what_is_its_own(tmp_path):
    """As after an op that keeps some of them."""
    store = converted(tmp_path, "et_agent_rollouts")
    kept = [run for run in store.trajectories() if run.final_answer == "Belgium"]
    losses = Losses()
    writer = RecordWriter(formats.get("et_agent_rollouts"), losses)
    (first, second) = [record for _, record in writer.records(kept)]
    row = et_rollouts()[1]
    written = json.loads(jsontext.encode(second))
    for key in ("rollout_outputs", "predictions", "tool_counts", "correctness"):
        assert written[key] == row[key][1:]
    assert (written["answer"], written["rank"]) == (row["answer"], 0)
    assert "correctness" not in first


def test_runs_of_sage_have_a_call_a_step(tmp_path):
    runs = list(converted(tmp_path, "sage_trajectories").trajectories())
    for run, row in zip(runs, sage_trajectories(), strict=True):
        acted = [step for step in row["steps"] if step["action"] not in (None, "error")]
        calls = [call for step in run.steps for call in step.calls]
        assert [call.name for call in calls] == [step["action"] for step in acted]
        observed = [row.text for step in run.steps for row in step.observations]
        known = [step["observation"] for step in row["steps"] if "observation" in step]
        assert observed == known
    assert (runs[0].success, runs[0].reward, runs[0].final_answer) == (
        True, 2.0, "Take an umbrella."
    )  # fmt: skip
    assert (runs[1].error_type, runs[1].error_message) == ("error", "no such agent")
    assert [row.is_error for step in runs[0].steps for row in step.observations] == [
        None, True, None
    ]  # fmt: skip


def dialog_calls(turns: list[dict[str, Any]]) -> list[str | None]:
    """The tools that answer a turn of the assistant."""
    names, answers = [], False
    for turn in turns:
        if turn["role"] != "tool":
            answers = turn["role"] == "assistant"
        elif answers:
            names.append(turn.get("tool_id"))
    return names


def test_dialogs_of_sage_have_a_call_for_each_answer_of_a_tool(tmp_path):
    runs = converted(tmp_path, "sage_dialogs").trajectories()
    for run, row in zip(runs, sage_dialogs(), strict=True):
        calls = [call.name for step in run.steps for call in step.calls]
        assert calls == dialog_calls(row["turns"])


def test_texts_of_tiny_tool_use_have_their_calls(tmp_path):
    runs = list(converted(tmp_path, "tiny_tool_use").trajectories())
    expected = [text.count('"parameters"') for row in tiny_rows()
                for text in [row.get("text") or row["conversation"]]]  # fmt: skip
    assert [sum(len(step.calls) for step in run.steps) for run in runs] == expected
    assert {call.name for run in runs for step in run.steps for call in step.calls} == {
        "calculator"
    }
    (result,) = [row for step in runs[0].steps for row in step.observations]
    assert json.loads(result.text) == {"result": 5}
    assert TINY.given_dialect == BY_RUN


def test_the_dialogs_that_sage_generates(tmp_path):
    """Every tool's turn of the 60 dialogs answers a call, and the file comes back byte by byte."""
    source = ROOT / "sage" / "agent_sft_synthetic_60.jsonl"
    if not source.exists():
        pytest.skip("the reference data are not here")
    rows = [json.loads(line) for line in source.read_text("utf-8").splitlines() if line]
    store = adp.convert(source, tmp_path / "store")
    names = [call.name for run in store.trajectories() for step in run.steps for call in step.calls]
    assert names == [name for row in rows for name in dialog_calls(row["turns"])]
    assert len(names) == sum(turn["role"] == "tool" for row in rows for turn in row["turns"]) > 0
    assert adp.export(store, "sage_dialogs", tmp_path / "out").losses == {}
    assert (tmp_path / "out" / source.name).read_bytes() == source.read_bytes()


def test_rollouts_are_written_as_results_of_an_evaluation(tmp_path):
    """Calls, results and answers in tags, whatever the runs were read from."""
    source = tmp_path / "rows.jsonl"
    source.write_text(json.dumps(et_rollouts()[0]) + "\n", "utf-8")
    store = adp.convert(source, tmp_path / "store")
    adp.export(store, "et_agent_results", tmp_path / "out")
    (file,) = (tmp_path / "out").rglob("*.json")
    rows = json.loads(file.read_text("utf-8"))
    assert [row["prediction"] for row in rows] == et_rollouts()[0]["predictions"]
    for row, text in zip(rows, et_rollouts()[0]["rollout_outputs"], strict=True):
        assert TAGS.findall(row["output"]) == TAGS.findall(text)
        assert row["output"].count("<think>") == text.count("<think>")
        assert row["output"].count("<answer>") == 1
    back = adp.convert(tmp_path / "out", tmp_path / "back")
    assert [calls_of(run) for run in back.trajectories()] == [
        calls_of(run) for run in store.trajectories()
    ]


def test_runs_of_another_format_become_attempts_of_one_record(tmp_path):
    converted(tmp_path, "et_agent_results")
    store = Store.open(str(tmp_path / "store"))
    adp.export(store, "et_agent_rollouts", tmp_path / "rollouts")
    (file,) = (tmp_path / "rollouts").rglob("*.json")
    first, second = json.loads(file.read_text("utf-8"))
    run, scored, least = et_results()
    assert first["input"] == run["input"] == scored["input"]
    assert first["predictions"] == ["144", "144"]
    assert [TAGS.findall(text) for text in first["rollout_outputs"]] == [TAGS.findall(ROOT_RUN)] * 2
    assert (second["input"], second["answer"]) == (least["input"], least["answer"])
