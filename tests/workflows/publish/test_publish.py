"""A publication as a whole: from the store to the Hub and back, and what must not get there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

import adp
from adp.stores.locks import holding
from adp.stores.markdown_text import escape
from adp.stores.redact import RedactOptions
from adp.workflows.publish.options import PublishOptions
from adp.workflows.publish.publish import UploadOptions, publish
from adp.workflows.publish.repo import RepoId
from adp.workflows.publish.upload import upload as send
from adp.workflows.pull import pull
from adp_schema.errors import FindingsError, OutputExistsError, StoreError
from tests import kill
from tests.stores.redact import planted
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
    assert {path.rsplit(".", 1)[-1] for path in sessions} == {"jsonl", "md", "SHA256SUMS"}
    assert len(sessions) == store.manifest.rows("trajectories") + 2
    pull("hf://datasets/me/travel@v1", str(tmp_path / "back"))
    assert kill.hashes(tmp_path / "back") == kill.hashes(tmp_path / "out" / "store")

    again = publish(store.root, REPO, out=tmp_path / "out", options=options, upload=upload,
                    traces="sts")  # fmt: skip
    assert [item.commits for item in again.uploaded] == [0, 0]
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
    assert len(sessions) == new.manifest.rows("trajectories") + 2
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
    kind, secret = next(item for item in planted.plain() if item[0] == "github-token")
    store = store_with(secret, home, tmp_path)
    with pytest.raises(FindingsError) as stopped:
        publish(store, REPO, out=tmp_path / "out", options=OPEN, upload=UploadOptions())
    text = str(stopped.value)
    assert kind in text
    assert "$.steps[2].calls[0].arguments" in text
    assert secret not in text
    assert NAME not in text
    assert fake_hub.repos.repos == {}

    options = PublishOptions(accept_licenses=True, redact=True, all_tables=True)
    out = tmp_path / "published"
    publish(store, REPO, out=out, options=options, upload=UploadOptions(), traces="sts")
    gone = [secret, home, NAME, str(tmp_path)]
    for folder in (out, tmp_path / "published-traces"):
        for word in gone:
            # What grep says of the files as they are; Parquet is compressed, so it is read too.
            result = subprocess.run(["grep", "-rlF", word, folder], capture_output=True, text=True)
            assert result.stdout == ""
        for path in folder.rglob("*.parquet"):
            text = str(__import__("pyarrow.parquet").parquet.read_table(path).to_pylist())
            assert [word for word in gone if word in text] == []
    for repo in ("me/travel", "me/travel-traces"):
        for path, data in on_hub(fake_hub, repo).items():
            assert [word for word in gone if word.encode() in data or word in path] == []


def test_what_to_look_for_is_an_option(home, tmp_path):
    kind, secret = next(item for item in planted.plain() if item[0] == "github-token")
    store = store_with(secret, home, tmp_path)
    results = {}
    for name in ("secrets", "own"):
        options = PublishOptions(
            accept_licenses=True, redact=True, search=RedactOptions(kinds=(name,))
        )
        done = publish(store, REPO, out=tmp_path / name, options=options)
        results[name] = set(done.prepared.findings.kinds)
    assert results == {"secrets": {kind}, "own": {"own-home", "own-name"}}
    with pytest.raises(OutputExistsError, match="--kinds"):
        publish(store, REPO, out=tmp_path / "own", options=OPEN)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store ``s`` and what was made of it, ``out`` and ``out-traces``."""
    folder = tmp_path_factory.mktemp("made")
    store = write_published(folder / "s")
    publish(store.root, REPO, out=folder / "out", options=OPEN, traces="sts")
    return folder


@pytest.fixture
def copy(made: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(made, tmp_path / "copy")


def send_again(folder: Path, title: str | None) -> None:
    """Publish what was made, perhaps under another title."""
    options = PublishOptions(accept_licenses=True, title=title)
    upload = UploadOptions()
    publish(str(folder / "s"), REPO, out=folder / "out", options=options, upload=upload,
            traces="sts")  # fmt: skip


def put_file(folder: Path) -> str:
    (folder / "notes.md").write_text("a token")
    return "notes.md"


def put_deep(folder: Path) -> str:
    place = next(path for path in folder.iterdir() if path.is_dir() and path.name != ".run")
    (place / ".hidden").write_text("a token")
    return ".hidden"


def put_link(folder: Path) -> str:
    (folder / "link").symlink_to("/etc/hostname")
    return "link"


def put_folder(folder: Path) -> str:
    (folder / "linked").symlink_to(folder.parent)
    return "linked"


def replace_by_link(folder: Path) -> str:
    readme = folder / "README.md"
    readme.rename(folder.parent / "elsewhere.md")
    readme.symlink_to(folder.parent / "elsewhere.md")
    return "README.md"


@pytest.mark.parametrize("folder", ["out", "out-traces"])
@pytest.mark.parametrize("put", [put_file, put_deep, put_link, put_folder, replace_by_link])
def test_what_adp_did_not_write_stops_the_upload(fake_hub, copy, folder, put):
    name = put(copy / folder)
    with pytest.raises(OutputExistsError, match="move it away") as stopped:
        send_again(copy, "Other" if put is put_file else None)
    assert name in str(stopped.value)
    assert len(str(stopped.value).splitlines()) == 1
    with pytest.raises(OutputExistsError, match="move it away"):
        send(copy / folder, "me/travel")
    assert fake_hub.repos.repos == {}


def flip(folder: Path, name: str) -> None:
    """Change one byte of a file."""
    path = folder / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("folder", "gone", "title"),
    [("out", False, "Other"), ("out", False, None), ("out", True, "Other"), ("out", True, None),
     ("out-traces", False, "Other"), ("out-traces", True, None)],
)  # fmt: skip
def test_damage_is_said_whatever_the_words(fake_hub, copy, folder, gone, title):
    pattern = "messages/*.parquet" if folder == "out" else "traces/**/*.jsonl"
    name = next((copy / folder).glob(pattern)).relative_to(copy / folder).as_posix()
    if gone:
        (copy / folder / name).unlink()
    else:
        flip(copy / folder, name)
    with pytest.raises(OutputExistsError) as stopped:
        send_again(copy, title)
    text = str(stopped.value)
    assert name in text
    assert ("is missing" if gone else "was changed") in text
    assert text.endswith("remove the folder, then call again")
    assert fake_hub.repos.repos == {}


