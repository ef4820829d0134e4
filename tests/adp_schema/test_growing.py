"""A growing store: appended, sealed, read; the same whatever happens in between."""

import json
import os
import pickle
import resource
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adp
from adp_schema import seal_store, sealing
from adp_schema.errors import (
    IdTakenError,
    OutputExistsError,
    SchemaError,
    SealedError,
    StoreError,
)
from adp_schema.growing import GrowingStore, journal_path, seal
from adp_schema.media import media_of_bytes
from adp_schema.model import (
    Link,
    Observation,
    RawRow,
    Step,
    Task,
    ToolCall,
    Trajectory,
)
from adp_schema.store import Store
from tests.effort import examples
from tests.growing import hashes, numbered, plain
from tests.stores import any_store


def ids_of(root):
    return [trajectory.trajectory_id for trajectory in Store.open(str(root)).trajectories()]


def fill(root, names, **options):
    with GrowingStore(root, **options) as store:
        for name in names:
            assert store.append(numbered(str(name), blob=int(name) % 3))


class TestReading:
    def test_shards_and_journal_are_seen(self, tmp_path):
        wanted = [numbered(str(n), blob=n % 2) for n in range(5)]
        with Store.grow(str(tmp_path / "s")) as store:
            assert store.extend(wanted[:3]) == 3
            store.seal_journal()
            assert all(store.append(item) for item in wanted[3:])
        store = Store.open(str(tmp_path / "s"))
        assert [plain(t) for t in store.trajectories()] == [plain(t) for t in wanted]
        assert [t.seq for t in store.trajectories()] == [0, 1, 2, 3, 4]
        assert store.journal.count == 2
        assert store.manifest.counts.trajectories == 5
        assert store.manifest.datasets == {"d": 5}
        steps = sum(len(item.steps) for item in wanted)
        assert store.scan("steps").collect().height == steps
        assert store.query("SELECT count(*) AS n FROM steps").to_pylist() == [{"n": steps}]
        assert plain(store.get("d/4")) == plain(wanted[4])

    def test_a_store_is_what_it_was_when_it_was_opened(self, tmp_path):
        fill(tmp_path / "s", range(3))
        before = Store.open(str(tmp_path / "s"))
        with GrowingStore(tmp_path / "s") as store:
            store.append(numbered("3"))
            store.seal_journal()
        assert len(list(before.trajectories())) == 3
        assert len(ids_of(tmp_path / "s")) == 4

    def test_who_opened_it_before_its_end_is_told(self, tmp_path):
        fill(tmp_path / "s", range(5), seal_count=2)
        before = Store.open(str(tmp_path / "s"))
        seal(tmp_path / "s")
        for read in (before.gate, lambda: before.scan("steps"), lambda: before.get("d/1")):
            with pytest.raises(StoreError, match="was sealed after it was opened; open it again"):
                read()

    def test_shards_of_the_right_size_stay_as_they_are(self, tmp_path):
        fill(tmp_path / "s", range(5))
        before = Store.open(str(tmp_path / "s"))
        seal(tmp_path / "s")
        assert before.query("SELECT count(*) AS n FROM trajectories").to_pylist() == [{"n": 5}]

    def test_frames_and_gates_outlive_the_store_and_scratch_goes(self, tmp_path, monkeypatch):
        scratch = tmp_path / "scratch"
        scratch.mkdir()
        monkeypatch.setattr("tempfile.tempdir", str(scratch))
        fill(tmp_path / "s", range(3), seal_count=2)
        frame = Store.open(str(tmp_path / "s")).scan("trajectories")
        assert not list(scratch.iterdir())
        assert frame.collect().height == 3
        gate = Store.open(str(tmp_path / "s")).gate()
        assert gate.query("SELECT count(*) AS n FROM trajectories").to_pylist() == [{"n": 3}]
        gate.close()
        del gate
        assert not list(scratch.iterdir())

    def test_nothing_is_written_to_the_store(self, tmp_path):
        fill(tmp_path / "s", range(3), seal_count=2)
        folders = [tmp_path / "s", *(p for p in (tmp_path / "s").rglob("*") if p.is_dir())]
        (tmp_path / "s/growing/append.lock").unlink()
        before = hashes(tmp_path / "s")
        for folder in folders:
            folder.chmod(0o555)
        try:
            assert len(ids_of(tmp_path / "s")) == 3
        finally:
            for folder in folders:
                folder.chmod(0o755)
        assert hashes(tmp_path / "s") == before

    def test_scratch_of_killed_readers_is_removed(self, tmp_path, monkeypatch):
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        dead, alive = tmp_path / "adp-journal-4194305-x", tmp_path / f"adp-journal-{os.getpid()}-y"
        for folder in (dead, alive):
            folder.mkdir()
            os.utime(folder, (1, 1))
        fill(tmp_path / "s", range(1))
        ids_of(tmp_path / "s")
        assert (dead.exists(), alive.exists()) == (False, True)


