"""What a curated store holds is what its inputs hold, whatever they look like."""

from __future__ import annotations

import itertools
import re
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from adp_schema.model import Trajectory
from adp_schema.store import Store
from adp_schema.trajectory_rows import rows_of
from tests.curation.recipes import balanced, contents, curate
from tests.effort import examples
from tests.stores import any_store

OWN_TABLES = ("tasks", "media")
"""Tables whose rows hang from the first trajectory that needs them."""


def facts(trajectory: Trajectory) -> dict:
    """All that is known of a trajectory, but for its place."""
    columns, rows = rows_of(trajectory)
    text = repr((columns, rows))
    media = {
        name: trajectory.media[name].data
        for name in set(re.findall(r"(?=([0-9a-f]{32}))", text))
        if name in trajectory.media
    }
    return {
        "columns": columns,
        "rows": {name: row for name, row in rows.items() if name not in OWN_TABLES},
        "media": media,
    }


def tasks(store: Store) -> set[tuple[str, str | None]]:
    rows = store.scan("tasks").collect()
    return set(rows.select("task_id", "instruction").iter_rows())


@settings(max_examples=examples(24))
@given(described=any_store.shards)
def test_a_recipe_without_ops_changes_nothing(described):
    with tempfile.TemporaryDirectory() as folder:
        store = any_store.write(Path(folder) / "in", described, "word")
        if not store.manifest.rows("trajectories"):
            return
        out = Path(folder) / "out"
        done = curate({"runs": store.root}, out)
        balanced(done)
        made = Store.open(str(out))
        before = {t.trajectory_id: facts(t) for t in store.trajectories()}
        after = {t.trajectory_id: facts(t) for t in made.trajectories()}
        assert after == before
        assert [t.trajectory_id for t in made.trajectories()] == list(before)
        assert tasks(made) == tasks(store)
        assert made.manifest.losses == store.manifest.losses
        assert made.manifest.datasets == {k: v for k, v in store.manifest.datasets.items() if v}
        known = store.scan("pairs").collect()
        there = known.filter(known["chosen_id"].is_in(list(before)) | known["chosen_id"].is_null())
        assert made.manifest.rows("pairs") <= there.height


@settings(max_examples=examples(16))
@given(first=any_store.shards, second=any_store.shards)
def test_two_inputs_keep_apart_what_has_the_same_name(first, second):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        a = any_store.write(root / "a", first, "one")
        b = any_store.write(root / "b", second, "two")
        count = a.manifest.rows("trajectories") + b.manifest.rows("trajectories")
        if not count:
            return
        done = curate({"a": a.root, "b": b.root}, root / "out")
        balanced(done)
        made = list(Store.open(str(root / "out")).trajectories())
        assert len({t.trajectory_id for t in made}) == count
        notes = [t.notes for t in made]
        assert notes == [t.notes for store in (a, b) for t in store.trajectories()]
        parents = {t.trajectory_id: t for t in made}
        for t in made:
            if t.parent_id is not None and t.parent_id in parents:
                # The word before the first dash is that of the input.
                assert parents[t.parent_id].notes.split("-")[0] == t.notes.split("-")[0]
        for store in (a, b):
            wanted = {t.notes: _without_names(facts(t)["rows"]) for t in store.trajectories()}
            results = {t.notes: _without_names(facts(t)["rows"]) for t in made if t.notes in wanted}
            assert results == wanted


def _without_names(rows: dict) -> dict:
    """Rows without what names a file or another trajectory, which may get new names."""
    names = ("made_from_trajectory", "target_id")
    return {
        table: [{k: v for k, v in row.items() if k not in names} for row in result]
        for table, result in rows.items()
        if table != "raw"
    }


@settings(max_examples=examples(12))
@given(
    runs=st.lists(any_store.runs, min_size=1, max_size=9),
    cuts=st.lists(st.integers(0, 9), min_size=3, max_size=3),
)
def test_the_bytes_do_not_depend_on_how_the_input_was_cut(runs, cuts):
    runs = [
        any_store.Run(name=f"r{number}", image=run.image, inline=run.inline, task=run.task)
        for number, run in enumerate(runs)
    ]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        whole = any_store.write(root / "whole", [runs], "w")
        source = list(whole.trajectories())
        results = []
        for number, places in enumerate(([], cuts[:1], cuts)):
            store = _cut(root / f"in{number}", source, sorted(places))
            out = root / f"out{number}"
            curate({"runs": store.root}, out, {"annotate": {"expressions": {"n": "size * 2"}}})
            results.append(contents(out))
        assert results[0] == results[1] == results[2]


def _cut(folder: Path, trajectories: list[Trajectory], places: list[int]) -> Store:
    """The same trajectories in several shards."""
    from adp_schema.builder import RowBuilder
    from tests.store_builders import write_store

    builders = []
    bounds = [0, *places, len(trajectories)]
    for start, end in itertools.pairwise(bounds):
        builder = RowBuilder()
        for place in range(start, max(start, end)):
            if place < len(trajectories):
                columns, rows = rows_of(trajectories[place])
                task = trajectories[place].task_id
                rows = {k: v for k, v in rows.items() if k != "tasks"}
                if task is not None:
                    rows["tasks"] = [{"task_id": task, "instruction": "do it"}]
                builder.add_rows(place, {**columns, "trajectory_id": f"x/{place}"}, rows)
        builders.append(builder)
    return write_store(folder, *builders)
