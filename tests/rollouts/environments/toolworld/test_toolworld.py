"""Toolworld: the expert, the splits, failures, forks and the verdict."""

from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adp.rollouts.collecting.actor import Acted, Alone
from adp.rollouts.collecting.episode import run_episode
from adp.rollouts.collecting.limits import Limits
from adp.rollouts.collecting.recorder import About
from adp.rollouts.environment import ENVIRONMENTS, Environment
from adp.rollouts.environments.toolworld import Toolworld, ToolworldSettings, make_tasks
from adp.rollouts.environments.toolworld.questions import KEYS, split_of_pair
from adp.rollouts.environments.toolworld.world import is_name, split_of_name
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.spec import load
from adp.rollouts.turns import Call, ErrorType, Turn
from adp_schema.errors import UsageError

KINDS = ("c1", "c2", "c3", "c4", "sum", "cmp")
some_settings = st.builds(
    ToolworldSettings,
    kinds=st.lists(st.sampled_from(KINDS), min_size=1).map(lambda kinds: ("c1", *kinds)),
    max_hops=st.integers(1, 4),
    failures=st.sampled_from([0.0, 0.12, 0.9]),
    endings=st.sampled_from(["attribute", "any"]),
    distractors=st.integers(0, 4),
    tool_names=st.sampled_from(["fixed", "random"]),
    budget=st.integers(0, 4),
)
splits = st.sampled_from(["train", "test", "unseen_tools", "longer_paths"])


class Expert(Alone):
    """Does what the environment says."""

    async def act(self, request, view):
        return Acted(view.environment.inner.expert_turn())


def play(task, script=None):
    about = About(dataset="toolworld", task=task, timed=False)
    actor = Alone(Scripted(script)) if script is not None else Expert(Scripted([]))
    return asyncio.run(run_episode(about, Toolworld(), actor, Limits(max_turns=None)))


def started(task):
    environment = Toolworld()
    environment.reset(task)
    return environment


def finish(environment):
    """Let the expert go on to the end; the turns and what they brought."""
    results = []
    while True:
        turn = environment.expert_turn()
        outcome = environment.step(turn)
        results.append((turn, outcome))
        if outcome.terminated or outcome.truncated:
            return results


@settings(max_examples=40, deadline=None)
@given(some_settings, splits, st.integers(0, 50))
def test_the_expert_solves_every_task_with_the_known_number_of_calls(options, split, seed):
    for task in make_tasks(options, split, 4, seed):
        result = play(task)
        rewards = json.loads(result.rewards)
        calls = json.loads(task.expected_calls)
        assert (result.success, result.reward, result.stop_reason) == (True, 1.0, "answer")
        assert json.loads(task.answers) == [result.final_answer]
        assert rewards["clean"] == rewards["efficiency"] == 1.0
        assert rewards["calls"] == rewards["optimal"] == len(calls)
        made = [
            {"name": call.name, "arguments": json.loads(call.arguments)}
            for step in result.steps
            if "needed" in (step.labels or ())
            for call in step.calls
        ]
        assert made == calls


@settings(max_examples=30, deadline=None)
@given(some_settings, splits, st.integers(0, 50), st.data())
def test_the_expert_finds_its_way_back_from_any_state(options, split, seed, data):
    generous = options.model_copy(update={"budget": 4})
    (task,) = make_tasks(generous, split, 1, seed)
    environment = started(task)
    strays = [
        Turn(malformed="no JSON", text="{"),
        Turn(calls=(Call("nothing", "{}"),)),
        Turn(calls=(Call(environment.tools()[0]["function"]["name"], "{"),)),
        environment.expert_turn(),
    ]
    for stray in data.draw(st.lists(st.sampled_from(strays), max_size=3)):
        assert not environment.step(stray).truncated
    assert finish(environment)[-1][1].labels == ("right_answer",)


