"""Exports of stores in which the trajectories of several files take turns."""

from itertools import zip_longest

import pytest

import adp
from adp.converters.export import export
from adp.converters.registry import BUILTIN
from adp_schema.errors import StoreError
from adp_schema.model import Trajectory
from adp_schema.store import Store
from tests.growing import numbered

FILES = ("a/booking.jsonl", "b/weather.json", None)


def rollouts(file, count):
    """Trajectories of a file; every third one has a branch of the same record."""
    name = (file or "none").replace("/", "-")
    for number in range(count):
        result = numbered(f"{name}-{number}", blob=number % 4)
        result.source_file, result.source_records = file, [number]
        if number % 3 == 0:
            branch = numbered(f"{name}-{number}-b")
            branch.source_file, branch.source_records = file, [number]
            branch.parent_id = result.trajectory_id
            branch.branch_kind = "subagent"
            result.branches = [branch]
        yield result


def grow(root, trajectories):
    with Store.grow(root, seal_count=7) as store:
        for trajectory in trajectories:
            store.append(trajectory)
    return Store.open(str(root))


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """The same trajectories in turns, growing and sealed, and file by file."""
    folder = tmp_path_factory.mktemp("stores")
    apart = [list(rollouts(file, 5 + index)) for index, file in enumerate(FILES)]
    mixed = [item for turn in zip_longest(*apart) for item in turn if item is not None]
    growing = grow(folder / "growing", mixed)
    grow(folder / "sealed", mixed)
    adp.seal(folder / "sealed")
    plain = grow(folder / "plain", [item for ours in apart for item in ours])
    return {"growing": growing, "sealed": Store.open(str(folder / "sealed")), "plain": plain}


def exported(store, to, out, **options):
    report = export(store, to, str(out), **options)
    files = {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*.*")}
    return report, files


@pytest.mark.parametrize("to", list(BUILTIN))
@pytest.mark.parametrize("kind", ["growing", "sealed"])
def test_files_are_the_same_as_in_file_order(stores, tmp_path, to, kind):
    report, files = exported(stores[kind], to, tmp_path / "mixed")
    wanted, plain = exported(stores["plain"], to, tmp_path / "plain")
    assert files == plain
    assert report == wanted
    assert report.records


@pytest.mark.parametrize("to", ["openai_chat", "m3", "atif"])
@pytest.mark.parametrize("kind", ["growing", "sealed", "plain"])
def test_branches_may_be_left_out(stores, tmp_path, to, kind):
    runs = [[rollout for rollout in rollouts(file, 5 + index)] for index, file in enumerate(FILES)]
    for item in [our for ours in runs for our in ours]:
        item.branches = []
    bare = grow(tmp_path / "bare", [our for ours in runs for our in ours])
    report, files = exported(stores[kind], to, tmp_path / "out", branches=False)
    wanted, plain = exported(bare, to, tmp_path / "wanted")
    assert files == plain
    assert (report.records, report.branches_left_out) == (5 + 6 + 7, 2 + 2 + 3)
    assert report.losses == wanted.losses
    assert "$.parent_id" not in str(report.losses)


def test_turns_are_read_in_order(stores):
    store = stores["growing"]
    seqs = store.scan("trajectories").select("seq").collect()["seq"].to_numpy()[::3]
    every = {trajectory.seq: trajectory for trajectory in store.trajectories()}
    some = list(store.some(seqs))
    assert [item.seq for item in some] == seqs.tolist()
    assert [plain(item) for item in some] == [plain(every[seq]) for seq in seqs.tolist()]


def plain(trajectory: Trajectory):
    return [
        trajectory.model_dump(),
        [step.model_dump() for step in trajectory.steps],
        sorted(trajectory.media),
    ]


def test_two_files_of_one_name(tmp_path):
    names = ("a.json", "a.jsonl")
    store = grow(tmp_path / "s", [rollout for name in names for rollout in rollouts(name, 2)])
    with pytest.raises(StoreError, match=r"both become a.jsonl; use --single FILE together with"):
        export(store, "openai_chat", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()
    report = export(store, "openai_chat", str(tmp_path / "out"), single="all.jsonl")
    assert (report.files, report.records) == (1, 6)
