"""Near duplicates, against exact similarities of all pairs, and stars made the slow way."""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adp.curation import partitions
from adp.curation.apply import apply
from adp.curation.op import OpResult
from adp.curation.ops.dedup_near import DedupNear, bands, minhash, stars
from adp_schema.builder import Origin, RowBuilder
from adp_schema.errors import RecipeError
from adp_schema.store import Store
from benchmarks.planted import Run, runs
from benchmarks.planted import write_store as write_planted
from tests.curation.pools import groups
from tests.effort import examples
from tests.store_builders import write_store
from tests.stores import described_runs

COUNT = 300
Shingles = set[tuple[str, ...]]


def shingles(messages: list[str], size: int = 5) -> Shingles:
    """Shingles of a document, word by word."""
    result: Shingles = set()
    for message in messages:
        words = re.findall(r"\w+", message.lower())
        result |= {tuple(words[at : at + size]) for at in range(len(words) - size + 1)}
        if 0 < len(words) < size:
            result.add(tuple(words))
    return result


def without_common(documents: list[Shingles], share: float = 0.01, least: int = 10) -> None:
    """Take away the shingles of many documents; equal documents count once."""
    different = {frozenset(document) for document in documents}
    counts = Counter(shingle for document in different for shingle in document)
    limit = max(share * len(different), least)
    common = {shingle for shingle, count in counts.items() if count > limit}
    for document in documents:
        document -= common


def jaccard(value: Shingles, other: Shingles) -> float:
    """Exact similarity."""
    shared = len(value & other)
    return shared / (len(value) + len(other) - shared) if shared else 0.0


class Compared:
    """A planted set, what is true of it, and what the op says."""

    def __init__(
        self, folder: Path, prefix: int, truth: Compared | None = None, **options: Any
    ) -> None:
        made = list(runs(COUNT, prefix=prefix))
        self.store = write_planted(folder, iter(made))
        outcome = apply("dedup_near", self.store, alarm="warn", **options)
        assert outcome.columns is not None
        assert outcome.dropped is not None
        self.removed = outcome.dropped.height
        self.alarms = outcome.summary["alarms"]
        result = groups(self.store, outcome.columns, "near_cluster")
        self.merged = {
            (entry, other) for group in result for entry, other in combinations(group, 2)
        }
        if truth is None:
            self._find_truth(made)
        else:
            self.similar, self.near = truth.similar, truth.near

    def _find_truth(self, made: list[Run]) -> None:
        documents = [shingles(run.texts) for run in made]
        without_common(documents)
        names = [f"made_up/{run.name}" for run in made]
        self.similar = {
            (names[result], names[other]): value
            for result, other in combinations(range(len(made)), 2)
            if (value := jaccard(documents[result], documents[other])) >= 0.3
        }
        planted = {(f"made_up/{run.like}", f"made_up/{run.name}") for run in made if run.like}
        self.near = {pair for pair in planted if self.similar.get(pair, 0) >= 0.8}

    @property
    def recall(self) -> float:
        """Share of the true pairs that are in one cluster."""
        return len(self.near & self.merged) / len(self.near)

    @property
    def false(self) -> set[tuple[str, str]]:
        """Pairs in one cluster that are not even half alike."""
        return {pair for pair in self.merged if self.similar.get(pair, 0) < 0.6}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Compared:
    """Without a shared prefix."""
    return Compared(tmp_path_factory.mktemp("plain") / "store", 0)


def test_planted_pairs_are_found(plain: Compared) -> None:
    assert len(plain.near) > COUNT // 20
    assert plain.recall >= 0.97
    assert not plain.false
    assert not plain.alarms


@pytest.mark.parametrize("prefix", [250, 1000])
def test_a_shared_prefix_changes_nothing(plain: Compared, prefix: int, tmp_path: Path) -> None:
    result = Compared(tmp_path / "store", prefix)
    assert result.recall >= 0.97
    assert not result.false
    assert abs(result.removed - plain.removed) <= 0.03 * plain.removed


@pytest.mark.slow
def test_that_test_fails_without_the_filter(plain: Compared, tmp_path: Path) -> None:
    result = Compared(tmp_path / "store", 1000, plain, common=1.0)
    assert result.removed > 2 * plain.removed
    assert len(result.false) > COUNT
    assert result.alarms


def test_the_alarm_stops_it(tmp_path: Path) -> None:
    store = write_planted(tmp_path / "store", runs(50, prefix=2000))
    with pytest.raises(RecipeError, match=r"the cluster of made_up/run-\d+ has [\d]+ of 50"):
        apply("dedup_near", store, common=1.0)
    with pytest.raises(RecipeError, match="the data set made_up would lose"):
        apply("dedup_near", store, common=1.0, alarm_cluster=1.0)


# ---- clusters -----------------------------------------------------------------------------------

