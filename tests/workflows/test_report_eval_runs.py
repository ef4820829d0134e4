"""The report of evaluations over runs of the real scorers: amounts, tries, and experts."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

from adp.eval.scoring import choose, read_scores, score_store
from adp.rollouts.collecting.collect import alone, collect_now
from adp.rollouts.collecting.settings import CollectSettings
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.policy import InfrastructureError
from adp.rollouts.turns import Turn
from adp.workflows.report import Report
from adp.workflows.report_eval import evaluation
from adp.workflows.report_eval.plots import draw
from adp_schema.store import Store
from tests.eval.scoring.small import grown, run
from tests.rollouts.collecting.worlds import TASK, Chain, look, play

START = datetime(2026, 1, 1, tzinfo=UTC)


def test_only_shares_are_drawn_on_a_percent_axis(tmp_path):
    """Seconds and calls between 0 and 1 are no percents."""
    columns = {"started_at": START, "ended_at": START + timedelta(seconds=0.5)}
    stores = [
        grown(tmp_path / name, *(run(f"t{n}", success=n > least, **columns) for n in range(3)))
        for least, name in enumerate("ab")
    ]
    for store in stores:
        score_store(store, choose(["efficiency"]))
    result = evaluation(stores)
    (scorer,) = result.runs[0].scorers
    seconds = next(figure for figure in scorer.figures if figure.name == "seconds")
    assert (seconds.value, seconds.amount) == (0.5, True)
    plots = draw(result)
    for place in ("scores", "differences"):
        words = set(re.findall(r"\w+", plots[place].alt))
        assert "efficiency" in words, place
        assert words.isdisjoint({"seconds", "calls", "turns"}), place
    assert "1 attempt each" in Report(result).markdown()


def test_tries_that_were_made_again_count_for_nothing(tmp_path):
    """Broken, scored, tried again, and scored again: the figures are those of whole episodes."""
    tasks = [TASK.model_copy(update={"task_id": f"t{number}"}) for number in range(4)]
    down = True

    def policy(request):
        if down and request.task.task_id in ("t0", "t1"):
            raise InfrastructureError("http_500", "down")
        return Turn(text="d") if request.turn else look("a")

    root = tmp_path / "retried"
    for again in (False, True, True):
        settings = CollectSettings(n=2, retry_failed=again, policy="script", max_failures=100)
        collect_now(root, Chain, alone(Scripted(policy)), tasks, settings)
        scores = score_store(Store.open(str(root)), choose(["efficiency"]))
        down = not again  # the second call breaks again, the third does not
    assert (scores.trajectories, scores.broken, scores.superseded) == (8, {}, 8)
    (calls,) = [figure for figure in scores.scorers[0].figures if figure.name == "calls"]
    assert (calls.count, calls.unscored, calls.infrastructure) == (8, 0, 0)
    (read,) = read_scores(Store.open(str(root)))
    assert len({row.trajectory_id for row in read.rows}) == 8

    result = evaluation([Store.open(str(root))])
    (entry,) = result.runs
    assert (entry.episodes, entry.attempts, entry.outcomes.broken) == (8, (2, 2), 0)
    assert (entry.outcomes.superseded, entry.success.infrastructure) == (8, 0)
    (tool,) = entry.tools
    assert tool.calls == 8
    assert "superseded" in Report(result).markdown()


def test_a_try_that_was_not_made_again_counts_as_broken(tmp_path):
    broken = {"error_type": "infrastructure", "success": None}
    runs = [
        run("a", **broken),
        run("a", trajectory_id="sums/a/attempt-0#2", **broken),
        run("b", 0),
        # The same id by chance: another attempt.
        run("c", **broken),
        run("c", 1, trajectory_id="sums/c/attempt-0#2"),
    ]
    store = grown(tmp_path / "s", *runs)
    report = score_store(store, choose(["outcome"]))
    assert (report.trajectories, report.superseded) == (4, 1)
    assert report.broken == {"infrastructure": 2}


def test_runs_with_an_expert_are_apart_and_marked(tmp_path):
    alone_, helped = (
        [
            play([look("x")] * 9 + [Turn(text="d")], mode=mode, attempt=attempt)
            for attempt in range(2)
        ]
        for mode in ("none", "informed")
    )
    for number, entry in enumerate(helped):
        entry.attempt = entry.attempt + 2
        entry.trajectory_id, entry.branches = f"helped-{number}", []
    store = grown(tmp_path / "both", *alone_, *helped)
    report = score_store(store, choose(["efficiency"]))
    (messages,) = report.assisted
    steps = [step.actor for item in helped for step in item.steps if step.source == "agent"]
    assert (messages.mode, messages.trajectories, messages.steps) == ("informed", 2, len(steps))
    assert messages.expert_steps == steps.count("expert") > 0

    result = evaluation([store])
    assert {item.name: item.episodes for item in result.runs} == {
        "script": 2,
        "script with expert, informed": 2,
    }
    assert [item.assisted for item in result.runs] == [None, messages]
    assert {comparison.assisted for comparison in result.comparisons} == {
        ("script with expert, informed",)
    }
    share = f"informed, {100 * steps.count('expert') / len(steps):.0f} % of the steps"
    assert messages.words == share
    text = Report(result).markdown().replace("\\", "")
    assert f"script with expert, informed is a run with an expert ({share})" in text
    assert "script with expert, informed is assisted" in text
    calls = [
        sum(len(step.calls) for step in item.steps) for runs in (alone_, helped) for item in runs
    ]
    tools = [sum(tool.calls for tool in item.tools) for item in result.runs]
    assert tools == [sum(calls[:2]), sum(calls[2:])]
    assert json.dumps(result.plain())
