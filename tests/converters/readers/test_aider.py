"""Aider: prompts, answers, and what Aider says, told apart in a text."""

from __future__ import annotations

import re

import pytest

import adp
from adp_schema.errors import InputError
from tests.converters.readers.samples_store import convert, real
from tests.fuzz.readers import EXAMPLES

FOLDER = EXAMPLES / "aider"


@pytest.fixture
def ask(tmp_path):
    return convert(FOLDER / ".aider.chat.history.md", tmp_path / "store")


def test_a_trajectory_a_session(ask):
    runs = ask("select source_id, agent_model m, agent_version v, total_cost_usd c, started_at"
               " from trajectories order by seq")  # fmt: skip
    assert [(it["source_id"], it["m"], it["v"], it["c"]) for it in runs] == [
        ("2026-05-04 09:10:11", "anthropic/mill-4", "0.86.1", 0.0166),
        ("2026-05-04 10:00:00", None, "0.86.1", None),
        ("2026-05-05 08:00:00", "loaf-1", "0.86.2", None),
    ]
    assert runs[0]["started_at"].hour == 9


def test_commands_are_no_messages_and_marks_in_an_answer_are_words(ask):
    steps = ask("select source, kind, text, visibility from steps where seq = "
                "(select min(seq) from steps) order by step")  # fmt: skip
    talk = [(it["source"], it["text"].split("\n")[0]) for it in steps
            if it["kind"] in ("message", "llm_turn")]  # fmt: skip
    assert talk == [
        ("user", "make the oven hotter"),
        ("agent", "The oven is too cold for rye."),
        ("user", "/ask is 240 enough?"),
        ("agent", "Yes, for rye: 240 is enough."),
        ("user", "<blank>"),
        ("agent", "Nothing was asked, Bäcker."),
    ]
    answer = next(it["text"] for it in steps if it["source"] == "agent")
    assert "#### A step of the plan\n> a quotation" in answer
    edits = [it for it in steps if it["kind"] == "context_edit"]
    assert len(edits) == 1
    ran = next(it["text"] for it in steps if "first line" in (it["text"] or ""))
    assert ran.startswith("first line of two\nsecond line\nAdd 0.1k tokens")
    assert all(it["visibility"] == "user" for it in steps if it["kind"] == "event")


def test_tokens_and_cost_are_those_of_the_answer_before(ask):
    sql = ("select tokens_in, tokens_out, tokens_cached, tokens_cache_write, cost_usd from steps"
           " where source = 'agent' order by step")  # fmt: skip
    assert [tuple(it.values()) for it in ask(sql)] == [
        (2300, 210, 950, 1100, 0.0066),
        (12000, 88, None, None, 0.01),
        (None, None, None, None, None),
    ]


def test_without_the_spaces_at_line_ends_an_answer_keeps_its_headings(tmp_path):
    ask = convert(FOLDER / "stripped.chat.history.md", tmp_path / "store")
    prompts = ask("select text from steps where source = 'user' order by step")
    assert [it["text"] for it in prompts] == [
        "bake the loaf of rye bread", "and now the crust", "thank you for the crust"]  # fmt: skip


def test_other_texts_are_left_alone(tmp_path):
    other = tmp_path / "README.md"
    other.write_text("# aider, a tool\n\n#### usage\n\n> none\n")
    with pytest.raises(InputError, match="it looks like a text"):
        adp.convert([str(other)], str(tmp_path / "store"))
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"text": "# aider chat started at 2026-01-01 00:00:00"}\n')
    with pytest.raises(InputError):
        adp.convert([str(rows)], str(tmp_path / "store"))


def test_a_folder_gives_its_history_and_a_name_forces_the_format(tmp_path):
    history = (FOLDER / ".aider.chat.history.md").read_bytes()
    (tmp_path / "in").mkdir()
    (tmp_path / "in/.aider.chat.history.md").write_bytes(history)
    (tmp_path / "in/notes.md").write_text("# notes\n")
    counts = adp.convert([str(tmp_path / "in")], str(tmp_path / "store")).manifest.counts
    assert (counts.records, counts.trajectories) == (1, 3)
    odd = tmp_path / "odd.json"
    odd.write_bytes(b"\xff not UTF-8\n" + history)
    result = adp.convert([str(odd)], str(tmp_path / "odd"), format="aider")
    assert result.manifest.counts.trajectories == 4


def test_real_histories(tmp_path):
    """Sessions and prompts are those that a walk over the lines finds."""
    for number, path in enumerate(real("formats_new/aider/*.md")):
        text = path.read_text()
        ask = convert(path, tmp_path / str(number))
        parts = re.split(r"^# aider chat started at .*$", text, flags=re.MULTILINE)[1:]
        filled = [part for part in parts if part.strip()]
        assert ask("select count(*) n from trajectories")[0]["n"] == len(filled)
        output = [line[2:].strip() for line in text.split("\n") if line.startswith("> ")]
        rows = ask("select text from steps where source = 'environment' order by seq, step")
        assert "\n".join(it["text"] for it in rows).split("\n") == output
        first = [re.search(r"^#### (.*)$", part, re.MULTILINE)[1] for part in filled]
        asked = ask("select seq, arg_min(text, step) t from steps where source = 'user'"
                    " group by seq order by seq")  # fmt: skip
        assert [it["t"] for it in asked] == first
