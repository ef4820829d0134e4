"""Pairs in files of trainers: one step a side; what is more is refused, cut or left out."""

from __future__ import annotations

import json

import pytest

from adp.trainers.export.run import export_rows
from adp_schema.errors import EmptyResultError, UsageError
from tests.trainers.export.agent_runs import Run, Turn, word, write_runs

LONG = Run((Turn("user"), Turn(calls=1), Turn(calls=1), Turn()))


def pair(name, chosen, rejected, **columns):
    sides = {
        f"{side}_{key}": value
        for side, (place, first, stop) in (("chosen", chosen), ("rejected", rejected))
        for key, value in (("id", f"d/r{place}"), ("from", first), ("to", stop))
    }
    return {"pair_id": name, "level": "trajectory", **sides, **columns}


def rows_of(folder):
    return [json.loads(line) for line in (folder / "train.jsonl").read_text().splitlines()]


@pytest.fixture
def store(tmp_path):
    """Two runs that part after the first message, of several steps each, and pairs of them."""
    pairs = [
        pair("long", (0, 1, None), (1, 1, None)),
        pair("short", (0, 1, 2), (1, 1, 2)),
        pair("same", (0, 1, 2), (0, 1, 2)),
        pair("gone", (0, 1, 2), (7, 1, 2)),
    ]
    return write_runs(tmp_path / "store", [LONG, Run(LONG.turns[1:], branch=1)], pairs)


def test_a_side_of_several_steps_is_refused(tmp_path, store):
    for name in ("trl-dpo", "trl-kto"):
        options = {"label": "pairs"} if name == "trl-kto" else {}
        with pytest.raises(UsageError, match="pair long: a side is more than one step"):
            export_rows(store, name, str(tmp_path / "out"), options)
    assert not (tmp_path / "out").exists()


def test_a_side_of_several_steps_is_cut_or_left_out(tmp_path, store):
    cut = export_rows(store, "trl-dpo", str(tmp_path / "cut"), {"multi_turn": "cut"})
    out = export_rows(store, "trl-dpo", str(tmp_path / "out"), {"multi_turn": "leave_out"})
    assert (cut.in_store, cut.in_rows, out.in_rows) == (4, 2, 1)
    assert sum(cut.left_out.values()) == 2
    assert out.left_out["a side is more than one step"] == 1
    assert cut.left_out["both sides say the same"] == 1
    for row in rows_of(tmp_path / "cut"):
        assert [message["role"] for message in row["prompt"]] == ["user"]
        (chosen,), (rejected,) = row["chosen"], row["rejected"]
        assert (chosen["content"], rejected["content"]) == (
            f"did {word(0, 1)}",
            f"did {word(1, 0)}",
        )
        assert json.loads(row["tools"])[0]["function"]["name"] == "search"


def test_steps_that_both_sides_take_are_prompt(tmp_path):
    begin = (Turn("user", says="hello"), Turn(calls=1, says="look"))
    described = [Run((*begin, Turn(calls=1), Turn())), Run((*begin, Turn()))]
    pairs = [pair("p", (0, 1, None), (1, 1, None))]
    store = write_runs(tmp_path / "store", described, pairs)
    export_rows(store, "trl-dpo", str(tmp_path / "out"), {"multi_turn": "cut"})
    (row,) = rows_of(tmp_path / "out")
    assert [message["role"] for message in row["prompt"]] == ["user", "assistant", "tool"]
    assert [row[side][0]["content"] for side in ("chosen", "rejected")] == [
        f"did {word(0, 2)}",
        f"did {word(1, 2)}",
    ]


def test_a_step_that_is_no_target_is_not_compared(tmp_path):
    described = [
        Run((Turn("user", says="hello"), Turn(weight=0.0), Turn())),
        Run((Turn("user", says="hello"), Turn())),
    ]
    store = write_runs(tmp_path / "store", described, [pair("p", (0, 1, None), (1, 1, None))])
    with pytest.raises(EmptyResultError, match="a message of the chosen side that is no target"):
        export_rows(store, "trl-dpo", str(tmp_path / "out"), {"multi_turn": "cut"})


def test_both_sides_of_a_pair_are_labelled(tmp_path, store):
    options = {"label": "pairs", "multi_turn": "cut"}
    report = export_rows(store, "trl-kto", str(tmp_path / "out"), options)
    assert (report.unit, report.rows, report.in_rows) == ("pairs", 4, 2)
    rows = {(row["completion"][0]["content"], row["label"]) for row in rows_of(tmp_path / "out")}
    assert rows == {(f"did {word(0, 1)}", True), (f"did {word(1, 0)}", False)}


def test_a_branch_without_tools_has_those_of_its_parent(tmp_path):
    ours = Run(LONG.turns[1:], branch=1, columns={"tools": None})
    store = write_runs(tmp_path / "store", [LONG, ours], [pair("p", (0, 1, 2), (1, 1, 2))])
    report = export_rows(store, "trl-dpo", str(tmp_path / "out"))
    assert report.left_out == {}
    (row,) = rows_of(tmp_path / "out")
    assert json.loads(row["tools"])[0]["function"]["name"] == "search"
