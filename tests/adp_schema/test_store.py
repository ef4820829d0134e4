"""The doors of a store, older versions, branches, URLs."""

import json
import re
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adp_schema.builder import Origin, RowBuilder
from adp_schema.errors import StoreError, StoreVersionError, UsageError
from adp_schema.store import Store
from adp_schema.tables import TABLES
from tests.store_builders import describe_again, write_store


def builder_of(*names, parent=None):
    builder = RowBuilder()
    for seq, name in enumerate(names):
        builder.begin(Origin(seq=seq * 10, dataset="d"))
        builder.trajectory({"source_id": name, "agent_model": "m", "tools": "[]"})
        builder.step({"source": "user", "text": f"ask {name}"})
        builder.step({"source": "agent", "text": "answer"})
        builder.call({"name": "tool", "call_id": "c", "arguments": '{"a":1}'})
        builder.observation({"source": "environment", "text": "result"}, answers="c")
        builder.finish()
    if parent:
        builder.begin(Origin(seq=len(names) * 10, dataset="d"))
        builder.trajectory(
            {"source_id": "branch", "parent_id": parent, "parent_step": 1, "branch_kind": "fork"}
        )
        builder.step({"source": "agent", "text": "another answer"})
        builder.finish()
    return builder


def test_doors(tmp_path):
    store = write_store(tmp_path / "s", builder_of("x", "y"), builder_of("z"))
    assert [t.trajectory_id for t in store.trajectories()] == ["d/x", "d/y", "d/z"]
    value = store.get("d/z")
    assert [step.text for step in value.steps] == ["ask z", "answer"]
    assert value.steps[1].calls[0].json_value("arguments") == {"a": 1}
    assert value.steps[1].observations[0].call_step == 1
    assert store.scan("tool_calls").collect()["name"].to_list() == ["tool"] * 3
    assert store.query("SELECT count(*) AS n FROM steps").to_pylist() == [{"n": 6}]
    with pytest.raises(StoreError, match="d/x"):
        store.get("d/xx")
    with pytest.raises(UsageError, match="did you mean steps"):
        store.files("step")


def test_branches_are_resolved(tmp_path):
    store = write_store(tmp_path / "s", builder_of("x", parent="d/x"))
    plain = store.get("d/branch")
    assert [step.step for step in plain.steps] == [1]
    whole = store.get("d/branch", resolve=True)
    assert [step.text for step in whole.steps] == ["ask x", "another answer"]
    assert (plain.tools, whole.tools) == (None, "[]")
    assert [len(t.steps) for t in store.trajectories(resolve=True)] == [2, 2]


def test_single_trajectories_are_those_of_the_stream(tmp_path):
    """Row groups that were read for one are used for the next; never those of another shard."""
    shards = (builder_of("x", "y", "z"), builder_of("u", "v", parent="d/u"))
    store = write_store(tmp_path / "s", *shards)
    streamed = {trajectory.trajectory_id: trajectory for trajectory in store.trajectories()}
    names = list(streamed)
    for name in [*names, *reversed(names), *names[::2]]:
        assert store.get(name) == streamed[name]
        assert store.get(name).steps == streamed[name].steps


def test_rows_that_no_longer_fit_together_are_read(tmp_path):
    """An edit may drop a step; what arrived after it stays with the step before."""
    store = write_store(tmp_path / "s", builder_of("x"))
    path = store.files("steps")[0]
    rows = pq.read_table(path)
    pq.write_table(rows.slice(0, 1), path)
    (trajectory,) = store.trajectories()
    assert [step.text for step in trajectory.steps] == ["ask x"]
    assert trajectory.steps[0].observations[0].text == "result"


def test_what_is_no_store(tmp_path):
    with pytest.raises(StoreError, match="adp convert"):
        Store.open(str(tmp_path))
    (tmp_path / "adp.json").write_text('{"schema_version": "1.0", "tables": 3}')
    with pytest.raises(StoreError, match="damaged"):
        Store.open(str(tmp_path))


FOREIGN_FOLDERS = [
    *("../x.parquet", "/etc/passwd", "steps/../../x", "C:\\x", ".git/config", ".run/plan.json"),
    *("run.json", "adp.json", "~/x", "$HOME/x.parquet", "con/aux.parquet", "steps/a\nb.parquet"),
    *("steps/\u202ex.parquet", "steps/part-00000.parquet\n", "tool_calls/part-00000.parquet", ""),
]


def test_a_manifest_cannot_be_anything(tmp_path):
    for data in (b"\xff\xfe", b"[" * 200_000, b"[]"):
        (tmp_path / "adp.json").write_bytes(data)
        with pytest.raises(StoreError, match="is damaged"):
            Store.open(str(tmp_path))


def test_a_manifest_cannot_name_a_file_twice(tmp_path):
    write_store(tmp_path / "s", builder_of("x"))
    file = tmp_path / "s" / "adp.json"
    manifest = json.loads(file.read_text())
    manifest["tables"]["steps"] *= 2
    file.write_text(json.dumps(manifest))
    with pytest.raises(StoreError, match="names a file twice"):
        Store.open(str(tmp_path / "s"))


@pytest.mark.parametrize("path", FOREIGN_FOLDERS)
def test_a_manifest_cannot_name_foreign_files(tmp_path, path):
    write_store(tmp_path / "s", builder_of("x"))
    file = tmp_path / "s" / "adp.json"
    manifest = json.loads(file.read_text())
    manifest["tables"]["steps"][0]["path"] = path
    file.write_text(json.dumps(manifest))
    with pytest.raises(StoreError, match=r"is none of a shard|not in its folder"):
        Store.open(str(tmp_path / "s"))


