"""Mixtures: what is in, how often, and what cannot be mixed."""

from __future__ import annotations

import json
import random
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adp.curation.apply import apply
from adp.curation.inputs import open_inputs
from adp.curation.load import load
from adp.curation.op import Op
from adp.curation.ops.mix import BEYOND, OP, Mix
from adp_schema.errors import QueryError, RecipeError
from adp_schema.store import Store
from tests.curation.recipes import balanced, curate
from tests.curation.small_stores import groups, run, write_runs
from tests.effort import examples

SIZES = {"a": 30, "b": 12, "c": 3}
TOKENS = {"a": [1, 4, 25], "b": [9, 2], "c": [30]}
DIALOGS = (
    Path(__file__).parents[4].parent / "shared" / "data" / "sage" / "agent_sft_synthetic_60.jsonl"
)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return write_runs(tmp_path_factory.mktemp("mix") / "s", groups(SIZES, (4, 400, 90)))


@pytest.fixture(scope="module")
def loaded(store):
    return load(open_inputs({"store": store.root}), Path("none"))


def mixed(loaded, scratch, seed=0, **options):
    """Run the op on a loaded store, with a column of tokens."""
    pool = loaded.pool(scratch, seed=seed)
    members = pool.members.with_columns(
        pl.int_range(pl.len()).over("dataset").alias("place"), pl.col("dataset").alias("d")
    )
    tokens = [TOKENS[row["d"]][row["place"] % len(TOKENS[row["d"]])] for row in members.to_dicts()]
    pool.members = members.with_columns(pl.Series("tokens", tokens))
    try:
        outcome = OP.run(pool, Mix(**options))
    finally:
        pool.close()
    return pool.members, outcome


def check(members, outcome):
    """Every trajectory is in the mixture or dropped; the tables say the same as the rows."""
    dropped, copies = outcome.dropped, outcome.copies
    assert set(dropped["seq"]) | set(copies["seq"]) == set(members["seq"])
    assert not set(dropped["seq"]) & set(copies["seq"])
    assert dropped["seq"].is_unique().all()
    assert set(dropped["reason"]) <= {BEYOND}
    assert (copies["copies"] > 0).all()
    rows = copies.join(members, on="seq", how="left")
    table = {(row["stage"], row["group"]): row for row in outcome.summary["groups"]}
    frame = rows.join(outcome.columns, on="seq").group_by("stage", "mix_group").agg(
        pl.col("copies").sum(),
        (pl.col("copies") * pl.col("tokens")).sum().alias("tokens"),
        pl.len(),
    )  # fmt: skip
    for row in frame.to_dicts():
        messages = table.pop((row["stage"], row["mix_group"]))
        assert (messages["trajectories"], messages["tokens"]) == (row["copies"], row["tokens"])
        assert messages["distinct"] == row["len"]
    assert not any(row["trajectories"] for row in table.values())


