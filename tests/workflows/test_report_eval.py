"""The report of evaluations: its numbers are those of the trajectories and the scores."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

import adp
from adp.eval.metrics import wilson
from adp.eval.scorers.outcome import OutcomeScorer, OutcomeSettings
from adp.eval.scoring import score_store
from adp.workflows.report import Report
from adp.workflows.report_eval import EvaluationOptions, evaluation
from adp.workflows.report_eval.cells import plain_number, signed
from adp_schema.builder import RowBuilder
from adp_schema.errors import UsageError
from adp_schema.store import Store
from tests.eval.scoring.conftest import small_scorers  # noqa: F401
from tests.eval.scoring.small import chosen, grown, run
from tests.store_builders import write_store
from tests.stores.test_composition import EXAMPLES
from tests.workflows.eval_stores import hostile_rollouts, hostile_scores, rollouts
from tests.workflows.test_report_data import ALLOWED, Page

pytestmark = pytest.mark.usefixtures("small_scorers")


@pytest.fixture
def two(tmp_path):
    return [rollouts(tmp_path / "base", "base", 0.3), rollouts(tmp_path / "tuned", "tuned", 0.8)]


def test_numbers_are_those_of_the_trajectories(two):
    (result,) = evaluation(two[:1]).runs
    rows = two[0].query("SELECT * FROM trajectories").to_pylist()
    solved = sum(row["success"] is True for row in rows)
    outcomes = result.outcomes
    assert (outcomes.solved, outcomes.failed) == (solved, 18 - solved)
    assert (outcomes.broken, outcomes.unscored, outcomes.truncated) == (1, 0, 18 - solved)
    assert [(kind.name, kind.count) for kind in outcomes.kinds] == [("infrastructure: http_500", 1)]
    assert result.success.value == solved / 18
    assert (result.success.count, result.success.tasks, result.success.infrastructure) == (18, 6, 1)
    assert (result.tasks, result.attempts, result.seeds, result.episodes) == (6, (3, 4), 18, 19)
    assert result.costs.tokens_out.total == 6 * (10 + 11 + 12)
    assert (result.costs.tokens_out.recorded, result.costs.turns.of) == (18, 19)
    lookups = next(tool for tool in result.tools if tool.name == "lookup")
    assert (lookups.calls, lookups.errors, lookups.solved_calls) == (18 - solved, 18 - solved, 0)
    assert [(error.name, error.count) for error in result.errors] == [("execution", 18 - solved)]
    levels = {group.name: group for group in result.groups if group.by == "difficulty"}
    assert levels["easy"].success.count == levels["hard"].success.count == 9
    assert len(result.failures) == 3
    assert "no such key" in result.failures[0].text


def test_scores_are_added_up_for_each_policy_of_a_store(tmp_path):
    first = [run("a", agent_name="one"), run("b", agent_name="one", success=False)]
    second = [run("a", 1, agent_name="two", final_answer="9"), run("c", agent_name=None)]
    store = grown(tmp_path / "mixed", *first, *second)

    score_store(store, [chosen()])
    runs = {item.name: item for item in evaluation([Store.open(store.root)]).runs}
    assert sorted(runs) == ["mixed", "one", "two"]
    figures = {name: {figure.name: figure for figure in result.scorers[0].figures}
               for name, result in runs.items()}  # fmt: skip
    assert figures["one"]["success"].value == 0.5
    assert (figures["two"]["right"].value, figures["two"]["right"].count) == (0.0, 1)
    assert (runs["one"].success.low, runs["one"].success.high) == wilson(1, 2)
    assert [tool.calls for tool in runs["two"].tools] == [1]
    assert runs["mixed"].agent is None


def test_runs_are_compared_over_the_tasks_that_both_did(two):
    result = evaluation(two)
    (success,) = [comparison for comparison in result.comparisons if comparison.scorer is None]
    assert (success.first, success.second) == ("base", "tuned")
    assert success.difference.figure.tasks == 6
    means = [
        store.query(
            "SELECT avg(m) AS m FROM (SELECT avg(success::INT) AS m FROM trajectories "
            "WHERE success IS NOT NULL GROUP BY task_id)"
        ).to_pylist()[0]["m"]
        for store in two
    ]
    assert success.difference.figure.value == pytest.approx(means[1] - means[0])
    # What a scorer says as the trajectories say it is not said twice.
    assert {comparison.metric for comparison in result.comparisons if comparison.scorer} == {
        "calls",
        "right",
    }
    turned = evaluation(two, EvaluationOptions(baseline="tuned"))
    assert turned.comparisons[0].difference.figure.value == pytest.approx(means[0] - means[1])
    with pytest.raises(UsageError, match="did you mean base"):
        evaluation(two, EvaluationOptions(baseline="bass"))


def test_a_few_tasks_that_lost_an_attempt_do_not_make_pass_at_k_undefined(tmp_path):
    whole = [run(f"t{n}", a, success=a > 0) for n in range(3) for a in range(2)]
    runs = [*whole, run("t0", 2), run("t3"), run("t3", 1, success=None)]
    (result,) = evaluation([grown(tmp_path / "uneven", *runs)]).runs
    values = {item.name: item for item in result.passes}
    assert values["pass@2"].value == 1.0
    assert "without 1 task" in values["pass@2"].reason
    assert "pass@3" not in values


def test_names_of_runs_differ(tmp_path):
    stores = [rollouts(tmp_path / name / "rollouts", "same", 0.5) for name in "ab"]
    names = [
        item.name for item in evaluation([*stores, rollouts(tmp_path / "c", "same", 0.5)]).runs
    ]
    assert names == ["same (rollouts)", "same (rollouts) #2", "same (c)"]


def test_without_scores_and_without_rollouts(tmp_path):
    empty = write_store(tmp_path / "empty", RowBuilder())
    assert evaluation([empty]).runs == ()
    assert "There are no episodes" in Report(evaluation([empty])).markdown()
    converted = adp.convert([str(EXAMPLES)], tmp_path / "converted")
    result = evaluation([converted])
    assert sum(item.episodes for item in result.runs) == 10
    for text in (Report(result).html(), Report(result).markdown()):
        assert "Success" in text


def test_json_holds_the_numbers(two):
    plain = json.loads(json.dumps(evaluation(two).plain(), allow_nan=False))
    assert plain["runs"][0]["success"]["count"] == 18
    assert plain["comparisons"][0]["difference"]["figure"]["tasks"] == 6


def test_a_folder_of_scores_for_each_store(two, tmp_path):
    with pytest.raises(UsageError, match="once for each store"):
        evaluation(two, EvaluationOptions(scores=("x",)))
    none = evaluation(two, EvaluationOptions(scores=(str(tmp_path / "no"), str(tmp_path / "no"))))
    assert all(item.scorers == () for item in none.runs)


def test_the_same_numbers_make_the_same_page(two):
    text = Report(evaluation(two)).html()
    assert text == Report(evaluation([Store.open(item.root) for item in two])).html()
    for words in ("Several attempts", "What broke", "http_500", "Paired differences", "tuned",
                  "Differences to the baseline", "Success by difficulty", "Errors an episode",
                  "Calls an episode"):  # fmt: skip
        assert words in text


def test_nothing_in_the_data_changes_the_page(tmp_path):
    store = hostile_scores(hostile_rollouts(tmp_path / "hostile"))
    result = evaluation([Store.open(store.root)])
    page = Page(Report(result).html())
    assert "script" not in page.elements
    assert page.attributes <= ALLOWED
    for address in page.addresses:
        assert address.startswith(("data:", "#")), address[:80]
    shown = " ".join(page.words)
    assert "<script>document.title='taken'</script>" in shown
    made = MarkdownIt("commonmark").enable("table").render(Report(result).markdown())
    written = Page(made)
    assert not {"script", "img", "a", "svg"} & set(written.elements)


def test_runs_without_a_common_task_are_not_compared(two, tmp_path):
    result = evaluation(two)
    bare = replace(
        result, comparisons=tuple(_alone(comparison) for comparison in result.comparisons)
    )
    text = Report(bare).markdown()
    assert "nothing can be compared" in text
    assert "Paired differences" not in text
    assert "permutation" not in text
    assert "permutation" in Report(result).markdown()


def _alone(value):
    missing = replace(value.difference.figure, value=None)
    return replace(value, difference=replace(value.difference, figure=missing))


def test_a_run_that_nobody_scored_says_so(two):
    result = evaluation([two[0]])
    run = result.runs[0]
    bare = replace(result, runs=(replace(run, success=replace(run.success, value=None)),))
    assert "nothing is scored" in Report(bare).markdown()


def test_a_reward_of_one_is_a_success_where_nothing_else_is_known(tmp_path):
    rewards = [1.0, 1 - 1e-7, 0.5, 0.0, None, float("nan"), float("inf")]
    runs = [run(f"t{at}", success=None, reward=reward) for at, reward in enumerate(rewards)]
    store = grown(tmp_path / "rewards", *runs, run("known", success=False, reward=1.0))
    result = evaluation([store])
    (entry,) = result.runs
    outcomes = entry.outcomes
    assert (outcomes.solved, outcomes.failed, outcomes.unscored) == (2, 3, 3)
    assert (outcomes.by_reward, entry.success.value, entry.success.count) == (4, 0.4, 5)
    assert entry.tools[0].solved_calls == 2
    assert next(item for item in entry.passes if item.name == "pass@1").value == 0.4
    assert "Of 4 episodes only the reward is known" in Report(result).markdown()
    assert entry.reward.count == 5
    scorer = chosen(OutcomeScorer(OutcomeSettings()))
    outcome = score_store(store, [scorer]).scorers[0].figures[0]
    assert (outcome.value, outcome.count, outcome.unscored) == (0.4, 5, 3)


def test_numbers_that_are_none_or_too_large_are_left_out_of_costs(tmp_path):
    costs = [float("nan"), float("inf"), 1e308, 1e308, 0.5, None]
    runs = [run(f"t{at}", reward=entry, total_cost_usd=entry) for at, entry in enumerate(costs)]
    result = evaluation([grown(tmp_path / "odd", *runs)])
    cost = result.runs[0].costs.cost
    assert (cost.total, cost.recorded, cost.of) == (0.5, 1, 6)
    json.dumps(result.plain(), allow_nan=False)
    assert "nan" not in Report(result).markdown()


def test_small_numbers_do_not_come_out_as_zero():
    shown = [plain_number(item) for item in (0.0, 0.00022, -0.00022, 0.0005, 0.25, 150.0)]
    assert shown == ["0.000", "0.00022", "-0.00022", "0.0005", "0.250", "150.0"]
    assert [signed(item) for item in (-0.0, 0.00022, -0.5)] == ["+0.000", "+0.00022", "-0.500"]


def test_runs_that_are_a_data_set_each_are_not_broken_down_by_it(tmp_path):
    stores = [
        grown(tmp_path / name, *(run(f"t{at}", dataset=name, success=at > 1) for at in range(4)))
        for name in ("one", "two")
    ]
    assert "By dataset" not in Report(evaluation(stores)).markdown()
    mixed = grown(tmp_path / "mixed", run("a", dataset="x"), run("b", dataset="y"))
    text = Report(evaluation([*stores, mixed])).markdown()
    assert "By dataset" in text
    assert "This episode failed:\n" in text