def words_of(task):
    texts = [task.instruction, task.expected_calls, task.answers]
    environment = started(task)
    texts += [result.text for _, outcome in finish(environment) for result in outcome.results]
    words = " ".join(texts).replace('"', " ").replace(",", " ").replace("?", " ").split()
    return {word for word in words if is_name(word)}


def pairs_of(task):
    question = json.loads(task.environment_config)["question"]
    for path in question["paths"]:
        keys = [*path["keys"], *([question["attribute"]] if question["attribute"] else [])]
        yield list(zip(keys[1:], keys, strict=False))


def test_names_and_compositions_of_the_splits_are_disjoint():
    options = ToolworldSettings(endings="any")
    train, test = (make_tasks(options, split, 400, 3) for split in ("train", "test"))
    names = [set().union(*map(words_of, tasks)) for tasks in (train, test)]
    assert all(names)
    assert not names[0] & names[1]
    assert {split_of_name(name) for name in names[1]} == {"test"}
    seen = {pair for task in train for pairs in pairs_of(task) for pair in pairs}
    for task in test:
        for pairs in pairs_of(task):
            assert not pairs or any(pair not in seen for pair in pairs)
    assert json.loads(test[1].extra)["unseen_pairs"] >= 1
    unseen = [split_of_pair(outer, inner) for outer in KEYS for inner in KEYS]
    assert 0.1 < unseen.count("test") / len(unseen) < 0.3


def test_tasks_depend_on_settings_split_and_seed_alone():
    options = ToolworldSettings(tool_names="random")
    some = make_tasks(options, "train", 20, 1)
    assert some == make_tasks(options, "train", 40, 1)[:20]
    texts = {task.instruction for seed in (1, 2) for task in make_tasks(options, "train", 20, seed)}
    assert len(texts) == 40
    assert [task.difficulty for task in some[:5]] == ["c1", "c2", "c3", "sum", "cmp"]
    tools = [
        {name for task in make_tasks(options, split, 100, 1) for name in names_of(task)}
        for split in ("train", "test")
    ]
    assert not tools[0] & tools[1]


def test_unseen_tools_have_two_tools_with_names_and_arguments_that_training_never_has():
    options = ToolworldSettings()
    train, unseen = (make_tasks(options, split, 200, 5) for split in ("train", "unseen_tools"))
    seen = {word for task in train for word in schema_words(task)}
    for task in unseen:
        renamed = json.loads(task.environment_config)["arguments"]
        new = {word for name, keys in renamed.items() for word in (name, *keys)}
        needed = {call["name"] for call in json.loads(task.expected_calls)}
        assert len(renamed) == 2
        assert len(names_of(task)) == len(set(names_of(task))) == 6
        assert not new & seen
        assert schema_words(task) - seen == new
        assert needed & set(renamed)
    test = make_tasks(options, "test", 200, 5)
    assert not {task.instruction for task in unseen} & {task.instruction for task in test}


def schema_words(task):
    """Names of the tools that are offered, and of their arguments."""
    functions = [tool["function"] for tool in started(task).tools()]
    return {
        word for item in functions for word in (item["name"], *item["parameters"]["properties"])
    }


def test_the_old_name_of_a_tool_and_of_an_argument_is_not_understood():
    (task,) = make_tasks(ToolworldSettings(kinds=["c1"], failures=0.0), "unseen_tools", 1, 0)
    (call,) = json.loads(task.expected_calls)
    entity, key = call["arguments"].values()
    old = json.dumps({"entity": entity, "attribute": key})
    assert call["name"] == "inspect"
    wanted = {"lookup": ErrorType.UNKNOWN_TOOL, "inspect": ErrorType.INVALID_ARGS}
    for name, error in wanted.items():
        outcome = started(task).step(Turn(calls=(Call(name, old),)))
        assert outcome.results[0].error == error
        assert outcome.labels == ("malformed",)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 200), st.sampled_from([("c1", "sum"), ("c1", "c3", "sum"), ("c2", "cmp")]))
