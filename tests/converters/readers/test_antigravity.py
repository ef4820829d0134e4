"""Antigravity: steps of the planner, and what came back in the order of the calls."""

from __future__ import annotations

import json
import shutil

from tests.converters.readers.samples_store import convert, numbers, real
from tests.fuzz.readers import EXAMPLES

FOLDER = EXAMPLES / "antigravity"


def test_steps_calls_and_results(tmp_path):
    ask = convert(FOLDER, tmp_path / "store")
    assert numbers(ask) == (4, 4, 4)
    steps = ask("select source, kind, text, reasoning, native_id n from steps order by step")
    assert [(it["source"], it["n"]) for it in steps] == [
        ("user", "0"), ("environment", "1"), ("system", "2"), ("agent", "4"), ("agent", "7"),
        ("system", "9"), ("agent", "10"), ("agent", "11"), ("environment", "12")]  # fmt: skip
    assert steps[3]["reasoning"] == "The stone first."
    results = ask('select call_step, call, is_error, truncated t from observations'
                  ' order by step, "order"')  # fmt: skip
    assert [tuple(it.values()) for it in results] == [
        (3, 0, True, True), (3, 1, None, None), (4, 0, None, None), (6, 0, None, None)]  # fmt: skip
    assert ask("select source_id s from trajectories") == [{"s": "conv-1"}]
    links = ask("select kind, step, target_id t from links")
    assert links == [{"kind": "subagent", "step": 4, "t": "conv-2"}]


def test_of_two_transcripts_the_full_one_is_read(tmp_path):
    logs = "brain/conv-1/.system_generated/logs"
    shutil.copytree(FOLDER, tmp_path / "in")
    cut = tmp_path / "in" / logs / "transcript.jsonl"
    full = cut.with_name("transcript_full.jsonl")
    full.write_text(cut.read_text().replace("<truncated 12 lines>", "and that is all"))
    ask = convert(tmp_path / "in", tmp_path / "store")
    assert numbers(ask) == (4, 4, 4)
    (run,) = ask("select source_file f, losses from trajectories")
    assert run["f"].endswith("transcript_full.jsonl")
    assert "whole" in json.loads(run["losses"])[0]["reason"]


def test_real_transcripts(tmp_path):
    """Messages and reasoning are those that a walk over the lines finds."""
    for number, path in enumerate(real("formats_new/antigravity/*.jsonl")):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        ask = convert(path, tmp_path / str(number))
        rows = ask("select text, reasoning, native_id n from steps order by step")
        assert [(it["text"], it["reasoning"], int(it["n"])) for it in rows] == [
            (it.get("content"), it.get("thinking"), it["step_index"]) for it in lines]  # fmt: skip
        calls = sum(len(it.get("tool_calls", [])) for it in lines)
        assert numbers(ask)[0] == calls
