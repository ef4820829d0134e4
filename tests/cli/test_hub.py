"""Commands that read a store on the Hub where it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import adp
from adp.workflows.publish.upload import upload

EXAMPLES = Path(__file__).parents[2] / "examples"
URL = "hf://datasets/me/travel"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder with a store of the examples."""
    made = tmp_path_factory.mktemp("made")
    adp.convert(EXAMPLES, made / "store")
    return made


@pytest.fixture
def published(fake_hub, folder):
    upload(folder, "me/travel", tag="v1")
    return fake_hub


@pytest.mark.parametrize(
    "words",
    [
        ("info", "STORE", "--json"), ("info", "STORE", "--verify"), ("stats", "STORE"),
        ("head", "STORE"), ("sample", "STORE"), ("show", "STORE", "booking-2"),
        ("query", "STORE", "-c", "SELECT name, count(*) AS n FROM calls GROUP BY ALL ORDER BY ALL"),
        ("rejects", "STORE"), ("validate", "STORE", "--check", "no-license", "--fail-on", "never"),
    ],
)  # fmt: skip
def test_a_command_says_the_same_as_here(run, published, folder, words):
    local = str(folder / "store")
    here = run(*[local if word == "STORE" else word for word in words])
    there = run(*[URL if word == "STORE" else word for word in words])
    commit = published.repos.repos["me/travel"].head.oid
    for spelled in (f"{URL}@{commit}/store", URL):
        there.out = there.out.replace(spelled, local)
    assert (there.code, there.err) == (here.code, here.err) == (0, "")
    assert there.out.split() == here.out.split()


def test_several_stores_are_told_apart(run, published, tmp_path):
    sql = "SELECT store, count(*) AS n FROM trajectories GROUP BY ALL ORDER BY ALL"
    adp.convert(EXAMPLES / "chat", tmp_path / "mine")
    done = run("query", URL, tmp_path / "mine", "-c", sql, "--format", "json")
    assert json.loads(done.out) == [{"store": "mine", "n": 4}, {"store": "travel", "n": 10}]


def test_a_store_on_the_hub_is_written_out_again(run, published, tmp_path):
    assert run("export", URL, "--to", "openai_chat", "-o", tmp_path / "chats").code == 0
    booking = Path("chat/booking.jsonl")
    assert (tmp_path / "chats" / booking).read_bytes() == (EXAMPLES / booking).read_bytes()
    assert run("drop", URL, "--where", "success", "-o", tmp_path / "failed").code == 0
    assert run("merge", URL, tmp_path / "failed", "-o", tmp_path / "both").code == 0
    won = adp.query(URL, "SELECT count(*) AS n FROM trajectories WHERE success").to_pylist()
    assert 0 < won[0]["n"] < 10
    assert adp.open(tmp_path / "both").manifest.counts.trajectories == 20 - won[0]["n"]
    since = run("convert", EXAMPLES, "--since", URL, "-o", tmp_path / "new")
    assert (since.code, "nothing new" in since.out) == (0, True)


@pytest.mark.parametrize("command", ["info", "stats", "head", "query"])
def test_what_fails_is_one_sentence(run, published, monkeypatch, command):
    more = ("-c", "SELECT count(*) FROM steps") if command == "query" else ()
    published.repos.push("me/plain", {"data.jsonl": b"{}"})
    cases = {
        "hf://datasets/me/none": (9, "there is no data set me/none on the Hub"),
        f"{URL}@v2": (9, "me/travel has no revision 'v2'"),
        "hf://datasets/me/plain": (5, "adp convert hf://datasets/me/plain -o STORE"),
        "hf://me/travel": (2, "write hf://datasets/OWNER/NAME"),
    }
    for url, (code, output) in cases.items():
        done = run(command, url, *more)
        assert (done.code, done.out) == (code, "")
        assert output in done.err
        assert done.err.count("\n") == 1
    published.faults.add("GET /objects", "500", times=10**6)
    done = run(command, URL, *more)
    # info needs no more than the manifest, which is no large object
    assert (done.code, "the Hub fails (status 500)" in done.err) == (
        (0, False) if command == "info" else (9, True)
    )
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    done = run(command, URL, *more)
    assert (done.code, "cannot reach the Hub" in done.err) == (9, True)


def test_a_data_set_on_the_hub_is_converted(run, fake_hub, tmp_path):
    files = {path.name: path.read_bytes() for path in (EXAMPLES / "chat").iterdir()}
    fake_hub.repos.push("me/chats", files)
    done = run("convert", "hf://datasets/me/chats", "-o", tmp_path / "out")
    commit = fake_hub.repos.repos["me/chats"].head.oid
    assert (done.code, "records 4 = used 4" in done.out) == (0, True)
    assert f"from hf://datasets/me/chats@{commit}" in done.err
    info = run("info", tmp_path / "out")
    assert f"source hf://datasets/me/chats@{commit}" in " ".join(info.out.split())
    refused = run("convert", "hf://datasets/me/none", "-o", tmp_path / "none")
    assert (refused.code, refused.err.count("\n")) == (9, 1)
