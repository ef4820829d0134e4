from __future__ import annotations

import json

import pytest


def chat(number):
    return {
        "messages": [
            {"role": "user", "content": f"question {number}"},
            {"role": "assistant", "content": f"answer {number}"},
        ]
    }


@pytest.fixture
def chats(tmp_path):
    """Three chats and one line that is no JSON."""
    lines = [json.dumps(chat(number)) for number in range(3)]
    lines.insert(2, '{"messages": [')
    path = tmp_path / "chats.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_counts_rejects_and_what_comes_next(run, chats, tmp_path):
    out = tmp_path / "store"
    done = run("convert", chats, "-o", out, "--from", "openai_chat")
    assert done.code == 0
    assert "records 4 = used 3 + skipped 0 + rejected 1" in done.out
    assert "3 trajectories, 6 steps, 0 calls, 0 observations" in done.out
    assert "1 record was REJECTED" in done.out
    assert f"next: adp info {out}" in done.out
    assert "chats.jsonl#3: " in run("rejects", out).out


def test_json(run, chats, tmp_path):
    done = run("convert", chats, "-o", tmp_path / "store", "--json", "--dataset", "mine")
    answer = json.loads(done.out)
    assert answer["counts"]["rejected"] == 1
    assert answer["datasets"] == {"mine": 3}
    assert done.err == ""


def test_strict_stops_at_a_reject(run, chats, tmp_path):
    done = run("convert", chats, "-o", tmp_path / "store", "--strict")
    assert done.code == 4
    assert done.err.splitlines()[-1].startswith("error: ")


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["nowhere.jsonl", "-o", "OUT"], 3, "nowhere.jsonl"),
        (["CHATS", "-o", "CHATS"], 5, "is a file"),
        (["CHATS", "-o", "OUT", "--from", "opnai_chat"], 2, "did you mean openai_chat?"),
        (["CHATS"], 2, "missing option '--out' / '-o'"),
        (["CHATS", "-o", "OUT", "--workers", "0"], 2, "--workers"),
    ],
)
def test_wrong_calls(run, chats, tmp_path, words, code, said):
    places = {"CHATS": str(chats), "OUT": str(tmp_path / "store")}
    done = run("convert", *[places.get(word, word) for word in words])
    assert done.code == code
    assert said in done.err.splitlines()[-1]


def test_export_and_formats(run, chats, tmp_path):
    run("convert", chats, "-o", tmp_path / "store")
    done = run("export", tmp_path / "store", "--to", "openai_chat", "-o", tmp_path / "out")
    assert done.code == 0
    assert "3 records in 1 file" in done.out
    words = ("--to", "openai_chat", "-o", tmp_path / "two", "--json")
    assert json.loads(run("export", tmp_path / "store", *words).out)["records"] == 3
    assert (
        "did you mean openai_chat"
        in run("export", tmp_path / "store", "--to", "openai_chats", "-o", tmp_path / "three").err
    )
    names = [row["name"] for row in json.loads(run("formats", "--json").out)]
    assert "openai_chat" in names
    assert "openai_chat" in run("formats").out


def test_seal_needs_a_growing_store(run, store):
    done = run("seal", store.root)
    assert done.code == 5
    assert done.err.count("\n") == 1