def test_a_newer_store_is_refused(tmp_path):
    write_store(tmp_path / "s", builder_of("x"))
    path = tmp_path / "s" / "adp.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "schema_version": "7.0"}))
    with pytest.raises(StoreVersionError, match="upgrade adp"):
        Store.open(str(tmp_path / "s"))


def make_old(store, root):
    """Turn a store into one of version 0.9: other names, and columns that were not there."""
    names = {"agent_model": "model", "arguments": "args", "arguments_raw": "args_raw"}
    later = {"trajectories": ["split", "total_cost_usd"], "steps": ["token_mask"]}
    for table in TABLES:
        for path in store.files(table):
            rows = pq.read_table(path)
            rows = rows.drop_columns(later.get(table, []))
            if table in ("trajectories", "tool_calls"):
                rows = rows.rename_columns([names.get(n, n) for n in rows.column_names])
            pq.write_table(rows, path)
    describe_again(root, schema_version="0.9")


def test_an_older_store_opens(tmp_path):
    root = tmp_path / "s"
    make_old(write_store(root, builder_of("x", "y")), root)
    store = Store.open(str(root))
    first = next(store.trajectories())
    assert (first.agent_model, first.split) == ("m", None)
    assert first.steps[1].calls[0].arguments == '{"a":1}'
    assert store.get("d/y").steps[0].token_mask is None
    frame = store.scan("tool_calls").collect()
    assert frame.columns == TABLES["tool_calls"].schema.names
    assert frame["arguments"].to_list() == ['{"a":1}'] * 2
    rows = store.query("SELECT agent_model, split FROM trajectories ORDER BY seq").to_pylist()
    assert rows == [{"agent_model": "m", "split": None}] * 2
    assert store.query("SELECT arguments FROM tool_calls").num_rows == 2


def test_a_store_at_a_url(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    write_store(tmp_path / "s", builder_of("x", "y"))
    memory = fsspec.filesystem("memory")
    for path in (tmp_path / "s").rglob("*"):
        if path.is_file():
            memory.pipe(f"/there/{path.relative_to(tmp_path)}", path.read_bytes())
    store = Store.open("memory://there/s")
    assert [t.trajectory_id for t in store.trajectories()] == ["d/x", "d/y"]
    assert store.get("d/y").steps[1].calls[0].name == "tool"


def test_schema_of_empty_tables(tmp_path):
    store = write_store(tmp_path / "s", builder_of("x"))
    assert store.scan("pairs").collect().height == 0
    assert isinstance(TABLES["pairs"].schema, pa.Schema)


def branches_of(parents, step=1):
    """A store's rows: main lines and branches, name -> name of the parent or None."""
    builder = RowBuilder()
    for seq, (name, parent) in enumerate(parents.items()):
        builder.begin(Origin(seq=seq, dataset="d"))
        branch = {"parent_id": f"d/{parent}", "parent_step": step} if parent else {}
        builder.trajectory({"source_id": name, **branch})
        builder.step({"source": "user" if parent is None else "agent", "text": name})
        builder.step({"source": "agent", "text": f"{name} later"})
        builder.finish()
    return builder


def test_branches_that_are_each_others_parents_are_an_error_at_once(tmp_path):
    long = {f"n{k}": f"n{(k + 1) % 60}" for k in range(60)}
    parents = {"m": None, "a": "b", "b": "a", "self": "self", "below": "a", **long, "fine": "m"}
    store = write_store(tmp_path / "s", branches_of(parents))
    opened = Counter()
    get = store.get
    store.get = lambda name, **more: opened.update([name]) or get(name, **more)
    for name, output in [
        ("a", "the branches 'd/a', 'd/b' are each other's parents, in a circle"),
        ("b", "the branches 'd/a', 'd/b' are each other's parents"),
        ("below", "the branches 'd/a', 'd/b' are each other's parents"),
        ("self", "the branch 'd/self' is its own parent"),
        *((name, "'d/n0', 'd/n1', 'd/n10', 'd/n11', 'd/n12' and 55 more") for name in long),
    ]:
        with pytest.raises(StoreError, match=re.escape(output)):
            get(f"d/{name}", resolve=True)
    assert not opened  # of a circle nothing is read
    assert [step.text for step in store.get("d/fine", resolve=True).steps] == [
        "m", "fine", "fine later"
    ]  # fmt: skip


def test_a_long_chain_of_branches_is_resolved(tmp_path):
    count = 600  # with two calls each deeper than Python's stack
    parents = {str(k): str(k - 1) if k else None for k in range(count)}
    store = write_store(tmp_path / "s", branches_of(parents))
    whole = store.get(f"d/{count - 1}", resolve=True)
    assert [step.text for step in whole.steps] == ["0", f"{count - 1}", f"{count - 1} later"]


@settings(max_examples=20)
@given(st.lists(st.none() | st.integers(0, 9), min_size=1, max_size=8))
def test_branches_are_resolved_as_by_walking_up(tmp_path_factory, parents):
    names = {str(k): None if above is None else str(above) for k, above in enumerate(parents)}
    store = write_store(tmp_path_factory.mktemp("s"), branches_of(names))

    def walk(name, seen=()):
        if name in seen or name not in names:
            return None
        steps = store.get(f"d/{name}").steps
        if names[name] is None:
            return steps
        before = walk(names[name], (*seen, name))
        return None if before is None else before[:1] + steps

    for name in names:
        expected = walk(name)
        if expected is None:
            with pytest.raises(StoreError):
                store.get(f"d/{name}", resolve=True)
        else:
            assert store.get(f"d/{name}", resolve=True).steps == expected
