"""Every recorded verdict of the official checker comes out the same."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from adp_bfcl.entries import entry_of
from adp_bfcl.judge import judge_answer
from adp_bfcl.matcher import match
from adp_bfcl.multi_turn import check_multi_turn
from tests.adp_bfcl.official import RECORDED, answers, installed, questions, read, recorded

SIMPLE = ("simple_python", "multiple", "parallel", "parallel_multiple", "irrelevance")


def same(verdict, row):
    return (verdict.valid, verdict.error_type) == (row["valid"], row["error_type"])


@recorded
def test_outputs_changed_in_small_ways():
    entries = {(row["id"], row["category"]): row for row in read("ast_oracle_entries.jsonl.gz")}
    rows = read("ast_oracle_cases.jsonl.gz")
    wrong = []
    for row in rows:
        entry = entries[row["id"], row["category"]]
        result = match(
            entry["function"], row["model_output"], entry["ground_truth"], row["category"]
        )
        if not same(result, row):
            wrong.append((row["id"], row["mutation"], result))
    assert wrong == []
    assert len(rows) > 2000


@recorded
def test_quirks():
    quirks = json.loads((RECORDED / "ast_quirks.json").read_text(encoding="utf-8"))
    for row in quirks["cases"]:
        result = match(
            quirks["function"], row["model_output"], row["ground_truth"], row["category"]
        )
        assert same(result, row), row["case"]


@recorded
@installed
def test_outputs_of_real_models():
    entries = {row["id"]: row for category in SIMPLE for row in questions(category)}
    truths = {key: value for category in SIMPLE[:-1] for key, value in answers(category).items()}
    wrong, states = [], Counter()
    rows = read("real_outputs.jsonl.gz")
    for row in rows:
        result = judge_answer(
            row["result"],
            entries[row["id"]]["function"],
            truths.get(row["id"]),
            row["category"],
            mode=row["mode"],
        )
        states[result.relevance] += 1
        if not same(result, row):
            wrong.append((row["model"], row["id"], result))
    assert wrong == []
    assert len(rows) > 3000
    assert min(states["called"], states["abstained"], states["malformed"]) > 0


@recorded
@installed
def test_sequences_of_several_turns():
    entries = {row["id"]: entry_of(row) for row in read("multi_turn_entries.jsonl.gz")}
    for row in read("multi_turn_oracle_cases.jsonl.gz"):
        result = check_multi_turn(entries[row["id"]], row["model_steps"])
        assert same(result, row), (row["id"], row["mutation"], result)


@recorded
@installed
@pytest.mark.parametrize("number", range(9))
def test_services_answer_as_recorded(number):
    from adp_bfcl.multi_turn import services_of
    from adp_bfcl.simulators import clean_numbers

    rows = read("multi_turn_entries.jsonl.gz")
    if number >= len(rows):
        pytest.skip("fewer entries were recorded")
    row = rows[number]
    entry = entry_of(row)
    services = services_of(entry, "gold", marked=True)
    with clean_numbers():
        results = [services.run(turn) for turn in row["ground_truth"]]
    assert results == row["gold_tool_outputs"]
