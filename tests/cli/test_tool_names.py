"""``--tool-names``: names that harnesses agree on, and those of the source again."""

from __future__ import annotations

import json

import pytest

ROWS = [
    {
        "messages": [
            {"role": "user", "content": "Count the files."},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "execute_bash", "arguments": '{"cmd":"ls|wc"}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "c1", "name": "execute_bash", "content": "3"},
            {"role": "assistant", "content": "There are 3."},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "execute_bash",
                    "parameters": {"type": "object", "properties": {"cmd": {"type": "string"}}},
                },
            }
        ],
    }
]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "chats.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    return path


def written(folder):
    [path] = folder.rglob("*.jsonl")
    [line] = path.read_text(encoding="utf-8").splitlines()
    return json.loads(line)


def names(row):
    called = [call["function"] for item in row["messages"] for call in item.get("tool_calls") or []]
    offered = row["tools"]
    offered = json.loads(offered) if isinstance(offered, str) else offered
    return called, [tool["function"]["name"] for tool in offered]


def test_convert_renames_and_export_gives_the_source_back(run, tmp_path, file):
    store = tmp_path / "store"
    assert run("convert", file, "-o", store, "--tool-names", "adp").code == 0
    query = "select name, arguments from tool_calls union all select name, text from observations"
    out = run("query", store, "-c", query).out
    assert "terminal" in out
    assert "execute_bash" not in out
    assert run("export", store, "--to", "openai_chat", "-o", tmp_path / "same").code == 0
    assert next((tmp_path / "same").rglob("*.jsonl")).read_bytes() == file.read_bytes()
    words = ("--to", "trl-sft", "--set", "arguments=text")
    assert run("export", store, *words, "-o", tmp_path / "adp").code == 0
    called, offered = names(written(tmp_path / "adp"))
    assert (called, offered) == (
        [{"name": "terminal", "arguments": '{"command": "ls|wc"}'}],
        ["terminal"],
    )
    words = (*words, "--tool-names", "source")
    assert run("export", store, *words, "-o", tmp_path / "source").code == 0
    called, offered = names(written(tmp_path / "source"))
    assert (called, offered) == (
        [{"name": "execute_bash", "arguments": '{"cmd":"ls|wc"}'}],
        ["execute_bash"],
    )


def test_export_renames_what_a_store_holds(run, tmp_path, file):
    store = tmp_path / "store"
    assert run("convert", file, "-o", store).code == 0
    for to in ("openai_chat", "chatml"):
        out = tmp_path / to
        assert run("export", store, "--to", to, "-o", out, "--tool-names", "adp").code == 0
        called, offered = names(written(out))
        assert called[0]["name"] == offered[0] == "terminal"
        assert json.loads(called[0]["arguments"]) == {"command": "ls|wc"}


def test_there_are_no_other_names(run, tmp_path, file):
    done = run("convert", file, "-o", tmp_path / "store", "--tool-names", "mine")
    assert done.code == 2
    assert "adp" in done.err
