"""Rows that miss for one reason are one row; nothing is lost on the way."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.eval.metrics.folding import MANY, groups, together
from adp.eval.scorer import Figure
from adp.eval.scoring import choose, score_store
from adp.workflows.report import Report
from adp.workflows.report_eval import EvaluationOptions, evaluation
from adp.workflows.report_eval.cells import plain_number, signed
from adp.workflows.report_eval.folded import alike, group_rows, pass_rows, reasons, unchanged
from adp.workflows.report_eval.model import TaskGroup
from adp.workflows.report_page.words import MISSING
from tests.workflows.eval_stores import rollouts

KINDS = st.lists(st.sampled_from([None, "a", "b"]), max_size=12)


@given(KINDS)
def test_groups_hold_each_row_once_in_the_order_of_their_first(kinds):
    rows = list(range(len(kinds)))
    result = list(groups(rows, kinds))
    assert sorted(row for group in result for row in group) == rows
    assert all(group == sorted(group) for group in result)
    for group in result:
        assert len(group) == 1 or len(group) >= MANY
        assert len({kinds[row] for row in group}) == 1
    for kind in ("a", "b"):
        if kinds.count(kind) >= MANY:
            assert [row for row in rows if kinds[row] == kind] in result
    assert [group for group in result if kinds[group[0]] is None] == [
        [row] for row in rows if kinds[row] is None
    ]


def test_names_together():
    names = ["a", "b", "c", "d", "e"]
    assert together(names[:3]) == "a, b, c"
    assert together(names) == "a, b and 3 more"


@given(
    st.lists(
        st.tuples(st.sampled_from("xyz"), st.sampled_from("rs"), st.sampled_from(["no", "none"]),
                  st.integers(1, 9)),
        max_size=20,
    )
)  # fmt: skip
def test_reasons_keep_the_number_of_scores(missing):
    rows = reasons(missing)
    kept = {(run, reason): int(count) for _, run, reason, count in rows}
    slow: dict[tuple[str, str], int] = {}
    for _, run, reason, count in missing:
        slow[run, reason] = slow.get((run, reason), 0) + count
    assert kept == slow
    assert len(rows) == len(slow)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("folded")
    store = rollouts(folder / "base", "base", 0.5, scored=False)
    return evaluation([store], EvaluationOptions(name="t")).runs[0]


def part(name, reason=None, value=None):
    figure = Figure("success", value, count=0 if value is None else 4, tasks=0, unscored=4,
                    reason=reason)  # fmt: skip
    return TaskGroup("category", name, 4, figure)


def test_parts_without_a_number_are_one_row_with_the_sums(run):
    why = "success is not recorded"
    parts = [part("a", value=0.5), *(part(name, f"{why} ({n} of {n})")
                                     for n, name in enumerate("bcde", 1))]  # fmt: skip
    rows = group_rows([(run, item) for item in parts])
    assert [row[0] for row in rows] == ["a", "b, c and 2 more"]
    assert rows[1][4:] == ("0", "0", "16", why)
    # Another run, or another reason, is another row; three of a kind are shown as they are.
    other = replace(run, name="other")
    assert len(group_rows([(run, parts[1]), (run, parts[2]), (run, parts[3]),
                           (other, parts[4])])) == 4  # fmt: skip
    alone = group_rows([(run, parts[1])])
    assert alone[0][-1] == f"{why} (1 of 1)"


def test_passes_that_are_undefined_for_one_reason_are_one_row(run):
    few = "a task has fewer attempts"
    known = [Figure(f"{sort}1", 0.5, 0.2, 0.8, "wilson", 18, 6) for sort in ("pass@", "pass^")]
    lost = [
        Figure(f"{sort}{k}", None, reason=few) for sort in ("pass@", "pass^") for k in range(2, 8)
    ]
    rows = list(pass_rows(replace(run, passes=(*known, *lost))))
    assert [row[1] for row in rows] == ["1", "2, 3 and 4 more"]
    assert rows[0][2:6] == ("50.0 %", "20.0 to 80.0 %") * 2
    assert rows[1][-1] == few


def test_what_no_task_differs_in_is_a_sentence(tmp_path):
    stores = [rollouts(tmp_path / name, name, rate, seed=seed)
              for name, rate, seed in (("base", 0.3, 0), ("tuned", 0.8, 1))]  # fmt: skip
    for store in stores:
        score_store(store, choose(["outcome"]))
    result = evaluation(stores)
    same = unchanged(result.comparisons)
    for comparison in result.comparisons:
        moved = any(
            other.difference.better or other.difference.worse
            for other in result.comparisons
            if (other.scorer, other.metric) == (comparison.scorer, comparison.metric)
        )
        known = comparison.difference.figure.value is not None and comparison.scorer is not None
        assert ((comparison.scorer, comparison.metric) in same) == (known and not moved)
    names = [metric for _, metric in same]
    assert names
    text = Report(result).markdown()
    output = next(line for line in text.splitlines() if line.startswith("No run differs"))
    table = text.split("### Paired differences")[1].split("##")[0]
    for name in names:
        assert name in output
        assert f" {name} |" not in table
    assert list(alike([])) == []
    (many,) = alike([str(n) for n in range(14)])
    assert many.endswith("10, 11 and 2 more.")
    # Success stays in the table even when both runs are the same.
    twice = Report(evaluation([stores[0], stores[0]])).markdown()
    assert "| success |" in twice.split("### Paired differences")[1]


def test_tiny_numbers_keep_digits():
    assert [plain_number(item) for item in (None, 0.0, 0.00042, 0.25, 2021.0)] == [
        MISSING, "0.000", "0.00042", "0.250", "2,021.0"
    ]  # fmt: skip
    assert [signed(item) for item in (-1e-17, -0.0003, 0.25)] == ["+0.000", "-0.0003", "+0.250"]
