"""Search: BM25 against a slow reference, corpora of every kind, the tools."""

from __future__ import annotations

import copy
import json
import math
import re
from collections import Counter

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adp.rollouts.environments.bm25 import Bm25
from adp.rollouts.environments.corpus import read_corpus
from adp.rollouts.environments.retrieve_documents import KIND as RETRIEVE
from adp.rollouts.environments.search import KIND, PAGE
from adp.rollouts.turns import Call, ErrorType, Turn
from adp_schema.errors import EmptyResultError, InputError, UsageError
from adp_schema.model import Trajectory
from adp_schema.store import Store

WORDS = st.sampled_from(["red", "green", "Blue", "stra\u00dfe", "7"])
TEXTS = st.lists(st.lists(WORDS, max_size=6).map(" ".join), max_size=12)


def slow(texts, query, k1, b):
    """The formula of the module, document by document."""
    documents = [Counter(re.findall(r"\w+", text.casefold())) for text in texts]
    lengths = [sum(item.values()) for item in documents]
    average = sum(lengths) / len(lengths) if any(lengths) else 1
    results = []
    for number, document in enumerate(documents):
        score = 0.0
        for term in set(re.findall(r"\w+", query.casefold())):
            holding = sum(term in item for item in documents)
            idf = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
            norm = k1 * (1 - b + b * lengths[number] / average)
            if document[term]:
                score += idf * document[term] * (k1 + 1) / (document[term] + norm)
        if score:
            results.append((number, score))
    return sorted(results, key=lambda hit: -hit[1])


@given(TEXTS, st.lists(WORDS, max_size=4).map(" ".join), st.integers(1, 5), st.sampled_from([0, 2]))
def test_scores_are_those_of_the_formula(texts, query, limit, k1):
    expected = slow(texts, query, k1, 0.75)
    result = Bm25(texts, k1, 0.75).search(query, len(texts) or 1)
    assert {number for number, _ in result} == {number for number, _ in expected}
    for (_, entry), (_, other) in zip(result, expected, strict=True):
        assert entry == pytest.approx(other)
    assert Bm25(texts, k1, 0.75).search(query, limit) == result[:limit]


@given(TEXTS, st.permutations(["red", "green", "blue", "7"]))
def test_the_order_of_words_does_not_matter_and_ties_keep_their_order(texts, words):
    index = Bm25([*texts, *texts])
    result = index.search(" ".join(words), 100)
    assert result == index.search("7 blue green red", 100)
    places = {number: place for place, (number, _) in enumerate(result)}
    assert all(
        places[number] < places[number + len(texts)]
        for number in range(len(texts))
        if number in places
    )


@settings(max_examples=30)
@given(st.lists(st.text(max_size=30), max_size=5), st.text(max_size=30))
def test_any_texts_can_be_indexed(texts, query):
    assert len(Bm25(texts).search(query, 3)) <= 3


def test_copies_share_the_index():
    index = Bm25(["a"])
    assert copy.deepcopy(index) is index


def test_documents_come_from_files_folders_and_tables(tmp_path):
    (tmp_path / "a.jsonl").write_text(
        '{"id": "x", "title": "T", "text": "one"}\n\n{"contents": null}\n', encoding="utf-8"
    )
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "note.md").write_text("two", encoding="utf-8")
    (tmp_path / "c.csv").write_text("no", encoding="utf-8")
    pl.DataFrame({"_id": [7], "text": ["three"], "other": [1]}).write_parquet(
        tmp_path / "d.parquet"
    )
    results = [(item.id, item.title, item.text) for item in read_corpus(tmp_path)]
    assert results == [
        ("x", "T", "one"),
        ("a.jsonl#3", "", ""),
        ("b/note.md", "note", "two"),
        ("7", "", "three"),
    ]


def test_marks_of_windows_are_read_and_hidden_files_are_not(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(
        b'\xef\xbb\xbf{"id": "x", "text": "one"}\r\n{"text": "two"}\r\n'
    )
    (tmp_path / "b.txt").write_bytes(b"\xef\xbb\xbfthree")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "c.txt").write_text("four")
    (tmp_path / ".d.md").write_text("five")
    assert [item.text for item in read_corpus(tmp_path)] == ["one", "two", "three"]
    assert len(read_corpus(tmp_path / ".git")) == 1  # who names it means it


