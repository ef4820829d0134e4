"""Exports of stores in which the trajectories of several files take turns."""

from itertools import zip_longest

import pytest

import adp
from adp.converters.export import export
from adp.converters.registry import formats
from adp_schema.errors import StoreError
from adp_schema.model import Trajectory
from adp_schema.store import Store
from tests.growing import numbered

FILES = ("a/booking.jsonl", "b/weather.json", None)


def rollouts(file, count):
    """Trajectories of a file; every third one has a branch of the same record."""
    name = (file or "none").replace("/", "-")
    for number in range(count):
        one = numbered(f"{name}-{number}", blob=number % 4)
        one.source_file, one.source_records = file, [number]
        if number % 3 == 0:
            branch = numbered(f"{name}-{number}-b")
            branch.source_file, branch.source_records = file, [number]
            branch.parent_id = one.trajectory_id
            branch.branch_kind = "subagent"
            one.branches = [branch]
        yield one


def grow(root, trajectories):
    with Store.grow(root, seal_count=7) as store:
        for one in trajectories:
            store.append(one)
    return Store.open(str(root))


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """The same trajectories in turns, growing and sealed, and file by file."""
    folder = tmp_path_factory.mktemp("stores")
    apart = [list(rollouts(file, 5 + index)) for index, file in enumerate(FILES)]
    mixed = [one for turn in zip_longest(*apart) for one in turn if one is not None]
    growing = grow(folder / "growing", mixed)
    grow(folder / "sealed", mixed)
    adp.seal(folder / "sealed")
    plain = grow(folder / "plain", [one for own in apart for one in own])
    return {"growing": growing, "sealed": Store.open(str(folder / "sealed")), "plain": plain}


def exported(store, to, out, **options):
    report = export(store, to, str(out), **options)
    files = {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*.*")}
    return report, files


@pytest.mark.parametrize("to", list(formats))
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
    runs = [[one for one in rollouts(file, 5 + index)] for index, file in enumerate(FILES)]
    for one in [one for own in runs for one in own]:
        one.branches = []
    bare = grow(tmp_path / "bare", [one for own in runs for one in own])
    report, files = exported(stores[kind], to, tmp_path / "out", branches=False)
    wanted, plain = exported(bare, to, tmp_path / "wanted")
    assert files == plain
    assert (report.records, report.branches_left_out) == (5 + 6 + 7, 2 + 2 + 3)
    assert report.losses == wanted.losses
    assert "$.parent_id" not in str(report.losses)


def test_turns_are_read_in_order(stores):
    store = stores["growing"]
    seqs = store.scan("trajectories").select("seq").collect()["seq"].to_numpy()[::3]
    every = {one.seq: one for one in store.trajectories()}
    found = list(store.some(seqs))
    assert [one.seq for one in found] == seqs.tolist()
    assert [plain(one) for one in found] == [plain(every[seq]) for seq in seqs.tolist()]


def plain(one: Trajectory):
    return [one.model_dump(), [step.model_dump() for step in one.steps], sorted(one.media)]


def test_two_files_of_one_name(tmp_path):
    names = ("a.json", "a.jsonl")
    store = grow(tmp_path / "s", [one for name in names for one in rollouts(name, 2)])
    with pytest.raises(StoreError, match=r"both become a.jsonl; use --single FILE together with"):
        export(store, "openai_chat", str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()
    report = export(store, "openai_chat", str(tmp_path / "out"), single="all.jsonl")
    assert (report.files, report.records) == (1, 6)
