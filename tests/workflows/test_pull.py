"""Bringing a published store back: hash for hash, whatever goes wrong on the way."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

import adp
from adp.workflows.publish.upload import upload
from adp.workflows.pull import pull
from adp_schema.errors import HubError, OutputExistsError, StoreError, UsageError
from tests import kill

EXAMPLES = Path(__file__).parents[2] / "examples"
REPO, URL = "me/travel", "hf://datasets/me/travel"
KINDS = ["429", "500", "503", "no_response", "cut_response", "reset"]
CALLS = {
    "revision": "GET /api/datasets/me/travel(/revision|$)",
    "paths": "POST .*/paths-info/",
    "tree": "GET .*/tree/",
    "head": "HEAD ",
    "file": "GET /datasets/.*/resolve",
    "object": "GET /objects",
}


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    """A small real store."""
    folder = tmp_path_factory.mktemp("made") / "store"
    adp.convert(EXAMPLES, folder)
    return folder


@pytest.fixture
def published(fake_hub, store, tmp_path):
    """A local Hub with a publication of the store."""
    folder = tmp_path / "folder"
    shutil.copytree(store, folder / "store")
    (folder / "README.md").write_text("---\nlicense: mit\n---\n# Travel\n")
    (folder / "messages").mkdir()
    (folder / "messages/part-00000.parquet").write_bytes(b"messages")
    upload(folder, REPO, tag="v1")
    fake_hub.forget()
    return fake_hub


def test_the_store_comes_back_hash_for_hash(published, store, tmp_path):
    for number, url in enumerate([URL, f"{URL}@v1", f"{URL}/store", f"{URL}@main"]):
        out = tmp_path / f"out{number}"
        manifest, place = pull(url, out)
        assert kill.hashes(out) == kill.hashes(store)
        assert {path.name for path in out.iterdir()} == {path.name for path in store.iterdir()}
        assert manifest == adp.open(store).manifest
        assert place.url() == f"{URL}@{published.repos.repos[REPO].head.oid}/store"
    assert not published.asked("messages|README")
    assert not any(call.token for call in published.calls if call.origin == "cdn")


def test_a_revision_is_what_it_was(published, store, tmp_path):
    published.repos.push(REPO, {"store/adp.json": b"{}"})
    pull(f"{URL}@v1", tmp_path / "old")
    assert kill.hashes(tmp_path / "old") == kill.hashes(store)
    with pytest.raises(StoreError, match="the store has schema version None"):
        pull(URL, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_store_may_be_the_whole_repository(fake_hub, store, tmp_path):
    upload(store, REPO)
    pull(URL, tmp_path / "out")
    assert kill.hashes(tmp_path / "out") == kill.hashes(store)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("call", CALLS)
def test_each_call_may_fail_in_each_way(published, store, tmp_path, call, kind):
    published.faults.add(CALLS[call], kind, times=2)
    pull(URL, tmp_path / "out")
    assert published.faults.happened[kind] == 2
    assert kill.hashes(tmp_path / "out") == kill.hashes(store)


@pytest.mark.parametrize("seed", range(8))
def test_faults_at_random(published, store, tmp_path, seed):
    # A file takes two calls, and is given three tries to connect.
    published.faults.at_random(seed, 0.3, most=1)
    pull(URL, tmp_path / "out")
    assert published.faults.happened.total()
    assert kill.hashes(tmp_path / "out") == kill.hashes(store)


def test_a_stopped_run_brings_nothing_twice(published, store, tmp_path, monkeypatch):
    monkeypatch.setattr("adp.converters.hub_files.THREADS", 1)
    out = tmp_path / "out"
    fault = published.faults.add("GET /objects", "500", times=10**6, skip=3)
    with pytest.raises(HubError, match="the Hub fails"):
        pull(URL, out)
    assert not (out / "adp.json").exists()
    fault.times = 0
    pull(URL, out)
    assert kill.hashes(out) == kill.hashes(store)
    answered = Counter(call.path for call in published.asked("GET /objects") if not call.fault)
    assert set(answered.values()) == {1}
    with pytest.raises(OutputExistsError, match="holds a store already"):
        pull(URL, out)


def test_a_new_publication_meanwhile_is_taken_whole(published, tmp_path, monkeypatch):
    monkeypatch.setattr("adp.converters.hub_files.THREADS", 1)
    out, other = tmp_path / "out", tmp_path / "other"
    fault = published.faults.add("GET /objects", "500", times=10**6, skip=3)
    with pytest.raises(HubError):
        pull(URL, out)
    fault.times = 0
    adp.convert(EXAMPLES / "chat", other / "store")
    upload(other, REPO)
    pull(URL, out)
    assert kill.hashes(out) == kill.hashes(other / "store")


def test_a_damaged_file_is_named(published, store, tmp_path):
    path = "store/steps/part-00000.parquet"
    whole = published.repos.files(REPO)[path]
    published.repos.push(REPO, {path: b"X" + whole[1:]})
    with pytest.raises(StoreError, match=rf"{path} is damaged: its bytes differ"):
        pull(URL, tmp_path / "out")
    published.repos.push(REPO, {path: whole[:-1]})
    with pytest.raises(StoreError, match=rf"{path} is damaged: it has"):
        pull(URL, tmp_path / "short")
    published.repos.push(REPO, {}, deleted=[path])
    with pytest.raises(StoreError, match=rf"{path} is missing"):
        pull(URL, tmp_path / "gone")
    assert not (tmp_path / "gone").exists()


def test_what_is_no_publication_is_said(published, tmp_path):
    published.repos.push("me/plain", {"data.jsonl": b"{}"})
    with pytest.raises(StoreError, match="adp convert hf://datasets/me/plain -o STORE"):
        pull("hf://datasets/me/plain", tmp_path / "out")
    with pytest.raises(HubError, match="no data set me/none on the Hub"):
        pull("hf://datasets/me/none", tmp_path / "out")
    with pytest.raises(HubError, match="no revision 'v9'"):
        pull(f"{URL}@v9", tmp_path / "out")
    for url in ("hf://me/travel", "s3://me/travel", "me/travel", f"{URL}/../x"):
        with pytest.raises(UsageError):
            pull(url, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_private_one_needs_the_token(published, store, tmp_path, monkeypatch):
    published.repos.repos[REPO].private = True
    pull(URL, tmp_path / "mine")
    assert kill.hashes(tmp_path / "mine") == kill.hashes(store)
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(HubError, match="log in if it is private"):
        pull(URL, tmp_path / "out")


def test_scratch_of_a_killed_run_goes(published, store, tmp_path):
    out = tmp_path / "out"
    key = json.dumps({"act": "pull", "from": URL})
    (out / ".run/hub/.cache/huggingface/download").mkdir(parents=True)
    (out / ".run/plan.json").write_text(key)
    (out / ".run/hub/.cache/huggingface/download/x.incomplete").write_bytes(b"half")
    (out / "steps").mkdir()
    (out / "steps/part-00000.parquet").write_bytes(b"not this one")
    pull(URL, out)
    assert kill.hashes(out) == kill.hashes(store)
    assert not (out / ".run").exists()
