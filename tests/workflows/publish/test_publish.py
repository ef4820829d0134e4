"""A publication as a whole: from the store to the Hub and back, and what must not get there."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import adp
from adp.core.redact import RedactOptions
from adp.workflows.publish.folder import PublishOptions
from adp.workflows.publish.publish import UploadOptions, publish
from adp.workflows.publish.repo import RepoId
from adp.workflows.pull import pull
from adp_schema.errors import FindingsError, OutputExistsError
from tests import kill
from tests.core.redact import planted
from tests.workflows.publish.published import Words, write_published

REPO = RepoId.parse("me/travel")
OPEN = PublishOptions(accept_licenses=True)
NAME = "quillfeather"


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch) -> str:
    """The home folder of the one who publishes."""
    folder = f"/home/{NAME}"
    monkeypatch.setenv("HOME", folder)
    for variable in ("USER", "LOGNAME", "USERNAME"):
        monkeypatch.setenv(variable, NAME)
    return folder


def on_hub(hub, repo: str) -> dict[str, bytes]:
    """The files of a repository."""
    return hub.repos.files(repo)


def test_publish_then_pull_hash_for_hash(fake_hub, tmp_path):
    store = write_published(tmp_path / "s", Words(split="train"))
    options = PublishOptions(tag="v1", accept_licenses=True)
    upload = UploadOptions(message="first")
    done = publish(store.root, REPO, out=tmp_path / "out", options=options, upload=upload,
                   traces="sts")  # fmt: skip
    files = on_hub(fake_hub, "me/travel")
    assert set(files) == {file.path for file in done.prepared.files}
    assert {path: len(files[path]) for path in files} == {
        file.path: file.size for file in done.prepared.files
    }
    sessions = on_hub(fake_hub, "me/travel-traces")
    assert {path.rsplit(".", 1)[-1] for path in sessions} == {"jsonl", "md"}
    assert len(sessions) == store.manifest.rows("trajectories") + 1
    pull("hf://datasets/me/travel@v1", str(tmp_path / "back"))
    assert kill.hashes(tmp_path / "back") == kill.hashes(tmp_path / "out" / "store")

    again = publish(store.root, REPO, out=tmp_path / "out", options=options, upload=upload,
                    traces="sts")  # fmt: skip
    assert [one.commits for one in again.uploaded] == [0, 0]
    assert again.prepared.reused


def test_a_new_publication_takes_the_place_of_the_old_one(fake_hub, tmp_path):
    old = write_published(tmp_path / "s", Words(split="train"))
    new = write_published(tmp_path / "s2", Words(source_id="two"))
    for number, store in enumerate((old, new)):
        out = tmp_path / f"out{number}"
        done = publish(
            store.root, REPO, out=out, options=OPEN, upload=UploadOptions(), traces="sts"
        )
    assert set(on_hub(fake_hub, "me/travel")) == {file.path for file in done.prepared.files}
    sessions = on_hub(fake_hub, "me/travel-traces")
    assert len(sessions) == new.manifest.rows("trajectories") + 1
    pull("hf://datasets/me/travel", str(tmp_path / "back"))
    assert kill.hashes(tmp_path / "back") == kill.hashes(tmp_path / "out1" / "store")


def store_with(secret: str, home: str, folder: Path) -> str:
    """A store with a key, the home folder and the user name in many places."""
    arguments = json.dumps({"command": f"cd {home}/work && login --token {secret}"})
    call = {"id": "c1", "type": "function", "function": {"name": "sh", "arguments": arguments}}
    record = {
        "id": f"run-of-{NAME}",
        "messages": [
            {"role": "system", "content": f"You work in {home}/work as {NAME}."},
            {"role": "user", "content": "Log in."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": f"{NAME}@box: {secret} is valid"},
            {"role": "assistant", "content": "Done."},
        ],
        "tools": [{"type": "function", "function": {"name": "sh", "description": f"in {home}"}}],
        "path": f"{home}/logs/1.json",
    }
    source = folder / NAME
    source.mkdir(parents=True)
    (source / f"{NAME}.jsonl").write_text(json.dumps(record) + "\n" + json.dumps(record)[:-40])
    store = folder / "store"
    adp.convert(str(source), str(store), keep_raw=True, dataset=f"runs of {NAME}")
    return str(store)


def test_a_planted_key_stops_it_and_is_nowhere_afterwards(fake_hub, home, tmp_path):
    kind, secret = next(each for each in planted.plain() if each[0] == "github-token")
    store = store_with(secret, home, tmp_path)
    with pytest.raises(FindingsError) as stopped:
        publish(store, REPO, out=tmp_path / "out", options=OPEN, upload=UploadOptions())
    said = str(stopped.value)
    assert kind in said
    assert "$.steps[2].calls[0].arguments" in said
    assert secret not in said
    assert NAME not in said
    assert fake_hub.repos.repos == {}

    options = PublishOptions(accept_licenses=True, redact=True, all_tables=True)
    out = tmp_path / "published"
    publish(store, REPO, out=out, options=options, upload=UploadOptions(), traces="sts")
    gone = [secret, home, NAME, str(tmp_path)]
    for folder in (out, tmp_path / "published-traces"):
        for word in gone:
            # What grep says of the files as they are; Parquet is compressed, so it is read too.
            found = subprocess.run(["grep", "-rlF", word, folder], capture_output=True, text=True)
            assert found.stdout == ""
        for path in folder.rglob("*.parquet"):
            said = str(__import__("pyarrow.parquet").parquet.read_table(path).to_pylist())
            assert [word for word in gone if word in said] == []
    for repo in ("me/travel", "me/travel-traces"):
        for path, data in on_hub(fake_hub, repo).items():
            assert [word for word in gone if word.encode() in data or word in path] == []


def test_what_to_look_for_is_an_option(home, tmp_path):
    kind, secret = next(each for each in planted.plain() if each[0] == "github-token")
    store = store_with(secret, home, tmp_path)
    found = {}
    for name in ("secrets", "own"):
        options = PublishOptions(
            accept_licenses=True, redact=True, search=RedactOptions(kinds=(name,))
        )
        done = publish(store, REPO, out=tmp_path / name, options=options)
        found[name] = set(done.prepared.found.kinds)
    assert found == {"secrets": {kind}, "own": {"own-home", "own-name"}}
    with pytest.raises(OutputExistsError, match="--kinds"):
        publish(store, REPO, out=tmp_path / "own", options=OPEN)
