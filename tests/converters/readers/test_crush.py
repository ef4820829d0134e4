"""Crush: rows of its database."""

from __future__ import annotations

from pathlib import Path

from tests.converters.readers.real_files import Rows

EXAMPLE = Path(__file__).parent / "examples/crush/rows.jsonl"


def test_rows(tmp_path):
    rows = Rows([EXAMPLE], tmp_path / "store")
    (run,) = rows.all("select * from trajectories")
    assert (run["total_tokens_in"], run["total_cost_usd"]) == (420, 0.0625)
    steps = rows.all("select source, kind, text, reasoning, model, stop_reason from steps"
                     " order by step")  # fmt: skip
    kinds = ["message", "llm_turn", "llm_turn", "llm_turn", "context_edit", "message"]
    assert [step["kind"] for step in steps] == kinds
    assert (steps[1]["reasoning"], steps[1]["stop_reason"]) == ("By country.", "tool_use")
    assert rows.value("select edit_summary from steps where kind = 'context_edit'") == (
        "Stamps were sorted."
    )
    results = rows.all('select name, is_error, call from observations order by "order"')
    assert results == [
        {"name": "bash", "is_error": False, "call": 0},
        {"name": "view", "is_error": True, "call": 1},
    ]
    assert rows.count("media") == 2
