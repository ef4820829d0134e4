"""Published question sets as tasks: verl Parquet, JSON lines, SAGE's benchmark."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.rollouts.collecting.question_sets import reference_answers
from adp.rollouts.collecting.task_files import read_task_file, task_of
from adp_schema.errors import InputError
from tests.samples import ROOT

PROMPT = [{"role": "system", "content": "Think."}, {"role": "user", "content": "Capital of Peru?"}]

SETS = {
    "etagent/rl_datasets/valid.parquet": "verl",
    "datasets_new/arpo_rl/hard_search_1k.parquet": "verl",
    "datasets_new/afm_rl_more/amc23.parquet": "verl",
    "datasets/afm_rl_side/aime24.parquet": "verl",
    "etagent/test/aime25.jsonl": "problem",
    "etagent/test/bamboogle.jsonl": "question",
    "datasets_new/arpo_eval_sets/2wiki.jsonl": "question",
    "datasets_new/sage_agent_queries/agent_queries.jsonl": "query",
    "playground/test_cases.json": "prompt",
}


def verl(truth, **more):
    about = {"index": 7, "question": "Capital of Peru?", "split": "train"}
    return {
        "data_source": "qa", "prompt": PROMPT, "ability": "qa",
        "reward_model": {"ground_truth": truth, "style": "rule"}, "extra_info": about, **more,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("truth", "answers"),
    [
        ("Lima", ["Lima"]),
        ("144", ["144"]),
        (144, [144]),
        (["Lima", "City of Kings"], ["Lima", "City of Kings"]),
        ('["Lima", "City of Kings"]', ["Lima", "City of Kings"]),
        ({"target": ["Lima"]}, ["Lima"]),
        ('{"target": "Lima"}', ["Lima"]),
        ({"ground_truth": '["Lima"]', "note": 1}, ["Lima"]),
        ({"numbers": [1, 2], "solution": "x"}, [{"numbers": [1, 2], "solution": "x"}]),
        ("[unclear", ["[unclear"]),
        ("[0, 1)", ["[0, 1)"]),
        ([], None),
        (None, None),
    ],
)
def test_every_form_of_a_ground_truth(truth, answers):
    task = task_of(verl(truth))
    assert (None if task.answers is None else json.loads(task.answers)) == answers
    assert json.loads(task.reward_spec) == {"ground_truth": truth, "style": "rule"}


def test_a_row_of_verl_says_all_that_it_said():
    task = task_of(verl("Lima", metadata=None, extra={"own": 1}))
    assert (task.task_id, task.split, task.instruction) == (
        "qa_train_7",
        "train",
        "Capital of Peru?",
    )
    extra = json.loads(task.extra)
    assert extra["prompt"] == PROMPT
    assert (extra["data_source"], extra["ability"], extra["own"]) == ("qa", "qa", 1)
    assert extra["extra_info"] == verl("")["extra_info"]


def test_without_extra_info_the_prompt_is_the_question():
    row = verl("Lima")
    del row["extra_info"]
    task = task_of(row)
    assert task.instruction == "Capital of Peru?"
    assert json.loads(task.extra)["prompt_messages"] == PROMPT
    assert len(task.task_id) == 32


def test_columns_may_hold_json_in_texts():
    """As tables that were made with pandas keep objects."""
    row = verl(["Lima"])
    texts = {**row, **{key: json.dumps(row[key]) for key in ("prompt", "reward_model")}}
    about = {key: value for key, value in row["extra_info"].items() if key != "question"}
    plain = task_of({**row, "extra_info": about})
    task = task_of({**texts, "extra_info": json.dumps(about)})
    for column in ("task_id", "split", "instruction", "answers", "reward_spec"):
        assert getattr(task, column) == getattr(plain, column)
    assert task.instruction == "Capital of Peru?"
    assert json.loads(task.extra)["extra_info"] == json.dumps(about)


def test_a_system_prompt_is_kept():
    task = task_of({"prompt": PROMPT, "answer": "Lima"})
    assert task.instruction == "Capital of Peru?"
    assert json.loads(task.extra) == {"prompt_messages": PROMPT}


def test_a_benchmark_of_sage_says_which_tools_are_right():
    row = {"sample_id": "s1", "task_type": "task_planning", "instruction": "Report", "context": {},
           "candidate_tools": ["a_001"], "split": "dev", "metadata": {"difficulty": "easy"},
           "ground_truth": {"plan_steps": ["x"], "tool_sequence": ["a_001", "b_002"]}}  # fmt: skip
    task = task_of(row)
    assert (task.task_id, task.split) == ("s1", "dev")
    names = [call["name"] for call in json.loads(task.expected_calls)]
    assert names == ["a_001", "b_002"]
    assert json.loads(task.extra)["ground_truth"] == row["ground_truth"]
    pick = task_of({**row, "ground_truth": {"top_k": ["a_001"], "explanation": "it fits"}})
    assert json.loads(pick.answers) == ["a_001"]
    timing = {"should_call_tool": False, "direct_answer": "42", "reasoning_chain": "known"}
    assert json.loads(task_of({**row, "ground_truth": timing}).answers) == ["42"]


def test_parquet_is_read_row_by_row(tmp_path):
    rows = [verl(["Lima"]), verl(["Quito"])]
    rows[1]["extra_info"] = {**rows[1]["extra_info"], "index": 8}
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "train.parquet")
    tasks = read_task_file(tmp_path / "train.parquet")
    assert [task.task_id for task in tasks.tasks] == ["qa_train_7", "qa_train_8"]
    assert [json.loads(task.answers) for task in tasks.tasks] == [["Lima"], ["Quito"]]
    assert read_task_file(tmp_path / "train.parquet", "train").records == 2
    rows[1]["extra_info"]["index"] = 7
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "twice.parquet")
    (reason,) = read_task_file(tmp_path / "twice.parquet").reasons
    assert reason == "twice.parquet#2: record 1 has the id 'qa_train_7' already"


def test_what_is_no_parquet_is_an_error(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(InputError, match="is no Parquet file that can be read"):
        read_task_file(tmp_path / "a.parquet")


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@given(truth=JSON | JSON.map(json.dumps))
def test_any_ground_truth_is_kept(truth):
    answers = reference_answers(truth)
    assert isinstance(answers, list)
    assert json.loads(task_of(verl(truth)).reward_spec)["ground_truth"] == truth


@pytest.mark.parametrize("name", sorted(SETS))
def test_published_sets(name):
    """Each row becomes a task, with the question and the answers that a plain look finds."""
    path: Path = ROOT / name
    if not path.exists():
        pytest.skip("the reference data are not here")
    if path.suffix == ".parquet":
        rows = pq.read_table(path).to_pylist()
    else:
        text = path.read_text("utf-8")
        rows = json.loads(text) if path.suffix == ".json" else [
            json.loads(line) for line in text.splitlines() if line.strip()]  # fmt: skip
    task_set = read_task_file(path)
    assert (len(task_set.tasks), task_set.refused) == (len(rows), 0)
    for row, task in zip(rows, task_set.tasks, strict=True):
        if SETS[name] == "verl":
            last = row["prompt"][-1]["content"]
            assert task.instruction == (row["extra_info"].get("question") or last)
            truth = row["reward_model"]["ground_truth"]
        else:
            assert task.instruction == row[SETS[name]]
            truth = row.get("answer")
        if truth is not None and not str(truth).startswith(("[", "{")):
            assert json.loads(task.answers) == [truth]
        elif isinstance(truth, list):
            assert json.loads(task.answers) == truth
        for key in ("data_source", "ability"):
            assert key not in row or json.loads(task.extra)[key] == row[key]
