"""Teachers with habits, the judge beside a policy, and the pairs that come of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

import adp
from adp.rollouts.collecting.collect import collect_now
from adp.rollouts.collecting.settings import CollectSettings
from adp.rollouts.environments.toolworld import Toolworld, ToolworldSettings, make_tasks
from adp.rollouts.environments.toolworld.world import WORDS, is_name
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.turns import Call, Turn
from examples.loop.stages import figures, pair_mix
from examples.loop.teachers import TEACHERS, Judged, Teacher
from tests.examples.loop.small import played

TASKS = make_tasks(ToolworldSettings(failures=0.05), "train", 60, 0)
RECIPE = Path(__file__).parents[3] / "examples/loop/pairs.yaml"


def labels(run):
    return [label for step in run.steps for label in step.labels or ()]


@pytest.mark.parametrize("name", TEACHERS)
def test_a_teacher_has_its_habit_and_no_other(name):
    runs = [played(task, Teacher(name)) for task in TASKS]
    seen = {label for run in runs for label in labels(run)} - {"needed", "right_answer", "busy"}
    wanted = {
        "careful": set(),
        "double_checking": {"redundant"},
        "sloppy": {"wrong", "malformed"},
        "hasty": {"wrong_answer"},
        "circling": {"redundant"},
        "misreading": {"wrong_answer"},
    }
    assert seen == wanted[name]
    solved = sum(bool(run.success) for run in runs) / len(runs)
    least = {"careful": 1.0, "double_checking": 1.0, "sloppy": 0.4, "hasty": 0.2}
    assert solved >= least.get(name, 0.1)
    assert solved < 0.7 or name not in ("hasty", "misreading")
    assert solved == 1 or name != "circling"
    assert runs[0].steps == played(TASKS[0], Teacher(name)).steps


def test_who_checks_twice_repeats_the_last_call_once():
    for task in TASKS:
        result = labels(played(task, Teacher("double_checking")))
        assert result.count("redundant") == 1
        assert result[-2:] == ["redundant", "right_answer"]


def test_who_goes_in_circles_repeats_one_call_three_times_and_still_answers():
    runs = [labels(played(task, Teacher("circling"))) for task in TASKS]
    assert {names.count("redundant") for names in runs} == {0, 3}
    assert all(names[-1] == "right_answer" for names in runs)
    circles = [names for names in runs if "redundant" in names]
    assert len(circles) > len(runs) / 2
    for names in circles:
        first = names.index("redundant")
        assert names[first : first + 3] == ["redundant"] * 3


def test_who_misreads_says_a_value_of_the_right_sort():
    wrong = [run for task in TASKS if not (run := played(task, Teacher("misreading"))).success]
    assert len(wrong) > len(TASKS) / 2
    for run in wrong:
        right = json.loads(run.task.answers)[0]
        given = run.steps[-1].text.removeprefix("answer: ")
        same = [words for words in WORDS.values() if right in words]
        assert given != right
        assert given.isdigit() == right.isdigit()
        assert not same or given in same[0]
        assert is_name(given) == is_name(right)


def faulty(request):
    """Repeats its first call, then answers wrongly; every third agent writes what is no call."""
    call = json.loads(request.task.expected_calls)[0]
    if request.turn < 2:
        return Turn(calls=(Call(call["name"], json.dumps(call["arguments"])),))
    if request.turn == 2 and request.seed % 3 == 0:
        return Turn(text="<tool_call>", malformed="the call is not closed")
    return Turn(text="answer: nothing")


@pytest.fixture(scope="module")
def probes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("judged")
    policy = Scripted(faulty)
    collect_now(
        folder / "probes",
        Toolworld,
        lambda about: Judged(policy, early=1.0),
        make_tasks(ToolworldSettings(failures=0.0, kinds=["c2", "c3"]), "train", 20, 1),
        CollectSettings(dataset="probes", timed=False, seal=True),
    )
    return folder


def test_what_should_have_been_done_stands_beside_each_fault(probes):
    store = adp.open(probes / "probes")
    results = {}
    for run in store.trajectories(resolve=False):
        if run.parent_id:
            results.setdefault(run.parent_id, []).append(run)
    faults = ("redundant", "malformed")
    for run in store.trajectories():
        if run.parent_id:
            continue
        extra_keys = {result.parent_step: result.steps[0] for result in results[run.trajectory_id]}
        wanted = [s.step for s in run.steps if s.labels and s.labels[0] in faults]
        assert sorted(extra_keys) == wanted
        assert all(step.labels == ["needed"] for step in extra_keys.values())


def test_the_recipe_pairs_them(probes):
    recipe = yaml.safe_load(RECIPE.read_text())
    recipe["inputs"] = {"probes": str(probes / "probes")}
    adp.curate(recipe, probes / "pairs")
    result = pair_mix(probes / "pairs" / "pairs")
    assert result["mix"]["call over call"] == 20
    assert set(result["mix"]) <= {"call over call", "call over malformed"}
    assert figures(probes / "probes")["redundant"] == 1.0


def test_early_answers_balance_the_pairs(tmp_path):
    """Beside good calls of an agent that knows the way, an early answer is the worse side."""

    def good(request):
        calls = json.loads(request.task.expected_calls)
        if request.turn < len(calls):
            call = calls[request.turn]
            return Turn(calls=(Call(call["name"], json.dumps(call["arguments"])),))
        return Turn(text="answer: " + json.loads(request.task.answers)[0])

    policy = Scripted(good)
    collect_now(
        tmp_path / "probes",
        Toolworld,
        lambda about: Judged(policy, early=1.0),
        make_tasks(ToolworldSettings(failures=0.0, kinds=["c3"]), "train", 10, 1),
        CollectSettings(dataset="probes", timed=False, seal=True),
    )
    recipe = yaml.safe_load(RECIPE.read_text())
    recipe["inputs"] = {"probes": str(tmp_path / "probes")}
    adp.curate(recipe, tmp_path / "pairs")
    assert pair_mix(tmp_path / "pairs" / "pairs")["mix"] == {"call over answer": 20}
