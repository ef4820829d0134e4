"""Rows for training: what `adp export --to openai_chat` writes, as JSON text in Parquet."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import adp
from adp.converters.export import export
from adp.core.progress import Silent
from adp.workflows.publish import messages
from adp.workflows.publish.messages import SCHEMA, Messages, write_messages
from adp.workflows.publish.splits import splits_of
from adp_schema.builder import Origin, RowBuilder
from adp_schema.store import Store
from tests.store_builders import write_store
from tests.stores import described_runs
from tests.workflows.publish.published import ARGUMENTS, Words, write_published

EXAMPLES = Path(__file__).parents[3] / "examples"
DATA = Path(__file__).parents[3].parent / "shared" / "data"


def rows_of(store: Store, out: Path) -> tuple[Messages, dict[str, list[dict[str, Any]]]]:
    """Write the config and read it back: split -> rows."""
    out.mkdir(exist_ok=True)
    written = write_messages(store, out, workers=1, progress=Silent())
    results: dict[str, list[dict[str, Any]]] = {}
    for file in written.files:
        table = pq.read_table(out / file.path, partitioning=None)
        assert table.schema.equals(SCHEMA)
        assert table.num_rows == file.rows
        results.setdefault(file.split, []).extend(table.to_pylist())
    return written, results


def exported(store: Store, folder: Path) -> dict[str, dict[str, Any]]:
    """What the export of the format writes, by id: the oracle."""
    export(store, "openai_chat", str(folder), single="all.jsonl", structured=True)
    lines = (folder / "all.jsonl").read_text().splitlines()
    ids = [trajectory.trajectory_id for trajectory in store.trajectories()]
    return dict(zip(ids, map(json.loads, lines), strict=True))


def unquoted(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


def check_against_export(store: Store, folder: Path) -> None:
    _, result = rows_of(store, folder / "out")
    oracle = exported(store, folder / "chats")
    rows = [row for split in result.values() for row in split]
    assert {row["id"] for row in rows} == set(oracle)
    for row in rows:
        record = oracle[row["id"]]
        shared = row["shared_messages"] or 0
        spoken = json.loads(row["messages"])
        assert spoken[shared:] == unquoted(record["messages"])
        assert row["num_messages"] == len(spoken)
        tools = record.get("tools", record.get("functions"))
        assert row["tools"] is None or json.loads(row["tools"]) == unquoted(tools)


def test_the_examples_are_as_the_export_writes_them(tmp_path: Path):
    check_against_export(adp.convert([str(EXAMPLES)], str(tmp_path / "store")), tmp_path)


SAMPLES = ["adp_v1", "adp_atif"]


@pytest.mark.parametrize("name", SAMPLES)
def test_real_data_is_as_the_export_writes_it(name: str, tmp_path: Path):
    if not (DATA / name).is_dir():
        pytest.skip("the reference data are not here")
    store = adp.convert([str(DATA / name)], str(tmp_path / "store"))
    check_against_export(store, tmp_path)


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(described=described_runs.shards)
def test_every_trajectory_is_one_row(described, tmp_path_factory):
    folder = tmp_path_factory.mktemp("any")
    store = described_runs.write(folder / "store", described)
    _, result = rows_of(store, folder / "out")
    mains = {row.trajectory_id for row in store.trajectories() if row.parent_id is None}
    rows = {row["id"]: split for split, ours in result.items() for row in ours}
    assert sum(map(len, result.values())) == store.manifest.rows("trajectories") == len(rows)
    assert {name for name, split in rows.items() if not split.endswith("_branches")} == mains


def test_arguments_keep_their_characters(tmp_path: Path):
    _, result = rows_of(write_published(tmp_path / "store"), tmp_path / "out")
    first = result["train"][0]
    call = json.loads(first["messages"])[1]["tool_calls"][0]
    assert call["function"]["arguments"] == ARGUMENTS
    assert (first["num_calls"], first["num_steps"], first["num_messages"]) == (1, 2, 3)
    assert (first["success"], first["reward"], first["license"]) == (True, 0.5, "mit")
    assert (first["agent"], first["parent_id"], first["shared_messages"]) == ("hands", None, None)


def test_a_branch_is_a_row_of_its_own_with_the_steps_that_it_shares(tmp_path: Path):
    _, result = rows_of(write_published(tmp_path / "store"), tmp_path / "out")
    picture = json.loads(result["train"][1]["messages"])
    other, helper = result["train_branches"]
    assert (other["branch_kind"], other["shared_messages"]) == ("alternate", 1)
    assert json.loads(other["messages"])[:1] == picture[:1]
    assert "data:image/gif;base64," in other["messages"]  # the picture is its parent's
    assert (helper["branch_kind"], helper["shared_messages"]) == ("subagent", 0)
    assert helper["num_steps"] == helper["num_messages"] == 2


def test_a_branch_whose_parent_is_in_another_shard(tmp_path: Path):
    first, second = RowBuilder(), RowBuilder()
    first.begin(Origin(seq=1, dataset="d", columns={}))
    first.trajectory({"source_id": "main"})
    first.step({"source": "user", "kind": "message", "text": "Go"})
    first.step({"source": "agent", "kind": "llm_turn", "text": "left"})
    first.finish()
    for number, parent in ((2, "d/main"), (3, "d/gone")):
        second.begin(Origin(seq=number, dataset="d", columns={}))
        second.trajectory({"source_id": str(number), "parent_id": parent, "parent_step": 1})
        second.step({"source": "agent", "kind": "llm_turn", "text": "right"})
        second.finish()
    written, result = rows_of(write_store(tmp_path / "s", first, second), tmp_path / "out")
    right, lost = result["train_branches"]
    assert [item["content"] for item in json.loads(right["messages"])] == ["Go", "right"]
    assert [item["content"] for item in json.loads(lost["messages"])] == ["right"]
    assert any("which is not in the store" in name for name in written.losses)


def test_what_has_no_place_is_counted(tmp_path: Path):
    store = adp.convert([str(EXAMPLES)], str(tmp_path / "store"))
    written, _ = rows_of(store, tmp_path / "out")
    assert written.losses["$.extra.temperature: no column of messages; the store has it"] == 1
    assert not any(name.startswith("$.agent_name") for name in written.losses)
    assert Messages.parse(written.text()) == written


def test_files_and_row_groups_are_bounded(tmp_path: Path, monkeypatch):
    store = write_published(tmp_path / "store")
    _, whole = rows_of(store, tmp_path / "whole")
    monkeypatch.setattr(messages, "PART_BYTES", 1)
    monkeypatch.setattr(messages, "_GROUP_ROWS", 1)
    written, parts = rows_of(store, tmp_path / "parts")
    assert parts == whole
    names = [file.path for file in written.files]
    assert names == [
        "messages/train-00000.parquet",
        "messages/test-00000.parquet",
        "messages/train_branches-00000.parquet",
    ]
    file = pq.ParquetFile(tmp_path / "parts" / names[0])
    assert [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)] == [1, 1]


def test_the_parts_of_a_split_are_numbered_without_gaps(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(messages, "PART_BYTES", 1)
    builders = []
    for number, split in enumerate(["train", "test", "train"]):
        builder = RowBuilder()
        builder.begin(Origin(seq=number, dataset="d", columns={}))
        builder.trajectory({"source_id": str(number), "split": split})
        builder.step({"source": "user", "kind": "message", "text": split})
        builder.finish()
        builders.append(builder)
    written, result = rows_of(write_store(tmp_path / "s", *builders), tmp_path / "out")
    assert [file.path.removeprefix("messages/") for file in written.files] == [
        "train-00000.parquet", "train-00001.parquet", "test-00000.parquet",
    ]  # fmt: skip
    assert [row["id"] for row in result["train"]] == ["d/0", "d/2"]


# ---- names of splits ----------------------------------------------------------------------------


def store_of_splits(folder: Path, values: list[str | None]) -> Store:
    builder = RowBuilder()
    for number, value in enumerate(values):
        builder.begin(Origin(seq=number, dataset="d", columns={}))
        builder.trajectory({"source_id": str(number), "split": value})
        builder.finish()
    return write_store(folder, builder)


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ([None], ("train",)),
        (["test"], ("test",)),
        (["train", "test", "validation"], ("train", "test", "validation")),
        ([None, "test"], ("train", "test")),
        (["all"], ("all_split",)),
        (["a b", "a-b", "A_B"], ("A_B", "a_b_2", "a_b_3")),
        (["../x", "\u202e", "|"], ("split", "split_2", "x")),
        (["x_branches"], ("x_branches_split",)),
        ([str(number) for number in range(21)], ("train",)),
    ],
)
def test_names_of_splits(values, names, tmp_path: Path):
    assert splits_of(store_of_splits(tmp_path / "s", values)).order == names


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(st.none() | st.text(max_size=60), max_size=25))
def test_any_split_gives_a_name_that_datasets_takes(values, tmp_path_factory):
    from datasets import NamedSplit, Split
    from datasets.naming import _split_re

    texts = [
        None if value is None else value.encode("utf-8", "replace").decode() for value in values
    ]
    store = store_of_splits(tmp_path_factory.mktemp("s") / "s", texts)
    splits = splits_of(store)
    mapped = {splits.of(value, branch=False) for value in texts}
    assert mapped == set(splits.order)
    few = len({text or "" for text in texts}) <= 20
    assert len(mapped) == (len({text or "" for text in texts}) if few else 1) or not texts
    for name in mapped:
        assert re.match(_split_re, name)
        assert NamedSplit(name) != Split.ALL
        assert len(name) < 60


def test_hostile_splits_make_harmless_files(tmp_path: Path):
    store = write_published(tmp_path / "s", Words(split="../../x\n---"))
    written, _ = rows_of(store, tmp_path / "out")
    assert {file.split for file in written.files} == {"x", "test", "x_branches"}
