"""A growing store: appended, killed, sealed; readers see all of it."""

import pytest

from adp_schema.builder import Origin, RowBuilder
from adp_schema.errors import OutputExistsError, StoreError
from adp_schema.growing import GrowingStore, journal_path, seal
from adp_schema.media import media_of_bytes
from adp_schema.model import Media
from adp_schema.parts import Parts
from adp_schema.reader import assemble, to_models
from adp_schema.store import Store


def trajectories(count):
    builder = RowBuilder()
    for seq in range(count):
        builder.begin(Origin(seq=seq, dataset="d"))
        builder.trajectory({"source_id": f"t{seq}", "success": bool(seq % 2)})
        builder.step({"source": "user", "text": f"question {seq}"})
        parts = Parts()
        parts.media(builder.media(media_of_bytes(bytes([seq]) * 40, "image/png")))
        builder.step({"source": "agent", **parts.columns()})
        builder.call({"name": "look", "call_id": "c", "arguments": '{"n": 1e5}'})
        builder.observation({"source": "environment", "text": "seen"}, answers="c")
        builder.finish()
    tables = builder.tables()
    media = {blob.media_id: blob for blob in to_models(tables["media"], Media)}
    return list(assemble(tables["trajectories"], tables, media))


def plain(trajectory):
    steps = [
        (step.model_dump(), [c.model_dump() for c in step.calls], [
            o.model_dump() for o in step.observations
        ])
        for step in trajectory.steps
    ]  # fmt: skip
    return trajectory.model_dump(exclude={"seq"}), steps


def test_readers_see_shards_and_journal(tmp_path):
    wanted = trajectories(5)
    root = tmp_path / "s"
    with GrowingStore(root) as store:
        for trajectory in wanted[:3]:
            store.append(trajectory)
        store.seal_journal()
        for trajectory in wanted[3:]:
            store.append(trajectory)
    with journal_path(root, 1).open() as journal:
        assert len(journal.readlines()) == 2
    store = Store.open(str(root))
    assert [plain(t) for t in store.trajectories()] == [plain(t) for t in wanted]
    assert store.manifest.counts.trajectories == 5
    assert store.scan("steps").collect().height == 10
    assert store.get("d/t4").steps[1].calls[0].arguments == '{"n": 1e5}'


def test_seal_ends_it(tmp_path):
    wanted = trajectories(4)
    root = tmp_path / "s"
    with GrowingStore(root, seal_bytes=1) as store:
        for trajectory in wanted:
            store.append(trajectory)
    manifest = seal(root)
    assert manifest.datasets == {"d": 4}
    assert manifest.counts.balanced()
    store = Store.open(str(root))
    found = list(store.trajectories())
    assert [plain(t) for t in found] == [plain(t) for t in wanted]
    blob = next(iter(found[2].media.values()))
    assert blob.data is not None
    assert not list(root.glob("journal-*"))
    with pytest.raises(OutputExistsError, match="finished"):
        GrowingStore(root)
    with pytest.raises(StoreError, match="no growing store"):
        seal(root)


def test_a_line_cut_by_a_kill_is_dropped(tmp_path):
    wanted = trajectories(3)
    root = tmp_path / "s"
    with GrowingStore(root) as store:
        for trajectory in wanted[:2]:
            store.append(trajectory)
    path = journal_path(root, 0)
    path.write_bytes(path.read_bytes()[:-10])
    assert [t.trajectory_id for t in Store.open(str(root)).trajectories()] == ["d/t0"]
    with GrowingStore(root) as store:
        store.append(wanted[2])
    assert [t.trajectory_id for t in Store.open(str(root)).trajectories()] == ["d/t0", "d/t2"]


def test_an_occupied_folder_is_refused(tmp_path):
    (tmp_path / "x").write_text("mine")
    with pytest.raises(OutputExistsError, match="not empty"):
        GrowingStore(tmp_path)
