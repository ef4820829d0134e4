"""The published folder: every reader that people use reads it, and nothing else is in it."""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import duckdb
import polars as pl
import pyarrow.parquet as pq
import pytest
from markdown_it import MarkdownIt

from adp.workflows.publish import findings, folder, staged_store
from adp.workflows.publish.checksums import SCRATCH
from adp.workflows.publish.findings import StoreFindings
from adp.workflows.publish.folder import Prepared, prepare
from adp.workflows.publish.options import PublishOptions
from adp.workflows.publish.repo import RepoId
from adp_schema.errors import AdpError, FindingsError, OutputExistsError, StoreError, UsageError
from adp_schema.manifest import MANIFEST, RUN
from adp_schema.store import Store
from adp_schema.tables import TABLES
from tests.store_builders import write_store
from tests.workflows.publish.published import SECRET, Words, write_published

REPO = RepoId("alice", "agent-runs")
OPTIONS = PublishOptions(date="2026-05-03", tag="v1.2")


def nothing(*_) -> StoreFindings:
    return StoreFindings({})


@pytest.fixture(autouse=True)
def _no_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "scan", nothing)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return write_published(tmp_path_factory.mktemp("published") / "trips")


@pytest.fixture(scope="module")
def prepared(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(findings, "scan", nothing)
        return prepare(store.root, REPO, tmp_path_factory.mktemp("out") / "folder", OPTIONS)


@pytest.fixture
def copied(prepared: Prepared, tmp_path: Path) -> Path:
    """A copy of that folder, to be changed."""
    return shutil.copytree(prepared.folder, tmp_path / "copied")


def sums(out: Path) -> str:
    return (out / "SHA256SUMS").read_text()


# ---- readers ---------------------------------------------------------------------------------


LOAD = """
import json, sys
from datasets import get_dataset_config_names, load_dataset
found = {}
for name in get_dataset_config_names(sys.argv[1]):
    whole = load_dataset(sys.argv[1], name)
    streamed = load_dataset(sys.argv[1], name, streaming=True)
    found[name] = {
        "rows": {split: len(rows) for split, rows in whole.items()},
        "streamed": {split: sum(1 for _ in rows) for split, rows in streamed.items()},
        "columns": next(iter(whole.values())).column_names,
        "first": json.loads(json.dumps(next(iter(whole.values()))[0], default=str)),
    }
json.dump(found, sys.stdout)
"""


def test_datasets_loads_every_config(prepared: Prepared, store: Store, tmp_path: Path):
    """In a process of its own: the library keeps its cache folder from when it is imported."""
    environment = {**os.environ, "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    words = [sys.executable, "-c", LOAD, str(prepared.folder)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    value = json.loads(done.stdout)
    tables = {name for name in TABLES if store.manifest.rows(name)} - {"rejects"}
    assert set(value) == {"messages"} | tables
    assert {"pairs", "media", "tasks"} <= tables
    for name, config in value.items():
        assert config["rows"] == config["streamed"]
        if name != "messages":
            assert config["rows"] == {"train": store.manifest.rows(name)}
            assert config["columns"] == TABLES[name].schema.names
    assert value["messages"]["rows"] == {"train": 2, "test": 1, "train_branches": 2}
    assert value["messages"]["first"]["id"] == "trips/one"
    assert value["trajectories"]["first"]["tags"] == ["a", "get_weather"]
    assert value["trajectories"]["first"]["started_at"].startswith("2026-05-03")


def test_duckdb_and_polars_read_the_same_files_by_glob(prepared: Prepared):
    for config in prepared.configs:
        for split in config.splits:
            glob = str(prepared.folder / split.pattern)
            count = duckdb.sql(f"SELECT count(*) FROM '{glob}'").fetchall()
            assert count == [(split.rows,)]
            frame = pl.read_parquet(glob)
            assert frame.height == split.rows
            assert frame.columns == config.schema.names


def test_every_parquet_file_belongs_to_one_split(prepared: Prepared):
    patterns = [split.pattern for config in prepared.configs for split in config.splits]
    files = [file.path for file in prepared.files if file.path.endswith(".parquet")]
    for path in files:
        owners = [pattern for pattern in patterns if Path(path).match(pattern)]
        assert len(owners) == 1, path


def test_the_snippets_of_the_card_run(prepared: Prepared, tmp_path: Path):
    """As they are printed, with the folder in the place of the Hub."""
    place = str(prepared.folder)
    card = (prepared.folder / "README.md").read_text()
    tokens = MarkdownIt("commonmark").parse(card.split("---\n", 2)[2])
    ran = []
    for token in tokens:
        code = token.content.replace(f"hf://datasets/{REPO}", place).replace(str(REPO), place)
        if token.type != "fence" or token.info == "text":
            continue
        ran.append(token.info)
        if token.info == "sql":
            assert len(duckdb.sql(code).fetchall()) == 2
        elif token.info == "python":
            environment = {**os.environ, "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
            subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    assert ran == ["python", "sql", "python", "sh", "python"]
    assert "adp pull hf://datasets/alice/agent-runs@v1.2 -o my_store" in card.replace("\\", "")


@pytest.mark.filterwarnings("ignore:.*deprecated:DeprecationWarning")
def test_mlcroissant_validates_and_reads_every_record_set(prepared: Prepared, store: Store):
    import mlcroissant

    described = mlcroissant.Dataset(jsonld=str(prepared.folder / "croissant.json"))
    issues = described.metadata.ctx.issues
    assert (issues.errors, issues.warnings) == (set(), set())
    assert described.metadata.version == "1.2.0"
    rows = {config.name: config.rows for config in prepared.configs}
    assert {record_set.id for record_set in described.metadata.record_sets} == set(rows)
    for name, count in rows.items():
        assert sum(1 for _ in described.records(name)) == count
    ids = {row["messages/id"].decode() for row in described.records("messages")}
    assert ids == {trajectory.trajectory_id for trajectory in store.trajectories()}
    by_id = {file.path: file.sha256 for file in prepared.files}
    for file in described.metadata.file_objects:
        assert by_id[file.content_url] == file.sha256


# ---- what is in it ---------------------------------------------------------------------------


def test_the_store_in_it_is_the_store_without_the_tables_that_stay(prepared, store: Store):
    published = Store.open(str(prepared.folder / "store"))
    assert published.damage(every_byte=True) == {}
    kept = {name: files for name, files in store.manifest.tables.items() if name != "rejects"}
    assert published.manifest.tables == kept
    assert published.manifest.counts == store.manifest.counts
    assert published.manifest.reasons == {"rejected: left out": 1}
    assert published.manifest.lineage[-1].options == {"left_out": ["rejects"]}
    ours = [trajectory.model_dump() for trajectory in store.trajectories()]
    assert [trajectory.model_dump() for trajectory in published.trajectories()] == ours


def test_with_all_tables_the_store_is_the_same_byte_for_byte(store: Store, tmp_path: Path):
    made = prepare(store.root, REPO, tmp_path / "out", PublishOptions(all_tables=True))
    root = Path(store.root)
    names = [MANIFEST, *(shard.path for files in store.manifest.tables.values() for shard in files)]
    for name in names:
        assert (made.folder / "store" / name).read_bytes() == (root / name).read_bytes()
    assert "rejects" in {config.name for config in made.configs}


def test_nothing_of_the_machine_is_in_it(prepared: Prepared, store: Store):
    secrets = {str(Path.home()), getpass.getuser(), socket.gethostname(), store.root, SECRET,
               str(prepared.folder)} - {"root", "user", ""}  # fmt: skip
    texts = []
    for path in sorted(prepared.folder.rglob("*")):
        if path.is_dir() or SCRATCH in path.parts:
            continue
        assert path.name != RUN
        if path.suffix == ".parquet":
            table = pq.read_table(path)
            texts.append(str(table.to_pylist()) + str(table.schema.metadata))
        else:
            texts.append(path.read_text())
    for secret in secrets:
        assert not any(secret in text for text in texts), secret


def test_the_hashes_are_right(prepared: Prepared):
    listed = [line.split("  ", 1) for line in sums(prepared.folder).splitlines()]
    files = {
        path.relative_to(prepared.folder).as_posix(): path
        for path in prepared.folder.rglob("*")
        if path.is_file() and SCRATCH not in path.parts and path.name != "SHA256SUMS"
    }
    assert sorted(path for _, path in listed) == sorted(files)
    for sha256, path in listed:
        assert hashlib.sha256(files[path].read_bytes()).hexdigest() == sha256
    assert {file.path for file in prepared.files} == {*files, "SHA256SUMS"}


# ---- the same bytes, and going on ---------------------------------------------------------------


def test_same_store_and_options_same_bytes(prepared: Prepared, store: Store, tmp_path, monkeypatch):
    monkeypatch.setattr("adp.stores.stage.SMALL", 0)
    monkeypatch.setattr("adp.workflows.publish.messages.PART_BYTES", 1)
    options = {**vars(OPTIONS)}
    two = prepare(store.root, REPO, tmp_path / "2", PublishOptions(**{**options, "workers": 2}))
    result = prepare(store.root, REPO, tmp_path / "1", PublishOptions(**{**options, "workers": 1}))
    assert sums(two.folder) == sums(result.folder)
    assert sum(name.startswith("messages/") for name in sums(result.folder).split()) == 3
    monkeypatch.undo()
    monkeypatch.setattr(findings, "scan", nothing)
    again = prepare(store.root, REPO, tmp_path / "3", OPTIONS)
    assert sums(again.folder) == sums(prepared.folder)


STOPS = [
    (staged_store, "_place", True),
    (staged_store, "stage", True),
    (findings, "scan", True),
    (folder, "write_messages", False),
    (folder, "write_messages", True),
    (folder, "write_croissant", True),
    (folder, "write_card", True),
]


@pytest.mark.parametrize(("module", "name", "after"), STOPS, ids=[name for _, name, _ in STOPS])
def test_a_stopped_call_goes_on(
    prepared: Prepared, store: Store, tmp_path, monkeypatch, module, name, after
):
    real = getattr(module, name)

    def stopped(*words, **named):
        if after:
            real(*words, **named)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, name, stopped)
        with pytest.raises(KeyboardInterrupt):
            prepare(store.root, REPO, tmp_path / "out", OPTIONS)
    made = prepare(store.root, REPO, tmp_path / "out", OPTIONS)
    assert sums(made.folder) == sums(prepared.folder)
    assert {path.name for path in made.folder.iterdir()} == {
        SCRATCH, "store", "messages", "README.md", "croissant.json", "SHA256SUMS",
    }  # fmt: skip


def test_a_complete_folder_is_taken_as_it_is(
    prepared: Prepared, store: Store, copied: Path, monkeypatch
):
    files = [copied / file.path for file in prepared.files]
    times = [path.stat().st_mtime_ns for path in files]
    for name in ("write_messages", "write_card", "write_croissant"):
        monkeypatch.setattr(folder, name, None)
    again = prepare(store.root, REPO, copied, OPTIONS)
    assert again.reused
    assert not prepared.reused
    assert again.files == prepared.files
    assert times == [path.stat().st_mtime_ns for path in files]


def test_other_words_write_the_card_anew_and_nothing_else(store: Store, tmp_path, monkeypatch):
    made = prepare(store.root, REPO, tmp_path / "out", PublishOptions(title="First"))
    before = {file.path: file.sha256 for file in made.files}
    monkeypatch.setattr(folder, "write_messages", None)
    again = prepare(store.root, REPO, tmp_path / "out", PublishOptions(title="Second", tag="v2"))
    after = {file.path: file.sha256 for file in again.files}
    assert {path for path in before if before[path] != after[path]} == {
        "README.md", "croissant.json", "SHA256SUMS",
    }  # fmt: skip
    monkeypatch.undo()
    monkeypatch.setattr(findings, "scan", nothing)
    fresh = prepare(store.root, REPO, tmp_path / "new", PublishOptions(title="Second", tag="v2"))
    assert fresh.files == again.files


def test_what_the_folder_may_hold(store: Store, copied: Path, tmp_path: Path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("x")
    with pytest.raises(OutputExistsError, match="not empty"):
        prepare(store.root, REPO, tmp_path / "full", OPTIONS)
    with pytest.raises(OutputExistsError, match="is a file"):
        prepare(store.root, REPO, tmp_path / "full" / "mine.txt", OPTIONS)
    with pytest.raises(OutputExistsError, match="another store"):
        prepare(store.root, REPO, copied, PublishOptions(all_tables=True))
    (copied / "README.md").write_text("changed")
    with pytest.raises(OutputExistsError, match="changed since"):
        prepare(store.root, REPO, copied, OPTIONS)


# ---- what stops it -----------------------------------------------------------------------------


def test_licenses_stop_it(tmp_path: Path):
    bad = write_published(tmp_path / "bad", Words(license="cc-by-nc-4.0"))
    with pytest.raises(FindingsError, match=re.escape("trips (cc-by-nc-4.0 forbids commercial")):
        prepare(bad.root, REPO, tmp_path / "out", OPTIONS)
    assert not (tmp_path / "out").exists()
    made = prepare(bad.root, REPO, tmp_path / "out", PublishOptions(accept_licenses=True))
    assert made.assessment.refused()
    assert "Look at the licenses before you use this" in (made.folder / "README.md").read_text()


def test_findings_stop_it_or_are_replaced(store: Store, tmp_path, monkeypatch):
    scans = []

    def scan(value: Store, *_) -> StoreFindings:
        scans.append(value.root)
        assert not value.manifest.rows("rejects")  # what is not published need not be clean
        return StoreFindings(
            {"github_token": 2}, ("github_token  trips/one $.steps[0].text  ghp_...", "x")
        )

    monkeypatch.setattr(findings, "scan", scan)
    out = tmp_path / "out"
    with pytest.raises(
        FindingsError, match=r"2 github_token: github_token  trips/one \$\.steps\[0\]"
    ):
        prepare(store.root, REPO, out, PublishOptions())
    allowed = prepare(store.root, REPO, out, PublishOptions(allow_findings=True))
    assert "were published as they are" in (allowed.folder / "README.md").read_text()

    def redact(value: Store, target: str, *_) -> None:
        write_published(Path(target), Words(dataset="clean"))
        Path(target, RUN).write_text("{}")

    monkeypatch.setattr(folder, "redact", redact)
    made = prepare(store.root, REPO, out, PublishOptions(redact=True))
    assert made.redacted
    fresh = prepare(store.root, REPO, tmp_path / "fresh", PublishOptions(redact=True))
    assert sums(fresh.folder) == sums(made.folder)
    assert not (made.folder / "store" / RUN).exists()
    assert "| github\\_token | 2 |" in (made.folder / "README.md").read_text()
    for name in ("README.md", "croissant.json", "store/adp.json"):
        assert "trips" not in (made.folder / name).read_text().replace("trips.jsonl", "")
    assert len(scans) == 2  # the answer is kept


def test_a_stopped_redaction_leaves_nothing_for_a_call_that_allows(store, tmp_path, monkeypatch):
    monkeypatch.setattr(findings, "scan", lambda *_: StoreFindings({"token": 1}))

    def stopped(value: Store, target: str, *_) -> None:
        half = Path(target, "steps", "part-00000.parquet")
        half.parent.mkdir(parents=True)
        whole = (Path(value.root) / "steps" / "part-00000.parquet").read_bytes()
        half.write_bytes(bytes(len(whole)))
        raise KeyboardInterrupt

    monkeypatch.setattr(folder, "redact", stopped)
    with pytest.raises(KeyboardInterrupt):
        prepare(store.root, REPO, tmp_path / "out", PublishOptions(redact=True))
    made = prepare(store.root, REPO, tmp_path / "out", PublishOptions(allow_findings=True))
    assert Store.open(str(made.folder / "store")).damage(every_byte=True) == {}


def test_what_cannot_be_published(store: Store, tmp_path: Path):
    empty = write_store(tmp_path / "empty")
    with pytest.raises(StoreError, match="nothing to publish"):
        prepare(empty.root, REPO, tmp_path / "out", OPTIONS)
    with pytest.raises(StoreError, match="not a store"):
        prepare(str(tmp_path / "none"), REPO, tmp_path / "out", OPTIONS)
    with pytest.raises(UsageError, match="no date"):
        prepare(store.root, REPO, tmp_path / "out", PublishOptions(date="today"))
    damaged = write_published(tmp_path / "damaged")
    with (Path(damaged.root) / "media" / "part-00000.parquet").open("ab") as file:
        file.write(b"x")
    with pytest.raises(StoreError, match="media/part-00000"):
        prepare(damaged.root, REPO, tmp_path / "out", OPTIONS)


@pytest.mark.parametrize("text", ["runs", "a/b/c", "/x", "x/", "a b/c", "a/..", "a/b--c", "a/b.git",
                                  "-a/b", "a/" + "b" * 96, "a/b\n"])  # fmt: skip
def test_wrong_names(text):
    with pytest.raises(AdpError):
        RepoId.parse(text)
    assert str(RepoId.parse("some-org/agent_runs.v2")) == "some-org/agent_runs.v2"
