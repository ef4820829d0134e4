"""What programs print while they run: Codex, Cursor, Gemini CLI and Pi."""

from __future__ import annotations

import json

import pytest

from tests.converters.readers.real_files import Rows
from tests.converters.readers.stores import EXAMPLES


def store(tmp_path, *names):
    """A store of examples."""
    return Rows([EXAMPLES / name for name in names], tmp_path / "store")


def texts(rows):
    """Who said what, of the steps that a model sees."""
    return [
        (row["source"], row["text"], row["reasoning"])
        for row in rows.all("select * from steps where kind <> 'event' order by step")
    ]


@pytest.mark.parametrize(
    ("file", "calls", "results", "failed"),
    [
        ("codex_exec_json/run.jsonl", 5, 5, 2),
        ("codex_exec_json/early.jsonl", 1, 1, 0),
        ("cursor_stream_json/pieces.jsonl", 2, 2, 1),
        ("cursor_stream_json/whole.jsonl", 2, 1, 1),
        ("gemini_stream_json/run.jsonl", 2, 2, 1),
        ("pi/printed.jsonl", 1, 1, 0),
    ],
)
def test_calls_and_results_are_joined(file, calls, results, failed, tmp_path):
    rows = store(tmp_path, file)
    assert rows.count("calls") == calls
    assert rows.count("observations", "call is not null") == results
    assert rows.count("observations", "is_error") == failed


def test_pieces_of_a_text_are_one_text_and_its_repetition_is_none(tmp_path):
    rows = store(tmp_path, "cursor_stream_json/pieces.jsonl")
    assert texts(rows) == [
        ("user", "Which files are there?", None),
        ("agent", "Let me look.", "I list them."),
        ("agent", "One: cart.py.", None),
    ]


def test_calls_of_one_answer_are_in_one_step(tmp_path):
    rows = store(tmp_path, "cursor_stream_json/pieces.jsonl")
    assert rows.value("select count(distinct step) from calls") == 1


def test_messages_of_gemini_in_pieces(tmp_path):
    rows = store(tmp_path, "gemini_stream_json/run.jsonl")
    assert texts(rows) == [
        ("user", "How many files?", None),
        ("agent", "I will count.", None),
        ("agent", "Four.", None),
    ]


def test_an_item_that_changes_is_one_call(tmp_path):
    rows = store(tmp_path, "codex_exec_json/run.jsonl")
    assert rows.value("select text from observations where exit_code = 1") == "1 failed, 3 passed\n"
    assert texts(rows)[-1] == ("agent", "The clock is mended.", None)


@pytest.mark.parametrize(
    ("file", "tokens"),
    [
        ("codex_exec_json/run.jsonl", (2400, 130, 1200)),
        ("cursor_stream_json/pieces.jsonl", (700, 39, 600)),
        ("gemini_stream_json/run.jsonl", (300, 30, 90)),
    ],
)
def test_tokens_of_the_run(file, tokens, tmp_path):
    (row,) = store(tmp_path, file).all("select * from trajectories")
    names = ("total_tokens_in", "total_tokens_out", "total_tokens_cached")
    assert tuple(row[name] for name in names) == tokens


@pytest.mark.parametrize(
    ("file", "agent", "answer", "tokens"),
    [
        (
            "gemini_stream_json/answer.json",
            "gemini-cli",
            "The tower is 40 metres high.",
            (1000, 68),
        ),
        ("claude_stream_json/answer.json", "claude-code", "The barn has two doors.", (123, 9)),
        ("claude_stream_json/list.json", "qwen-code", "There are two doors.", (620, 20)),
        ("cursor_stream_json/answer.json", "cursor", "The mill has four sails.", (80, 12)),
    ],
)
def test_the_output_json_holds_the_answer(file, agent, answer, tokens, tmp_path):
    rows = store(tmp_path, file)
    assert texts(rows)[-1] == ("agent", answer, None)
    (run,) = rows.all("select * from trajectories")
    assert (run["agent_name"], run["final_answer"], run["terminated"]) == (agent, answer, True)
    assert (run["total_tokens_in"], run["total_tokens_out"]) == tokens


def test_the_output_json_of_a_run_that_failed(tmp_path):
    rows = store(tmp_path, "gemini_stream_json/failed.json")
    (run,) = rows.all("select * from trajectories")
    assert (run["error_type"], run["terminated"]) == ("FatalAuthenticationError", False)
    assert run["session_id"] == "tower-0008"


def test_the_agent_of_lines_that_others_print_like_claude_code(tmp_path):
    path = tmp_path / "amp.jsonl"
    lines = [{"type": "system", "subtype": "init", "cwd": "/srv", "session_id": "T-1",
              "tools": ["Bash"], "mcp_servers": []},
             {"type": "result", "subtype": "success", "is_error": False, "num_turns": 1,
              "result": "Done.", "session_id": "T-1"}]  # fmt: skip
    path.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    assert Rows([path], tmp_path / "store").value("select agent_name from trajectories") == "amp"