def test_documents_come_from_a_column_of_a_store(tmp_path):
    with Store.grow(tmp_path / "store") as store:
        for number, text in enumerate(["red fox", None, "blue fox", "red fox"]):
            store.append(Trajectory(trajectory_id=f"d/{number}", dataset="d", final_answer=text))
    corpus = read_corpus(tmp_path / "store", "trajectories.final_answer")
    assert [item.text for item in corpus] == ["red fox", "blue fox"]
    with pytest.raises(UsageError, match="no column"):
        read_corpus(tmp_path / "store", "trajectories.nothing")


@pytest.mark.parametrize(
    ("name", "data", "error", "part"),
    [
        ("a.jsonl", b"{", InputError, "a.jsonl#1"),
        ("a.jsonl", b"[1]", InputError, "no JSON object"),
        ("a.jsonl", b'{"id": 1}', InputError, "has no text"),
        ("a.jsonl", b'{"id":1,"text":""}\n{"id":"1","text":""}', InputError, "two documents"),
        ("a.txt", b"\xff", InputError, "cannot be read"),
        ("a.parquet", b"no", InputError, "Parquet"),
        ("a.csv", b"", UsageError, "must end in"),
        ("a.jsonl", b"", EmptyResultError, "no documents"),
    ],
)
def test_a_corpus_that_cannot_be_read_is_said(tmp_path, name, data, error, part):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(error, match=part):
        read_corpus(tmp_path / name)
    with pytest.raises(InputError, match="are not there"):
        read_corpus(tmp_path / "nothing.jsonl")


def ask(environment, name, **arguments):
    (result,) = environment.step(Turn(calls=(Call(name, json.dumps(arguments)),))).results
    return result


def test_search_and_open_work_without_a_corpus():
    environment = KIND.make(KIND.settings(limit=2))
    result = ask(environment, "search", query="learning from rewards")
    assert result.structured[0]["id"] == "reinforcement-learning"
    assert len(result.structured) == 2
    assert "earns more" in ask(environment, "open_document", id="reinforcement-learning").text
    assert ask(environment, "search", query="zzz").text == "No document matches."
    assert ask(environment, "open_document", id="zzz").error is ErrorType.INVALID_ARGS
    assert ask(environment, "search", query="x" * 1001).error is ErrorType.INVALID_ARGS
    assert environment.fork().step(Turn(text="done")).terminated


def test_a_long_document_is_read_in_pages(tmp_path):
    (tmp_path / "long.txt").write_text("a" * PAGE + "b" * 5, encoding="utf-8")
    environment = KIND.make(KIND.settings(corpus=tmp_path))
    first = ask(environment, "open_document", id="long.txt").text
    assert first.endswith(f"[5 more characters; go on with start={PAGE}]")
    assert ask(environment, "open_document", id="long.txt", start=PAGE).text == "bbbbb"
    assert ask(environment, "open_document", id="long.txt", start=10**30).text == ""


def test_collections_are_searched_apart(tmp_path):
    (tmp_path / "birds").mkdir()
    (tmp_path / "birds" / "owl.txt").write_text("An owl hunts mice.", encoding="utf-8")
    (tmp_path / "mammals.jsonl").write_text('{"text": "A cat hunts mice."}', encoding="utf-8")
    (tmp_path / "README").write_text("no collection", encoding="utf-8")
    environment = RETRIEVE.make(RETRIEVE.settings(collections=tmp_path))
    schema = environment.tools()[0]["function"]["parameters"]
    assert schema["properties"]["collection"]["enum"] == ["birds", "mammals"]
    assert list(schema["properties"]) == schema["required"] == ["collection", "query"]
    result = ask(environment, "retrieve_documents", collection="birds", query="mice")
    assert "owl" in result.text
    assert "cat" not in result.text
    wrong = ask(environment, "retrieve_documents", collection="fish", query="mice")
    assert wrong.error is ErrorType.INVALID_ARGS


def test_a_folder_without_collections_is_refused(tmp_path):
    with pytest.raises(EmptyResultError, match="no collection"):
        RETRIEVE.make(RETRIEVE.settings(collections=tmp_path))
    with pytest.raises(InputError, match="folder of collections"):
        RETRIEVE.make(RETRIEVE.settings(collections=tmp_path / "nothing"))
    (tmp_path / "a.txt").write_text("x", encoding="utf-8")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.txt").write_text("x", encoding="utf-8")
    with pytest.raises(InputError, match="two collections 'a'"):
        RETRIEVE.make(RETRIEVE.settings(collections=tmp_path))


def test_documents_that_are_not_there(tmp_path):
    with pytest.raises(InputError, match=r"nothing.jsonl are not there"):
        read_corpus(tmp_path / "nothing.jsonl")
    with pytest.raises(InputError, match=r"store are not there"):
        read_corpus(tmp_path / "store", "tasks.instruction")