weights = st.fixed_dictionaries(dict.fromkeys(SIZES, st.sampled_from([0, 1, 2, 0.3]))).filter(
    lambda item: any(item.values())
)
methods = st.one_of(
    st.fixed_dictionaries({"method": st.just("weighted"), "weights": weights}),
    st.fixed_dictionaries({"method": st.just("balanced")}),
    st.fixed_dictionaries(
        {
            "method": st.just("temperature"),
            "temperature": st.sampled_from([0.01, 0.5, 1, 2, 100, float("inf")]),
        }
    ),
    st.fixed_dictionaries(
        {
            "method": st.just("agenttuning"),
            "eta": st.floats(0, 1),
            "agent": st.sampled_from([["a"], ["b", "c"]]),
        }
    ),
    st.fixed_dictionaries(
        {
            "method": st.just("curriculum"),
            "stages": st.lists(
                st.fixed_dictionaries({"weights": weights, "share": st.sampled_from([1, 0.5])}),
                min_size=1,
                max_size=3,
            ),
        }
    ),
)
budgets = st.one_of(
    st.just({}),
    st.builds(lambda number: {"total": number}, st.integers(1, 150)),
    st.builds(lambda number: {"tokens": number}, st.integers(30, 2000)),
)
epochs = st.one_of(st.integers(1, 3), st.dictionaries(st.sampled_from("abc"), st.integers(1, 4)))


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(methods, budgets, epochs, st.sampled_from(["redistribute", "stop"]), st.integers(0, 9))
def test_what_is_asked_for_is_there(loaded, tmp_path, method, budget, epochs, short, seed):
    options = {**method, **budget, "epochs": epochs, "short": short}
    limits = {n: epochs if isinstance(epochs, int) else epochs.get(n, 1) for n in SIZES}
    try:
        members, outcome = mixed(loaded, tmp_path, seed, **options)
    except RecipeError:
        # Shares that must hold can be too small for one trajectory, or a budget for any.
        assert short == "stop" or "tokens" in budget
        return
    check(members, outcome)
    rows = outcome.copies.join(members, on="seq")
    frame = rows.group_by("seq", "dataset").agg(pl.col("copies").sum())
    assert all(most <= limits[name] for name, most in frame.select("dataset", "copies").iter_rows())
    if "tokens" in budget:
        assert (rows["copies"] * rows["tokens"]).sum() <= budget["tokens"]
        return
    spread = frame.group_by("dataset").agg(
        pl.col("copies").max().alias("most"), pl.col("copies").min().alias("least"), pl.len()
    )
    for row in spread.to_dicts():  # none a second time before all were there once
        assert row["most"] - row["least"] <= 1
        assert row["most"] == 1 or row["len"] == SIZES[row["dataset"]]
    weighed = {row["group"] for row in outcome.summary["groups"] if row["requested"]}
    assert set(frame["dataset"]) == weighed
    if short == "redistribute" and "total" in budget and method["method"] != "curriculum":
        supply = sum(SIZES[name] * limits[name] for name in with_weight(method))
        assert frame["copies"].sum() == min(budget["total"], supply)


def with_weight(method):
    """The groups of which a mixture in one stage may have something."""
    if method["method"] == "weighted":
        return [name for name, weight in method["weights"].items() if weight]
    if method["method"] == "agenttuning":
        side = {True: method["eta"] > 0, False: method["eta"] < 1}
        return [name for name in SIZES if side[name in method["agent"]]]
    return list(SIZES)


def test_agenttuning_gives_eta_to_the_agent_data(loaded, tmp_path):
    _, outcome = mixed(loaded, tmp_path, method="agenttuning", agent=["b", "c"], eta=0.2, total=25)
    shares = {row["group"]: row["share"] for row in outcome.summary["groups"]}
    assert shares == {"a": 0.8, "b": pytest.approx(0.2 * 12 / 15), "c": pytest.approx(0.2 * 3 / 15)}


def test_temperature_follows_the_formula(loaded, tmp_path):
    _, outcome = mixed(loaded, tmp_path, method="temperature", temperature=3, total=10)
    powers = {name: size ** (1 / 3) for name, size in SIZES.items()}
    for row in outcome.summary["groups"]:
        assert row["share"] == pytest.approx(powers[row["group"]] / sum(powers.values()), abs=1e-6)


def test_without_a_budget_the_mixture_is_as_large_as_the_shares_allow(loaded, tmp_path):
    _, outcome = mixed(loaded, tmp_path, weights={"a": 2, "b": 2, "c": 1})
    counts = {row["group"]: row["trajectories"] for row in outcome.summary["groups"]}
    assert counts == {"a": 6, "b": 6, "c": 3}


def test_stages_take_what_the_earlier_ones_left(loaded, tmp_path):
    stages = [
        {"weights": {"a": 1, "b": 1, "c": 0}, "total": 8},
        {"weights": {"b": 1, "c": 1}, "total": 40},
    ]
    members, outcome = mixed(loaded, tmp_path, method="curriculum", stages=stages)
    check(members, outcome)
    rows = outcome.copies.join(members, on="seq").group_by("stage", "dataset").agg(pl.len())
    assert set(rows.iter_rows()) == {(0, "a", 4), (0, "b", 4), (1, "b", 8), (1, "c", 3)}


