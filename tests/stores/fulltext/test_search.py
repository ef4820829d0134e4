"""Searching, against a plain scan of all texts."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adp
from adp.stores.fulltext.search_words import fts_expression
from adp.stores.fulltext.text_index import index_folder
from adp_schema.builder import Origin, RowBuilder
from adp_schema.errors import QueryError, StoreError, UsageError
from adp_schema.store import Store
from tests.effort import examples
from tests.store_builders import write_store

ALL = 100_000


def add(builder: RowBuilder, seq: int, texts: list[str]) -> None:
    """A trajectory that says some texts, in turn as each of the places."""
    builder.begin(Origin(seq=seq, dataset="d", columns={"source_hash": f"{seq:032x}"}))
    builder.trajectory({"source_id": f"t{seq}", "success": seq % 2 == 0})
    for number, text in enumerate(texts):
        source = ("user", "agent")[number % 2]
        builder.step({"source": source, "kind": "message", "text": text})
        if number % 3 == 1:
            builder.step({"source": "agent", "kind": "llm_turn", "reasoning": text})
            arguments = json.dumps({"q": text}, ensure_ascii=number % 2 == 0)
            builder.call({"kind": "function", "name": "f", "arguments": arguments})
            builder.observation({"source": "environment", "name": "f", "text": text})
    builder.finish()


def made(folder: Path, shards: list[list[list[str]]]) -> Store:
    builders = []
    seq = 0
    for shard in shards:
        builder = RowBuilder()
        for texts in shard:
            add(builder, seq, texts)
            seq += 1
        builders.append(builder)
    return write_store(folder, *builders)


def scan(store: Store) -> list[tuple[str, int, str, list[str]]]:
    """The words of all texts, by an independent reading."""
    result = []
    for trajectory in store:
        name = trajectory.trajectory_id or ""
        for step in trajectory.steps:
            number = step.step or 0
            texts = [("text", step.text), ("reasoning", step.reasoning)]
            for call in step.calls:
                values = json.loads(call.arguments or "{}")
                texts.append(("arguments", " ".join(f"{k} {v}" for k, v in values.items())))
            texts += [("observation", row.text) for row in step.observations]
            for place, text in texts:
                if text:
                    result.append((name, number, place, words_of(text)))
    return result


def words_of(text: str) -> list[str]:
    return re.findall(r"[^\W_]", text) and [
        word for word in re.findall(r"[\u4e00-\u9fff]|[^\W_\u4e00-\u9fff]+", text.lower())
    ]


def holds(tree: Any, words: list[str]) -> bool:
    """Whether a text with some words is one that a search means."""
    kind, *inside = tree
    if kind == "and":
        return all(holds(part, words) for part in inside)
    if kind == "or":
        return any(holds(part, words) for part in inside)
    if kind == "not":
        return holds(inside[0], words) and not holds(inside[1], words)
    wanted = words_of(inside[0])
    for start in range(len(words) - len(wanted) + 1):
        run = words[start : start + len(wanted)]
        if kind == "prefix":
            if run[:-1] == wanted[:-1] and run[-1].startswith(wanted[-1]):
                return True
        elif run == wanted:
            return True
    return False


def written(tree: Any) -> str:
    kind, *inside = tree
    if kind == "phrase":
        return f'"{inside[0]}"'
    if kind == "prefix":
        return f"{inside[0]}*"
    if kind == "word":
        return str(inside[0])
    word = {"and": " AND ", "or": " OR ", "not": " NOT "}[kind]
    return f"({word.join(map(written, inside))})"


simple = st.text("abé世_", min_size=1, max_size=2).filter(lambda word: word.strip("_"))
texts = st.text('abé世_ "\n\\\x00\x1f.', max_size=12)
leaves = st.one_of(
    st.tuples(st.sampled_from(["word", "prefix"]), simple),
    st.tuples(st.just("phrase"), st.lists(simple, min_size=1, max_size=2).map(" ".join)),
)
trees = st.recursive(
    leaves,
    lambda part: st.tuples(st.sampled_from(["and", "or", "not"]), part, part),
    max_leaves=4,
)


@settings(max_examples=examples(100))
@given(
    st.lists(st.lists(st.lists(texts, max_size=4), max_size=3), min_size=1, max_size=2),
    st.lists(trees, min_size=1, max_size=8),
)
def test_a_search_finds_what_a_scan_finds(shards: Any, searches: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = made(Path(folder) / "s", shards)
        everything = scan(store)
        for tree in searches:
            expected = [item[:3] for item in everything if holds(tree, item[3])]
            matches = adp.search(store, written(tree), limit=ALL).matches
            place = [(match.trajectory_id, match.step, match.place) for match in matches]
            assert sorted(place) == sorted(expected), written(tree)
            for match in matches:
                assert match.marks or tree[0] == "not", match
            ordered = adp.search(store, written(tree), limit=ALL, order="store").matches
            assert [(m.trajectory_id, m.step) for m in ordered] == [i[:2] for i in expected]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    shards = [
        [["find the train", "no such file: a.py"], ["the file is there"]],
        [["trains and files"], ["nothing here", "File not found", "file file file"]],
    ]
    return made(tmp_path / "s", shards)


def places(result: Any) -> list[tuple[str, int, str]]:
    return [(match.trajectory_id, match.step, match.place) for match in result.matches]


def test_the_best_match_comes_first_and_the_words_are_marked(store: Store) -> None:
    result = adp.search(store, "file", limit=2)
    assert result.more
    assert [match.score for match in result.matches] == sorted(
        (match.score for match in result.matches), reverse=True
    )
    best = next(match for match in result.matches if match.snippet == "file file file")
    assert [best.snippet[begin:end] for begin, end in best.marks] == ["file"] * 3
    phrase = adp.search(store, '"such file"').matches[0]
    assert [phrase.snippet[begin:end] for begin, end in phrase.marks] == ["such file"]


def test_places_sources_and_conditions(store: Store) -> None:
    assert {place for *_, place in places(adp.search(store, "file", places=["arguments"]))} == {
        "arguments"
    }
    users = adp.search(store, "file", sources=["user"], limit=ALL)
    assert {match.name for match in users.matches} == {"user"}
    tools = adp.search(store, "file", sources=["environment"], limit=ALL)
    assert {match.place for match in tools.matches} == {"observation"}
    even = adp.search(store, "fil*", where="success", limit=ALL)
    assert {match.trajectory_id for match in even.matches} == {"d/t0", "d/t2"}
    assert not adp.search(store, "file", where="false").matches
    for options, words in (
        ({"places": ["txt"]}, "unknown place 'txt'"),
        ({"sources": ["tool"]}, "unknown source"),
        ({"order": "date"}, "unknown order"),
        ({"limit": 0}, "the limit is 0"),
    ):
        with pytest.raises(UsageError, match=words):
            adp.search(store, "file", **options)  # type: ignore[arg-type]
    with pytest.raises(QueryError):
        adp.search(store, "file", where="true) OR (true")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "is empty"),
        ('"a', "does not close"),
        ("(a", "does not close"),
        ("a)", "did not open"),
        ("a AND", "between two words"),
        ("AND a", "between two words"),
        ("a OR", "a word is missing"),
        ("NOT a", "before NOT"),
        ("()", "a word is missing"),
        ("--", "neither letters nor digits"),
        ("(" * 50 + "a" + ")" * 50, "more than 40 parentheses"),
        ("a " * 300, "200 at most"),
    ],
)
def test_what_is_no_search_is_said(words: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        fts_expression(words)


@settings(max_examples=examples(2000))
@given(st.text(st.sampled_from("ab\"*()^:+-{},. \n\x00\ud800ANDORTE世;'%"), max_size=20))
def test_no_search_breaks_the_engine(words: str) -> None:
    try:
        expression = fts_expression(words)
    except UsageError:
        return
    index = sqlite3.connect(":memory:")
    index.execute("CREATE VIRTUAL TABLE words USING fts5(text)")
    index.execute("SELECT * FROM words WHERE words MATCH ?", (expression,)).fetchall()
    assert re.sub(r'"[^"]*"', "", expression).strip("ANDORT ()*") == ""  # all words are in quotes
    index.close()


def test_an_index_is_made_once_and_what_is_stale_goes(store: Store, tmp_path: Path) -> None:
    adp.search(store, "file")
    folder = index_folder(store)
    assert folder == tmp_path / "s.index"
    times = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert len(times) == 2
    adp.search(store, "train")
    assert times == {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    (folder / "mine.db").write_text("a file of somebody")
    adp.drop(tmp_path / "s", "trajectory_id = 'd/t3'", tmp_path / "less")
    shutil.rmtree(tmp_path / "s")
    (tmp_path / "less").rename(tmp_path / "s")
    adp.search(tmp_path / "s", "file")
    left = {path.name for path in folder.iterdir()} - {"mine.db"}
    assert len(left) == 2
    assert len(left & set(times)) == 1  # a shard that is the same has the same index
    assert (folder / "mine.db").read_text() == "a file of somebody"


def test_a_named_folder_holds_the_indices_of_several_stores(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "all"
    folder.mkdir()
    (folder / f"{'0' * 32}.db").write_text("of a store that is elsewhere")
    adp.search(store, "file", index=str(folder))
    adp.drop(tmp_path / "s", "trajectory_id = 'd/t3'", tmp_path / "less")
    adp.search(tmp_path / "less", "file", index=str(folder))
    assert len(list(folder.iterdir())) == 1 + 2 + 1  # two shards, one of the other differs


def test_a_damaged_index_and_a_folder_that_cannot_be(store: Store, tmp_path: Path) -> None:
    adp.search(store, "file")
    for path in index_folder(store).iterdir():
        path.write_bytes(b"no database" * 1000)
    with pytest.raises(StoreError, match=r"is damaged .*remove it, and search again"):
        adp.search(store, "file")
    (tmp_path / "there").write_text("a file")
    with pytest.raises(StoreError, match="cannot write the index"):
        adp.search(store, "file", index=str(tmp_path / "there" / "x"))


def test_a_build_that_stops_leaves_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    from adp.stores.fulltext import text_index

    def stop(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(text_index, "prepared", stop)
        with pytest.raises(KeyboardInterrupt):
            adp.search(store, "file")
    assert not list(index_folder(store).iterdir())
    assert adp.search(store, "file").matches


def test_a_growing_store(tmp_path: Path, store: Store) -> None:
    root = tmp_path / "grown"
    with adp.grow(root, seal_count=2) as growing:
        growing.extend(list(store)[:3])
        result = adp.search(root, "file", limit=ALL)
        assert result.unsealed == 1
        assert {match.trajectory_id for match in result.matches} == {"d/t0", "d/t1"}
        growing.append(list(store)[3])
        assert adp.search(root, "nothing").matches
    adp.seal(root)
    sealed = adp.search(root, "file", limit=ALL)
    whole = adp.search(store, "file", limit=ALL)
    assert (sorted(places(sealed)), sealed.unsealed) == (sorted(places(whole)), 0)


def test_a_store_at_a_url(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADP_CACHE", str(tmp_path / "cache"))
    far = adp.search(f"file://{store.root}", "file", limit=ALL)
    assert places(far) == places(adp.search(store, "file", limit=ALL))
    assert far.index.startswith(str(tmp_path / "cache"))
