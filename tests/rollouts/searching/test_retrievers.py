"""Retrievers besides BM25: vectors against plain numpy, the rest of them without their packages."""

from __future__ import annotations

import builtins
import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.rollouts.environments.corpus import Document
from adp.rollouts.environments.retrieve_documents import RetrieveDocuments, RetrieveSettings
from adp.rollouts.environments.search import Library, SearchEnvironment, SearchSettings
from adp.rollouts.searching import dense
from adp.rollouts.searching.chroma import cut
from adp.rollouts.searching.dense import DenseIndex
from adp.rollouts.searching.random_choice import RandomIndex
from adp.rollouts.turns import Call, Turn
from adp_schema.errors import InputError, MissingExtraError, UsageError
from adp_schema.ids import digest
from adp_schema.model import Task


class Letters:
    """Counts letters; what it was asked for is kept."""

    identity = "letters"

    def __init__(self):
        self.asked = []

    def embed(self, texts):
        self.asked += texts
        rows = [[text.count(chr(97 + n)) for n in range(26)] for text in texts]
        return np.asarray(rows, dtype=np.float32).reshape(len(texts), 26)


def cosine(left, right):
    """Plain, for two vectors of numbers."""
    dot = sum(a * b for a, b in zip(left, right, strict=True))
    lengths = sum(a * a for a in left) ** 0.5 * sum(b * b for b in right) ** 0.5
    return dot / lengths if lengths else 0.0


TEXTS = st.lists(st.text("abc xyz", max_size=12), max_size=8)


@given(TEXTS, st.text("abcz", max_size=6), st.integers(0, 9))
def test_dense_ranks_by_the_cosine_of_plain_numbers(texts, query, limit):
    hits = DenseIndex(texts, Letters()).search(query, limit)
    vectors = Letters().embed([query, *texts]).tolist()
    scores = [round(cosine(vectors[0], vector), 9) for vector in vectors[1:]]
    order = sorted(range(len(texts)), key=lambda number: (-scores[number], number))[:limit]
    assert [score for _, score in hits] == pytest.approx([scores[n] for n in order], abs=1e-8)
    # Scores that differ by rounding alone may change places.
    assert sorted(scores[number] for number, _ in hits) == pytest.approx(
        sorted(scores[n] for n in order), abs=1e-8
    )


def test_equal_texts_keep_their_order_and_are_embedded_once(tmp_path):
    model = Letters()
    index = DenseIndex(["aa", "b", "a", "b"], model, tmp_path / "v")
    assert [number for number, _ in index.search("b", 4)] == [1, 3, 0, 2]
    assert model.asked == ["aa", "b", "a", "b"]  # the last one is the query
    again = Letters()
    grown = DenseIndex(["b", "c", "a"], again, tmp_path / "v")
    assert again.asked == ["c"]
    assert grown.search("c", 1) == [(1, 1.0)]
    other = Letters()
    other.identity = "others"
    DenseIndex(["b"], other, tmp_path / "v")
    assert other.asked == ["b"]


def test_a_file_of_vectors_that_is_none(tmp_path):
    (tmp_path / "v").write_bytes(b"no database, but long enough to be read as one" * 40)
    with pytest.raises(InputError, match="name another file"):
        DenseIndex(["a"], Letters(), tmp_path / "v")


def test_vectors_that_are_no_numbers_are_never_first():
    class Broken(Letters):
        def embed(self, texts):
            rows = super().embed(texts)
            rows[[text == "x" for text in texts]] = np.nan
            return rows

    hits = DenseIndex(["x", "a"], Broken()).search("a", 2)
    assert hits == [(1, 1.0), (0, 0.0)]


def test_random_depends_on_the_query_alone():
    index = RandomIndex(50)
    hits = index.search("etna", 5)
    assert hits == RandomIndex(50).search("etna", 5)
    assert hits != index.search("po", 5)
    assert len({number for number, _ in hits}) == 5
    assert len(index.search("etna", 99)) == 50
    assert RandomIndex(0).search("a", 3) == []


