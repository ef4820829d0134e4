"""Capabilities: which one a task is about, how each is measured, and their weighted mean."""

from __future__ import annotations

import json
import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.eval.metrics import Intervals, weighted_mean_figure
from adp.eval.metrics.intervals import student
from adp.eval.scorer import Score, Scored
from adp.eval.scorers.capability import CAPABILITIES, capability_of
from adp_schema.errors import UsageError
from adp_schema.model import Task
from tests.eval.scorers.runs import call, figures, run, scorer, turn, values


def about(kind, key="task_type", *, truth=None, columns=None, **more):
    """What a task of a kind holds."""
    extra = {key: kind, "ground_truth": truth, **more}
    return {"extra": json.dumps(extra), **(columns or {})}


def measured(item, spec="capability"):
    """The one number that a run gets."""
    result = scorer(spec).score(item)
    assert [score.metric for score in result][1:] == ["assigned"]
    return result[0].metric, result[0].value


@pytest.mark.parametrize(
    ("extra", "capability"),
    [
        ({"capability": "planning", "task_type": "tool_selection"}, "planning"),
        ({"capability": "odd", "task_type": "Tool-Selection "}, "tool_use"),
        ({"task_type": "timing_judgment"}, "tool_use"),
        ({"task_type": "task planning"}, "planning"),
        ({"category": "math"}, "reasoning"),
        ({"category": "general"}, "instruction_following"),
        ({"task_type": ["planning"], "category": 7}, None),
        ({}, None),
        ([], None),
    ],
)
def test_a_task_is_about_what_it_says(extra, capability):
    assert capability_of(Task(extra=json.dumps(extra))) == capability
    assert capability_of(None) is None
    named = capability_of(Task(extra='{"task_type": "My kind"}'), {"my_kind": "reasoning"})
    assert named == "reasoning"


def test_no_task_is_lost():
    items = [
        run(turn(text="2"), task=about("reasoning", columns={"answers": '["2"]'})),
        run(turn(text="2"), success=True, task=about("odd")),
        run(turn(text="2")),
        run(task=about("planning"), error_type="infrastructure"),
    ]
    result = figures(scorer("capability"), *items)
    assert (result["assigned"].value, result["assigned"].count) == (pytest.approx(1 / 3), 3)
    assert (result["reasoning"].value, result["planning"].infrastructure) == (1.0, 1)
    assert result["tool_use"].count == result["tool_use"].unscored == 0
    assert "single task" in result["overall"].reason
    assert "without tool_use, planning, instruction_following" in result["overall"].reason
    taken = figures(scorer("capability:names={odd: reasoning}"), *items)
    assert (taken["assigned"].value, taken["reasoning"].count) == (pytest.approx(2 / 3), 2)


def test_tools_that_fit_timing_and_calls():
    chosen = run(turn(call("a"), call("x")), task=about("tool_selection", truth={"top_k": ["a"]}))
    assert measured(chosen) == ("tool_use", pytest.approx(2 / 3))
    # A converted row has the tools among its answers, and they may be listed in words.
    columns = {"answers": '["a", "b"]'}
    task = about("tool_selection", columns=columns)
    assert measured(run(turn(), final_answer='["b", "a"]', task=task))[1] == 1
    task = about("timing_judgment", truth={"should_call_tool": False})
    assert measured(run(turn(text="4"), task=task)) == ("tool_use", 1.0)
    assert measured(run(turn(call("a")), task=task))[1] == 0
    in_words = run(turn(), final_answer='{"should_call_tool": true}', task=task)
    assert measured(in_words)[1] == 0
    wanted = [{"name": "a", "arguments": {"n": 1}}, {"name": "b", "arguments": {}}]
    task = about("function_calling", columns={"expected_calls": json.dumps(wanted)})
    result = run(turn(call("a", {"n": 1, "more": 2}), call("b", {"n": 3})), task=task)
    assert measured(result)[1] == 1
    assert measured(run(turn(call("a", {"n": 2})), task=task))[1] == 0


def test_plans_answers_and_checks():
    task = about("task_planning", truth={"tool_sequence": ["a", "b", "c"]})
    shifted = run(turn(call("x"), call("a"), call("b"), call("c")), task=task)
    assert measured(shifted) == ("planning", pytest.approx(6 / 7))
    task = about("reasoning", columns={"answers": '["1/2", "a half"]'})
    assert measured(run(turn(text="0.5"), task=task)) == ("reasoning", 1.0)
    assert measured(run(turn(text="<answer>A half!</answer>"), task=task))[1] == 1
    assert measured(run(turn(text="2"), task=task))[1] == 0
    assert measured(run(turn(), success=True, task=about("reasoning")))[1] == 1
    checks = {"format": "json_list", "must_contain": "x", "must_not_contain": ["y", "z"],
              "max_words": 2, "min_words": "many", "ends_with": "]"}  # fmt: skip
    task = about("instruction_following", checks=checks)
    assert measured(run(turn(text='["X", "y"]'), task=task)) == (
        "instruction_following", pytest.approx(5 / 6),
    )  # fmt: skip
    assert measured(run(turn(), task=task))[1] == 0
    none = scorer("capability").score(run(turn(text="a"), task=about("general")))
    assert none[0].reason == "the task names no checks of its answer"


