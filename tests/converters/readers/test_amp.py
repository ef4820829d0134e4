"""Amp: threads."""

from __future__ import annotations

from pathlib import Path

from tests.converters.readers.real_files import Rows

EXAMPLE = Path(__file__).parent / "examples/amp/thread.json"


def test_a_thread(tmp_path):
    rows = Rows([EXAMPLE], tmp_path / "store")
    steps = rows.all("select source, text, reasoning, tokens_in, stop_reason from steps"
                     " order by step")  # fmt: skip
    assert [step["source"] for step in steps] == ["user", "agent", "agent", "user", "user"]
    assert (steps[1]["reasoning"], steps[1]["tokens_in"]) == ("Flour first.", 85)
    results = rows.all('select text, is_error, exit_code, call from observations'
                       ' order by step, "order"')  # fmt: skip
    assert results[0] == {"text": "flour", "is_error": False, "exit_code": 0, "call": 0}
    assert (results[1]["text"], results[1]["is_error"]) == ("no recipe", True)
    assert rows.value("select agent_model from trajectories") == "model-a"
