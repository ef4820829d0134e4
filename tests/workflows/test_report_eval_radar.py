"""The profile of runs: which figures, where they lie, and what is drawn."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.eval.scorer import Figure
from adp.eval.scoring import choose, score_store
from adp.workflows.report_eval import EvaluationOptions, evaluation, html_report, markdown_report
from adp.workflows.report_eval.model import ScorerFigures
from adp.workflows.report_eval.plots import draw
from adp.workflows.report_eval.radar import radar
from adp_schema.errors import UsageError
from tests.workflows.eval_stores import rollouts

SCORERS = ["outcome", "efficiency", "conciseness", "execution", "reasoning_length"]


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    folder = tmp_path_factory.mktemp("radar")
    made = [
        rollouts(folder / name, name, rate, tasks=3, scored=False)
        for name, rate in (("base", 0.3), ("tuned", 0.9))
    ]
    for store in made:
        score_store(store, choose(SCORERS))
    return made


@pytest.fixture(scope="module")
def two(stores):
    return evaluation(stores)


def with_figures(run, *figures):
    """A run whose scorer ``s`` gives these figures."""
    return replace(run, scorers=(ScorerFigures("s", "1", "{}", "h", "s:x=1", figures, ()),))


def test_without_a_choice_it_is_et_agents_five(two):
    axes = {axis.label: axis for axis in two.radar}
    assert list(axes) == [
        "correctness",
        "efficiency",
        "conciseness",
        "execution",
        "reasoning length",
    ]
    for axis in axes.values():
        scorer, _, name = axis.figure.partition(".")
        for run, value in zip(two.runs, axis.values, strict=True):
            (figures,) = [item.figures for item in run.scorers if item.name == scorer]
            assert value == {figure.name: figure.value for figure in figures}[name]
    assert [axis.less for axis in axes.values()] == [False] * 4 + [True]


def test_fewer_than_three_are_no_profile(two):
    runs = [replace(run, scorers=()) for run in two.runs]
    assert radar(runs) == ()
    assert "radar" not in draw(replace(two, radar=()))
    assert "Profile" not in markdown_report(replace(two, radar=()))


def test_others_are_named(stores):
    chosen = ("success", "few calls=efficiency.calls:less", "execution_success:calls")
    options = EvaluationOptions(radar=chosen)
    axes = evaluation(stores, options).radar
    assert [axis.label for axis in axes] == ["success", "few calls", "execution_success:calls"]
    assert axes[0].values == axes[0].places
    assert axes[1].less
    assert max(axes[1].places) == 1.0


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        (["success", "reward", "sucess"], "no figure 'sucess'; did you mean success"),
        (["success", "reward", "tool_f1.calls"], "did you mean calls or efficiency.calls"),
        (["success", "reward", "Efficiency"], "did you mean efficiency"),
        (["success", "reward", "qqq"], "no figure 'qqq'; all stand in the section Scores"),
        (["success"], "3 to 12 figures, not 1"),
        (["success", "reward", "x=:less"], "names no figure"),
    ],
)
def test_what_is_no_figure_is_refused(two, chosen, message):
    with pytest.raises(UsageError, match=message) as error:
        radar(two.runs, chosen)
    assert len(str(error.value)) < 250


AMOUNTS = st.lists(st.none() | st.floats(0, 1e6), min_size=2, max_size=5)


@given(AMOUNTS, st.booleans(), st.booleans())
def test_places_are_in_proportion_to_the_best(two, values, less, amount):
    runs = [
        with_figures(two.runs[0], Figure("f", value, amount=amount), Figure("g", 0.5))
        for value in values
    ]
    name = "f:less" if less else "s.f"
    axis = radar(runs, [name, "s:x=1.g", "success"])[0]
    assert axis.values == tuple(values)
    share = not less and not amount and all(value is None or value <= 1 for value in values)
    assert axis.share == share
    known = [value for value in values if value is not None]
    for value, place in zip(values, axis.places, strict=True):
        if value is None:
            assert place is None
            continue
        assert 0 <= place <= 1
        if share:
            assert place == value
        elif less:
            assert place * value == pytest.approx(min(known))
        else:
            assert place * max(known) == pytest.approx(value)


def test_each_run_is_a_polygon_and_one_that_lacks_a_figure_is_open(two):
    def shapes(value):
        plot = draw(value)["radar"]
        tree = ElementTree.fromstring(plot.light)
        ids = [node.get("id", "") for node in tree.iter() if node.get("id")]
        return sum(name.startswith("patch_") for name in ids), plot

    count, plot = shapes(two)
    assert b"<script" not in plot.light
    assert plot.alt.startswith("Profile: correctness")
    open_axis = replace(two.radar[0], values=(None, 0.5), places=(None, 0.5))
    missing, _ = shapes(replace(two, radar=(open_axis, *two.radar[1:])))
    assert missing == count - 1
    none = replace(two.radar[0], values=(None, None), places=(None, None))
    shapes(replace(two, radar=(none, *two.radar[1:])))


def test_the_report_shows_it(two):
    page = html_report(two)
    assert 'id="radar"' in page
    text = markdown_report(two)
    assert "| reasoning length |" in text
    assert two.plain()["radar"][0]["values"] == list(two.radar[0].values)
