"""Choice, order and timing of tools."""

from __future__ import annotations

import json
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.eval.scorers.runs import call, figures, reasons, run, scorer, turn, values

NAMES = st.lists(st.sampled_from("fghij"), max_size=6)


def planned(called, wanted, **columns):
    steps = [turn(call(name)) for name in called]
    return run(*steps, task={"expected_calls": json.dumps(wanted)}, **columns)


@given(NAMES, NAMES.filter(bool), st.integers(1, 4))
def test_rankings_are_slow_definitions(called, wanted, k):
    result = values(scorer(f"planning:k={k}").score(planned(called, wanted)))
    ranked = sorted(set(called), key=called.index)
    top = set(ranked[:k])
    assert result["top_k_accuracy"] == bool(top & set(wanted))
    assert result["recall_at_k"] == pytest.approx(len(top & set(wanted)) / len(set(wanted)))
    if called:
        assert result["precision_at_k"] == pytest.approx(len(top & set(wanted)) / len(top))
    places = [ranked.index(name) + 1 for name in set(wanted) & set(ranked)]
    assert result["mrr"] == (pytest.approx(1 / min(places)) if places else 0)


def test_plans_in_order():
    result = values(scorer("planning").score(planned("fgh", ["f", "h", "h", "i"])))
    assert (result["plan_exact"], result["step_accuracy"]) == (0.0, 0.5)
    right = values(scorer("planning").score(planned("ff", ["f", "f"])))
    assert (right["plan_exact"], right["step_accuracy"]) == (1.0, 1.0)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=6))
def test_timing_is_a_confusion_matrix(runs):
    items = [planned("f" * called, ["f"] * due) for called, due in runs]
    results = {name: figure.value for name, figure in figures(scorer("planning"), *items).items()}
    both = sum(called and due for called, due in runs)
    called, due = (sum(column) for column in zip(*runs, strict=True))
    assert results["timing_correct"] == pytest.approx(sum(a == b for a, b in runs) / len(runs))
    assert results["timing_precision"] == (pytest.approx(both / called) if called else None)
    assert results["timing_recall"] == (pytest.approx(both / due) if due else None)
    assert results["timing_f1"] == (
        pytest.approx(2 * both / (called + due)) if called + due else None
    )


def test_an_answer_that_lists_tools_and_what_is_unscored():
    item = planned("", ["g"], final_answer='["f", {"name": "g"}, 7]')
    assert values(scorer("planning").score(item))["mrr"] == 0.5
    none = reasons(scorer("planning").score(planned("f", [])))
    assert none["mrr"] == "no call is expected"
    empty = reasons(scorer("planning").score(planned("", [])))
    assert empty["step_accuracy"] == "no call is expected and none was made"
    unknown = set(reasons(scorer("planning").score(run())).values())
    assert unknown == {"the task does not say which calls are expected"}


@given(NAMES, NAMES.filter(bool))
def test_plans_are_compared_in_place_and_by_what_they_have_in_common(called, wanted):
    result = values(scorer("planning").score(planned(called, wanted)))
    in_place = sum(called[n : n + 1] == [name] for n, name in enumerate(wanted))
    assert result["plan_partial"] == (1 if called == wanted else in_place / len(wanted))
    common = max(
        size
        for size in range(len(wanted) + 1)
        for kept in combinations(wanted, size)
        if list(kept) in [list(other) for other in combinations(called, size)]
    )
    assert result["plan_similarity"] == pytest.approx(2 * common / (len(called) + len(wanted)))


def of_kind(kind, truth, called="", **columns):
    extra = json.dumps({"task_type": kind, "ground_truth": truth})
    return run(*(turn(call(name)) for name in called), task={"extra": extra}, **columns)


def test_a_task_of_the_benchmark_is_scored_for_what_it_says():
    ranked = {"top_k_accuracy", "precision_at_k", "recall_at_k", "mrr"}
    plans = {"plan_exact", "plan_partial", "step_accuracy", "plan_similarity"}
    for kind, truth, metrics in (
        ("tool_selection", {"top_k": ["f", "g"]}, ranked),
        ("task_planning", {"tool_sequence": ["f", "g"]}, plans),
        ("timing_judgment", {"should_call_tool": True}, {"timing_correct"}),
    ):
        result = scorer("planning").score(of_kind(kind, truth, "gf"))
        assert {score.metric for score in result if score.value is not None} == metrics
        why = {score.reason for score in result if score.value is None}
        assert why == {f"the task is of the kind {kind}"}
        empty = scorer("planning").score(of_kind(kind, None, "gf"))
        assert {score.value for score in empty} == {None}
    in_words = of_kind("timing_judgment", {"should_call_tool": False},
                       final_answer='{"should_call_tool": true}')  # fmt: skip
    assert values(scorer("planning").score(in_words))["timing_correct"] == 0


RUNS = st.lists(st.tuples(NAMES, NAMES), min_size=1, max_size=6)


@given(RUNS)
def test_figures_of_all_plans_are_those_of_sages_registry(runs):
    """Steps over all plans together, as its step_accuracy counts them."""
    items = [of_kind("task_planning", {"tool_sequence": list(wanted)}, called)
             for called, wanted in runs]  # fmt: skip
    results = figures(scorer("planning"), *items)
    named = [(called, wanted) for called, wanted in runs if wanted]
    correct = sum(a == b for called, wanted in named for a, b in zip(called, wanted, strict=False))
    total = sum(len(wanted) for _, wanted in named)
    steps = results["plan_partial:steps"]
    assert steps.value == (pytest.approx(correct / total) if total else None)
