"""Replay over rounds: each round reads the buffer that the one before wrote."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from adp.curation.apply import apply
from adp.curation.ops.coreset.sage import default_loss
from adp.curation.ops.replay import OP, Replay
from adp.stores.tasks.rows import ROLLOUT
from adp_schema.errors import RecipeError
from adp_schema.growing import seal
from adp_schema.model import Step, Trajectory
from adp_schema.store import Store
from adp_schema.views import SEQ_SHIFT
from tests.curation.ops.replay.test_coreset import Selector
from tests.curation.recipes import balanced, contents, curate
from tests.curation.small_stores import run, write_runs

DIALOGS = (
    Path(__file__).parents[4].parent / "shared" / "data" / "sage" / "agent_sft_synthetic_60.jsonl"
)
WORDS = ["plan", "search", "call", "tool", "answer", "check", "wait", "stop"]


def batch(start, end, seed=0):
    """New runs of a round, with texts and rewards."""
    draw = random.Random(f"{seed} {start}")
    return [
        run(
            f"r{number}", text=" ".join(draw.choices(WORDS, k=6)),
            reward=draw.choice([0.0, 0.5, 1.0, None, draw.random()]),
        )
        for number in range(start, end)
    ]  # fmt: skip


def names(store):
    return store.scan("trajectories").select("source_id").collect()["source_id"].to_list()


def next_round(folder, number, runs, buffer, **options):
    """One round of a recipe; returns what it was, the store and the buffer."""
    new = write_runs(folder / f"new{number}", runs)
    inputs = {
        "new": new.root,
        "buffer": {"store": str(buffer), "reserve": True, "optional": True},
    }
    done = curate(inputs, folder / f"out{number}", {"replay": options}, outputs={"data": {}})
    balanced(done)
    out = folder / f"out{number}"
    return done, Store.open(str(out / "data")), Store.open(str(out / "buffer"))


def test_several_rounds(tmp_path):
    buffer, offered, size = tmp_path / "none", 0, 12
    before: list[str] = []
    for number, count in enumerate([5, 10, 30, 1]):
        runs = batch(offered, offered + count)
        done, data, kept = next_round(tmp_path, number, runs, buffer, size=size, ratio=0.3)
        offered += count
        new = {item["name"] for item in runs}
        facts = done.report["stages"][0]["summary"]
        wanted = min(max(1, int(count * 0.3)), len(before))
        assert set(names(data)) - new <= set(before)
        assert len(set(names(data)) - new) == wanted == facts["replayed"]
        assert set(names(kept)) <= set(before) | new
        assert len(names(kept)) == min(offered, size)
        assert facts["seen"] == offered
        assert kept.manifest.lineage[-1].options["buffer"] == {
            "seen": offered,
            "size": len(names(kept)),
        }
        before, buffer = names(kept), kept.root
        lines = done.report["stages"][0]["lines"]
        assert ("no buffer yet" in lines[0]) == (number == 0)


def test_rounds_are_fair_to_all(tmp_path):
    """Over many seeds every trajectory of three rounds is in the last buffer equally often."""
    stores = [write_runs(tmp_path / f"n{n}", batch(10 * n, 10 * n + 10)) for n in range(3)]
    hits: dict[str, int] = {}
    trials, size = 10, 8
    for seed in range(trials):
        held = None
        for number, store in enumerate(stores):
            given = {"new": store} if held is None else {"new": store, "buffer": held}
            outcome = apply("replay", given, reserve=["buffer"], size=size, seed=seed)
            kept = ids_of(given, outcome.buffer)
            held = write_buffer(tmp_path / f"b{seed}-{number}", kept, outcome.summary["seen"])
        for name in kept:
            hits[name] = hits.get(name, 0) + 1
    expected = trials * size / 30
    everyone = [hits.get(f"d/r{number}", 0) for number in range(30)]
    assert sum(everyone) == trials * size
    assert sum((hit - expected) ** 2 / expected for hit in everyone) < 75


def ids_of(given, seqs):
    """Ids of rows of a pool; inputs are numbered in the high bits of ``seq``."""
    frames = []
    for index, store in enumerate(given.values()):
        rows = store.scan("trajectories").select("seq", "trajectory_id").collect()
        frames.append(rows.with_columns(pl.col("seq") + (index << SEQ_SHIFT)))
    known = pl.concat(frames)
    ids = known.join(seqs, on="seq", how="semi")["trajectory_id"].to_list()
    assert len(ids) == seqs.height
    return ids


def write_buffer(folder, kept, seen):
    """A small store with the lineage of a buffer."""
    store = write_runs(folder, [run(name.removeprefix("d/")) for name in kept])
    store.manifest.lineage[-1].options["buffer"] = {"seen": seen, "size": len(kept)}
    store.manifest.write(folder)
    return Store.open(str(folder))


@pytest.mark.slow
def test_workers_and_shards_change_nothing(tmp_path):
    buffer = write_runs(tmp_path / "b", batch(0, 20))
    results = []
    for shards, workers in ((1, 1), (3, 2)):
        new = write_runs(tmp_path / f"n{shards}", batch(20, 50), shards)
        inputs = {"new": new.root, "buffer": {"store": buffer.root, "reserve": True}}
        stage = {"replay": {"size": 10, "policy": "coreset", "score": "reward"}}
        out = tmp_path / f"o{shards}"
        curate(inputs, out, stage, outputs={"data": {}}, workers=workers)
        results.append(contents(out))
    assert results[0] == results[1]


def test_replays_differ_from_round_to_round(tmp_path):
    held = [f"d/r{n}" for n in range(20)]
    new = write_runs(tmp_path / "n", batch(20, 40))
    drawn = set()
    for seen in (20, 40, 60):
        buffer = write_buffer(tmp_path / f"b{seen}", held, seen)
        given = {"new": new, "buffer": buffer}
        drawn.add(tuple(apply("replay", given, reserve=["buffer"]).admitted["seq"]))
    assert len(drawn) == 3


def test_what_is_new_is_not_replayed_and_not_offered_twice(tmp_path):
    buffer = write_buffer(tmp_path / "b", [f"d/r{n}" for n in range(8)], 100)
    new = write_runs(tmp_path / "n", batch(5, 12))
    for given in ({"new": new, "buffer": buffer}, {"buffer": buffer, "new": new}):
        outcome = apply("replay", given, reserve=["buffer"], ratio=5.0, size=50)
        assert sorted(ids_of(given, outcome.admitted)) == [f"d/r{n}" for n in range(5)]
        assert outcome.summary["seen"] == 100 + 4
        assert sorted(ids_of(given, outcome.buffer)) == sorted(f"d/r{n}" for n in range(12))


def rollouts(folder, answers, **more):
    """A round of rollouts: the ids are those of the run and of the tasks, in each round."""
    with Store.grow(str(folder)) as store:
        for number, answer in enumerate(answers):
            store.append(
                Trajectory(
                    trajectory_id=f"runs/{number}/attempt-0", source_format=ROLLOUT, dataset="runs",
                    agent_name="a", final_answer=answer, extra='{"environment": "e"}',
                    steps=[Step(source="agent", kind="llm_turn", text=answer)], **more,
                )
            )  # fmt: skip
    seal(str(folder))
    return Store.open(str(folder))


@pytest.mark.parametrize("later", [False, True])
def test_the_next_round_of_rollouts_may_have_the_same_ids(tmp_path, later):
    first = rollouts(tmp_path / "first", "abc", started_at=datetime(2026, 1, 1, tzinfo=UTC))
    when = datetime(2026, 1, 1 + later, tzinfo=UTC)
    given = {"new": rollouts(tmp_path / "next", "abx", started_at=when), "buffer": first}
    outcome = apply("replay", given, reserve=["buffer"], ratio=5.0, size=50)
    assert outcome.admitted.height == (3 if later else 1)
    assert outcome.buffer.height == outcome.summary["seen"] == (6 if later else 4)


def test_lineage_that_says_nothing_counts_the_rows(tmp_path):
    new = write_runs(tmp_path / "n", batch(9, 10))
    for number, seen in enumerate((None, "many", True, 3, 11)):
        buffer = write_buffer(tmp_path / f"b{number}", [f"d/r{n}" for n in range(9)], seen)
        outcome = apply("replay", {"new": new, "buffer": buffer}, reserve=["buffer"])
        assert outcome.summary["seen"] == (12 if seen == 11 else 10)
    plain = write_runs(tmp_path / "plain", batch(0, 3))
    outcome = apply("replay", {"new": new, "buffer": plain}, reserve=["buffer"])
    assert outcome.summary["seen"] == 4


def test_nothing_new_and_nothing_wanted(tmp_path):
    buffer = write_runs(tmp_path / "b", batch(0, 6))
    nothing = write_runs(tmp_path / "n", [])
    given = {"new": nothing, "buffer": buffer}
    outcome = apply("replay", given, reserve=["buffer"])
    assert (outcome.admitted.height, outcome.buffer.height) == (0, 6)
    sage = {"policy": "coreset", "score": "reward", "compat": "sage"}
    assert apply("replay", given, reserve=["buffer"], **sage).admitted.height == 6
    given = {"new": write_runs(tmp_path / "m", batch(6, 9)), "buffer": buffer}
    assert apply("replay", given, reserve=["buffer"], ratio=0).admitted.height == 0


def test_the_buffer_has_each_once(tmp_path):
    store = write_runs(tmp_path / "n", batch(0, 6))
    stages = [{"mix": {"method": "balanced", "total": 11, "epochs": 2}}, {"replay": {}}]
    curate({"new": store.root}, tmp_path / "out", *stages, outputs={"data": {}})
    assert len(names(Store.open(str(tmp_path / "out" / "data")))) == 11
    assert sorted(names(Store.open(str(tmp_path / "out" / "buffer")))) == [
        f"r{n}" for n in range(6)
    ]


def test_columns_say_what_is_replayed(tmp_path):
    given = {
        "new": write_runs(tmp_path / "n", batch(6, 30)),
        "buffer": write_runs(tmp_path / "b", batch(0, 6)),
    }
    for options in ({}, {"policy": "coreset", "score": "reward", "select": "top", "size": 9}):
        outcome = apply("replay", given, reserve=["buffer"], **options)
        marks = outcome.columns.drop_nulls("replayed")
        assert marks.filter("replayed")["seq"].to_list() == outcome.admitted["seq"].to_list()
        assert marks.height == 24 + outcome.admitted.height
        described = OP.columns(Replay.model_validate(options))
        assert set(outcome.columns.columns) == {"seq", *described}


def test_the_highest_scores_stay_over_rounds(tmp_path):
    """Scores that an op of an earlier round made are read from its record."""
    buffer, best = tmp_path / "none", []
    for number in range(3):
        runs = batch(8 * number, 8 * number + 8)
        new = write_runs(tmp_path / f"n{number}", runs)
        inputs = {
            "new": new.root,
            "buffer": {"store": str(buffer), "reserve": True, "optional": True},
        }
        out = tmp_path / f"o{number}"
        stages = [
            {"annotate": {"expressions": {"loss": "CAST(source_id[2:] AS INTEGER) * 37 % 101"}}},
            {"replay": {"size": 5, "policy": "coreset", "select": "top", "score": "loss"}},
        ]
        curate(inputs, out, *stages, outputs={"data": {}})
        scores = [(int(item["name"][1:]) * 37 % 101, item["name"]) for item in runs]
        best = sorted(best + scores, key=lambda item: -item[0])[:5]
        kept = Store.open(str(out / "buffer"))
        assert sorted(names(kept)) == sorted(name for _, name in best)
        buffer = kept.root


class Learner:
    """OnlineContinualLearner as it is written down, for one round."""

    def __init__(self, buffer, size, ratio):
        self.buffer, self.size, self.ratio = list(buffer), size, ratio
        self.rng = random.Random(17)

    def update_buffer(self, new):
        if not new:
            return list(self.buffer)
        combined = self.buffer + new
        if len(combined) > self.size:
            combined = Selector().select(combined, self.size)
        self.buffer = combined
        ids = {sample[0] for sample in new}
        free = [sample for sample in self.buffer if sample[0] not in ids]
        if not free or self.ratio <= 0:
            return list(new)
        count = min(max(1, int(len(new) * self.ratio)), len(free))
        return list(new) + self.rng.sample(free, count)


def compare_with_sage(tmp_path, held, new, size, ratio):
    stores = {"buffer": write_runs(tmp_path / "b", held), "new": write_runs(tmp_path / "n", new)}

    def samples(runs):
        return [(item["name"], item["text"], item["columns"]["reward"] or 0.0) for item in runs]

    outcome = apply(
        "replay", stores, reserve=["buffer"], size=size, ratio=ratio,
        policy="coreset", score="reward", compat="sage",
    )  # fmt: skip
    learner = Learner(samples(held), size, ratio)
    trained = learner.update_buffer(samples(new))
    fresh = {item["name"] for item in new}
    replayed = [sample[0] for sample in trained if sample[0] not in fresh]
    assert sorted(ids_of(stores, outcome.admitted)) == sorted(f"d/{name}" for name in replayed)
    assert sorted(ids_of(stores, outcome.buffer)) == sorted(f"d/{s[0]}" for s in learner.buffer)


@pytest.mark.parametrize("size", [1, 2, 7, 15, 29, 30, 31, 100])
@pytest.mark.parametrize("ratio", [0.0, 0.01, 0.3, 2.0])
def test_sage_has_the_written_arithmetic(tmp_path, size, ratio):
    compare_with_sage(tmp_path, batch(0, 12), batch(12, 30), size, ratio)


@pytest.mark.skipif(not DIALOGS.exists(), reason="the shared samples are not beside the checkout")
@pytest.mark.parametrize("size", [10, 25, 59])
def test_sage_on_its_own_dialogs(tmp_path, size):
    runs = []
    for number, line in enumerate(DIALOGS.read_text(encoding="utf-8").splitlines()):
        dialog = json.loads(line)
        text = "\n".join(turn["content"] for turn in dialog["turns"])
        runs.append(run(dialog["dialog_id"], text=text, reward=(number * 7 % 13) / 13))
    compare_with_sage(tmp_path, runs[:25], runs[25:], size, 0.3)


def test_sage_without_a_score_takes_its_own_loss(tmp_path):
    texts = ["a b c d e f", "a a a", "plan the search and call it", "b"]
    store = write_runs(tmp_path / "s", [run(f"r{n}", text=text) for n, text in enumerate(texts)])
    options = {"policy": "coreset", "compat": "sage", "select": "top", "size": 2}
    kept = apply("replay", store, **options).buffer
    scores = [default_loss(text) for text in texts]
    best = sorted(range(4), key=lambda place: -scores[place])[:2]
    assert kept["seq"].to_list() == sorted(place * 10 for place in best)


IMPOSSIBLE = {
    "needs score": {"policy": "coreset"},
    "score belongs to policy: coreset": {"score": "reward"},
    "needs the column loss": {"policy": "coreset", "score": "loss"},
    "needs numbers in dataset": {"policy": "coreset", "score": "dataset"},
    "size: ": {"size": 0},
    "ratio: ": {"ratio": -1},
}


@pytest.mark.parametrize("sentence", IMPOSSIBLE)
def test_what_cannot_be_is_one_sentence(tmp_path, sentence):
    store = write_runs(tmp_path / "s", batch(0, 3))
    with pytest.raises(RecipeError, match=sentence) as caught:
        apply("replay", store, **IMPOSSIBLE[sentence])
    assert "\n" not in str(caught.value)


def test_a_buffer_that_is_no_reserve(tmp_path):
    store = write_runs(tmp_path / "s", batch(0, 3))
    with pytest.raises(RecipeError, match="reserve: true"):
        apply("replay", {"buffer": store})
