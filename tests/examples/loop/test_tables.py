"""The tables of the loop, and its intervals, against scipy's."""

from __future__ import annotations

import pytest

from examples.loop.full import ARMS, T_95, interval, summary
from examples.loop.tables import BEGIN, END, ROWS, markdown, page, summary_markdown

FIGURES = {
    "tasks": 3,
    "success": 0.9,
    "clean": 0.5,
    "redundant": 0.25,
    "wrong": 0.0,
    "malformed": 0.1,
}


def figures_of(success):
    row = FIGURES | {"success": success}
    facts = {
        name: row if part is None else {"greedy": row, "sampled": row} for name, _, part in ROWS
    }
    return facts | {"costs": {"a": {"cpu_s": 3.0}}, "seed": 0}


def test_the_interval_is_that_of_student():
    stats = pytest.importorskip("scipy.stats")
    values = [0.91, 0.95, 0.99]
    low, high = stats.t.interval(0.95, 2, loc=0.95, scale=stats.sem(values))
    result = interval(values)
    assert (result["low"], result["high"]) == (
        pytest.approx(low, abs=1e-3),
        pytest.approx(high, abs=1e-3),
    )
    for count, point in T_95.items():
        assert point == pytest.approx(stats.t.ppf(0.975, count - 1), abs=1e-3)
    assert interval([0.5])["low"] is None


def test_the_tables_hold_all_rows():
    assert "| after DPO | 3 | 90.0% | 50.0% | 0.25 | 0.00 | 0.10 |" in markdown(figures_of(0.9))
    part = {key: FIGURES for key in ("held_out", "fresh", "sampled")}
    output = summary(
        {0: figures_of(0.9), 1: figures_of(1.0)}, {"curated": {0: part, 1: part}, "no mask": {}}
    )
    text = summary_markdown(output)
    assert "| untrained | 95.0 (31.5 to 100.0) |" in text
    assert "| curated | 90.0 (90.0 to 90.0) |" in text
    assert "no mask" not in text
    assert "| change by DPO | +0.0 (+0.0 to +0.0) |" in text


def test_arms_are_compared_seed_by_seed():
    def seeds(*values):
        parts = ("held_out", "fresh", "sampled")
        return {
            at: {part: FIGURES | {"success": result} for part in parts} for at, result in values
        }

    curated, other = seeds((0, 0.9), (1, 0.7), (2, 0.8)), seeds((0, 0.7), (1, 0.5))
    arms = summary({}, {"curated": curated, "no mask": other})["arms"]
    assert arms["no mask"]["success difference"] == interval([-0.2, -0.2])
    assert "success difference" not in arms["curated"]
    text = summary_markdown({"main": {}, "change": {}, "arms": arms})
    assert "| 60.0 (0.0 to 100.0) | -20.0 (-20.0 to -20.0) |" in text


def test_arms_differ_from_the_recipe_in_one_thing():
    recipe = {"ops": [{"decontaminate": {}}, {"mix": {"total": 7}}, {"mask": {"policy": ["sql"]}}]}
    changed = {}
    for name, change in ARMS.items():
        copy = {"ops": list(recipe["ops"])}
        change(copy)
        changed[name] = [next(iter(op)) for op in copy["ops"]]
    assert changed == {
        "random subset": ["coreset", "mask"],
        "no mask": ["decontaminate", "mix"],
        "no decontamination": ["mix", "mask"],
    }


def test_the_numbers_stand_between_their_marks():
    output = {
        "runs": {"0": figures_of(0.9)},
        "arms": {},
        "summary": summary({0: figures_of(0.9)}, {}),
    }
    once = page(f"before\n{BEGIN}\nold\n{END}\nafter\n", output)
    assert once.startswith("before\n")
    assert once.endswith("after\n")
    assert "old" not in once
    assert "| after SFT | 90.0 | 50.0 | 0.25 | 0.10 |" in once
    assert page(once, output) == once