class TestAppending:
    def test_the_same_again_does_nothing(self, tmp_path):
        result = numbered("1")
        with GrowingStore(tmp_path / "s", seal_count=1) as store:
            assert [store.append(result) for _ in range(3)] == [True, False, False]
        with GrowingStore(tmp_path / "s") as store:
            assert not store.append(numbered("1"))
            with pytest.raises(IdTakenError, match="another trajectory of the id 'd/1'"):
                store.append(result.model_copy(update={"success": None}))
            assert store.append(numbered("2"))
            assert sorted(store.ids()) == ["d/1", "d/2"]
            assert "d/2" in store
            assert "d/3" not in store
            asked = [f"d/{number}" for number in range(1, 6)]
            with GrowingStore(tmp_path / "s", seal_count=1) as other:
                for number in (3, 4):  # each closes a journal
                    assert store.holds(asked) == set(asked[: number - 1])
                    other.append(numbered(str(number)))
                    assert store.holds(asked) == set(asked[:number])
        assert ids_of(tmp_path / "s") == ["d/1", "d/2", "d/3", "d/4"]

    def test_what_comes_before_a_refused_one_is_kept(self, tmp_path):
        with GrowingStore(tmp_path / "s") as store:
            store.append(numbered("1"))
            other = numbered("2").model_copy(update={"trajectory_id": "d/1"})
            with pytest.raises(IdTakenError):
                store.extend([numbered("3"), other, numbered("4")])
            with pytest.raises(SchemaError):
                store.extend([numbered("5"), Trajectory(branch_kind="odd")])
        assert ids_of(tmp_path / "s") == ["d/1", "d/3", "d/5"]

    def test_ids_are_given_by_the_usual_rule(self, tmp_path):
        with GrowingStore(tmp_path / "s") as store:
            first = Trajectory(dataset="d", source_id="a", success=True)
            other = Trajectory(dataset="d", source_id="a", success=False)
            assert store.append(first)
            assert store.append(other)
            assert not store.append(first)
            assert not store.append(other)
            assert store.append(Trajectory(dataset="d", notes="no name"))
            assert not store.append(Trajectory(dataset="d", notes="no name"))
            store.append(Trajectory(dataset="d", source_hash="0f" * 16))
            store.append(Trajectory(source_id="alone"))
        ids = ids_of(tmp_path / "s")
        assert ids[:2] == ["d/a", "d/a#2"]
        assert ids[3:] == ["d/" + "0f" * 16, "alone"]
        assert len(ids[2]) == 34

    def test_branches_are_appended_after_their_parent(self, tmp_path):
        whole = numbered("1")
        branch = numbered("2").model_copy(update={"parent_id": "d/1", "parent_step": 0})
        whole.branches = [branch]
        with GrowingStore(tmp_path / "s") as store:
            assert store.append(whole)
            assert not store.append(whole)
        assert ids_of(tmp_path / "s") == ["d/1", "d/2"]

    @pytest.mark.parametrize(
        ("wrong", "words"),
        [
            ({"steps": [Step(step=1), Step(step=1)]}, "step 1 comes after step 1"),
            ({"steps": [Step(step=0, calls=[ToolCall(step=1)])]}, "a call of step 0 says"),
            (
                {"steps": [Step(step=0, observations=[Observation(step=1)]), Step(step=1)]},
                "hangs from step 0 says that it arrived after step 1",
            ),
            (
                {"steps": [Step(step=3)], "early_observations": [Observation(step=3)]},
                "before the first step says",
            ),
            ({"task": Task(task_id="t")}, "give both the same"),
            ({"branch_kind": "odd"}, "branch_kind"),
            ({"attempt": 1 << 40}, "attempt"),
            ({"notes": "\ud800"}, "notes"),
            ({"trajectory_id": "\udfff"}, "trajectory_id"),
            (
                {"started_at": datetime.max.replace(tzinfo=timezone(-timedelta(hours=1)))},
                "started_at",
            ),
            (
                {
                    "steps": [
                        Step(timestamp=datetime.min.replace(tzinfo=timezone(timedelta(1) / 2)))
                    ]
                },
                "steps.timestamp has no year from 1 to 9999",
            ),
            ({"extra": "nope"}, "trajectories.extra is not JSON"),
            ({"tools": "{not json"}, "trajectories.tools is not JSON"),
            ({"extra": '{"a":NaN}'}, "extra is not JSON that every reader takes"),
            ({"extra": "[1]"}, "trajectories.extra is not a JSON object"),
            ({"extra": '{"$null":1}'}, "trajectories.extra is not a JSON object"),
            ({"losses": '["x"]'}, "trajectories.losses is not a list of {path, reason}"),
            ({"extra": '{"a":%s}' % ("[" * 100_000 + "]" * 100_000)}, "more than 508 levels"),
            ({"extra": '{"a":%s}' % ("[" * 600 + "]" * 600)}, "JSON of more than 508 levels"),
            ({"steps": [Step(content='{"x":1}')]}, "steps.content is not a list of content parts"),
            ({"steps": [Step(content='[{"type":"odd"}]')]}, "unknown type 'odd'"),
            ({"steps": [Step(content='[{"type":"media"}]')]}, "of type media without media_id"),
            ({"steps": [Step(content='[{"type":"text","span":[-5,2]}]')]}, "no range"),
            ({"steps": [Step(calls=[ToolCall(arguments="{bad")])]}, "tool_calls.arguments is not"),
            ({"early_observations": [Observation(structured="x")]}, "observations.structured is"),
            ({"task_id": "t", "task": Task(task_id="t", tests='{"a": NaN}')}, "tasks.tests is not"),
            ({"trajectory_id": "d/1", "parent_id": "d/1"}, "parent_id: 'd/1' is its own parent"),
            ({"source_id": "1", "parent_id": "d/1"}, "parent_id: 'd/1' is its own parent"),
        ],
    )
    def test_what_could_not_be_read_back_is_refused(self, tmp_path, wrong, words):
        with GrowingStore(tmp_path / "s") as store, pytest.raises(SchemaError, match=words):
            store.append(Trajectory.model_construct(dataset="d", **wrong))
        assert ids_of(tmp_path / "s") == []

    def test_what_a_conversion_makes_is_taken(self, tmp_path):
        text = f'{{"q":"\\ud83d","n":NaN,"deep":{"[" * 480 + "]" * 480}}}'
        records = [
            f'{{"messages":[{{"role":"user","content":"{word}"}},{{"role":"assistant",'
            f'"content":[{{"type":"odd","value":{text}}}],"more":{text}}}],"extra":{text}}}\n'
            for word in "ab"
        ]
        (tmp_path / "x.jsonl").write_text("".join(records))
        store = adp.convert(str(tmp_path / "x.jsonl"), tmp_path / "made")
        wanted = list(store.trajectories())
        assert len(wanted) == 2
        with GrowingStore(tmp_path / "s") as grown:
            assert grown.extend(wanted) == 2
        assert [plain(t) for t in Store.open(str(tmp_path / "s")).trajectories()] == [
            plain(t) for t in wanted
        ]

    def test_threads_share_a_store(self, tmp_path):
        root = tmp_path / "s"
        counts = []
        with GrowingStore(root, seal_count=7) as store:

            def work(number):
                added = [store.append(numbered(f"{number // 2}-{k}")) for k in range(10)]
                counts.append(sum(added))

            threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert sum(counts) == 40
        assert sorted(ids_of(root)) == sorted(f"d/{n}-{k}" for n in range(4) for k in range(10))
        assert seal(root).counts.trajectories == 40

    def test_a_store_goes_to_other_processes(self, tmp_path):
        with GrowingStore(tmp_path / "s", seal_count=2) as store:
            store.append(numbered("1"))
            with pickle.loads(pickle.dumps(store)) as other:
                assert other.append(numbered("2"))
            child = os.fork()
            if not child:
                try:
                    os._exit(0 if store.append(numbered("3")) else 1)
                finally:
                    os._exit(2)
            assert os.waitpid(child, 0)[1] == 0
            assert not store.append(numbered("3"))
            assert store.append(numbered("4"))
        assert ids_of(tmp_path / "s") == [f"d/{n}" for n in range(1, 5)]

    def test_an_old_journal_is_closed(self, tmp_path):
        with GrowingStore(tmp_path / "s", seal_seconds=0.05) as store:
            store.append(numbered("1"))
            time.sleep(0.1)
            store.append(numbered("2"))
        assert Store.open(str(tmp_path / "s")).journal.count == 0

    @pytest.mark.parametrize("name", ["x", "adp.json"])
    def test_an_occupied_folder_is_refused(self, tmp_path, name):
        (tmp_path / name).write_text("mine")
        with pytest.raises(OutputExistsError, match=r"not empty|finished"):
            GrowingStore(tmp_path)

    def test_a_file_is_refused(self, tmp_path):
        (tmp_path / "x").write_text("mine")
        with pytest.raises(StoreError, match="cannot write to"):
            GrowingStore(tmp_path / "x")