def test_longer_paths_are_longer_than_any_in_training(seed, kinds):
    options = ToolworldSettings(kinds=kinds)
    train, longer = (make_tasks(options, split, 12, seed) for split in ("train", "longer_paths"))
    most = {}
    for task in train:
        family = task.difficulty if task.difficulty in ("sum", "cmp") else "chain"
        most[family] = max(most.get(family, 0), longest_path(task))
    for task in longer:
        family = task.difficulty if task.difficulty == "sum" else "chain"
        limit = 2 if family == "sum" else most[family]
        assert limit < longest_path(task) <= limit + (1 if family == "sum" else 2)
    assert "cmp" not in {task.difficulty for task in longer}


def longest_path(task):
    paths = json.loads(task.environment_config)["question"]["paths"]
    return max(len(path["keys"]) for path in paths)


def names_of(task):
    return [name for _, name in json.loads(task.environment_config)["tools"]]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 200), st.integers(0, 3))
def test_a_fork_goes_its_own_way(seed, steps):
    (task,) = make_tasks(ToolworldSettings(kinds=["sum"], failures=0.3), "train", 1, seed)
    environment, untouched = started(task), started(task)
    for _ in range(steps):
        environment.step(environment.expert_turn())
        untouched.step(untouched.expert_turn())
    fork = environment.fork()
    fork.step(Turn(malformed="no", text="no"))
    rest = finish(fork)
    assert [plain(pair) for pair in finish(environment)] == [
        plain(pair) for pair in finish(untouched)
    ]
    assert rest[-1][1].labels == ("right_answer",)


def plain(pair):
    turn, outcome = pair
    return turn, outcome.labels, [result.text for result in outcome.results]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 500))
def test_failures_come_from_the_task_and_never_last(seed):
    (task,) = make_tasks(ToolworldSettings(failures=0.9999), "train", 1, seed)
    runs = [[plain(pair) for pair in finish(started(task))] for _ in range(2)]
    assert runs[0] == runs[1]
    labels = [label for _, labels, _ in runs[0] for label in labels]
    assert "busy" in labels
    assert "busybusybusy" not in "".join(labels)


def test_failures_have_about_the_asked_share():
    tasks = make_tasks(ToolworldSettings(failures=0.12), "test", 400, 0)
    labels = [label for task in tasks for _, out in finish(started(task)) for label in out.labels]
    share = labels.count("busy") / (labels.count("busy") + labels.count("needed"))
    assert 0.09 < share < 0.15


def test_each_call_is_judged():
    options = ToolworldSettings(kinds=["c2"], failures=0.0, budget=6)
    (task,) = make_tasks(options, "train", 1, 0)
    first, second = (
        Turn(calls=(Call(call["name"], json.dumps(call["arguments"])),))
        for call in json.loads(task.expected_calls)
    )
    entity = json.loads(first.calls[0].arguments)["entity"]
    relation = json.loads(first.calls[0].arguments)["relation"]
    other = "owner" if relation != "owner" else "maker"
    result = play(
        task,
        [
            first,
            Turn(calls=(Call("follow", json.dumps({"relation": relation, "entity": entity})),)),
            Turn(calls=(Call("follow", json.dumps({"entity": entity, "relation": other})),)),
            Turn(calls=(Call("follow", json.dumps({"entity": "Nobody", "relation": other})),)),
            Turn(calls=(Call("follow", json.dumps({"entity": entity})),)),
            Turn(calls=(Call("follow", '{"entity": "\\ud800", "relation": "owner"}'),)),
            Turn(malformed="not closed", text="<tool_call>"),
            second,
            Turn(text=f"Answer: {json.loads(task.answers)[0]}."),
        ],
    )
    labels = [step.labels for step in result.steps if step.source == "agent"]
    wanted = "needed redundant wrong wrong malformed wrong malformed needed right_answer"
    assert labels == [[label] for label in wanted.split()]
    rewards = json.loads(result.rewards)
    assert (result.success, rewards["clean"], rewards["efficiency"]) == (True, 0.0, 2 / 8)
    assert (rewards["redundant"], rewards["wrong"], rewards["malformed"]) == (1.0, 3.0, 2.0)