def test_highest_values_are_taken_first_and_nulls_last(tmp_path):
    rewards = [0.5, None, 2.0, float("nan"), 0.5, -1.0]
    runs = [run(str(number), reward=reward) for number, reward in enumerate(rewards)]
    store = write_runs(tmp_path / "s", runs)
    kept = [
        apply("mix", store, method="balanced", order="reward", total=total).copies["seq"].to_list()
        for total in (1, 2, 3, 4, 5)
    ]
    assert kept == [[20], [0, 20], [0, 20, 40], [0, 20, 40, 50], [0, 10, 20, 40, 50]]


def test_more_data_changes_little(tmp_path):
    few = write_runs(tmp_path / "few", groups({"a": 200}))
    more = write_runs(tmp_path / "more", [run("new", dataset="a"), *groups({"b": 9, "a": 200})])
    chosen = []
    for store, weights in ((few, {"a": 1}), (more, {"a": 1, "b": 0})):
        outcome = apply("mix", store, weights=weights, total=100)
        names = store.scan("trajectories").select("seq", "source_id").collect()
        chosen.append(set(outcome.copies.join(names, on="seq")["source_id"]))
    assert len(chosen[0] & chosen[1]) >= 99


def test_another_seed_chooses_others(store):
    chosen = {
        tuple(apply("mix", store, method="balanced", total=12, seed=seed).copies["seq"])
        for seed in (0, 1, 2)
    }
    assert len(chosen) == 3


@pytest.mark.slow
def test_shards_and_workers_change_nothing(tmp_path):
    runs = groups(SIZES, (4, 100))
    results = []
    for shards, workers in ((1, 1), (4, 2)):
        store = write_runs(tmp_path / f"s{shards}", runs, shards)
        outcome = apply("mix", store, method="temperature", tokens=400, workers=workers)
        results.append((outcome.copies.to_dicts(), outcome.dropped.to_dicts(), outcome.lines))
    assert results[0] == results[1]


def test_groups_may_be_an_expression_and_null(tmp_path):
    runs = [run(str(n), success=[True, False, None][n % 3], reward=n / 9) for n in range(9)]
    store = write_runs(tmp_path / "s", runs)
    by_column = apply("mix", store, by="success", weights={"true": 1, "false": 1, "null": 2})
    assert by_column.columns["mix_group"].to_list() == ["false"] * 3 + ["null"] * 3 + ["true"] * 3
    outcome = apply("mix", store, by="reward > 0.5", weights={"true": 1, "false": 1})
    assert outcome.copies.height == 8
    with pytest.raises(QueryError, match="comment"):
        apply("mix", store, by="reward > 0.5 -- no", method="balanced")