class TestRoundTrip:
    def test_every_kind_of_row(self, tmp_path):
        blob, page = (media_of_bytes(word, "image/png") for word in (b"seen", b"page"))
        zone = timezone(timedelta(hours=2))
        step = Step(
            source="agent", labels=[], logprobs=[-0.5, float("-inf")], prompt_token_ids=[1, 2],
            timestamp=datetime(2024, 5, 6, 7, 8, 9, 123456, UTC), reasoning="\u2028 \x00 é",
            calls=[ToolCall(arguments=f'{{"at": "adp-media:image/png;{blob.media_id}"}}')],
            observations=[Observation(html=f"<img src={page.media_id}>", reward=-0.0)],
        )  # fmt: skip
        given_ = Trajectory(
            trajectory_id="d/1", dataset="d", task_id="t",
            started_at=datetime(2024, 1, 1, 2, tzinfo=zone),
            task=Task(task_id="t", tests='{"a": 1e400}'), steps=[step], tags=["x"],
            extra='{"k":1e5}', reward=float("inf"),
            early_observations=[Observation(text="before")], links=[Link(target_id="d/0")],
            raw=[RawRow(record=1, data=b"\xff\x00")], media={m.media_id: m for m in (blob, page)},
        )  # fmt: skip
        with GrowingStore(tmp_path / "s") as store:
            store.append(given_)
        unsealed = Store.open(str(tmp_path / "s")).get("d/1")
        seal(tmp_path / "s")
        sealed = Store.open(str(tmp_path / "s")).get("d/1")
        given_.early_observations[0].step = -1
        given_.early_observations[0].order = 0
        wanted = plain(given_)
        wanted["started_at"] = given_.started_at.astimezone(UTC)
        assert plain(unsealed) == plain(sealed) == wanted
        for item in (unsealed, sealed):
            assert {m: item.media[m].data for m in item.media} == {
                blob.media_id: b"seen", page.media_id: b"page"
            }  # fmt: skip
            assert str(item.steps[0].observations[0].reward) == "-0.0"

    @settings(max_examples=examples(12))
    @given(st.lists(any_store.runs, max_size=8), st.sets(st.integers(0, 8)))
    def test_any_trajectories(self, tmp_path_factory, runs, early):
        folder = tmp_path_factory.mktemp("any")
        source = any_store.write(folder / "given", [runs], "w")
        wanted = list(source.trajectories())
        for name, moments in (("early", early), ("late", set())):
            with GrowingStore(folder / name) as store:
                for number, result in enumerate(wanted):
                    store.append(result)
                    if number in moments:
                        store.seal_journal()
            read = [
                plain(trajectory) for trajectory in Store.open(str(folder / name)).trajectories()
            ]
            assert read == [plain(item) for item in wanted]
            seal(folder / name)
            read = [
                plain(trajectory) for trajectory in Store.open(str(folder / name)).trajectories()
            ]
            assert read == [plain(item) for item in wanted]
        assert hashes(folder / "early") == hashes(folder / "late")

    def test_the_same_bytes_by_two_types(self, tmp_path):
        for name, moments in (("early", {1, 2}), ("late", set())):
            with GrowingStore(tmp_path / name) as store:
                for number, mime in enumerate(["image/png", "image/x", "image/png", "image/x"]):
                    blob = media_of_bytes(b"same", mime)
                    store.append(Trajectory(source_id=str(number), media={blob.media_id: blob}))
                    if number in moments:
                        store.seal_journal()
            seal(tmp_path / name)
        assert hashes(tmp_path / "early") == hashes(tmp_path / "late")
        rows = Store.open(str(tmp_path / "late")).scan("media").collect()
        assert rows["mime"].to_list() == ["image/png", "image/x"]


