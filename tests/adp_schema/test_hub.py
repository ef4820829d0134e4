"""Locations on the Hub, and stores that are read from there by byte ranges."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import adp
from adp.converters.run import convert
from adp_schema import hub, retries
from adp_schema.errors import HubError, QueryError, StoreError, UsageError
from adp_schema.hub import HubPath, parse
from adp_schema.store import Store
from tests import kill

URL = "hf://datasets/me/set"
names = st.from_regex(r"[a-zA-Z0-9]([a-zA-Z0-9_.]{0,20}[a-zA-Z0-9])?", fullmatch=True).filter(
    lambda name: ".." not in name and not name.endswith(".git")
)
revisions = st.one_of(
    st.none(), names, st.just("refs/pr/12"), st.just("refs/convert/parquet"), st.just("a/b")
)
paths = st.lists(names, max_size=3).map("/".join)


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    """A store with some megabytes of text."""
    root = tmp_path_factory.mktemp("made")
    kill.write_chats(root / "chats.jsonl", 8, 1)
    convert([str(root / "chats.jsonl")], str(root / "store"))
    return root / "store"


def contents(store: Path, below: str = "store/") -> dict[str, bytes]:
    return {
        f"{below}{path.relative_to(store).as_posix()}": path.read_bytes()
        for path in store.rglob("*")
        if path.is_file() and path.name != "run.json"
    }


@pytest.fixture
def published(fake_hub, made):
    fake_hub.repos.push("me/set", contents(made))
    return fake_hub


@given(names, names, revisions, paths)
def test_a_location_is_read_as_it_is_written(owner, name, revision, path):
    place = HubPath(f"{owner}/{name}", revision, path)
    assert parse(place.url()) == place


def test_a_location_means_what_huggingface_hub_means_by_it():
    uris = pytest.importorskip("huggingface_hub.utils._hf_uris")
    for end in ("", "@v1", "@refs/pr/3/a/b", "@refs%2Fpr%2F3/a", "/a/b.json", "@a%2Fb/c", "/"):
        theirs, ours = uris.parse_hf_uri(URL + end), parse(URL + end)
        assert (theirs.id, theirs.revision, theirs.path_in_repo) == (
            ours.repo_id, ours.revision, ours.path,
        )  # fmt: skip


@pytest.mark.parametrize(
    "url",
    ["hf://me/set", "hf://models/me/set", "hf://datasets/set", "hf://datasets/me/set@", "hf://",
     "hf://datasets/me/../x", "hf://datasets/me/a/../../b", "https://huggingface.co/datasets/me/a",
     "hf://datasets/me/a b"],
)  # fmt: skip
def test_what_is_no_location_is_refused(url):
    with pytest.raises(UsageError):
        parse(url)


def test_a_store_is_opened_where_it_is(published, made):
    commit = published.repos.repos["me/set"].head.oid
    local = Store.open(str(made))
    for url in (URL, f"{URL}/store", f"{URL}@main", f"{URL}@{commit}/store"):
        store = Store.open(url)
        assert store.root == f"{URL}@{commit}/store"
        assert store.name == "set"
        assert store.manifest == local.manifest
    first = next(iter(local.trajectories()))
    assert next(iter(store.trajectories())) == first
    assert store.get(first.trajectory_id) == first
    assert store.scan("steps").collect().equals(local.scan("steps").collect())
    sql = (
        "SELECT name, source, count(*) FROM calls JOIN steps USING (seq) GROUP BY ALL ORDER BY ALL"
    )
    assert sorted(map(str, store.query(sql).to_pylist())) == sorted(
        map(str, local.query(sql).to_pylist())
    )


def test_only_what_a_query_needs_is_read(published, made):
    size = sum(map(len, contents(made).values()))
    store = Store.open(URL)
    assert store.query("SELECT count(*) AS n FROM steps").to_pylist()[0]["n"] > 1000
    assert published.sent < size / 20
    published.forget()
    store.query("SELECT source, count(*) FROM steps GROUP BY ALL")
    assert published.sent < 10_000
    published.forget()
    store.scan("steps").select("source").unique().collect()
    assert published.sent < size / 20


def test_one_commit_for_all_of_it(published, made):
    store = Store.open(URL)
    steps = store.query("SELECT count(*) FROM steps")
    published.repos.push("me/set", {}, deleted=list(contents(made)))
    assert next(iter(store.trajectories())).steps
    assert store.query("SELECT count(*) FROM steps") == steps
    assert Store.open(store.root).query("SELECT count(*) FROM steps") == steps


@pytest.mark.parametrize("kind", ["429", "503", "no_response", "cut_response", "reset"])
def test_a_read_that_fails_in_passing_is_made_again(published, made, kind):
    published.faults.add("^(GET|POST|HEAD)", kind, times=2)
    store = Store.open(URL)
    published.faults.add("GET /objects", kind, times=2)
    assert store.query("SELECT count(*) AS n FROM steps").num_rows == 1
    published.faults.add("GET /(objects|datasets)", kind, times=2)
    assert sum(1 for _ in store.trajectories()) == store.manifest.counts.trajectories
    assert published.faults.happened[kind] == 6


def test_what_cannot_be_read_is_one_sentence(published, monkeypatch):
    published.repos.push("me/plain", {"data.jsonl": b"{}"})
    with pytest.raises(StoreError, match="adp convert hf://datasets/me/plain -o STORE"):
        adp.open("hf://datasets/me/plain")
    with pytest.raises(HubError, match="no data set me/none on the Hub"):
        adp.open("hf://datasets/me/none")
    with pytest.raises(HubError, match="no revision 'v3'"):
        adp.open(f"{URL}@v3")
    store = adp.open(URL)
    fault = published.faults.add("GET /(objects|datasets)", "503", times=10**6)
    assert store.query("SELECT 1").num_rows  # which reads no file
    with pytest.raises(HubError, match=r"^the Hub fails \(status 503\)"):
        store.query("SELECT count(*) FROM steps")
    fault.times = 0
    store.query("SELECT count(*) FROM steps")
    fault.times = 10**6
    with pytest.raises(HubError, match=r"^the Hub fails \(status 503\)"):
        store.query("SELECT sum(length(text)) FROM steps")
    with pytest.raises(HubError, match="the Hub fails"):
        next(iter(store.trajectories()))
    with pytest.raises(QueryError, match="nothing"):
        store.query("SELECT nothing FROM steps")
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(
        HubError, match=r"cannot reach the Hub at .*; check the connection and call again later$"
    ):
        adp.open(URL)


def test_sql_reads_nothing_else_on_the_hub(published):
    published.repos.push("me/other", {"x.parquet": published.repos.files("me/set")[
        "store/sources/part-00000.parquet"]})  # fmt: skip
    store = Store.open(URL)
    for path in ("hf://datasets/me/other/x.parquet", f"{URL}/store/steps/part-00000.parquet"):
        with pytest.raises(QueryError, match="disabled"):
            store.query(f"FROM '{path}'")


def test_an_error_keeps_no_token_and_one_line(fake_hub):
    fake_hub.faults.add(".", "400", times=9, message="bad\ntoken hf_abcdefghijklmnop")
    with pytest.raises(HubError) as caught:
        hub.resolve(parse(URL))
    assert "hf_a" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_waits_grow_and_end(monkeypatch):
    waited: list[float] = []
    monkeypatch.setattr(retries, "time", SimpleNamespace(sleep=waited.append))

    def call():
        raise ConnectionError

    with pytest.raises(ConnectionError):
        retries.retried(call)
    assert waited == [1, 2, 4, 8]
    asked = ConnectionError()
    asked.response = SimpleNamespace(headers={"retry-after": "40"})  # type: ignore[attr-defined]
    assert retries.pause(asked, 1) == 41
    asked.response = SimpleNamespace(headers={"ratelimit": '"api";r=0;t=55'})  # type: ignore[attr-defined]
    assert retries.pause(asked, 1) == 56
    asked.response = SimpleNamespace(headers={"retry-after": "86400"})  # type: ignore[attr-defined]
    assert retries.pause(asked, 1) == retries.LONGEST_ASKED
    with pytest.raises(KeyError):
        retries.retried({}.popitem)