def test_tokens_are_estimated_where_nobody_counted(tmp_path):
    store = write_runs(tmp_path / "s", [run("a", text="x" * 1000), run("b", text=None)])
    outcome = apply("mix", store, method="balanced", tokens=10**6)
    sizes = load(open_inputs({"s": store.root}), Path("none")).rows["size"].to_list()
    assert outcome.summary["tokens"] == sum(max(-(-size // 4), 1) for size in sizes)


def test_an_empty_pool_is_an_empty_mixture(tmp_path):
    outcome = apply("mix", write_runs(tmp_path / "s", []), method="balanced")
    assert outcome.copies is None
    assert outcome.lines


IMPOSSIBLE = {
    "weights are all zero": {"weights": {"a": 0, "b": 0, "c": 0}},
    "unknown group 'd'": {"weights": {"a": 1, "b": 1, "c": 1, "d": 1}},
    "no weight for the group 'b' and 1 more": {"weights": {"a": 1}},
    "needs weights": {"method": "weighted"},
    "need one for the group other": {"weights": {"a": 1}, "unknown": "other"},
    "weights.a: input should be greater than or equal to 0": {"weights": {"a": -1}},
    "weights.a: input should be a finite number": {"weights": {"a": float("nan")}},
    "total: input should be greater than 0": {"method": "balanced", "total": 0},
    "smaller than the smallest": {"method": "balanced", "tokens": 3},
    "total or tokens, not both": {"method": "balanced", "tokens": 3, "total": 3},
    "more than its budget of 20": {"method": "balanced", "min_per_group": 9, "total": 20},
    "belongs to method: curriculum": {
        "method": "balanced",
        "stages": [{"weights": {"a": 1}}],
    },
    "no general data": {"method": "agenttuning", "agent": ["a", "b", "c"]},
    "a share, or each a total": {
        "method": "curriculum",
        "stages": [{"weights": {"a": 1}, "total": 3}, {"weights": {"a": 1}}],
    },
    "needs the column score": {"method": "balanced", "order": "score"},
    "SAGE has no method": {"method": "temperature", "compat": "sage"},
    "does not know epochs": {"compat": "sage", "epochs": 2},
}


@pytest.mark.parametrize("sentence", IMPOSSIBLE)
def test_impossible_mixes_are_one_sentence(store, sentence):
    with pytest.raises(RecipeError, match=sentence) as caught:
        apply("mix", store, **IMPOSSIBLE[sentence])
    assert "\n" not in str(caught.value)


def test_a_mixture_of_too_little_says_so(store):
    outcome = apply("mix", store, method="balanced", total=1000)
    assert outcome.copies["copies"].sum() == sum(SIZES.values())
    assert "less than the 1,000 trajectories" in outcome.lines[1]


class SageMixer:
    """MultiTaskMixer as it is written down: counts only."""

    def __init__(self, weights, least=10):
        whole = sum(weights.values())
        self.weights = {name: weight / whole for name, weight in weights.items()}
        self.least = least

    def weighted(self, sizes, total):
        results = {}
        for name, size in sizes.items():
            target = max(self.least, int(total * self.weights.get(name, 0.1)))
            results[name] = min(target, size)
        return results

    def stage(self, sizes, total):
        return {
            name: min(max(self.least, int(total * self.weights[name])), size)
            for name, size in sizes.items()
            if self.weights.get(name, 0) > 0
        }


STAGES = [
    {"tool_selection": 0.6, "general": 0.4},
    {"tool_selection": 0.4, "planning": 0.4, "general": 0.2},
    {"tool_selection": 0.35, "planning": 0.30, "timing": 0.20, "general": 0.15},
]


def counts(outcome, stage=0):
    rows = outcome.copies.filter(pl.col("stage") == stage).join(outcome.columns, on="seq")
    assert (rows["copies"] == 1).all()
    return dict(rows.group_by("mix_group").agg(pl.len()).sort("mix_group").iter_rows())


def compare_with_sage(store, sizes, total):
    names = sorted(sizes)
    ours = {name: number + 1 for number, name in enumerate(names[:-1])}
    for given_weights in (None, ours):
        options = {"weights": given_weights} if given_weights else {}
        outcome = apply("mix", store, compat="sage", total=total, **options)
        assert counts(outcome) == SageMixer(given_weights or STAGES[2]).weighted(sizes, total)
    outcome = apply("mix", store, compat="sage", method="balanced", total=total)
    results = {name: min(size, total // len(sizes)) for name, size in sizes.items()}
    assert counts(outcome) == {name: count for name, count in results.items() if count}
    outcome = apply("mix", store, compat="sage", method="curriculum", total=total)
    for number, stage in enumerate(STAGES):
        assert counts(outcome, number) == SageMixer(stage).stage(sizes, total // 3)
    return outcome


@pytest.mark.parametrize("total", [9, 60, 100, 133, 1000])
def test_sage_has_the_written_arithmetic(tmp_path, total):
    sizes = {"tool_selection": 60, "planning": 31, "timing": 8, "general": 25, "else": 20}
    store = write_runs(tmp_path / "s", groups(sizes))
    outcome = compare_with_sage(store, sizes, total)
    seqs = outcome.copies["seq"]
    assert seqs.n_unique() < len(seqs)  # its stages draw again from all
    first, second = (
        set(outcome.copies.filter(pl.col("stage") == stage).join(outcome.columns, on="seq")
            .filter(pl.col("mix_group") == "tool_selection")["seq"])
        for stage in (0, 1)
    )  # fmt: skip
    assert total > 60 or (first - second and second - first)  # each on its own


@pytest.mark.skipif(not DIALOGS.exists(), reason="the shared samples are not beside the checkout")
def test_sage_on_its_own_dialogs(tmp_path):
    names = {"easy": "general", "medium": "tool_selection", "hard": "planning"}
    runs, sizes = [], {}
    for line in DIALOGS.read_text(encoding="utf-8").splitlines():
        dialog = json.loads(line)
        task = names[dialog["metadata"]["difficulty"]]
        sizes[task] = sizes.get(task, 0) + 1
        runs.append(run(dialog["dialog_id"], dataset=task, text=dialog["goal"]))
    random.Random(1).shuffle(runs)
    compare_with_sage(write_runs(tmp_path / "s", runs), sizes, 45)


def test_the_op_describes_itself():
    assert isinstance(OP, Op)
    assert set(OP.columns(Mix(method="balanced"))) == {"mix_group"}


@pytest.mark.parametrize(
    "options",
    [
        {"method": "balanced", "total": 60, "epochs": {"c": 9}},
        {"compat": "sage", "method": "curriculum", "stages": [{"weights": {"a": 1, "c": 1}}] * 3},
        {
            "method": "curriculum",
            "epochs": 3,
            "stages": [
                {"weights": {"a": 1, "b": 0, "c": 1}, "total": 16},
                {"weights": {"c": 2, "b": 1}, "total": 9},
            ],
        },
    ],
)
def test_repeats_and_stages_are_in_the_store(store, tmp_path, options):
    done = curate({"s": store.root}, tmp_path / "out", {"mix": options})
    balanced(done)
    made = Store.open(str(tmp_path / "out"))
    rows = made.scan("trajectories").select("seq", "trajectory_id", "source_id").collect()
    assert rows["trajectory_id"].is_unique().all()
    wanted = done.state.copies.join(done.state.rows.select("seq", "source_id"), on="seq")
    wanted = wanted.sort("stage", "seq")
    listed = [row["source_id"] for row in wanted.to_dicts() for _ in range(row["copies"])]
    assert sorted(rows["source_id"]) == sorted(listed)
    start = 0
    for stage in wanted.partition_by("stage", maintain_order=True):  # stage after stage
        count = stage["copies"].sum()
        source_id = rows.sort("seq")[start : start + count]["source_id"]
        assert set(source_id) == set(stage["source_id"])
        start += count
    texts = made.scan("steps").select("seq", "text").collect()
    assert texts["seq"].n_unique() == rows.height


def test_branches_come_once_with_what_is_repeated(tmp_path):
    branch = {"parent_id": "d/a", "parent_step": 0, "branch_kind": "fork"}
    store = write_runs(tmp_path / "s", [run("a"), run("b"), run("f", **branch)])
    stages = [{"weights": {"d": 1}, "total": 2}] * 2
    mix = {"mix": {"method": "curriculum", "epochs": 2, "stages": stages}}
    curate({"s": store.root}, tmp_path / "out", mix)
    made = Store.open(str(tmp_path / "out")).scan("trajectories").collect()
    assert sorted(made["trajectory_id"]) == ["d/a", "d/a#2", "d/b", "d/b#2", "d/f"]


def test_what_small_groups_leave_is_given_out(tmp_path):
    """Each of many groups alone has a budget too small for a trajectory."""
    runs = [run(f"r{n}", dataset=f"d{n}", text="x" * (100 + n)) for n in range(40)]
    store = write_runs(tmp_path / "s", runs)
    sizes = load(open_inputs({"s": store.root}), Path("none")).rows["size"]
    outcome = apply("mix", store, method="balanced", tokens=sizes.sum() // 8)
    smallest = -(-sizes.min() // 4)
    assert outcome.copies["copies"].max() == 1
    assert sizes.sum() // 8 - smallest < outcome.summary["tokens"] <= sizes.sum() // 8
