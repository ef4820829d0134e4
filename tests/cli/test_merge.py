from __future__ import annotations

import json

import pytest


def chats(path, *numbers):
    path.parent.mkdir(parents=True, exist_ok=True)
    records = [{"id": str(n), "messages": [{"role": "user", "content": "hi"}]} for n in numbers]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.fixture
def two(run, tmp_path):
    """Two stores that share a file name and an id."""
    for name, numbers in (("mon", (1, 2)), ("tue", (2, 3))):
        source = chats(tmp_path / f"in-{name}" / "chats.jsonl", *numbers)
        assert run("convert", source, "-o", tmp_path / name).code == 0
    return tmp_path / "mon", tmp_path / "tue"


def test_says_what_had_to_change(run, two, tmp_path):
    done = run("merge", *two, "-o", tmp_path / "week")
    assert done.code == 0
    assert "records 4 = used 4 + skipped 0 + rejected 0" in done.out
    assert "1 id was there already and got the next number (#2, #3)" in done.out
    assert f"the files of {two[1]} are under tue/ now" in done.out
    assert f"next: adp info {tmp_path / 'week'}" in done.out
    assert "chats/2#2" in run("head", tmp_path / "week").out
    assert run("info", tmp_path / "week", "--verify").code == 0


def test_json(run, two, tmp_path):
    answer = json.loads(run("merge", *two, "-o", tmp_path / "week", "--json").out)
    assert answer["counts"]["used"] == 4
    assert answer["merge"] == {"stores": 2, "renumbered": 1, "folders": {"2": "tue"}}


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["MON", "-o", "NEW"], 2, "name two stores or more"),
        (["MON", "MON", "-o", "NEW"], 2, "are the same store"),
        (["MON", "TUE", "-o", "MON"], 5, "holds a store already"),
        (["MON", "TUE", "-o", "PARENT"], 5, "is not empty and is no store"),
        (["MON", "nowhere", "-o", "NEW"], 5, "nowhere is not a store"),
        (["MON", "TUE"], 2, "missing option '--out' / '-o'"),
    ],
)
def test_wrong_calls(run, two, tmp_path, words, code, message):
    places = {"MON": two[0], "TUE": two[1], "NEW": tmp_path / "new", "PARENT": tmp_path}
    done = run("merge", *[places.get(word, word) for word in words])
    assert done.code == code
    assert message in done.err.splitlines()[-1]
