"""Checks of a store that somebody broke: files, columns, counts, keys."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from adp.stores.checks.registry import CHECKS
from adp.stores.checks.run import run_checks
from adp.stores.visible_text import visible
from adp_schema.builder import RowBuilder
from adp_schema.store import Store
from adp_schema.verification import unverified
from tests.store_builders import describe_again, reject_row, write_store
from tests.stores.checks.runs import DONE, add, run


def make(folder: Path) -> Store:
    """A store of two shards that nothing is wrong with."""
    builders = []
    for shard in range(2):
        builder = RowBuilder()
        for number in range(2):
            seq = 10 * shard + number
            add(builder, seq, f"run-{seq}", run(*DONE))
        builders.append(builder)
    return write_store(folder, *builders)


def edit(store: Store, table: str, change) -> None:
    """Rewrite the first file of a table, and its number of rows in the manifest."""
    path = Path(store.files(table)[0])
    rows = change(pq.read_table(path))
    pq.write_table(rows, path)
    describe_again(store.root)


def replace(rows: pa.Table, column: str, values) -> pa.Table:
    """Another column in the place of one."""
    index = rows.schema.get_field_index(column)
    return rows.set_column(index, rows.schema.field(column), pa.chunked_array([values]))


def first_changed(column: str, value):
    """A change of the first row of a column."""

    def change(rows):
        values = rows[column].to_pylist()
        values[0] = value
        return replace(rows, column, pa.array(values, rows.schema.field(column).type))

    return change


def manifest_changed(store: Store, change) -> None:
    path = Path(store.root) / "adp.json"
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


def cut(store: Store, table: str) -> None:
    path = Path(store.files(table)[0])
    path.write_bytes(path.read_bytes()[:100])


def reject(store: Store) -> None:
    builder = RowBuilder()
    builder.reject(reject_row(b"{", "not JSON", record=3))
    folder = Path(store.root)
    table = builder.tables()["rejects"]
    (folder / "rejects").mkdir()
    pq.write_table(table, folder / "rejects" / "part-00000.parquet")

    def change(data):
        data["counts"]["records"] += 1
        data["counts"]["rejected"] += 1
        shard = {"path": "rejects/part-00000.parquet", "rows": 1, "size": 1, "hash": "0"}
        data["tables"]["rejects"] = [shard]

    manifest_changed(store, change)
    describe_again(store.root)


DAMAGE = {
    "damaged-file": [
        lambda store: Path(store.files("steps")[0]).unlink(),
        lambda store: cut(store, "tool_calls"),
        lambda store: manifest_changed(
            store, lambda data: data["tables"]["steps"][1].update(rows=99)
        ),
    ],
    "wrong-column": [
        lambda store: edit(store, "steps", lambda rows: rows.drop_columns(["text"])),
        lambda store: edit(
            store, "steps", lambda rows: rows.append_column("mood", pa.nulls(rows.num_rows))
        ),
        lambda store: edit(
            store,
            "steps",
            lambda rows: rows.set_column(2, "step", pc.cast(rows["step"], pa.int64())),
        ),
    ],
    "unbalanced-counts": [
        lambda store: manifest_changed(store, lambda data: data["counts"].update(records=9)),
        lambda store: manifest_changed(store, lambda data: data["counts"].update(trajectories=9)),
        lambda store: manifest_changed(store, lambda data: data["datasets"].update(made=9)),
        lambda store: manifest_changed(
            store, lambda data: data["counts"].update(records=6, rejected=2)
        ),
    ],
    "rejected-records": [reject],
    "unknown-word": [
        lambda store: edit(store, "steps", first_changed("source", "wizard")),
        lambda store: edit(store, "tool_calls", first_changed("kind", None)),
    ],
    "orphan-row": [
        lambda store: edit(store, "steps", first_changed("seq", -7)),
        lambda store: edit(store, "observations", first_changed("trajectory_id", "made/other")),
        lambda store: edit(store, "tool_calls", first_changed("step", None)),
    ],
    "call-without-step": [lambda store: edit(store, "tool_calls", first_changed("step", 77))],
    "misordered-rows": [
        lambda store: edit(store, "steps", lambda rows: rows.take([1, 0, *range(2, 6)])),
        lambda store: edit(store, "steps", lambda rows: rows.take([0, 0, *range(1, 6)])),
        lambda store: edit(store, "trajectories", lambda rows: rows.take([1, 0])),
    ],
    "duplicate-trajectory-id": [
        lambda store: edit(store, "trajectories", first_changed("trajectory_id", "made/run-10"))
    ],
}
"""Check -> ways to break a store that it finds."""


@pytest.mark.parametrize(
    ("check", "number"), [(check, n) for check, ways in DAMAGE.items() for n, _ in enumerate(ways)]
)
def test_damage_is_found(tmp_path, check, number):
    store = make(tmp_path / "store")
    (clean,), _ = run_checks(store, [check])
    assert clean.findings == 0
    DAMAGE[check][number](store)
    (result,), _ = run_checks(Store.open(store.root, check=False), [check])
    assert result.findings >= 1
    assert result.examples[0].path


def test_rows_of_a_damaged_store_are_not_checked(tmp_path):
    store = make(tmp_path / "store")
    cut(store, "tool_calls")
    results, left_out = run_checks(store)
    assert [result.check.id for result in results] == ["damaged-file", "wrong-column"]
    assert results[0].examples[0].path == "tool_calls/part-00000.parquet"
    assert "dangling-call" in left_out


NOISE = (
    '{"role": "web_observation", "media_id": "',
    "\x00\x1b\U0010ffff" * 50,
    "[[[[",
    "NaN",
    "",
    None,
)


TABLES = ("trajectories", "steps", "tool_calls", "observations")


@pytest.mark.parametrize("noise", NOISE)
def test_noise_in_every_text_stops_no_check(tmp_path, noise):
    def fill(rows):
        for field in rows.schema:
            if field.type == pa.string() and field.name != "trajectory_id":
                rows = replace(rows, field.name, pa.array([noise] * rows.num_rows, field.type))
        return rows

    store = make(tmp_path / "store")
    for table in TABLES:
        edit(store, table, fill)
    results, left_out = run_checks(Store.open(store.root), examples=100)
    assert len(results) == len(CHECKS)
    assert not left_out
    for result in results:
        for example in result.examples:
            assert example.excerpt == visible(example.excerpt)
            assert "\n" not in example.excerpt


@pytest.mark.parametrize("table", TABLES)
def test_nulls_and_great_numbers_stop_no_check(tmp_path, table):
    def fill(rows):
        for number, field in enumerate(rows.schema):
            if pa.types.is_integer(field.type):
                value = None if number % 2 else 2**31 - 1
                rows = replace(rows, field.name, pa.array([value] * rows.num_rows, field.type))
        return rows

    store = make(tmp_path / "store")
    edit(store, table, fill)
    results, _ = run_checks(Store.open(store.root), examples=100)
    assert sum(result.findings for result in results if result.check.severity == "error")


def test_changed_bytes_are_found_on_request(tmp_path):
    store = make(tmp_path / "store")
    path = Path(store.files("steps")[0])
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data)
    with unverified():
        assert run_checks(store, ["damaged-file"])[0][0].findings == 0
    (result,), _ = run_checks(store, ["damaged-file"], verify=True)
    assert [example.path for example in result.examples] == ["steps/part-00000.parquet"]


def test_a_clean_store_has_notes_only(tmp_path):
    results, _ = run_checks(make(tmp_path / "store"))
    ids = {result.check.id for result in results if result.findings}
    assert ids == {"calls-without-tools"}


def test_pieces_give_the_same_as_the_whole(tmp_path, monkeypatch):
    store = make(tmp_path / "store")
    whole, _ = run_checks(store, examples=3)
    monkeypatch.setattr("adp.stores.checks.scope.SCOPE_ROWS", 1)
    pieces, _ = run_checks(store, examples=3)
    assert pieces == whole
    assert next(item for item in whole if item.check.id == "calls-without-tools").findings == 4
