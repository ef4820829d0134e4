"""Converting a data set on the Hub: the same store as from a copy of it."""

from __future__ import annotations

import gzip
import json
import shutil
import zipfile
from pathlib import Path

import pytest

from adp.converters.run import ConvertOptions, convert
from adp_schema.errors import HubError, InputError, NothingNewError, UsageError
from adp_schema.manifest import Manifest
from tests import kill

EXAMPLES = Path(__file__).parents[2] / "examples"
URL = "hf://datasets/me/chats"


@pytest.fixture
def copy(tmp_path) -> Path:
    """What a data set may hold: data in many forms, and other things."""
    folder = tmp_path / "copy"
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("*.py", "*.md"))
    booking = (folder / "chat/booking.jsonl").read_bytes()
    (folder / "data").mkdir()
    (folder / "data/train-[0].jsonl").write_bytes(booking)
    (folder / "data/packed.jsonl.gz").write_bytes(gzip.compress(booking, mtime=0))
    with zipfile.ZipFile(folder / "data/more.zip", "w") as archive:
        archive.writestr("inside/a.jsonl", booking)
    (folder / "README.md").write_text("---\nlicense: mit\n---\n# Chats\n")
    (folder / "picture.png").write_bytes(b"png")
    (folder / ".hidden").mkdir()
    (folder / ".hidden/x.jsonl").write_bytes(booking)
    return folder


@pytest.fixture
def on_hub(fake_hub, copy):
    files = {
        path.relative_to(copy).as_posix(): path.read_bytes()
        for path in copy.rglob("*")
        if path.is_file()
    }
    fake_hub.repos.push("me/chats", files)
    return fake_hub


def parts(store: Path) -> tuple[dict[str, str], dict]:
    """Hashes of the tables of a store, and its manifest without the lineage."""
    manifest = json.loads((store / "adp.json").read_text())
    lineage = manifest.pop("lineage")
    tables = {name: digest for name, digest in kill.hashes(store).items() if name != "adp.json"}
    return tables, {**manifest, "act": lineage[-1]["act"]}


def lineage(manifest: Manifest) -> dict:
    return manifest.lineage[-1].options


def test_the_store_is_that_of_a_copy(on_hub, copy, tmp_path):
    options = ConvertOptions(dataset="chats", workers=1)
    convert([str(copy)], str(tmp_path / "here"), options=options)
    there = convert([URL], str(tmp_path / "there"), options=options)
    assert parts(tmp_path / "here") == parts(tmp_path / "there")
    commit = on_hub.repos.repos["me/chats"].head.oid
    assert lineage(there)["source"] == f"{URL}@{commit}"
    assert there.counts.used > 10
    assert set(there.datasets) == {"chats"}
    asked = {call.path.rsplit("/", 1)[-1] for call in on_hub.asked("GET /datasets/.*/resolve")}
    assert not asked & {"README.md", "picture.png", "x.jsonl"}
    for path in (tmp_path / "there").rglob("*"):
        assert not path.is_symlink()
        assert b"hf_local_test_token" not in (path.read_bytes() if path.is_file() else b"")


def test_the_data_set_is_named_after_the_repository(on_hub, tmp_path):
    assert set(convert([URL], str(tmp_path / "out")).datasets) == {"chats"}


@pytest.mark.parametrize(
    "end",
    ["/data", "/chat/booking.jsonl", "/data/train-[0].jsonl", "/data/*.jsonl", "/**/*.gz",
     "/data/more.zip", "/c*"],
)  # fmt: skip
def test_a_part_is_named_relative_to_the_repository(on_hub, copy, tmp_path, end):
    there = convert([URL + end], str(tmp_path / "there"))
    files = {
        row["source_file"]
        for row in __import__("pyarrow.parquet").parquet.read_table(
            tmp_path / "there/sources/part-00000.parquet"
        ).to_pylist()
    }  # fmt: skip
    first = end.strip("/").split("/")[0]
    assert files
    assert all(file.startswith(first.split("*")[0]) for file in files)
    assert all((copy / file.split(".zip/")[0]).exists() or ".zip" in file for file in files)
    commit = on_hub.repos.repos["me/chats"].head.oid
    assert lineage(there)["source"] == f"{URL}@{commit}{end}"


