"""The example of the page about experts: from an agent that is lost to pairs and rows for SFT."""

from __future__ import annotations

import json
import shutil

from adp_schema.store import Store


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def calls(message):
    return [call["function"]["name"] for call in message.get("tool_calls", [])]


def test_from_an_expert_to_pairs_and_to_rows(run, tmp_path, monkeypatch):
    shutil.copytree("examples/experts", tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    words = ("collect", "--env", "toolworld", "--policy", "scripted:file=lost.script")
    mode = ("--expert-mode", "informed:init_limit=1")
    done = run(*words, *mode, "--tasks", "train:6", "-o", "helped")
    assert "success: 1.000 (6 of 6 scored)" in done.out
    assert "besides its episodes: the alternates" in done.out
    steps = Store.open("helped").query(
        "SELECT actor, count(*) AS n FROM steps JOIN trajectories USING (trajectory_id) "
        "WHERE actor IS NOT NULL AND parent_id IS NULL GROUP BY ALL"
    )
    by_actor = {row["actor"]: row["n"] for row in steps.to_pylist()}
    assert by_actor["agent"] > 6

    assert run("curate", "pairs.yaml", "-o", "pairs").code == 0
    assert run("export", "pairs/pairs", "--to", "trl-dpo", "-o", "dpo").code == 0
    pairs = lines(tmp_path / "here" / "dpo" / "train.jsonl")
    assert 0 < len(pairs) <= Store.open("pairs/pairs").query("FROM pairs").num_rows
    # The lost agent does one thing only; what the expert did beside it is chosen.
    assert {tuple(calls(row["rejected"][-1])) for row in pairs} == {("lookup",)}
    assert all(row["chosen"] != row["rejected"] for row in pairs)

    assert run("curate", "sft.yaml", "-o", "sft").code == 0
    words = ("--to", "trl-prompt-completion", "--set", "expand=true", "-o", "rows")
    assert run("export", "sft/data", *words).code == 0
    rows = lines(tmp_path / "here" / "rows" / "train.jsonl")
    assert len(rows) == by_actor["expert"]
    lookups = [row for row in rows if calls(row["completion"][-1]) == ["lookup"]]
    assert all(json.loads(_arguments(row)) for row in lookups)  # none of the empty ones


def _arguments(row):
    given = row["completion"][-1]["tool_calls"][0]["function"]["arguments"]
    return given if isinstance(given, str) else json.dumps(given)
