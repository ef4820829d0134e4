"""A suite is collected, scored and held against its bounds; it goes on where it was stopped."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from adp.eval.bounds import check_bounds
from adp.eval.evaluate import EvaluateOptions, evaluate, gates, read_bounds
from adp.eval.scorer import SCORERS, Figure
from adp.eval.scoring import ScoreReport, ScorerReport, choose, choose_named, read_scores
from adp.eval.suite import SUITES, Suite, read_suite
from adp.rollouts.environment import ENVIRONMENTS
from adp.rollouts.spec import load, split_named
from adp_schema.errors import InputError, OutputExistsError, UsageError
from adp_schema.store import Store

SUITE = Suite(
    name="sums",
    environment={"name": "calculator", "steps": 1},
    tasks="test:6",
    scorers=("outcome", {"name": "efficiency"}),
    n=2,
)


@pytest.fixture
def policy(tmp_path):
    """A script that solves half of the tasks."""
    kind, settings = load(ENVIRONMENTS, "calculator:steps=1")
    lines = [{"turns": [{"text": "no idea"}]}]
    for task in list(kind.tasks(settings, "test", 6, 0))[::2]:
        lines.append({"task_id": task.task_id, "turns": [{"text": json.loads(task.answers)[0]}]})
    file = tmp_path / "script.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    return f"scripted:file={file}"


def test_a_suite_is_collected_scored_and_held_against_its_bounds(policy, tmp_path):
    out = str(tmp_path / "runs")
    bounds = EvaluateOptions(minimum={"success": 0.9}, maximum={"broken": 0})
    result = evaluate(SUITE, policy, out, bounds)
    assert (result.tasks, result.collected.done_now, result.collected.left) == (6, 12, 0)
    figures = {figure.name: figure for figure in result.scores.scorers[0].figures}
    assert (figures["success"].value, figures["success"].tasks) == (0.5, 6)
    assert [(gate.figure, gate.value, gate.holds) for gate in result.gates] == [
        ("success", 0.5, False), ("broken", 0.0, True),
    ]  # fmt: skip
    again = evaluate(SUITE, policy, out, EvaluateOptions(scorers=["conciseness,outcome"]))
    assert (again.collected.done_before, again.collected.done_now) == (12, 0)
    assert [scorer.new for scorer in again.scores.scorers] == [0, 0, 12]
    assert len(read_scores(Store.open(out))) == 3


def test_a_limit_takes_the_first_tasks_and_more_attempts_go_on(policy, tmp_path):
    out = str(tmp_path / "runs")
    few = EvaluateOptions(limit=2, collect={"seal": False})
    first = evaluate(SUITE, policy, out, few)
    assert (first.tasks, first.collected.asked) == (2, 4)
    more = evaluate(SUITE, policy, out, replace(few, collect={"n": 5}))
    assert (more.collected.done_before, more.collected.done_now) == (4, 6)
    assert more.scores.scorers[0].new == 6
    with pytest.raises(OutputExistsError, match="tasks"):
        evaluate(SUITE, policy, out)


def scored(*figures):
    scorer_report = ScorerReport("a", "1", "{}", "x", 4, 4, {}, {}, figures)
    other = replace(scorer_report, scorer="b", figures=(Figure("success", 1.0),))
    return ScoreReport("s", "f", None, 4, {"policy": 1}, (scorer_report, other))


def test_a_bound_on_what_is_undefined_does_not_hold():
    report = scored(Figure("success", 0.25), Figure("nothing", None, reason="no call was made"))
    result = gates(report, {"success": 0, "a.success": 0.25, "nothing": 0, "x": 1}, {"broken": 0.2})
    assert [(item.figure, item.value, item.holds) for item in result] == [
        ("success", None, False), ("a.success", 0.25, True), ("nothing", None, False),
        ("x", None, False), ("broken", 0.25, False),
    ]  # fmt: skip
    assert result[0].reason == "several scorers give it; write SCORER.success"
    assert result[2].reason == "no call was made"
    assert result[3].reason == "no scorer gives it; there are broken, success, nothing"
    assert read_bounds(["pass^2=0.5", " a.b = 1"]) == {"pass^2": 0.5, "a.b": 1.0}
    for wrong in ("success", "=1", "success=high"):
        with pytest.raises(UsageError, match="is not FIGURE=NUMBER"):
            read_bounds([wrong])


@pytest.mark.parametrize("name", list(SUITES))
def test_suites_with_a_name_can_be_run(name):
    """Their environments and scorers are there, and so are their tasks, without a download."""
    suite = read_suite(name)
    assert suite.name == name
    kind, settings = load(ENVIRONMENTS, suite.environment)
    assert kind.tasks is not None
    if not name.startswith("bfcl"):
        assert len(kind.tasks(settings, "test", 3, 0)) == 3
    choose_named([*map(split_named, suite.scorers)])
    assert set(suite.scorers) <= set(SCORERS)


def test_files_of_suites(tmp_path):
    file = tmp_path / "suite.yaml"
    file.write_text(
        "name: sums\nenvironment: {name: calculator, steps: 1}\ntasks: test:6\n"
        "scorers: [outcome, {name: efficiency}]\nn: 2\n"
    )
    assert read_suite(str(file)) == SUITE
    for text, output in (
        ("name: x\n", "environment: it must be given"),
        ("name: x\nenvironment: y\ntasks: t\nscorer: 3\n", "'scorer'; did you mean scorers"),
        ("- a\n", "needs name, environment and tasks"),
    ):
        file.write_text(text)
        with pytest.raises(UsageError, match=output):
            read_suite(str(file))
    with pytest.raises(InputError, match=r"no.yaml is not there"):
        read_suite(str(tmp_path / "no.yaml"))
    file.write_text("a: [")
    with pytest.raises(InputError, match="YAML"):
        read_suite(str(file))
    with pytest.raises(UsageError, match="unknown suite 'toolwrld'; did you mean toolworld"):
        read_suite("toolwrld")
    with pytest.raises(UsageError, match="needs a name"):
        split_named({"steps": 1})


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"minimum": {"sucess": 0.9}}, "no scorer gives 'sucess'; did you mean success"),
        ({"minimum": {"outcome.sucess": 0.9}}, "did you mean success"),
        ({"maximum": {"brokens": 0.1}}, "did you mean broken"),
        ({"minimum": {"outcme.success": 0.9}}, "unknown scorer of this run 'outcme'"),
        ({"minimum": {"answer.answer_em": 0.9}}, "unknown scorer of this run 'answer'"),
        ({"minimum": {"success": 1.1}}, "success is a share, between 0 and 1; its bound is 1.1"),
        ({"maximum": {"pass^2": -1}}, "is a share"),
        ({"minimum": {"reward": float("nan")}}, "no number"),
    ],
)
def test_a_bound_that_can_never_hold_is_refused_before_the_run(policy, tmp_path, bounds, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        evaluate(SUITE, policy, str(tmp_path / "runs"), EvaluateOptions(**bounds))
    assert not (tmp_path / "runs").exists()


def test_bounds_of_all_that_scorers_give_pass():
    scorers = choose(["outcome,efficiency,format,execution,bfcl,m3,tool_f1"])
    check_bounds([{"reward": 7, "v4 overall": 1, "pass@9": 0.1, "broken": 0}], scorers)
    # The figures of a judge are not known before it was asked.
    check_bounds([{"sucess": 0.5}], [*scorers, *choose(["conciseness"])])
