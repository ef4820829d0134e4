from __future__ import annotations

import io
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
    ("words", "code", "message"),
    [
        (["nowhere.jsonl", "-o", "OUT"], 3, "nowhere.jsonl"),
        (["CHATS", "-o", "CHATS"], 5, "is a file"),
        (["CHATS", "-o", "OUT", "--from", "opnai_chat"], 2, "did you mean openai_chat?"),
        (["CHATS"], 2, "missing option '--out' / '-o'"),
        (["CHATS", "-o", "OUT", "--workers", "0"], 2, "--workers"),
    ],
)
def test_wrong_calls(run, chats, tmp_path, words, code, message):
    places = {"CHATS": str(chats), "OUT": str(tmp_path / "store")}
    done = run("convert", *[places.get(word, word) for word in words])
    assert done.code == code
    assert message in done.err.splitlines()[-1]


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
    names = [row["name"] for row in json.loads(run("formats", "--json").out)["formats"]]
    assert "openai_chat" in names
    assert "openai_chat" in run("formats").out


def test_seal_needs_a_growing_store(run, store):
    done = run("seal", store.root)
    assert done.code == 5
    assert done.err.count("\n") == 1


def test_since_says_when_nothing_is_new(run, chats, tmp_path):
    run("convert", chats, "-o", tmp_path / "old")
    words = ("convert", chats, "--since", tmp_path / "old", "-o", tmp_path / "new")
    done = run(*words)
    assert done.code == 0
    assert done.out.startswith("nothing new: the input is in ")
    answer = json.loads(run(*words, "--json").out)
    assert answer["store"] is None
    assert not (tmp_path / "new").exists()
    other = tmp_path / "more.jsonl"
    other.write_text(json.dumps(chat(9)) + "\n")
    done = run("convert", chats, other, "--since", tmp_path / "old", "-o", tmp_path / "new")
    assert "1 input unchanged" in done.err
    assert "records 1 = used 1" in done.out
    assert "1 trajectory, 2 steps" in done.out


def test_limits_are_options(run, chats, tmp_path):
    done = run("convert", chats, "-o", tmp_path / "store", "--max-record-bytes", 10,
               "--from", "openai_chat")  # fmt: skip
    assert "records 4 = used 0 + skipped 0 + rejected 4" in done.out
    assert "larger than the limit of 10 bytes" in done.out
    assert "max_record_bytes 10" in run("info", tmp_path / "store").out
    assert run("convert", chats, "-o", tmp_path / "s2", "--max-depth", 501).code == 2


def test_standard_input(run, chats, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(chats.read_bytes())))
    done = run("convert", "-", "-o", tmp_path / "store", "--dataset", "mine")
    assert "records 4 = used 3" in done.out
    assert "mine" in run("info", tmp_path / "store").out


def test_sessions_of_an_agent_are_listed(run, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".codex" / "sessions" / "2026"
    folder.mkdir(parents=True)
    (folder / "one.jsonl").write_text("{}\n")
    monkeypatch.delenv("CODEX_HOME", raising=False)
    done = run("convert", "codex:", "-o", tmp_path / "store")
    assert done.code == 3
    assert f"codex: {tmp_path}/.codex/sessions: 1 file, 3 B" in done.out
    assert "no input has a known format" in done.err
    done = run("convert", "codx:", "-o", tmp_path / "store")
    assert done.code == 2
    assert "did you mean codex?" in done.err
    assert not (tmp_path / "store").exists()


def test_a_format_that_cannot_be_read_yet_is_not_to_be_named(run, tmp_path):
    episode = {"episode_id": 1, "goal": "open it", "screenshots": ["a.png"], "actions": ["tap"]}
    (tmp_path / "episodes.jsonl").write_text(json.dumps(episode) + "\n")
    done = run("convert", tmp_path / "episodes.jsonl", "-o", tmp_path / "out")
    output = done.out + done.err
    assert "which this version cannot read yet" in output
    assert "--from" not in output


def test_calls_that_were_kept_as_text_are_told(run, tmp_path):
    output = ["do it", "Action: ls[]", "Observation: a b", "Action: cat[a]"]
    roles = ["user", "assistant"] * 2
    messages = [{"role": role, "content": text} for role, text in zip(roles, output, strict=True)]
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"messages": messages}) + "\n")
    done = run("convert", path, "-o", tmp_path / "s")
    assert "2 texts of the agent look like a call and 1 turn of the user looks like the" in done.out
    path.write_text(json.dumps({"messages": messages[:1]}) + "\n")
    assert "look" not in run("convert", path, "-o", tmp_path / "s2").out