def test_what_is_brought_once_is_not_brought_again(on_hub, tmp_path):
    convert([URL], str(tmp_path / "one"))
    on_hub.forget()
    convert([URL], str(tmp_path / "two"))
    assert not on_hub.asked("^(GET|HEAD) /(datasets|objects)")
    assert parts(tmp_path / "one") == parts(tmp_path / "two")


def test_since_leaves_out_what_an_earlier_commit_had(on_hub, copy, tmp_path):
    convert([URL], str(tmp_path / "one"))
    options = ConvertOptions(since=tmp_path / "one")
    with pytest.raises(NothingNewError, match="nothing new"):
        convert([URL], str(tmp_path / "none"), options=options)
    assert not (tmp_path / "none").exists()
    new = (copy / "chat/booking.jsonl").read_bytes().replace(b"booking-", b"other-")
    on_hub.repos.push("me/chats", {"chat/new.jsonl": new})
    there = convert([URL], str(tmp_path / "two"), options=options)
    assert lineage(there)["inputs"] == 1
    assert lineage(there)["unchanged"] > 3
    assert lineage(there)["source"].endswith(on_hub.repos.repos["me/chats"].head.oid)


@pytest.mark.parametrize("seed", range(4))
def test_faults_on_the_way(on_hub, copy, tmp_path, seed):
    # A file takes two calls, each fails once in a row: five tries are enough, however it falls.
    on_hub.faults.at_random(seed, 0.5, most=1)
    convert([URL], str(tmp_path / "there"), options=ConvertOptions(dataset="d"))
    convert([str(copy)], str(tmp_path / "here"), options=ConvertOptions(dataset="d"))
    assert on_hub.faults.happened.total()
    assert parts(tmp_path / "here") == parts(tmp_path / "there")


def test_a_run_that_was_stopped_goes_on_with_its_commit(on_hub, tmp_path, monkeypatch):
    from adp.converters import run as module

    def stop(*_):
        raise KeyboardInterrupt

    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(module, "renumber_repeats", stop)
        with pytest.raises(KeyboardInterrupt):
            convert([URL], str(out))
    old = on_hub.repos.repos["me/chats"].head.oid
    on_hub.repos.push("me/chats", {"chat/new.jsonl": b"{}"})
    assert lineage(convert([URL], str(out)))["source"] == f"{URL}@{old}"
    assert not (out / ".run").exists()


def test_what_cannot_be_converted_is_said(on_hub, tmp_path):
    on_hub.repos.push("me/store", {"store/adp.json": b"{}", "messages/part-00000.jsonl": b"{}"})
    on_hub.repos.push("me/empty", {"README.md": b"# x"})
    out = str(tmp_path / "out")
    for url, output in {
        "hf://datasets/me/store": "adp pull hf://datasets/me/store -o STORE",
        "hf://datasets/me/store/store": "adp pull hf://datasets/me/store -o STORE",
        "hf://datasets/me/empty": "holds no data file",
        f"{URL}/none": "nothing at none",
        f"{URL}/README.md": r"README\.md",
        f"{URL}/*.none": r"nothing at \*\.none",
    }.items():
        with pytest.raises(InputError, match=output):
            convert([url], out)
        assert not (tmp_path / "out").exists()
    with pytest.raises(UsageError, match="one data set of the Hub at a time"):
        convert([URL, str(EXAMPLES)], out)
    with pytest.raises(HubError, match="no data set me/none"):
        convert(["hf://datasets/me/none"], out)
    assert not (tmp_path / "out").exists()