def test_sages_numbers_of_a_run():
    task = about("planning", columns={"expected_calls": '["search", "mail"]'})
    item = run(turn(call("search", {"q": 1}), text="Step 1 is to look"), turn(text="ok"), task=task)
    assert measured(item, "capability:compat=sage") == ("planning", pytest.approx(0.3 + 0.35))
    task = about("general", format="json", columns={"answers": '["left", "a b"]'})
    item = run(turn(text="a c"), task=task)
    sage = measured(item, "capability:compat=sage")
    assert sage == ("instruction_following", pytest.approx(0.15 + 0.35))
    bare = scorer("capability:compat=sage").score(run(turn(text="a"), task=about("planning")))
    assert bare[0].reason == "the task has neither answers nor expected calls"


def test_weights_of_sage_count_what_is_missing_as_0():
    items = [run(turn(text="2"), task=about("math", columns={"answers": '["2"]'}))]
    given_weights = "weights={reasoning: 1, planning: 3}"
    assert figures(scorer(f"capability:{given_weights}"), *items)["overall"].value == 1
    whole = figures(scorer(f"capability:compat=sage,{given_weights}"), *items)["overall"]
    assert whole.value == pytest.approx(0.25 * 0.7)
    assert "planning, which counts as 0" in whole.reason
    for wrong in ("{planning: -1}", "{planning: 0}", "{odd: 1}", "{planning: .nan}"):
        with pytest.raises(UsageError, match="weights"):
            scorer(f"capability:weights={wrong}")


def rows_of(parts):
    return [
        Scored(f"{metric}{task}{n}", f"{metric}{task}", n, Score(metric, value))
        for metric, tasks in parts.items()
        for task, listed in enumerate(tasks)
        for n, value in enumerate(listed)
    ]


TASKS = st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=3), min_size=2, max_size=5)


@given(TASKS, TASKS, st.floats(0.1, 5))
def test_the_weighted_mean_is_that_of_strata(first, second, weight):
    parts = {"a": first, "b": second}
    figure = weighted_mean_figure(rows_of(parts), {"a": 1, "b": weight, "c": 0}, "m")
    shares = {"a": 1 / (1 + weight), "b": weight / (1 + weight)}
    value = square = freedom = 0.0
    for metric, tasks in parts.items():
        every = [entry for task in tasks for entry in task]
        mean = statistics.fmean(every)
        sums = [sum(entry - mean for entry in task) for task in tasks]
        error = math.sqrt(sum(s * s for s in sums) * len(tasks) / (len(tasks) - 1)) / len(every)
        value += shares[metric] * mean
        square += (shares[metric] * error) ** 2
        freedom += len(tasks) - 1
    assert figure.value == pytest.approx(value)
    if figure.low is not None:
        half = student(0.95, int(freedom)) * math.sqrt(square)
        assert figure.low == pytest.approx(max(0, value - half), abs=1e-9)
        assert figure.high == pytest.approx(min(1, value + half), abs=1e-9)
    else:
        assert "do not differ" in figure.reason


def test_no_interval_where_none_can_be_had():
    rows = rows_of({"a": [[1.0], [0.0]], "b": [[0.5]]})
    figure = weighted_mean_figure(rows, {"a": 1, "b": 1}, "m")
    assert (figure.value, figure.low, figure.reason) == (
        0.5,
        None,
        "no interval: b of a single task",
    )
    none = weighted_mean_figure(rows, {"a": 1}, "m", Intervals(method="none"))
    assert (none.value, none.low) == (0.5, None)
    assert weighted_mean_figure([], {"a": 1}, "m").reason == "nothing was scored"


def test_a_run_has_a_number_in_one_capability_alone():
    for name in CAPABILITIES:
        item = run(turn(text="a"), success=True, task=about(name, columns={"answers": '["a"]'}))
        assert list(values(scorer("capability").score(item))) == [name, "assigned"]
        assert list(values(scorer(f"capability:capability={name}").score(run()))) == [
            name, "assigned",
        ]  # fmt: skip
