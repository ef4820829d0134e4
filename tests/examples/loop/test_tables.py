"""The tables of the loop, and its intervals, against scipy's."""

from __future__ import annotations

import pytest

pytest.importorskip("trl", reason="needs the train extra")

from examples.loop.arms import ARMS
from examples.loop.full import ORDER
from examples.loop.methods import METHODS
from examples.loop.study import T_95, interval, summary
from examples.loop.tables import BEGIN, END, ROWS, markdown, page, study_markdown

pytestmark = pytest.mark.train

FIGURES = {
    "tasks": 3,
    "success": 0.9,
    "clean": 0.5,
    "redundant": 0.25,
    "wrong": 0.0,
    "malformed": 0.1,
}
SETS = ("held_out", "greedy", "leaked", "unseen_tools", "longer_paths")


def figures_of(success):
    row = FIGURES | {"success": success}
    facts = {name: dict.fromkeys(SETS, row) for name, _, part in ROWS if part is not None}
    return {"before": row} | facts | {"costs": {"a": {"cpu_s": 3.0}}, "seed": 0}


def seeds(*values, **training):
    """What an arm measured: seed and success on all sets but the leaked ones."""
    return {
        seed: {part: FIGURES | {"success": value} for part in SETS}
        | {"leaked": FIGURES | {"success": value + 0.05}, "training": training}
        for seed, value in values
    }


def test_the_interval_is_that_of_student():
    stats = pytest.importorskip("scipy.stats")
    values = [0.91, 0.95, 0.99, 0.97, 0.9]
    mean = sum(values) / len(values)
    low, high = stats.t.interval(0.95, 4, loc=mean, scale=stats.sem(values))
    result = interval(values)
    assert (result["low"], result["high"]) == (
        pytest.approx(low, abs=1e-3),
        pytest.approx(high, abs=1e-3),
    )
    for count, point in T_95.items():
        assert point == pytest.approx(stats.t.ppf(0.975, count - 1), abs=1e-3)
    assert interval([0.5])["low"] is None


def test_the_table_of_a_run_holds_all_rows():
    text = markdown(figures_of(0.9))
    assert "| after DPO | 3 | 90.0% | 50.0% | 0.25 | 0.00 | 0.10 |" in text
    assert all(f"| {title} |" in text for _, title, _ in ROWS)


def test_arms_are_compared_seed_by_seed():
    curated, other = seeds((0, 0.9), (1, 0.7), (2, 0.8)), seeds((0, 0.7), (1, 0.5))
    result = summary({"curated": curated, "no mask": other})
    assert result["no mask"]["differences"]["held_out success"] == interval([-0.2, -0.2])
    assert result["curated"]["differences"] == {}
    assert result["no mask"]["leak"] == interval([0.05, 0.05])
    text = study_markdown(result)
    assert "| no mask | 2 | 60.0 (0.0 to 100.0) | -20.0 (-20.0 to -20.0) |" in text
    assert "| no mask | 70.0 | 50.0 |  | none |" in text


def test_what_was_begun_anew_and_the_compute_are_shown():
    again = [{"seed": 1, "name_loss": 0.4}, {"seed": 1001, "name_loss": 0.02}]
    arms = {
        "curated": seeds((0, 0.9)) | seeds((1, 0.8), attempts=again),
        "GRPO in the environment": seeds((0, 0.95), (1, 0.9), passes=2_000_000),
    }
    text = study_markdown(summary(arms))
    assert "| curated | 90.0 | 80.0 | seed 1 |  |" in text
    assert "| GRPO in the environment | 95.0 | 90.0 | none | 2.00 million |" in text
    assert "| nothing more | 2 |" in text


def test_arms_differ_from_the_recipe_in_one_thing():
    recipe = {
        "ops": [
            {"decontaminate": {}},
            {"filter": {"preset": "success"}},
            {"measure": {}},
            {"filter": {"max": {"loops": 0}}},
            {"mix": {"total": 7}},
            {"mask": {"policy": ["sql"]}},
        ]
    }
    changed = {}
    for name, change in ARMS.items():
        copy = {"ops": list(recipe["ops"])}
        change(copy)
        changed[name] = [next(iter(op)) for op in copy["ops"]]
    assert changed == {
        "raw": [],
        "random subset": ["coreset", "mask"],
        "no mask": ["decontaminate", "filter", "measure", "filter", "mix"],
        "no decontamination": ["filter", "measure", "filter", "mix", "mask"],
        "wrong answers kept": ["decontaminate", "measure", "filter", "mix", "mask"],
        "circles kept": ["decontaminate", "filter", "measure", "mix", "mask"],
    }


def test_the_order_holds_every_arm_and_method_once():
    assert sorted(ORDER) == sorted(["curated", *ARMS, *METHODS])
    assert ORDER[0] == "curated"


def test_the_numbers_stand_between_their_marks():
    output = {"summary": summary({"curated": seeds((0, 0.9), (1, 0.8)), "raw": seeds((0, 0.3))})}
    once = page(f"before\n{BEGIN}\nold\n{END}\nafter\n", output)
    assert once.startswith("before\n")
    assert once.endswith("after\n")
    assert "old" not in once
    assert "Not all arms have all seeds yet." in once
    assert "| raw | 1 | 30.0 |" in once
    assert page(once, output) == once
