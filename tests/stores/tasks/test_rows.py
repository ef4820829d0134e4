"""Every trajectory keeps the task that its maker gave it, whatever is left out around it."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from adp.curation.partitions import Partition
from adp.stores.drop import DropOptions, drop, select
from adp.stores.merge import merge
from adp.stores.tasks import TaskIndex, find_tasks, task_index
from adp.stores.tasks.rows import ROLLOUT, shard_starts
from adp_schema.builder import Origin, RowBuilder
from adp_schema.growing import seal
from adp_schema.model import Step, Task, Trajectory
from adp_schema.store import Store
from tests.curation.recipes import curate
from tests.effort import examples
from tests.store_builders import write_store


@dataclass(frozen=True)
class Attempt:
    """What is true of one attempt.

    Attributes:
        task_id: id of the task.
        dataset: data set of the trajectory, or the run's name.
        says: words of the task.
        of: data set that the task itself names.
        environment: environment of a rollout.
        go: whether it is to be left out.
    """

    task_id: str | None
    dataset: str
    says: str
    of: str | None
    environment: str | None = None
    go: bool = False


def attempts(**more):
    return st.lists(
        st.builds(
            Attempt, task_id=st.sampled_from(["1", "1", "2", None]), dataset=st.sampled_from("ab"),
            says=st.sampled_from("pq"), of=st.sampled_from([None, None, "x"]), go=st.booleans(),
            **more,
        ),
        max_size=7,
    )  # fmt: skip


converted = st.lists(attempts(), min_size=1, max_size=3)
rollouts = attempts(environment=st.sampled_from("ef"))


def columns(name: str, attempt: Attempt) -> dict:
    """Columns of a trajectory; its ``tags`` keep what its maker said."""
    return {
        "source_id": name,
        "task_id": attempt.task_id,
        "tags": [f"says-{attempt.says}", "go" if attempt.go else "stay"],
    }


def task(attempt: Attempt) -> dict:
    return {"task_id": attempt.task_id, "dataset": attempt.of, "instruction": attempt.says}


def convert_shards(folder: Path, described, word="c") -> str:
    """A store as a converter writes it: a task once a shard and data set."""
    builders = []
    for index, members in enumerate(described):
        builders.append(RowBuilder())
        for place, member in enumerate(members):
            name = f"{word}{index}-{place}"
            builders[-1].begin(Origin(seq=100 * index + place, dataset=member.dataset))
            builders[-1].trajectory(columns(name, member))
            builders[-1].step({"source": "user", "kind": "message", "text": name})
            # A task without an id can be told from no other, so no converter shares one.
            if member.task_id is not None:
                builders[-1].task(task(member))
            builders[-1].finish()
    return write_store(folder, *builders).root


def collect_runs(folder: Path, members) -> str:
    """A store as `adp collect` writes it: a task beside each attempt, and branches without one."""
    with Store.grow(str(folder)) as store:
        for place, member in enumerate(members):
            store.append(
                Trajectory(
                    dataset=member.dataset, source_format=ROLLOUT, agent_name="a",
                    extra=json.dumps({"environment": member.environment}),
                    task=Task(**task(member)),
                    steps=[Step(source="user", kind="message", text=f"r{place}")],
                    trajectory_id=f"r{place}", **columns(f"r{place}", member),
                )
            )  # fmt: skip
            for name, parent in ((f"r{place}/b", f"r{place}"), (f"r{place}/b/b", f"r{place}/b")):
                store.append(
                    Trajectory(
                        dataset=member.dataset, source_format=ROLLOUT, agent_name="a",
                        parent_id=parent, parent_step=0, branch_kind="alternate",
                        steps=[Step(source="agent", kind="message", text=f"r{place}")],
                        trajectory_id=name, **columns(name, member),
                    )
                )  # fmt: skip
    seal(str(folder))
    return str(folder)


def task_rows(store: Store) -> dict[str, tuple[str, str | None]]:
    """What the maker of each trajectory said, and what is found."""
    index = TaskIndex(store)
    keys = {name: known.key for name, known in find_tasks(store).items()}
    results = {}
    for trajectory in store.trajectories():
        known = index.of(trajectory.model_copy(update={"task": None}))
        results[trajectory.trajectory_id] = (trajectory.tags[0][5:], known and known.instruction)
        # Reading gives a trajectory its own row; what others have of it is looked up.
        assert trajectory.task is None or trajectory.task_id is None or trajectory.task == known
        if trajectory.parent_id is not None:
            assert keys[trajectory.trajectory_id] == keys[trajectory.parent_id]
            assert trajectory.task is None
    return results


@settings(max_examples=examples(24))
@given(described=converted, others=converted, runs=rollouts)
def test_each_keeps_its_task_when_others_go(described, others, runs):
    if not any(described) or not runs:
        return
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        merge(
            [convert_shards(folder / "c", described), collect_runs(folder / "r", runs)],
            str(folder / "all"), workers=1,
        )  # fmt: skip
        old = Store.open(str(folder / "all"))
        before = task_rows(old)
        for output, result in before.values():
            assert result in (output, None)
        flat = [member for members in described for member in members] + 3 * runs
        assert sum(entry is not None for _, entry in before.values()) == sum(
            item.task_id is not None for item in flat
        )
        left = {name: before[name] for name in before if name not in gone(old)}
        drop(select(old.root, "list_contains(tags, 'go')"), str(folder / "dropped"),
             options=DropOptions(workers=1))  # fmt: skip
        assert task_rows(Store.open(str(folder / "dropped"))) == left
        others = convert_shards(folder / "d", others, "d")
        left |= {name: known for name, known in task_rows(Store.open(others)).items()
                 if name not in gone(Store.open(others))}  # fmt: skip
        if left:
            stay = {"filter": {"sql": "NOT list_contains(tags, 'go')"}}
            curate({"all": old.root, "others": others}, folder / "curated", stay, workers=1)
            assert task_rows(Store.open(str(folder / "curated"))) == left
        check_partition(old, before, folder)


def gone(store: Store) -> set[str]:
    rows = store.scan("trajectories").select("trajectory_id", "tags").collect()
    return {name for name, tags in rows.iter_rows() if "go" in tags}


def check_partition(store: Store, before, folder: Path) -> None:
    """What curation reads of the tasks of a partition is what the whole store says."""
    rows = store.scan("trajectories").filter(pl.col("parent_id").is_null())
    rows = rows.select("seq", "trajectory_id", "task_id").collect()
    shift = 1 << 44
    rows.select(pl.col("seq") + shift).write_parquet(folder / "members.parquet")
    assigned = task_index(store).rows.filter(pl.col("shared").is_not_null())
    assigned.select("seq", "row").write_parquet(folder / "tasks.parquet")
    half = rows["seq"][len(rows) // 2]
    last = rows["seq"][-1]
    for first, end in ((0, half), (half, last)):
        files = (str(folder / "members.parquet"), str(folder / "tasks.parquet"))
        part = Partition(0, store.root, shift, first + shift, end + shift, 1, *files)
        frame = part.task_columns(["instruction"]).with_columns(pl.col("seq") - shift)
        expected = [
            (seq, before[name][0])
            for seq, name, task_id in rows.iter_rows()
            if first <= seq <= end and task_id is not None
        ]
        assert list(frame.iter_rows()) == expected


def test_a_row_of_the_own_shard_counts_before_one_of_another():
    """Two shards in which the first attempts at a task say different things of it."""
    first, other = (Attempt("1", "a", says, None) for says in "pq")
    with tempfile.TemporaryDirectory() as folder:
        root = convert_shards(Path(folder) / "c", [[first, first], [other, other, first, other]])
        store = Store.open(root)
        seqs = store.scan("trajectories").select("seq").collect()["seq"]
        assert shard_starts(store, seqs) == [0, 100]
        assert [result for _, result in task_rows(store).values()] == ["p", "p", "q", "q", "p", "q"]
        assert task_index(store).rows["own"].to_list() == [True, False, True, False, True, False]


def test_a_store_without_tasks(tmp_path):
    root = convert_shards(tmp_path / "c", [[Attempt(None, "a", "p", None)]])
    assert task_index(Store.open(root)).rows.is_empty()
