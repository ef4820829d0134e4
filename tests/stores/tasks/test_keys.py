"""Which tasks are one: by data set and id, in one store and between stores."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.eval.metrics import Intervals, mean_figures, paired_difference, pass_figures
from adp.eval.scorer import Score, Scored
from adp.eval.scoring import ScoreOptions, read_scores, references, score_store
from adp.eval.scoring.references import from_store, from_tasks
from adp.stores.tasks import TaskIndex, TaskKey, find_tasks, same_tasks
from adp.stores.tasks.rows import ROLLOUT
from adp.workflows.report_eval import evaluation
from adp_schema.builder import Origin, RowBuilder
from adp_schema.model import Task
from adp_schema.store import Store
from tests.eval.scoring.small import chosen, grown, run
from tests.store_builders import write_store


def rollout(name, attempt=0, *, store="runs", environment="sums", of=None, asks=None, **columns):
    """What `adp collect` writes: the data set of the trajectory is named after the store."""
    task = Task(task_id=name, dataset=of, instruction=asks or f"{environment} {of} {name}?",
                answers='["2"]')  # fmt: skip
    ours = {
        "dataset": store,
        "source_format": ROLLOUT,
        "agent_name": "one",
        "extra": json.dumps({"environment": environment}),
        "task": task,
    }
    return run(name, attempt, **ours | columns)


def two_sets():
    """Runs in which two data sets, and two environments, have a task "1"."""
    return {
        "data sets": [
            run("1", attempt, dataset=name, success=name == "a", source_id=f"{name}{attempt}",
                task=Task(task_id="1", instruction="1 + 1?", answers=json.dumps([name])))
            for name in "ab" for attempt in range(2)
        ],
        "tasks of data sets": [
            rollout("1", attempt, of=name, success=name == "a", source_id=f"{name}{attempt}")
            for name in "ab" for attempt in range(2)
        ],
        "environments": [
            rollout("1", attempt, environment=name, asks="1 + 1?", success=name == "a",
                    source_id=f"{name}{attempt}")
            for name in "ab" for attempt in range(2)
        ],
        "files": [
            rollout("1", attempt, asks=name, success=name == "a", source_id=f"{name}{attempt}")
            for name in "ab" for attempt in range(2)
        ],
    }  # fmt: skip


@pytest.mark.parametrize("kind", two_sets())
def test_two_tasks_with_one_id_are_two_everywhere(tmp_path, kind):
    store = grown(tmp_path / "s", *two_sets()[kind])
    report = score_store(store, [chosen()])
    figures = {figure.name: figure for figure in report.scorers[0].figures}
    assert (figures["success"].value, figures["success"].tasks) == (0.5, 2)
    # With four attempts at one task it would be 5 / 6 and 1 / 6, and pass@4 would be there.
    assert (figures["pass@2"].value, figures["pass^2"].value) == (0.5, 0.5)
    assert "pass@4" not in figures
    (messages,) = evaluation([store]).runs
    assert (messages.tasks, messages.attempts, messages.success.tasks) == (2, (2, 2), 2)
    assert [figure.value for figure in messages.passes if figure.name == "pass^2"] == [0.5]
    (scores,) = read_scores(store)
    same = paired_difference(scores.rows, scores.rows, "success")
    assert (same.figure.tasks, same.equal, same.only_first) == (2, 2, 0)


def test_attempts_without_a_row_have_that_of_their_own_data_set(tmp_path):
    first, second, third, fourth = two_sets()["data sets"]
    second.task = fourth.task = None
    stranger = run("1", dataset="c", source_id="c", task=None)
    store = grown(tmp_path / "s", first, second, third, fourth, stranger)
    index = TaskIndex(store)
    trajectories = [
        index.of(trajectory.model_copy(update={"task": None}))
        for trajectory in store.trajectories()
    ]
    assert [task and json.loads(task.answers) for task in trajectories] == [["a"]] * 2 + [
        ["b"]
    ] * 2 + [None]
    tasks = find_tasks(store)
    assert tasks["c/c"] == (TaskKey("c", None, "1"), None)


def test_a_run_without_a_row_that_may_be_of_two_tasks_has_none(tmp_path):
    first, _, third, _ = two_sets()["tasks of data sets"]
    stranger = rollout("1", 9, source_id="stranger", task=None)
    store = grown(tmp_path / "s", first, third, stranger)
    (last,) = [
        trajectory for trajectory in store.trajectories() if trajectory.source_id == "stranger"
    ]
    assert TaskIndex(store).of(last) is None
    assert find_tasks(store)[last.trajectory_id] == (TaskKey(None, "sums", "1"), None)
    # With one such task, it is that one.
    store = grown(tmp_path / "one", first, stranger)
    assert TaskIndex(store).of(last).dataset == "a"


def test_a_report_shows_the_data_sets_of_tasks_not_the_names_of_runs(tmp_path):
    (messages,) = evaluation([grown(tmp_path / "s", *two_sets()["tasks of data sets"])]).runs
    parts = {group.name: group.success.value for group in messages.groups if group.by == "dataset"}
    assert parts == {"a": 1.0, "b": 0.0}


def test_a_reference_is_of_the_same_data_set(tmp_path):
    store = grown(tmp_path / "s", *two_sets()["data sets"])
    gold = grown(tmp_path / "gold", run("1", dataset="a", final_answer="9"))
    for known in (from_store(gold), from_tasks(gold)):
        (only,) = {key.dataset for key in known.tasks}
        keys = [task.key for task in find_tasks(store).values()]
        assert (only, {key.dataset for key in known.over(keys)}) == ("a", {"a"})
    # A task that names no data set is of neither, when both have its id and ask the same.
    unnamed = references("file", [Task(task_id="1", instruction="1 + 1?", answers='["2"]')])
    assert unnamed.over(keys) == {}
    report = score_store(store, [chosen()], ScoreOptions(references=from_store(gold)))
    right = next(figure for figure in report.scorers[0].figures if figure.name == "right")
    assert (right.value, right.count) == (0.0, 4)


@pytest.mark.parametrize(
    ("first", "second", "pairs"),
    [
        # What two collected stores hold: the task names its data set, or nobody does.
        ({"of": "toolworld", "store": "base"}, {"of": "toolworld", "store": "tuned"}, 3),
        ({"store": "base"}, {"store": "tuned"}, 3),
        ({"store": "base"}, {"store": "tuned", "asks": "another question"}, 0),
        ({"of": "a", "store": "base"}, {"of": "b", "store": "base"}, 0),
        # One set of tasks in two environments: the same words.
        ({"environment": "x", "asks": "?"}, {"environment": "y", "asks": "?"}, 3),
    ],
)
def test_the_same_task_is_found_in_stores_of_other_names(tmp_path, first, second, pairs):
    stores = [
        grown(tmp_path / name, *(rollout(str(number), success=number < good, **columns)
                                 for number in range(3)))
        for name, good, columns in (("one", 1, first), ("two", 2, second))
    ]  # fmt: skip
    (result, *_) = evaluation(stores).comparisons
    assert result.difference.figure.tasks == pairs
    assert result.difference.figure.value == (pytest.approx(1 / 3) if pairs else None)
    assert result.difference.only_first == 3 - pairs


def test_converted_stores_that_name_one_data_set_differently():
    task_keys = [TaskKey("gpt", None, str(number), f"asks {number}") for number in range(3)]
    theirs = [key._replace(dataset="llama") for key in task_keys]
    assert same_tasks(task_keys, theirs) == {
        other.name: task_key.name for task_key, other in zip(task_keys, theirs, strict=True)
    }
    # Where both sides know a data set, its name counts; and without words only the name does.
    assert same_tasks([*task_keys, theirs[0]], theirs[:2]) == {theirs[0].name: theirs[0].name}
    assert same_tasks(task_keys, [key.name for key in theirs]) == {}
    assert same_tasks([TaskKey(None, None, "1")], theirs) == {
        theirs[1].name: TaskKey(None, None, "1")
    }


def slow_clusters(rows):
    """Means by task, the slow way: every pair of rows is looked at."""
    parts = []
    for row in rows:
        for part in parts:
            other = part[0]
            if row.task.task_id == other.task.task_id and row.task.dataset == other.task.dataset:
                part.append(row)
                break
        else:
            parts.append([row])
    return parts


def test_figures_against_a_slow_oracle():
    drawn = random.Random(4)
    rows = [
        Scored(f"{number}", task_id, 0, Score("success", float(drawn.random() < 0.6)),
               TaskKey(dataset, None, task_id))
        for number, (dataset, task_id) in enumerate(
            [(dataset, task_id) for dataset in ("a", "b", None) for task_id in "1234"] * 3
        )
    ]  # fmt: skip
    parts = slow_clusters(rows)
    assert len(parts) == 12
    solved = [all(row.score.value for row in part) for part in parts]
    some = [any(row.score.value for row in part) for part in parts]
    figures = {figure.name: figure for figure in pass_figures(rows)}
    assert figures["pass^3"].value == pytest.approx(sum(solved) / 12)
    assert figures["pass@3"].value == pytest.approx(sum(some) / 12)
    (mean,) = mean_figures(rows, intervals=Intervals(method="cluster"))
    center = mean.value
    sums = [sum(row.score.value - center for row in part) for part in parts]
    error = (sum(item * item for item in sums) * 12 / 11) ** 0.5 / len(rows)
    assert mean.high - center == pytest.approx(2.200985 * error, rel=1e-5)


def test_nothing_is_guessed_between_stores():
    """A task that could be two of the other side is none; words count before the id alone."""
    unnamed = [TaskKey(None, "sums", "1", words) for words in ("x", "y")]
    other = TaskKey("d", None, "1", "y")
    assert same_tasks(unnamed, [other]) == {other.name: unnamed[1]}
    assert same_tasks(unnamed, [other.name]) == {}
    # A file that gives only ids and answers is about what is there, when that is one task.
    bare = TaskKey(None, None, "1")
    assert same_tasks([bare], [other]) == {other.name: bare}
    assert same_tasks([bare], unnamed) == {}
    assert same_tasks([TaskKey("e", None, "1")], [other]) == {}
    twins = [TaskKey(None, "sums", "1", "y"), TaskKey(None, "more", "1", "y")]
    assert same_tasks(twins, [other]) == {}


KEYS = st.builds(
    TaskKey, st.sampled_from([None, "a", "b"]), st.sampled_from([None, "e"]),
    st.sampled_from("12"), st.sampled_from([None, "x", "y"]),
)  # fmt: skip


@given(st.lists(KEYS, max_size=6), st.lists(KEYS, max_size=6))
def test_tasks_are_paired_one_to_one_and_alike_from_both_sides(first, second):
    pairs = same_tasks(first, second)
    assert len(set(pairs.values())) == len(pairs)
    assert set(pairs.values()) <= {key.name for key in first}
    assert set(pairs) <= {key.name for key in second}
    assert {result: other for other, result in pairs.items()} == same_tasks(second, first)
    assert all(result.task_id == other.task_id for other, result in pairs.items())
    assert {name for name in pairs if pairs[name] == name} == {key.name for key in first} & {
        key.name for key in second
    }
    for other, pair in pairs.items():
        # Two data sets that both sides have are never mixed up.
        assert pair == other or None in (pair.dataset, other.dataset) or (
            pair.origin not in {key.origin for key in second}
            and other.origin not in {key.origin for key in first}
        )  # fmt: skip


def test_all_tasks_of_a_store_with_several_rows_at_one_trajectory(tmp_path):
    """Rows that an earlier command hung from another trajectory are found, and none is lost."""
    builder = RowBuilder()
    for seq, name in enumerate(("1", "2")):
        builder.begin(Origin(seq=seq, dataset="d"))
        builder.trajectory({"source_id": name, "task_id": name})
        if not seq:
            for task in ("1", "2", "3"):
                builder.task({"task_id": task, "instruction": f"do {task}"})
        builder.finish()
    index = TaskIndex(write_store(tmp_path / "s", builder))
    names = {key: task.instruction for key, task in index.tasks().items()}
    assert {key.task_id: text for key, text in names.items()} == {
        name: f"do {name}" for name in "123"
    }
    store = Store.open(str(tmp_path / "s"))
    bare = [trajectory.model_copy(update={"task": None}) for trajectory in store.trajectories()]
    results = [index.of(item) for item in bare]
    assert [task and task.instruction for task in results] == ["do 1", "do 2"]
    assert [index.key(item) for item in bare] == [TaskKey("d", None, name) for name in "12"]
