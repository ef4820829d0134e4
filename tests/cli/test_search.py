"""`adp search` on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import adp


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    texts = ["find the \x1b[31m train now", "no train goes"]
    lines = [
        {"id": f"r{number}", "messages": [{"role": "user", "content": text}]}
        for number, text in enumerate(texts)
    ]
    Path("chat.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    adp.convert("chat.jsonl", "st")


def test_it_shows_where_the_words_are(store: None, run: Any) -> None:
    done = run("search", "st", "train", "NOT", "goes")
    assert done.code == 0, done.err
    assert "chat/r0  [0] text  user" in done.out
    assert "␛[31m train now" in done.out  # no escape of the data reaches the terminal
    assert "r1" not in done.out
    done = run("search", "st", "train", "-n", "1")
    assert "there are more" in done.out
    assert "nothing has these words" in run("search", "st", "bus").out


def test_json(store: None, run: Any) -> None:
    value = json.loads(run("search", "st", "train", "--json", "--where", "source_id = 'r1'").out)
    (match,) = value["matches"]
    assert (match["trajectory_id"], match["step"], match["place"]) == ("chat/r1", 0, "text")
    (begin, end), text = *match["marks"], match["snippet"]
    assert text[begin:end] == "train"


def test_what_is_wrong_is_one_sentence(store: None, run: Any) -> None:
    for words in (["(train"], ["train", "--in", "txt"], ["train", "--where", "x; y"]):
        done = run("search", "st", *words)
        assert done.code in (2, 6), words
        assert done.err.startswith("error:"), done.err
