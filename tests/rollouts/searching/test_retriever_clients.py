"""The clients of the retrievers themselves; `make retriever-tests` runs it with their packages.

Chroma is real, in a folder and as a server. Elasticsearch is a local server that answers as one
does and keeps what the real client sends; no server of it can be installed from a registry.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from adp.rollouts.environments.corpus import Document
from adp.rollouts.environments.retrieve_documents import RetrieveDocuments, RetrieveSettings
from adp.rollouts.environments.search import SearchEnvironment, SearchSettings
from adp.rollouts.policy import InfrastructureError
from adp.rollouts.searching.chroma import ChromaDocuments
from adp.rollouts.searching.dense import load_embedder
from adp.rollouts.searching.elastic import ElasticDocuments
from adp.rollouts.searching.retriever_settings import RetrieverSettings
from adp.rollouts.turns import Call, Turn
from adp_schema.errors import UsageError
from adp_schema.model import Task
from tests.rollouts.searching.elastic_server import elastic_server

WORDS = ("etna", "volcano", "river", "po", "city", "turin", "[UNK]")


def retrieved(environment, **arguments):
    environment.reset(Task(task_id="t", instruction="x"))
    name = environment.tools()[0]["function"]["name"]
    (result,) = environment.step(Turn(calls=(Call(name, json.dumps(arguments)),))).results
    return result


# ---- Elasticsearch -----------------------------------------------------------------------------


@pytest.fixture
def elastic():
    with elastic_server() as server:
        yield server


def of_elastic(server, **more):
    url = f"http://127.0.0.1:{server.server_address[1]}"
    return RetrieverSettings(retriever="elasticsearch", retriever_url=url, **more)


@pytest.mark.parametrize(
    ("more", "query"),
    [
        ({"fields": ["text", "title"]},
         {"multi_match": {"query": "etna", "fields": ["text", "title"]}}),
        ({"match": "elser"},
         {"text_expansion": {"ml.tokens": {"model_id": ".elser_model_2", "model_text": "etna"}}}),
        ({"match": "sparse_vector"},
         {"sparse_vector": {"field": "ml.tokens", "inference_id": ".elser_model_2",
                            "query": "etna"}}),
    ],
)  # fmt: skip
def test_what_elasticsearch_is_asked(elastic, monkeypatch, more, query):
    monkeypatch.setenv("MY_KEY", "c2VjcmV0")
    settings = of_elastic(elastic, retriever_key_env="MY_KEY", **more)
    result = ElasticDocuments(settings, "docs-2024").search("etna", 3)
    ((path, headers, body),) = elastic.seen
    assert path == "/docs-2024/_search"
    assert headers["Authorization"] == "ApiKey c2VjcmV0"
    assert body == {"query": query, "size": 3}
    assert [(document.id, score) for document, score in result] == [
        ("c", 2.0), ("a", 1.5), ("b", 1.5),
    ]  # fmt: skip
    assert result[0][0].text == "text c"


def test_a_collection_has_an_index_of_its_own(elastic):
    shared = of_elastic(elastic).model_dump(exclude_unset=True)
    settings = RetrieveSettings(indexes={"films": "films-1", "towns": "t"}, limit=1, **shared)
    environment = RetrieveDocuments(settings)
    assert environment.blocking
    assert retrieved(environment, collection="films", query="etna").text == "text b"
    assert elastic.seen[0][0] == "/films-1/_search"
    searching = SearchEnvironment(SearchSettings(index="all", **shared))
    assert retrieved(searching, query="etna").structured[0] == {"id": "c", "score": 2.0}


def test_one_index_for_all_collections_with_name_and_password(elastic, monkeypatch):
    monkeypatch.setenv("ES_USERNAME", "me")
    monkeypatch.setenv("ES_PASSWORD", "pw")
    shared = of_elastic(
        elastic, retriever_user_env="ES_USERNAME", retriever_password_env="ES_PASSWORD"
    ).model_dump(exclude_unset=True)
    environment = RetrieveDocuments(RetrieveSettings(index="dev", limit=1, **shared))
    assert retrieved(environment, collection="any", query="etna").text == "text b"
    path, headers, _ = elastic.seen[0]
    assert (path, headers["Authorization"]) == ("/dev/_search", "Basic bWU6cHc=")
    monkeypatch.delenv("ES_PASSWORD")
    with pytest.raises(UsageError, match="ES_PASSWORD is not set"):
        RetrieveDocuments(RetrieveSettings(index="other", **shared))


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (404, {"error": {"type": "index_not_found_exception", "reason": "no such index"}}),
        (503, {"error": "busy"}),
        (200, {"hits": 3}),
        (200, {"hits": {"hits": [{"_id": "a", "_score": 1, "_source": {"no": "text"}}]}}),
        (200, []),
    ],
)
def test_a_failing_elasticsearch_does_not_blame_the_agent(elastic, status, answer):
    elastic.answer = lambda *_: (status, answer)
    with pytest.raises(InfrastructureError):
        ElasticDocuments(of_elastic(elastic), "i", retries=0).search("etna", 3)


def test_a_dead_elasticsearch_does_not_blame_the_agent():
    pytest.importorskip("elasticsearch")
    settings = RetrieverSettings(retriever="elasticsearch", retriever_url="http://127.0.0.1:9")
    with pytest.raises(InfrastructureError, match="cannot be asked"):
        ElasticDocuments(settings, "i", retries=0).search("etna", 3)
    bad = settings.model_copy(update={"retriever_url": "nowhere"})
    with pytest.raises(UsageError, match="no address"):
        ElasticDocuments(bad, "i")


# ---- vectors of a real model -------------------------------------------------------------------


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    model2vec = pytest.importorskip("model2vec")
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.normalizers import Lowercase
    from tokenizers.pre_tokenizers import Whitespace

    words = {word: number for number, word in enumerate(WORDS)}
    tokenizer = Tokenizer(WordLevel(words, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = Lowercase(), Whitespace()
    vectors = np.random.default_rng(7).normal(size=(len(words), 8)).astype(np.float32)
    place = tmp_path_factory.mktemp("model") / "static"
    model2vec.StaticModel(vectors, tokenizer).save_pretrained(place)
    return str(place)


TEXTS = {"etna": "Etna is a volcano", "po": "The Po is a river", "turin": "Turin is a city"}


def test_dense_is_the_cosine_of_the_model_s_own_vectors(model, tmp_path):
    import model2vec

    for name, text in TEXTS.items():
        (tmp_path / f"{name}.txt").write_text(text)
    settings = SearchSettings(corpus=tmp_path, retriever="dense", embedding_model=model, limit=3)
    result = retrieved(SearchEnvironment(settings), query="river po")
    static = model2vec.StaticModel.from_pretrained(model)
    query, *rest = static.encode(["river po", *(f"{name}\n{text}" for name, text in TEXTS.items())])
    expected = {
        f"{name}.txt": float(query @ row / np.linalg.norm(query) / np.linalg.norm(row))
        for name, row in zip(TEXTS, rest, strict=True)
    }
    assert result.structured[0]["id"] == "po.txt"
    assert {hit["id"]: hit["score"] for hit in result.structured} == pytest.approx(
        expected, abs=1e-5
    )


# ---- Chroma ------------------------------------------------------------------------------------


@pytest.fixture
def towns(tmp_path):
    (tmp_path / "c" / "towns").mkdir(parents=True)
    for name, text in TEXTS.items():
        (tmp_path / "c" / "towns" / f"{name}.txt").write_text(text)
    return tmp_path / "c"


def test_chroma_in_a_folder(towns, model, tmp_path):
    pytest.importorskip("chromadb")
    more = {"retriever": "chroma", "embedding_model": model, "chroma": tmp_path / "chroma"}
    settings = RetrieveSettings(collections=towns, **more)
    result = retrieved(RetrieveDocuments(settings), collection="towns", query="river")
    assert result.text.startswith("po\nThe Po is a river")
    assert len(result.structured) == 3
    there = RetrieveSettings(indexes={"towns": "towns"}, limit=1, **more)
    again = retrieved(RetrieveDocuments(there), collection="towns", query="river")
    assert again.structured == result.structured[:1]
    (towns / "towns" / "po.txt").write_text("another text")
    with pytest.raises(UsageError, match="holds other documents"):
        ChromaDocuments(settings, "towns", load_embedder(model), [Document("a", "", "b")])
    with pytest.raises(UsageError, match="cannot be opened"):
        ChromaDocuments(there, "nothing", load_embedder(model))


def test_long_documents_go_into_chroma_in_pieces(model, tmp_path):
    pytest.importorskip("chromadb")
    settings = RetrieverSettings(retriever="chroma", embedding_model=model, chunk=20, overlap=5,
                                 chroma=tmp_path / "chroma")  # fmt: skip
    document = Document("d", "", "city city city city city river river river river etna etna etna")
    documents = ChromaDocuments(settings, "long", load_embedder(model), [document])
    (first, score), *_ = documents.search("etna", 2)
    assert first.id == "d#4"
    assert score > 0.9


def test_chroma_as_a_server(towns, model, tmp_path):
    pytest.importorskip("chromadb")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = Path(sys.executable).parent / "chroma"
    words = [program, "run", "--path", tmp_path / "data", "--port", port, "--host", "127.0.0.1"]
    server = subprocess.Popen(list(map(str, words)), stdout=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    settings = RetrieveSettings(retriever="chroma", embedding_model=model, retriever_url=url,
                                collections=towns, limit=1)  # fmt: skip
    try:
        end = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert time.monotonic() < end
                time.sleep(0.1)
        environment = RetrieveDocuments(settings)
        result = retrieved(environment, collection="towns", query="volcano")
        assert result.text.startswith("etna\n")
    finally:
        server.kill()
        server.wait()
    with pytest.raises(InfrastructureError, match="Chroma cannot be asked"):
        retrieved(environment, collection="towns", query="volcano")