class TestSealing:
    def test_an_append_makes_one_shard_at_most(self, tmp_path, monkeypatch):
        """Writers that close journals meanwhile cannot keep it from returning."""
        root = tmp_path / "s"
        sealed, original = [], sealing._seal_one
        others = iter(range(100, 190))

        def seal_one(*words, **options):
            original(*words, **options)
            sealed.append(words[2])
            with monkeypatch.context() as patch:  # another process, which closes a journal
                patch.setattr(GrowingStore, "_seal_left_over", lambda _: None)
                fill(root, [next(others), next(others)], seal_count=1)

        monkeypatch.setattr(sealing, "_seal_one", seal_one)
        with GrowingStore(root, seal_count=1) as store:
            for number in range(4):
                store.append(numbered(str(number)))
                assert sealed == list(range(number + 1))
            store.seal_journal()  # what was closed when it was called
            assert len(sealed) < 16
        monkeypatch.setattr(sealing, "_seal_one", original)
        names = {f"d/{n}" for n in [*range(4), *range(100, next(others))]}
        assert set(ids_of(root)) == names
        with GrowingStore(root) as growing_store, GrowingStore(root) as other:
            for number in range(200, 220):  # now all have time for their share
                growing_store.append(numbered(str(number)))
                other.append(numbered(str(number + 100)))
            assert Store.open(str(root)).journal.count == 40
        assert seal(root).counts.trajectories == len(names) + 40

    def test_it_ends_the_store(self, tmp_path):
        root = tmp_path / "s"
        wanted = [numbered(str(n), blob=n % 3) for n in range(6)]
        with GrowingStore(root, seal_bytes=1) as store:
            store.extend(wanted)
            manifest = seal(root)
            with pytest.raises(SealedError, match="was sealed"):
                store.append(numbered("7"))
        assert manifest.datasets == {"d": 6}
        assert manifest.counts.balanced()
        assert [act.act for act in manifest.lineage] == ["grow", "seal"]
        store = Store.open(str(root))
        assert store.journal is None
        assert [plain(t) for t in store.trajectories()] == [plain(t) for t in wanted]
        assert store.scan("sources").collect().height == 0
        tables = {path.split("/")[0] for path in hashes(root)} - {"adp.json"}
        assert tables == set(manifest.tables)
        assert [s.path for s in manifest.tables["media"]] == ["media/part-00000.parquet"]
        assert manifest.rows("media") == 3
        with pytest.raises(OutputExistsError, match="finished"):
            GrowingStore(root)
        before = hashes(root)
        assert seal(root) == manifest
        assert hashes(root) == before

    def test_an_empty_store(self, tmp_path):
        GrowingStore(tmp_path / "s").close()
        assert ids_of(tmp_path / "s") == []
        assert seal(tmp_path / "s").counts.trajectories == 0
        store = Store.open(str(tmp_path / "s"))
        assert list(store.trajectories()) == []
        assert store.query("SELECT count(*) AS n FROM steps").to_pylist() == [{"n": 0}]

    def test_what_is_no_growing_store_is_refused(self, tmp_path):
        store = any_store.write(tmp_path / "other", [[]], "w")
        with pytest.raises(StoreError, match="finished store and no growing one"):
            seal(store.root)
        with pytest.raises(StoreError, match="no growing store"):
            seal(tmp_path / "none")

    @pytest.mark.parametrize("bytes_", [1 << 30, 20_000])
    def test_the_moment_of_sealing_does_not_show(self, tmp_path, monkeypatch, bytes_):
        """Also when the finished store has several shards, cut inside of the early ones."""
        monkeypatch.setattr(sealing, "SHARD_BYTES", bytes_)
        ways = {"never": {}, "regular": {"seal_bytes": bytes_}, "often": {"seal_count": 3},
                "odd": {"seal_bytes": 7_000}, "late": {"seal_count": 19}}  # fmt: skip
        for name, options in ways.items():
            fill(tmp_path / name, range(24), **options)
            if name != "never":
                assert list((tmp_path / name / "trajectories").glob("*")) or bytes_ > 1 << 20
            seal(tmp_path / name)
        wanted = hashes(tmp_path / "never")
        shards = [path for path in wanted if path.startswith("steps/")]
        assert len(shards) == 1 if bytes_ > 1 << 20 else len(shards) > 2
        for name in ways:
            assert hashes(tmp_path / name) == wanted, name

    def test_a_stopped_rewriting_goes_on_by_shard(self, tmp_path, monkeypatch):
        monkeypatch.setattr(sealing, "SHARD_BYTES", 20_000)
        fill(tmp_path / "whole", range(40))
        seal(tmp_path / "whole")
        fill(tmp_path / "s", range(40), seal_count=3)
        written = []
        original = seal_store.write_shard

        def stop(root, index, *rest):
            if len(written) == 2:
                raise OSError(28, "No space left on device")
            written.append(index)
            return original(root, index, *rest)

        monkeypatch.setattr(seal_store, "write_shard", stop)
        with pytest.raises(StoreError, match="No space left on device; nothing is lost"):
            seal(tmp_path / "s")
        assert len(ids_of(tmp_path / "s")) == 40
        with pytest.raises(SealedError), GrowingStore(tmp_path / "s") as store:
            store.append(numbered("41"))
        written.clear()
        monkeypatch.setattr(
            seal_store, "write_shard", lambda *a: written.append(a[1]) or original(*a)
        )
        seal(tmp_path / "s")
        assert written == list(range(2, len(list((tmp_path / "whole/steps").iterdir()))))
        assert hashes(tmp_path / "s") == hashes(tmp_path / "whole")

    def test_losses_are_counted(self, tmp_path):
        losses = json.dumps([{"path": "$.a[3]", "reason": "no place"}])
        with GrowingStore(tmp_path / "s") as store:
            store.extend(Trajectory(source_id=str(n), losses=losses) for n in range(3))
        assert Store.open(str(tmp_path / "s")).manifest.losses == {"$.a[*]: no place": 3}
        assert seal(tmp_path / "s").losses == {"$.a[*]: no place": 3}