@given(st.text("ab ", max_size=60), st.integers(1, 12), st.integers(0, 11))
def test_pieces_overlap_and_lose_nothing(text, chunk, overlap):
    overlap = min(overlap, chunk - 1)
    pieces = [piece.text for piece in cut([Document("d", "T", text)], chunk, overlap)]
    assert all(len(piece) <= chunk for piece in pieces)
    assert pieces[0] + "".join(piece[overlap:] for piece in pieces[1:]) == text
    for before, after in itertools.pairwise(pieces):
        assert before[len(before) - overlap :] == after[:overlap]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(dense, "ModelEmbedder", lambda model: Letters())
    dense.load_embedder.cache_clear()
    for name, texts in {"films": ["zzz", "abc"], "towns": ["qqq"]}.items():
        (tmp_path / "c" / name).mkdir(parents=True)
        for text in texts:
            (tmp_path / "c" / name / f"{text}.txt").write_text(text)
    yield tmp_path / "c"
    dense.load_embedder.cache_clear()


def asked(environment, **arguments):
    environment.reset(Task(task_id="t", instruction="x"))
    name = environment.tools()[0]["function"]["name"]
    call = Call(name, json.dumps(arguments))
    (result,) = environment.step(Turn(calls=(call,))).results
    return result


def test_the_tools_take_another_retriever(folder):
    settings = RetrieveSettings(
        collections=folder, limit=1, retriever="dense", embedding_model="letters"
    )
    result = asked(RetrieveDocuments(settings), collection="films", query="zz")
    assert result.text == "zzz\nzzz"
    assert result.structured == [{"id": "zzz.txt", "score": 1.0}]
    environment = SearchEnvironment(
        SearchSettings(corpus=folder / "films", retriever="dense", embedding_model="letters")
    )
    assert [tool["function"]["name"] for tool in environment.tools()] == ["search", "open_document"]
    assert asked(environment, query="cab").text.startswith("[abc.txt] abc\nabc")
    drawn = RetrieveSettings(collections=folder, retriever="random")
    assert asked(RetrieveDocuments(drawn), collection="towns", query="?").text == "qqq\nqqq"


def test_bm25_is_what_it_was(folder):
    plain = asked(RetrieveDocuments(RetrieveSettings(collections=folder)), collection="films",
                  query="abc")  # fmt: skip
    documents = [Document(f"{text}.txt", text, text) for text in ("abc", "zzz")]
    ((_, score),) = Library(documents).search("abc", 3)
    assert plain.structured == [{"id": "abc.txt", "score": round(score, 6)}]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"retriever": "dense"}, "needs embedding_model"),
        ({"retriever": "elasticsearch"}, "needs retriever_url"),
        ({"retriever": "chroma", "embedding_model": "m"}, "needs either chroma"),
        ({"retriever": "bm25"}, "give collections"),
        ({"retriever": "elasticsearch", "retriever_url": "http://h:1"}, "give collections"),
        ({"collections": "c", "chunk": 10, "overlap": 10}, "overlap must be less"),
        ({"retriever": "faiss", "collections": "c"}, "bm25"),
    ],
)
def test_settings_that_do_not_fit(given, words):
    with pytest.raises(ValueError, match=words):
        RetrieveSettings(**given)


def test_a_key_that_is_not_set(monkeypatch):
    monkeypatch.delenv("NO_KEY", raising=False)
    settings = RetrieveSettings(retriever="elasticsearch", retriever_url="http://127.0.0.1:1",
                                retriever_key_env="NO_KEY", indexes={"a": "b"})  # fmt: skip
    with pytest.raises(UsageError, match="NO_KEY is not set"):
        settings.key()


@pytest.mark.parametrize("package", ["elasticsearch", "chromadb", "model2vec"])
def test_a_package_that_is_not_there_is_named(package, tmp_path, monkeypatch):
    real = builtins.__import__

    def without(name, *rest):
        if name.partition(".")[0] == package:
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text('{"model_type": "model2vec"}')
    (tmp_path / "a.txt").write_text("text")
    kind = {"elasticsearch": "elasticsearch", "chromadb": "chroma", "model2vec": "dense"}[package]
    more = {"retriever_url": "http://127.0.0.1:1"} if package == "elasticsearch" else {
        "embedding_model": str(tmp_path / "model"), "corpus": tmp_path / "a.txt"}  # fmt: skip
    if package == "chromadb":
        monkeypatch.setattr(dense, "ModelEmbedder", lambda model: Letters())
        more["chroma"] = tmp_path / "chroma"
    with pytest.raises(MissingExtraError, match=rf"'{package}'.*adp\[{kind}\]"):
        SearchEnvironment(SearchSettings(retriever=kind, index=digest(package.encode()), **more))
    dense.load_embedder.cache_clear()
