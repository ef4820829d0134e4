"""A search server, asked by our own client and by plain HTTP."""

from __future__ import annotations

import http.client
import json
import threading
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adp.rollouts.environments.corpus import Document
from adp.rollouts.environments.search import Library
from adp.rollouts.policy import InfrastructureError
from adp.rollouts.searching.remote import RemoteDocuments, documents_of
from adp.rollouts.searching.server import LARGEST, SearchServer
from adp.rollouts.tools import ToolError
from adp_schema.errors import UsageError

DOCUMENTS = [
    Document("etna", "Etna", "Etna is a volcano in Sicily."),
    Document("po", "Po", "The Po is a river in Italy."),
    Document("nile", "", "The Nile is a river, too: \ud800 river."),
]


@contextmanager
def serving(documents):
    with SearchServer(documents) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def library():
    return Library(DOCUMENTS)


@pytest.fixture(scope="module")
def server(library):
    with serving(library) as made:
        yield made


def post(server, path, body, **headers):
    connection = http.client.HTTPConnection(*server.server_address, timeout=20)
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request("POST", path, data, headers)
    answer = connection.getresponse()
    value = json.loads(answer.read())
    connection.close()
    return answer.status, value


QUERIES = st.lists(
    st.sampled_from(["river", "volcano", "Sicily", "too", "nothing"]), min_size=1, max_size=4
).map(" ".join)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(QUERIES, st.integers(1, 5))
def test_a_client_finds_what_the_library_finds(server, library, query, top):
    found_here = library.search(query, top)
    hits = RemoteDocuments(server.url).search(query, top)
    assert [document.id for document, _ in hits] == [document.id for document, _ in found_here]
    assert [document.title for document, _ in hits] == [item.title for item, _ in found_here]
    status, scored = post(server, "/search", {"query": query, "top_n": top, "return_score": True})
    assert status == 200
    assert scored[1] == pytest.approx([score for _, score in found_here], abs=1e-6)
    status, both = post(server, "/batch_search", {"queries": [query, "river"], "top_n": top})
    assert both[0] == scored[0]
    # FlashRAG's clients write the list as `query`.
    assert post(server, "/batch_search", {"query": [query, "river"], "top_n": top})[1] == both


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/search", {"query": ""}, 400, "not empty"),
        ("/search", {"query": ["a"]}, 400, "not empty"),
        ("/search", {"query": "a" * 10_001}, 400, "10,000 characters"),
        ("/search", {"query": "a", "top_n": 0}, 400, "from 1 to 100"),
        ("/search", {"query": "a", "top_n": True}, 400, "from 1 to 100"),
        ("/search", b"{", 400, "no JSON"),
        ("/search", b"[" * 5000, 400, "no JSON"),
        ("/search", [], 400, "JSON object"),
        ("/batch_search", {"queries": "a"}, 400, "list of at most 1000"),
        ("/batch_search", {"queries": ["a"] * 1001}, 400, "list of at most 1000"),
        ("/batch_search", {"queries": [1]}, 400, "not empty"),
        ("/other", {"query": "a"}, 404, "use /search"),
    ],
)
def test_what_is_wrong_is_one_sentence(server, path, body, status, words):
    answer, value = post(server, path, body)
    assert answer == status
    assert words in value["error"]


def test_a_request_is_bounded(server):
    connection = http.client.HTTPConnection(*server.server_address, timeout=20)
    connection.putrequest("POST", "/search")
    connection.putheader("Content-Length", str(LARGEST + 1))
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()
    connection.request("GET", "/health")
    assert json.loads(connection.getresponse().read()) == {"documents": 3}
    connection.close()


def test_an_address_that_is_taken(server):
    with pytest.raises(UsageError, match="give another --host or --port"):
        SearchServer(Library(DOCUMENTS), port=server.server_address[1])


# ---- the client -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "answer",
    [
        [{"id": "a", "contents": "T\nx"}, {"id": "b", "contents": "y"}],
        [[{"id": "a", "contents": "T\nx"}, {"id": "b", "contents": "y"}], [2.0, 1]],
        {"result": [[{"document": {"id": "a", "contents": "T\nx"}, "score": 2.0},
                     {"document": {"id": "b", "contents": "y"}, "score": 1}]]},
        {"docs": [{"id": "a", "title": "T", "text": "x"}, {"doc_id": "b", "content": "y"}]},
        ["T\nx", "y", "z"],
    ],
)  # fmt: skip
def test_answers_of_other_servers_are_read(answer):
    hits = documents_of(json.dumps(answer).encode(), 2)
    assert [f"{item.title}\n{item.text}".strip() for item, _ in hits] == ["T\nx", "y"]


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.sampled_from(["id", "text", "result", "document", "score"]), inner),
))  # fmt: skip
def test_any_answer_is_read_or_refused(answer):
    try:
        hits = documents_of(json.dumps(answer).encode(), 3)
    except InfrastructureError:
        return
    assert all(isinstance(document.text, str) for document, _ in hits)


class Failing:
    """Documents of which the first searches fail."""

    def __init__(self, failures):
        self.left = failures

    def __len__(self):
        return 1

    def search(self, query, limit):
        if self.left:
            self.left -= 1
            raise ValueError("a bug")
        return [(DOCUMENTS[0], 1.0)]


def test_a_server_that_fails_is_asked_again(monkeypatch):
    waits = []
    monkeypatch.setattr("adp.rollouts.searching.remote.time.sleep", waits.append)
    with serving(Failing(2)) as server:
        assert RemoteDocuments(server.url).search("a", 1)[0][0].id == "etna"
    assert waits == [0.5, 1.0]
    with pytest.raises(InfrastructureError, match=f"^{server.url}: .* cannot be asked"):
        RemoteDocuments(server.url, retries=1).search("a", 1)
    url = server.url.replace("http://", "http://ada:secret@")
    with pytest.raises(InfrastructureError, match="cannot be asked") as lost:
        RemoteDocuments(url, retries=0).search("a", 1)
    assert "secret" not in str(lost.value)


def test_a_wrong_address_is_no_fault_of_the_agent(server, monkeypatch):
    waits = []
    monkeypatch.setattr("adp.rollouts.searching.remote.time.sleep", waits.append)
    with pytest.raises(InfrastructureError, match="HTTP 404"):
        RemoteDocuments(f"{server.url}/v1").search("a", 1)
    assert not waits, "asking again does not help"


def test_a_refusal_is_told_to_the_agent(server):
    with pytest.raises(ToolError, match="the search server refuses"):
        RemoteDocuments(server.url).search("", 1)
    with pytest.raises(UsageError, match="no address of a search server"):
        RemoteDocuments("localhost:8080")