def flip(path, byte):
    data = bytearray(path.read_bytes())
    data[byte] ^= 1
    path.write_bytes(data)


def each_use(root):
    """What every user of a growing store does: read, append with a new writer, end it."""
    yield lambda: ids_of(root)
    yield lambda: GrowingStore(root).append(numbered("new"))
    yield lambda: seal(root)


class TestDamage:
    @pytest.mark.parametrize("change", ["bit", "end", "cut", "line", "all"])
    def test_of_a_closed_journal(self, tmp_path, monkeypatch, change):
        """It is told, though whole lines of the next journal follow; and nothing is removed."""
        root = tmp_path / "s"
        with monkeypatch.context() as patch:
            patch.setattr(GrowingStore, "_seal_left_over", lambda _: None)
            fill(root, range(5), seal_count=3)
        path = journal_path(root, 0)
        data = path.read_bytes()
        last = data[:-1].rfind(b"\n") + 1
        damaged = {
            "bit": data[:-200] + bytes([data[-200] ^ 1]) + data[-199:],
            "end": data[:-1] + b"\x0b",
            "cut": data[:-100],
            "line": data[:last] + bytes(len(data) - last - 1) + b"\n",
            "all": b"",
        }[change]
        path.write_bytes(damaged)
        line, byte = (1, 0) if change == "all" else (3, last)
        words = rf"journal-00000.jsonl is damaged: line {line} at byte {byte:,} is"
        for act in each_use(root):
            with pytest.raises(StoreError, match=words):
                act()
        assert path.read_bytes() == damaged
        path.write_bytes(data)
        seal(root)
        assert ids_of(root) == [f"d/{n}" for n in range(5)]

    @pytest.mark.parametrize("byte", [-200, -2, -1])
    def test_of_the_last_line(self, tmp_path, byte):
        root = tmp_path / "s"
        fill(root, range(3))
        path = journal_path(root, 0)
        data = path.read_bytes()
        flip(path, byte)
        damaged = path.read_bytes()
        for act in each_use(root):
            with pytest.raises(
                StoreError, match=r"00000.jsonl is damaged: line 3 at byte [\d,]+ is"
            ):
                act()
        assert path.read_bytes() == damaged
        path.write_bytes(data)
        assert len(ids_of(root)) == 3

    @settings(max_examples=examples(24), deadline=None)
    @given(st.integers(0, 2000), st.data())
    def test_a_line_that_a_power_loss_left_is_no_line(self, tmp_path_factory, size, draw):
        """Its sectors came to the disk in any order; the size of the file did."""
        root = tmp_path_factory.mktemp("power") / "s"
        fill(root, range(2))
        path = journal_path(root, 0)
        whole = path.read_bytes()
        with GrowingStore(root) as store:
            store.append(numbered("x", size=size))
        data = bytearray(path.read_bytes())
        sectors = range(len(whole) // 512, (len(data) - 1) // 512 + 1)
        lost = draw.draw(st.sets(st.sampled_from(list(sectors)), min_size=1))
        for sector in lost:
            start, stop = max(len(whole), sector * 512), min(len(data), sector * 512 + 512)
            data[start:stop] = bytes(stop - start)
        path.write_bytes(data)
        assert ids_of(root) == ["d/0", "d/1"]
        fill(root, [2])
        assert ids_of(root) == ["d/0", "d/1", "d/2"]
        path.write_bytes(path.read_bytes() + bytes(4096))
        assert ids_of(root) == ["d/0", "d/1", "d/2"]
        assert seal(root).counts.trajectories == 3

    @pytest.mark.parametrize("data", [b"\xff\xfe", b"[" * 100_000, b"{}", b"[]"])
    def test_of_the_manifest(self, tmp_path, data):
        fill(tmp_path / "s", range(1))
        (tmp_path / "s/growing.json").write_bytes(data)
        for act in each_use(tmp_path / "s"):
            with pytest.raises(
                StoreError, match=r"growing.json is damaged; restore it from a copy"
            ):
                act()

    @pytest.mark.parametrize("name", ["added-00000.parquet", "journal-00002.jsonl"])
    def test_of_a_file_that_is_missing(self, tmp_path, name):
        root = tmp_path / "s"
        fill(root, range(5), seal_count=2)
        (root / "growing" / name).unlink()
        assert len(ids_of(root)) == 5 if "added" in name else True
        for act in list(each_use(root))[1 if "added" in name else 0 :]:
            with pytest.raises(StoreError, match=rf"{name} is missing; restore the store"):
                act()

    @pytest.mark.parametrize("number", [0, 1])
    def test_of_a_journal_between_others_that_is_missing(self, tmp_path, monkeypatch, number):
        root = tmp_path / "s"
        with monkeypatch.context() as patch:
            patch.setattr(GrowingStore, "_seal_left_over", lambda _: None)
            fill(root, range(5), seal_count=2)
        journal_path(root, number).unlink()
        for act in each_use(root):
            with pytest.raises(
                StoreError, match=rf"journal-0000{number}.jsonl is missing; restore"
            ):
                act()

    def test_of_a_journal_that_is_removed_under_a_writer(self, tmp_path):
        with GrowingStore(tmp_path / "s") as store:
            store.append(numbered("1"))
            journal_path(tmp_path / "s", 0).unlink()
            with pytest.raises(StoreError, match=r"journal-00000.jsonl is missing; restore"):
                store.append(numbered("2"))
            (tmp_path / "s/growing.json").unlink()
            with pytest.raises(StoreError, match=r"growing.json is missing; restore"):
                store.append(numbered("2"))

    def test_of_the_list_of_a_shard(self, tmp_path):
        fill(tmp_path / "s", range(5), seal_count=2)
        (tmp_path / "s/growing/added-00000.parquet").write_bytes(b"junk")
        for act in list(each_use(tmp_path / "s"))[1:]:
            with pytest.raises(StoreError, match=r"added-00000.parquet is damaged; restore"):
                act()

    def test_of_an_early_shard(self, tmp_path):
        fill(tmp_path / "s", range(5), seal_count=2)
        (tmp_path / "s/steps/early-00000.parquet").write_bytes(b"junk" * 10)
        with pytest.raises(StoreError, match=r"is damaged: steps/early-00000.parquet: .*; restore"):
            seal(tmp_path / "s")

    def test_what_a_kill_left_is_cut_off_before_a_journal_is_closed(self, tmp_path):
        for name, close in (
            ("seal", seal), ("journal", lambda root: GrowingStore(root).seal_journal()),
        ):  # fmt: skip
            fill(tmp_path / name, range(3))
            path = journal_path(tmp_path / name, 0)
            path.write_bytes(path.read_bytes()[:-10])
            close(tmp_path / name)
            assert ids_of(tmp_path / name) == ["d/0", "d/1"]


class TestFaults:
    def test_a_line_that_was_cut_short_is_no_line(self, tmp_path):
        fill(tmp_path / "s", range(2))
        path = journal_path(tmp_path / "s", 0)
        path.write_bytes(path.read_bytes()[:-10])
        assert ids_of(tmp_path / "s") == ["d/0"]
        fill(tmp_path / "s", [2])
        assert ids_of(tmp_path / "s") == ["d/0", "d/2"]
        path.write_bytes(path.read_bytes() + b"\0" * 5000 + b"\n")
        assert ids_of(tmp_path / "s") == ["d/0", "d/2"]
        fill(tmp_path / "s", [3])
        assert seal(tmp_path / "s").counts.trajectories == 3

    def test_damage_is_told(self, tmp_path):
        fill(tmp_path / "s", range(2))
        path = journal_path(tmp_path / "s", 0)
        data = bytearray(path.read_bytes())
        data[300] ^= 1
        path.write_bytes(data)
        with pytest.raises(StoreError, match=r"journal-00000.jsonl is damaged: .* at byte 0"):
            Store.open(str(tmp_path / "s"))
        with pytest.raises(StoreError, match="is damaged"), GrowingStore(tmp_path / "s") as store:
            store.append(numbered("5"))
        (tmp_path / "s/growing.json").write_text("{")
        with pytest.raises(StoreError, match=r"growing\.json is damaged"):
            Store.open(str(tmp_path / "s"))

    def test_a_full_disk_loses_nothing(self, tmp_path):
        """The limit of a file's size stands for a disk that is full."""
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        with GrowingStore(tmp_path / "s") as store:
            store.extend(numbered(str(n)) for n in range(3))
            size = journal_path(tmp_path / "s", 0).stat().st_size
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 1000, hard))
            try:
                with pytest.raises(StoreError, match=r"cannot write to .*: File too large"):
                    store.append(numbered("3", size=5000))
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            assert journal_path(tmp_path / "s", 0).stat().st_size == size
            assert ids_of(tmp_path / "s") == ["d/0", "d/1", "d/2"]
            assert store.append(numbered("3", size=5000))
        assert ids_of(tmp_path / "s") == ["d/0", "d/1", "d/2", "d/3"]

    def test_a_shard_without_room_stays_in_the_journals(self, tmp_path, monkeypatch):
        def full(*_):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(sealing, "write_shard", full)
            fill(tmp_path / "s", range(6), seal_count=2)
        assert Store.open(str(tmp_path / "s")).journal.count == 6
        fill(tmp_path / "s", range(6, 12), seal_count=2)
        assert Store.open(str(tmp_path / "s")).journal.count == 0
        assert ids_of(tmp_path / "s") == [f"d/{n}" for n in range(12)]

    @pytest.mark.parametrize("stop", ["place", "_write_added", "save", "unlink", "manifest"])
    def test_sealing_can_stop_at_every_point(self, tmp_path, monkeypatch, stop):
        """A kill is played by an exception that nothing but the test takes."""
        fill(tmp_path / "whole", range(6))
        seal(tmp_path / "whole")

        class Killed(BaseException):
            pass

        def kill(*_, **__):
            raise Killed

        fill(tmp_path / "s", range(6))
        for act in (
            lambda: GrowingStore(tmp_path / "s").seal_journal(),
            lambda: seal(tmp_path / "s"),
        ):
            with monkeypatch.context() as patch:
                if stop == "unlink":
                    patch.setattr(Path, "unlink", kill)
                elif stop == "manifest":
                    patch.setattr("adp_schema.manifest.Manifest.write", kill)
                else:
                    patch.setattr(sealing, stop, kill)
                with suppress(Killed):
                    act()
            assert ids_of(tmp_path / "s") == [f"d/{n}" for n in range(6)]
        seal(tmp_path / "s")
        assert hashes(tmp_path / "s") == hashes(tmp_path / "whole")
