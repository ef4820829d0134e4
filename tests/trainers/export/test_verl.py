from __future__ import annotations

import importlib.util
import json
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adp.trainers.export import verl_rl
from adp.trainers.export.verl_rl import EXPORTER as RL
from adp.trainers.export.verl_rl import ground_truth
from adp.trainers.export.verl_sft import EXPORTER as SFT
from adp_schema.model import Task, Trajectory
from tests.trainers.export.chats import agent, call, chat_of, export, result, task_run, user

FACTS = {
    **{"exporter": "x", "store": "s", "file": "train.parquet", "rows": 3, "unit": "steps"},
    **{"in_store": 3, "in_rows": 3, "left_out": {}, "changed": {}, "command": "adp"},
}


def shipped(tmp_path, name):
    """A module as it lies in an export."""
    exporter = RL if name == "reward.py" else SFT
    path = tmp_path / name
    path.write_text(exporter.files(exporter.options(), FACTS)[name], encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_attempts_at_a_task_give_equal_rows() -> None:
    chat = chat_of(user("What is there?"))
    rows = [
        export(RL, chat, run=task_run(attempt, answers='["the sea"]'))[0][0] for attempt in (0, 1)
    ]
    assert rows[0] == rows[1]
    assert rows[0]["reward_model"] == {"style": "rule", "ground_truth": "the sea"}
    assert rows[0]["prompt"] == [{"role": "user", "content": "What is there?"}]
    assert json.loads(rows[0]["extra_info"]["tools"]) == list(chat.tools)
    schema = RL.schema(RL.options())
    assert pa.Table.from_pylist(rows, schema).to_pylist() == rows
    assert RL.form(RL.options()).unique


@pytest.mark.parametrize(
    ("task", "choice", "truth"),
    [
        ({"answers": '["a"]', "tests": '["t"]'}, "auto", "a"),
        ({"answers": '["a", "b"]'}, "auto", '["a", "b"]'),
        ({"answers": '"a"'}, "auto", "a"),
        ({"answers": "7"}, "auto", "7"),
        ({"answers": "[]", "expected_calls": '[{"name": "f"}]'}, "auto", '[{"name": "f"}]'),
        ({"answers": "null"}, "auto", None),
        ({"turns": '[{"query": "q", "gold_answer": ["g"]}]'}, "auto", "g"),
        ({"turns": '[{"query": "q", "gold_answer": null}]'}, "auto", None),
        ({"turns": "[]"}, "first_turn", None),
        ({"answers": '["a"]', "tests": '["t"]'}, "tests", "t"),
        ({"answers": '["a"]'}, "final_answer", "done"),
        ({}, "auto", None),
    ],
)
def test_the_ground_truth_is_one_text(task, choice, truth) -> None:
    run = Trajectory(success=True, final_answer="done")
    assert ground_truth(Task(**task), run, choice) == truth


def test_a_failed_run_has_no_final_answer_to_compare_with() -> None:
    run = Trajectory(success=False, final_answer="wrong")
    assert ground_truth(None, run, "final_answer") is None


def test_what_has_no_place_is_counted() -> None:
    before = chat_of(user("a"), agent("", call("c")), result("c", "r"), user("b"))
    rows, tally = export(RL, before, run=task_run(0, answers='["a"]'))
    assert not rows
    assert sum(tally.left_out.values()) == 1
    rows, tally = export(RL, chat_of(user("a")), run=task_run(0))
    assert not rows
    assert tally.left_out == {"nothing that a reward could compare with": 1}


def test_the_reward_compares_the_end_of_the_answer(tmp_path) -> None:
    score = shipped(tmp_path, "reward.py").compute_score
    assert score("d", "<think>not 7</think>It is **7**.", "7") == 1
    assert score("d", "It is 17.", "7") == 0
    assert score("d", "It is 7, I think", "7") == 0
    assert score("d", "anything", "") == 0


def rendered() -> SimpleNamespace:
    """What the renderer gives for a chat of two rows."""
    rows = [
        SimpleNamespace(
            trajectory_id="d/run",
            segment=0,
            window=window,
            input_ids=np.arange(5, dtype=np.int32) + window,
            loss_weights=np.array([0, 0, 1, 0.5, 0], dtype=np.float32),
        )
        for window in (0, 1)
    ]
    return SimpleNamespace(rows=rows, lost={"too long": 1}, notes={})


def test_tokens_and_weights_reach_verl_as_they_are(tmp_path) -> None:
    rows, tally = export(SFT, chat_of(user("a"), agent("b")), rendered=rendered())
    assert tally.left_out == {"too long": 1}
    assert SFT.form(SFT.options()).model
    path = tmp_path / "train.parquet"
    schema = SFT.schema(SFT.options())
    columns = [pa.array([row[field.name] for row in rows], field.type) for field in schema]
    pq.write_table(pa.Table.from_arrays(columns, schema=schema), path)
    dataset = shipped(tmp_path, "adp_verl_dataset.py").MaskedRows
    tokenizer = SimpleNamespace(pad_token_id=9)

    whole = dataset([str(path)], tokenizer, {"pad_mode": "no_padding", "max_length": 8})
    assert len(whole) == 2
    assert whole[1]["input_ids"].tolist() == [1, 2, 3, 4, 5]
    assert whole[1]["loss_mask"].tolist() == [0, 0, 1, 0.5, 0]
    assert whole[1]["position_ids"].tolist() == [0, 1, 2, 3, 4]

    padded = dataset(str(path), tokenizer, {"pad_mode": "right", "max_length": 7}, max_samples=1)
    assert len(padded) == 1
    assert padded[0]["input_ids"].tolist() == [0, 1, 2, 3, 4, 9, 9]
    assert padded[0]["attention_mask"].tolist() == [1, 1, 1, 1, 1, 0, 0]
    assert padded[0]["loss_mask"].tolist() == [0, 0, 1, 0.5, 0, 0, 0]

    for way, ids in (("left", [2, 3, 4]), ("right", [0, 1, 2])):
        cut = dataset(str(path), tokenizer, {"max_length": 3, "truncation": way})
        assert cut[0]["input_ids"].tolist() == ids
        assert len(cut[0]["loss_mask"]) == 3
    with pytest.raises(ValueError, match=r"more than data\.max_length=3"):
        dataset(str(path), tokenizer, {"max_length": 3})[0]
    with pytest.raises(ValueError, match="knows no_padding and right"):
        dataset(str(path), tokenizer, {"pad_mode": "left"})


def test_the_readmes_name_what_lies_beside_the_rows() -> None:
    files = SFT.files(SFT.options(), FACTS)
    assert "data.custom_cls.name=MaskedRows" in files["README.md"]
    assert "class MaskedRows" in files["adp_verl_dataset.py"]
    files = RL.files(RL.options(), FACTS)
    assert "reward.py" in files["README.md"]
    assert verl_rl.shipped("reward.py") == files["reward.py"]
