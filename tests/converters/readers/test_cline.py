"""Cline and Roo Code: what the model saw, and what the user saw."""

from __future__ import annotations

from pathlib import Path

from tests.converters.readers.real_files import Rows

EXAMPLES = Path(__file__).parent / "examples/cline"


def test_what_the_model_saw(tmp_path):
    rows = Rows([EXAMPLES / "api_conversation_history.json"], tmp_path / "store")
    steps = rows.all("select kind, text, model, tokens_in, cost_usd from steps order by step")
    kinds = ["message", "llm_turn", "llm_turn", "context_edit"]
    assert [step["kind"] for step in steps] == kinds
    assert (steps[1]["model"], steps[1]["tokens_in"], steps[1]["cost_usd"]) == (
        "model-n",
        300,
        0.004,
    )
    assert rows.count("observations", "call is not null and text = '4 balls'") == 1


def test_what_the_user_saw(tmp_path):
    rows = Rows([EXAMPLES / "ui_messages.json"], tmp_path / "store")
    assert rows.count("steps", "kind = 'event'") == 2