_MESSAGES = ("a b c d e f g h", "a b c d e f g i", "a b c d e", "b c d", "k l m n o p", "q", "")
_documents = st.lists(
    st.tuples(
        st.lists(st.sampled_from(_MESSAGES).map(str.split), max_size=3),
        st.none() | st.sampled_from(["t", "u"]),
        st.none() | st.sampled_from([0.0, 1.0]),
    ),
    max_size=9,
)


def _write(folder: Path, documents: list[Any], shards: int = 1) -> Store:
    """A store of what agents say: messages of words, a task id, a reward."""
    builders = [RowBuilder() for _ in range(shards)]
    for seq, (messages, task, reward) in enumerate(documents):
        builder = builders[seq * shards // len(documents)]
        builder.begin(Origin(seq=seq, dataset="d"))
        columns = {"source_id": f"{(7 * seq) % 11}-{seq}", "task_id": task, "reward": reward}
        builder.trajectory({name: value for name, value in columns.items() if value is not None})
        builder.step({"source": "system", "kind": "message", "text": "you are an agent " * 20})
        for message in messages:
            builder.step({"source": "agent", "kind": "llm_turn", "text": " ".join(message)})
        builder.finish()
    return write_store(folder, *builders)


def _slow_stars(documents: list[Any], threshold: float, least: int, together: bool) -> list[Any]:
    """Clusters by the rules of the docs, pair by pair: lists of numbers, the anchor first."""
    sets = [shingles([" ".join(words) for words in messages], 2) for messages, _, _ in documents]
    sizes = [sum(len(" ".join(words)) + 64 for words in messages) for messages, _, _ in documents]
    names = [f"d/{(7 * seq) % 11}-{seq}" for seq in range(len(documents))]
    rewards = [reward for _, _, reward in documents]
    order = sorted(
        range(len(documents)),
        key=lambda at: (rewards[at] is None, -(rewards[at] or 0), sizes[at], names[at]),
    )
    free = set(order)
    slow_stars = []
    for anchor in order:
        if anchor not in free:
            continue
        free.discard(anchor)
        cluster = [anchor]
        for other in order:
            task, ours = documents[other][1], documents[anchor][1]
            if other not in free or (not together and ours is not None and ours == task):
                continue
            long = len(sets[anchor]) >= least
            if long != (len(sets[other]) >= least):
                continue
            texts = [[words for words in documents[at][0] if words] for at in (anchor, other)]
            alike = (
                jaccard(sets[anchor], sets[other]) >= threshold
                if long
                else (texts[0] == texts[1] and bool(texts[0]))
            )
            if alike:
                free.discard(other)
                cluster.append(other)
        slow_stars.append(cluster)
    return slow_stars


@settings(max_examples=examples(60))
@given(_documents, st.sampled_from([0.5, 0.7]), st.sampled_from([1, 5]), st.booleans())
def test_clusters_are_stars(
    documents: list[Any], threshold: float, least: int, together: bool
) -> None:
    options = {
        "threshold": threshold, "least_shingles": least, "words": 2, "common": 1.0, "rows": 1,
        "bands": 128, "attempts": "together" if together else "separate",
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        store = _write(Path(folder) / "store", documents)
        outcome = apply("dedup_near", store, **options)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(stars, "TURN_PAIRS", 1)
            one_by_one = apply("dedup_near", store, **options)
    expected = _slow_stars(documents, threshold, least, together)
    names = [f"d/{(7 * seq) % 11}-{seq}" for seq in range(len(documents))]
    for item in (outcome, one_by_one):
        assert item.columns is not None
        clusters: dict[str, list[int]] = {}
        for row in item.columns.iter_rows(named=True):
            clusters.setdefault(row["near_cluster"], []).append(row["seq"])
        assert clusters == {names[cluster[0]]: sorted(cluster) for cluster in expected}


def test_what_is_no_longer_free_is_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million equal documents would else take a turn each, though the first one took them all."""
    monkeypatch.setattr(stars, "TURN_PAIRS", 1)
    free = np.ones(30, np.bool_)
    equal = stars.Buckets(np.tile(np.arange(30, dtype=np.uint32), 2), np.array([30, 30]))
    turns = stars._turns(equal, free)
    left, right = next(turns)
    assert left.tolist() == [0] * 29
    assert right.tolist() == list(range(1, 30))
    free[:] = False
    assert list(turns) == []


def test_attempts_are_not_compared_whatever_their_task(tmp_path: Path) -> None:
    """With 30 tasks each: what stands for a task must not depend on its name."""
    words = [[f"w{task}x{number}" for number in range(60)] for task in range(30)]
    documents = [([text], f"task-{task}", None) for task, text in enumerate(words)] * 2
    store = _write(tmp_path / "store", documents)
    alone = apply("dedup_near", store, alarm="warn")
    assert alone.dropped is not None
    assert alone.dropped.height == 0
    together = apply("dedup_near", store, attempts="together", alarm="warn")
    assert together.dropped is not None
    assert together.dropped.height == 30


def _same(op_result: OpResult, other: OpResult) -> None:
    assert op_result.columns is not None
    assert other.columns is not None
    assert op_result.columns.equals(other.columns)
    assert op_result.dropped is not None
    assert other.dropped is not None
    assert op_result.dropped.equals(other.dropped)
    assert op_result.summary == other.summary


@pytest.mark.slow
def test_partitions_and_workers_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = write_planted(tmp_path / "store", runs(300, prefix=50))
    whole = apply("dedup_near", store)
    assert whole.dropped is not None
    assert whole.dropped.height > 10
    monkeypatch.setattr(partitions, "PARTITION_BYTES", 100_000)
    _same(whole, apply("dedup_near", store))
    monkeypatch.setattr(partitions, "PARTITION_BYTES", 400_000)
    monkeypatch.setattr("adp.stores.stage.SMALL", 0)
    _same(whole, apply("dedup_near", store, workers=2))


def test_ranges_of_a_band_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With very many documents a worker sorts a range of the hashes of a band at a time."""
    store = write_planted(tmp_path, iter(list(runs(COUNT, prefix=0))))
    whole = apply("dedup_near", store, alarm="warn")
    monkeypatch.setattr(partitions, "PARTITION_BYTES", 100_000)
    monkeypatch.setattr(bands, "RANGE_DOCUMENTS", COUNT // 7)
    cut = apply("dedup_near", store, alarm="warn")
    assert cut.dropped is not None
    assert cut.dropped.height
    _same(whole, cut)


def test_similarity_and_evidence(tmp_path: Path) -> None:
    made = list(runs(100))
    outcome = apply("dedup_near", write_planted(tmp_path / "store", iter(made)))
    documents = {f"made_up/{run.name}": shingles(run.texts) for run in made}
    without_common(list(documents.values()))
    assert outcome.columns is not None
    assert outcome.dropped is not None
    names = pl.DataFrame(
        {"seq": [1000 * number for number in range(1, 101)], "name": list(documents)}
    )
    rows = outcome.columns.join(names, on="seq")
    for row in rows.filter(pl.col("near_jaccard").is_not_null()).iter_rows(named=True):
        exact = jaccard(documents[row["name"]], documents[row["near_cluster"]])
        assert row["near_jaccard"] == pytest.approx(exact)
    evidence = json.loads(outcome.dropped["evidence"][0])
    assert set(evidence) == {"anchor", "jaccard"}
    assert evidence["anchor"] in documents


@settings(max_examples=examples(32))
@given(described_runs.shards, st.sampled_from([("all",), ("agent", "actions"), ("patch",)]))
def test_odd_stores_keep_every_row(described: Any, views: tuple[str, ...]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = described_runs.write(Path(folder) / "store", described)
        outcome = apply("dedup_near", store, views=views)
        rows = [run for run in store.trajectories() if run.parent_id is None]
    assert outcome.columns is not None
    assert outcome.dropped is not None
    assert outcome.columns["seq"].to_list() == [run.seq for run in rows]
    gone = set(outcome.dropped["seq"].to_list())
    stay = {run.trajectory_id for run in rows if run.seq not in gone}
    assert set(outcome.columns["near_cluster"]) <= stay
    sizes = dict(outcome.columns.select("near_cluster", "near_cluster_size").iter_rows())
    assert sum(sizes.values()) == len(rows)


def test_copies_of_one_document_do_not_make_it_common(tmp_path: Path) -> None:
    words = [f"w{number}" for number in range(60)]
    copies = [([words[:30]], None, None)] * 15
    store = _write(tmp_path / "store", [*copies, ([words[30:]], None, None)])
    summary = apply("dedup_near", store).summary
    assert summary["common_shingles"] == 0
    assert summary["duplicates"] == 14


def test_system_prompts_do_not_count(tmp_path: Path) -> None:
    words = [f"w{number}" for number in range(60)]
    store = _write(tmp_path / "store", [([words[:30]], None, None), ([words[30:]], None, None)])
    both = {"least_shingles": 1, "views": ["system", "agent"]}
    assert apply("dedup_near", store).summary["duplicates"] == 0
    assert apply("dedup_near", store, **both).summary["duplicates"] == 0
    assert apply("dedup_near", store, views=["system"], least_shingles=1).summary["duplicates"] == 1


# ---- options ------------------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [0.3, 0.5, 0.7, 0.8, 0.9, 1.0])
def test_bands_find_pairs_at_the_threshold(threshold: float) -> None:
    bands, rows = minhash.choose_bands(threshold, 128)
    assert bands * rows <= 128
    assert minhash.chance(threshold, bands, rows) >= 0.995


def test_wrong_options(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="both bands and rows"):
        DedupNear(bands=4)
    with pytest.raises(ValueError, match="more than permutations"):
        DedupNear(bands=40, rows=6)
    with pytest.raises(ValueError, match="names no text"):
        DedupNear(views=())
    store = write_planted(tmp_path / "store", runs(5))
    with pytest.raises(RecipeError, match="views"):
        apply("dedup_near", store, views=["agents"])
    with pytest.raises(RecipeError, match="needs the column score"):
        apply("dedup_near", store, keep=["score desc"])