def test_the_traces_are_listed_and_other_words_write_their_card_anew(tmp_path):
    store = write_published(tmp_path / "s", Words(license="cc-by-nc-4.0"))
    cards = []
    for title in ("First", "Second"):
        options = PublishOptions(accept_licenses=True, title=title)
        publish(store.root, REPO, out=tmp_path / "out", options=options, traces="sts")
        cards.append((tmp_path / "out-traces" / "README.md").read_text())
        words = ["sha256sum", "--quiet", "-c", "SHA256SUMS"]
        subprocess.run(words, cwd=tmp_path / "out-traces", check=True)
    assert cards[1] == cards[0].replace("First", "Second") != cards[0]


def test_both_cards_name_each_other_and_the_licenses(tmp_path):
    name = "a|b `c` <b>"
    store = write_published(tmp_path / "s", Words(license="academic only", dataset=name))
    publish(store.root, REPO, out=tmp_path / "out", options=OPEN, traces="sts")
    main = (tmp_path / "out" / "README.md").read_text()
    card = (tmp_path / "out-traces" / "README.md").read_text()
    assert "[me/travel-traces](https://huggingface.co/datasets/me/travel-traces)" in main
    assert "[me/travel](https://huggingface.co/datasets/me/travel)" in card
    head = yaml.safe_load(card.split("---\n")[1])
    assert (head["license"], head["license_name"]) == ("other", "mixed")
    assert head["license_link"] == "https://huggingface.co/datasets/me/travel-traces#licenses"
    assert 'load_dataset("me/travel-traces", split="train")' in card
    assert "Look at the licenses before you use this" in card
    section = main[main.index("## Licenses") : main.index("## Checksums")].strip()
    assert section in card
    assert "A search for secrets and personal data found none" in card
    assert f"| {escape(name)} | 5 |" in card
    publish(store.root, REPO, out=tmp_path / "alone", options=OPEN)
    assert "me/travel-traces" not in (tmp_path / "alone" / "README.md").read_text()


def test_the_folder_holds_copies(tmp_path):
    store = write_published(tmp_path / "s")
    before = kill.hashes(tmp_path / "s")
    options = PublishOptions(accept_licenses=True, all_tables=True)
    publish(store.root, REPO, out=tmp_path / "out", options=options)
    for path in (tmp_path / "out" / "store").rglob("*"):
        if path.is_file():
            assert path.stat().st_nlink == 1
            path.write_bytes(b"damaged")
    assert kill.hashes(tmp_path / "s") == before


def test_after_a_stop_other_kinds_begin_anew(home, tmp_path):
    _, secret = next(item for item in planted.plain() if item[0] == "github-token")
    store = store_with(secret, home, tmp_path)
    with pytest.raises(FindingsError):
        publish(store, REPO, out=tmp_path / "out", options=OPEN)
    assert [path.name for path in (tmp_path / "out").iterdir()] == [".run"]
    options = PublishOptions(accept_licenses=True, search=RedactOptions(kinds=("iban",)))
    publish(store, REPO, out=tmp_path / "out", options=options)
    publish(store, REPO, out=tmp_path / "fresh", options=options)
    assert kill.hashes(tmp_path / "out") == kill.hashes(tmp_path / "fresh")
    with pytest.raises(OutputExistsError, match="--rules"):
        publish(store, REPO, out=tmp_path / "out", options=OPEN)


@pytest.mark.parametrize("names", [[], ["plan.json.tmp"]])
def test_a_stop_before_the_plan_was_written(names, tmp_path):
    store = write_published(tmp_path / "s")
    (tmp_path / "out" / ".run").mkdir(parents=True)
    for name in names:
        (tmp_path / "out" / ".run" / name).write_text("{")
    for name in ("out", "fresh"):
        publish(store.root, REPO, out=tmp_path / name, options=OPEN)
    assert kill.hashes(tmp_path / "out") == kill.hashes(tmp_path / "fresh")


def test_a_stopped_run_of_another_command_is_left_alone(tmp_path):
    store = write_published(tmp_path / "s")
    plan = tmp_path / "out" / ".run" / "plan.json"
    plan.parent.mkdir(parents=True)
    plan.write_text("{}")
    with pytest.raises(OutputExistsError, match="not empty"):
        publish(store.root, REPO, out=tmp_path / "out", options=OPEN)
    assert plan.exists()


def test_the_lock_is_held_until_all_is_uploaded(fake_hub, tmp_path, monkeypatch):
    store = write_published(tmp_path / "s")
    out, refused = tmp_path / "out", []

    def run_beside(folder, *words, **options):
        for place in (out, tmp_path / "out-traces"):
            with pytest.raises(StoreError, match="another run writes to") as caught, holding(place):
                pass
            refused.append(str(caught.value))
        return send(folder, *words, **options)

    monkeypatch.setattr("adp.workflows.publish.publish.send", run_beside)
    publish(store.root, REPO, out=out, options=OPEN, upload=UploadOptions(), traces="sts")
    assert len(refused) == 4
    assert all(f"(process {os.getpid()} on " in sentence for sentence in refused)
    assert not list(tmp_path.glob(".*.lock"))