def test_the_order_of_summands_and_decimals_do_not_make_another_call():
    (task,) = make_tasks(ToolworldSettings(kinds=["sum"], failures=0.0), "train", 1, 0)
    *before, last = json.loads(task.expected_calls)
    environment = started(task)
    for call in before:
        environment.step(Turn(calls=(Call(call["name"], json.dumps(call["arguments"])),)))
    swapped = {"a": float(last["arguments"]["b"]), "b": last["arguments"]["a"]}
    outcome = environment.step(Turn(calls=(Call("add", json.dumps(swapped)),)))
    assert outcome.labels == ("needed",)
    assert outcome.results[0].text == json.loads(task.answers)[0]


def test_the_budget_ends_an_episode_and_busy_calls_are_free():
    (task,) = make_tasks(ToolworldSettings(kinds=["c1"], failures=0.0, budget=2), "train", 1, 0)
    result = play(task, lambda request: Turn(malformed="no", text="no"))
    assert (result.truncated, result.stop_reason, result.success) == (True, "budget", False)
    assert sum(step.source == "agent" for step in result.steps) == 1 + 1 + 2
    tasks = make_tasks(ToolworldSettings(failures=0.9, budget=0), "train", 20, 0)
    assert all(play(task).success for task in tasks)


@settings(max_examples=60, deadline=None)
@given(st.text(), st.sampled_from(["follow", "add", "compare", "locate", ""]))
def test_whatever_an_agent_writes_brings_a_result(arguments, name):
    (task,) = make_tasks(ToolworldSettings(distractors=4, failures=0.0), "train", 1, 0)
    outcome = started(task).step(Turn(calls=(Call(name, arguments), Call("add", arguments))))
    assert len(outcome.results) == len(outcome.labels) == 2


@pytest.mark.parametrize("number", ["1e300", "-1" + "0" * 400, "1" * 4300, "true", '"1"', "null"])
def test_numbers_out_of_bounds_are_refused(number):
    (task,) = make_tasks(ToolworldSettings(failures=0.0), "train", 1, 0)
    (result,) = started(task).step(Turn(calls=(Call("add", f'{{"a": {number}, "b": 1}}'),))).results
    assert result.error in (ErrorType.INVALID_ARGS, ErrorType.PARSING)


def test_it_is_in_the_registry_and_makes_a_task_of_its_own():
    kind, options = load(ENVIRONMENTS, "toolworld:kinds=[c1, cmp],failures=0")
    environment = kind.make(options)
    assert isinstance(environment, Environment)
    starts = [environment.reset(seed=seed).messages[1]["content"] for seed in (1, 1, 2)]
    assert starts[0] == starts[1] != starts[2]
    assert finish(environment)[-1][1].labels == ("right_answer",)


def test_what_cannot_be_done_is_one_sentence():
    with pytest.raises(UsageError, match="train, test, unseen_tools and longer_paths, not 'dev'"):
        make_tasks(ToolworldSettings(), "dev", 1)
    with pytest.raises(UsageError, match="no kind of toolworld has 1 hops"):
        make_tasks(ToolworldSettings(kinds=["c2"], max_hops=1), "train", 1)
    with pytest.raises(UsageError, match="c1 to c9"):
        load(ENVIRONMENTS, "toolworld:kinds=[c0]")
    (task,) = make_tasks(ToolworldSettings(), "train", 1)
    with pytest.raises(UsageError, match="longer_paths needs a kind from c1 to c8, or sum"):
        make_tasks(ToolworldSettings(kinds=["cmp"]), "longer_paths", 1)
    others = json.dumps(json.loads(task.environment_config) | {"arguments": {"follow": {"a": "b"}}})
    for config in (
        *(None, "[]", '{"question": 1}', task.environment_config.replace("c1", "sum")),
        *(others, others.replace('{"a": "b"}', "1")),
    ):
        broken = task.model_copy(update={"environment_config": config})
        with pytest.raises(UsageError, match="none of toolworld"):
            started(broken)
