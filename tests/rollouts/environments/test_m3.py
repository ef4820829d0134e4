"""M3's episodes: what is on offer, what comes back, how turns follow each other."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adp
from adp.eval.scorer import Item
from adp.eval.scorers.m3 import M3Scorer
from adp.rollouts.collecting.actor import Alone
from adp.rollouts.collecting.episode import run_episode
from adp.rollouts.collecting.recorder import About
from adp.rollouts.environment import ENVIRONMENTS
from adp.rollouts.environments import m3_scenario as scenario
from adp.rollouts.environments.m3 import KIND, M3Environment, M3Settings
from adp.rollouts.experts.modes import Assistance
from adp.rollouts.experts.settings import AssistSettings
from adp.rollouts.policies.expert import ExpertPolicy
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.spec import load
from adp.rollouts.turns import Call, Turn
from adp_schema.errors import EmptyResultError, UsageError
from adp_schema.model import Task
from tests.rollouts.collecting.worlds import Chain, Knowing, look

GOLD = Path(__file__).parents[3].parent / "shared" / "data" / "m3" / "bird-latest"
shared = pytest.mark.skipif(not GOLD.exists(), reason="the reference data are not here")


def tool(name, *keys):
    properties = {key: {"type": "string"} for key in keys}
    parameters = {"type": "object", "properties": properties, "required": list(keys)}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def hop(name, response, **arguments):
    output = {"name": name, "arguments": arguments}
    return [
        {"plan": f"use {name}", "question": f"{name}?", "output": output},
        {"response": response},
    ]


DOCS = {"collection": "gardens", "query": "mill"}
TURNS = [
    [{"input": "How many trees?"}, *hop("count", "{'trees': 12}", garden="mill"),
     *hop("retrieve_documents", "The mill is old.", **DOCS),
     {"plan": "seen", "answer": "Twelve.", "raw_answer": "[[12]]"}],
    [{"input": "And the owner?"}, *hop("owner", "{'owner': 'Ada'}", garden="mill"),
     {"plan": "seen", "answer": "Ada", "raw_answer": "[['Ada']]"}],
]  # fmt: skip
CONFIG = {
    "tools": [tool("count", "garden"), tool("owner", "garden")],
    "doc_collections": ["gardens"],
    "tool_availability_policy": "both_api_rag",
    "tool_usage_policy": "Be quick.",
}
FACTS = [
    {"query": "How many trees?", "gold_answer": "Twelve.", "raw_answer": "[[12]]"},
    {"query": "And the owner?", "gold_answer": "Ada"},
]
TASK = Task(
    task_id="t",
    instruction="How many trees?",
    gold_trajectory=json.dumps(TURNS),
    turns=json.dumps(FACTS),
    environment_config=json.dumps(CONFIG),
)
COUNT = Turn(calls=(Call("count", '{"garden": "mill"}', "c"),))


def begun(task=TASK, seed=3, inner=None, judge=None, **settings):
    environment = M3Environment(M3Settings(**settings), inner=inner, judge=judge)
    return environment, environment.reset(task, seed=seed)


def test_documents_are_retrieved_instead_of_replayed(tmp_path):
    (tmp_path / "gardens").mkdir()
    (tmp_path / "gardens" / "mill.txt").write_text("The mill was built in 1801.")
    spec = f"retrieve_documents:collections={tmp_path}"
    environment, _ = begun(retrieve=spec)
    assert {tool["function"]["name"] for tool in environment.tools()} == {
        "count", "owner", "retrieve_documents",
    }  # fmt: skip
    asked = Turn(calls=(Call("retrieve_documents", json.dumps(DOCS), "r"),))
    (result,) = environment.step(asked).results
    assert result.text == "ToolCallSuccessful: mill\nThe mill was built in 1801."
    (counted,) = environment.step(COUNT).results
    assert counted.text == "ToolCallSuccessful: {'trees': 12}"
    for wrong in ({"retrieve": "calculator"}, {"retrieve": spec, "inner": "calculator"}):
        with pytest.raises(UsageError, match="retrieve takes retrieve_documents"):
            begun(**wrong)


def only(outcome):
    (result,) = outcome.results
    return result.text.split(":")[0], result.error and str(result.error), outcome.labels


@pytest.mark.parametrize(
    ("availability", "names"),
    [
        (None, {"count", "owner", "retrieve_documents"}),
        ("both_api_rag", {"count", "owner", "retrieve_documents"}),
        ("only_api", {"count", "owner"}),
        ("only_rag", {"retrieve_documents"}),
        ("neither_api_rag", set()),
    ],
)
def test_what_is_on_offer(availability, names):
    environment, start = begun(availability=availability)
    assert {item["function"]["name"] for item in environment.tools()} == names
    assert start.policies["policy_tool_availability"] == (availability or "both_api_rag")
    # M3 filters the prompt only; a switch refuses the call as well.
    assert only(environment.step(COUNT))[0] == "ToolCallSuccessful"
    environment, _ = begun(availability=availability, enforce=True)
    wanted = "ToolCallSuccessful" if "count" in names else "ToolDoesNotFoundError"
    assert only(environment.step(COUNT))[0] == wanted


def test_results_errors_and_categories():
    environment, _ = begun(horizon=99)
    step = environment.step
    assert only(step(COUNT)) == ("ToolCallSuccessful", None, ("REWARD_SUCCESS_TOOL_CALL",))
    bad = ("REWARD_BAD_TOOL_CALL",)
    cases = [
        (Call("nothing", "{}"), "ToolDoesNotFoundError", "unknown_tool", bad),
        (Call("count", "{}"), "ToolMissingArgumentError", "invalid_args", bad),
        (Call("count", '{"garden": "x"}'), "ToolCallError", "execution", bad),
        (Call("count", "{"), "ParsingError", "parsing", ("REWARD_PARSING_ERROR",)),
    ]
    for call, prefix, error, labels in cases:
        assert only(step(Turn(calls=(call,)))) == (prefix, error, labels)
    unreadable = step(Turn(text="{", malformed="no JSON"))
    assert only(unreadable) == ("ParsingError", "parsing", ("REWARD_PARSING_ERROR",))
    two = step(Turn(calls=(Call("count", '{"garden": "mill"}', "a"), Call("owner", "{}", "b"))))
    assert [result.call_id for result in two.results] == ["a", "b"]
    assert {result.text.split(":")[0] for result in two.results} == {"ParallelToolCallingError"}
    assert two.labels == ("REWARD_PARSING_ERROR",)


def test_turns_follow_each_other_and_collapse_to_golden_answers():
    environment, start = begun()
    assert start.messages[-1] == {"role": "user", "content": "How many trees?"}
    environment.step(COUNT)
    outcome = environment.step(Turn(text="Thirteen."))
    assert outcome.labels == ("REWARD_FINAL_ANSWER_NO_MATCH",)
    assert (outcome.messages, outcome.terminated) == (("And the owner?",), False)
    assert outcome.context == (
        {"role": "user", "content": "How many trees?"},
        {"role": "assistant", "content": "Twelve."},
    )
    last = environment.step(Turn(text="ada."))
    assert (last.terminated, last.labels) == (True, ("REWARD_FINAL_ANSWER_MATCH",))
    verdict = environment.score(adp_trajectory("ada."))
    # M3's success is the verdict about the last step.
    assert (verdict.success, verdict.rewards) == (True, {"turns_right": 0.5})
    environment, _ = begun(collapse=False)
    assert environment.step(Turn(text="Twelve.")).context is None


def adp_trajectory(answer):
    from adp_schema.model import Trajectory

    return Trajectory(final_answer=answer)


def test_a_truncated_golden_answer_gives_way_to_the_raw_one():
    facts = [{**FACTS[0], "was_truncated": True}, FACTS[1]]
    environment, _ = begun(TASK.model_copy(update={"turns": json.dumps(facts)}))
    assert environment.step(Turn(text="Twelve.")).context[1]["content"] == "[[12]]"


@pytest.mark.parametrize(
    ("script", "terminated", "success"),
    [
        ([COUNT, COUNT, COUNT], False, False),
        ([COUNT, Turn(text="Twelve"), Turn(text="Ada")], True, True),
        ([COUNT, COUNT, Turn(text="Twelve")], False, True),
    ],
)
def test_the_horizon_counts_over_all_turns(script, terminated, success):
    environment, _ = begun(horizon=3)
    outcomes = [environment.step(turn) for turn in script]
    last = outcomes[-1]
    assert (last.terminated, last.truncated) == (terminated, not terminated)
    assert not any(outcome.terminated or outcome.truncated for outcome in outcomes[:-1])
    assert environment.score(adp_trajectory("x")).success is success
    if script[-1].calls:
        assert only(last) == ("Max Steps Reached!", "limit", ("REWARD_NO_PENALTY",))


@pytest.mark.parametrize(
    ("availability", "answer", "right"),
    [
        ("only_api", "I do not know", True),
        ("only_api", "Twelve.", False),
        ("both_api_rag", "I do not know", False),
        ("neither_api_rag", "I can not answer!", True),
        ("only_rag", "Insufficient information to respond.", True),
        ("only_api", "I do not know the owner, it is Ada", False),
    ],
)
def test_giving_up_is_right_when_a_tool_is_missing(availability, answer, right):
    environment, _ = begun(availability=availability)
    label = "REWARD_FINAL_ANSWER_MATCH" if right else "REWARD_FINAL_ANSWER_NO_MATCH"
    outcome = environment.step(Turn(text=answer))
    assert outcome.labels == (label,)
    if availability == "only_api":
        assert outcome.context[1]["content"] in scenario.FALLBACKS
        # The second turn needs no documents.
        assert environment.step(Turn(text="Ada")).labels == ("REWARD_FINAL_ANSWER_MATCH",)


def test_a_golden_answer_may_be_to_give_up():
    facts = [{**FACTS[0], "gold_answer": "I don't know."}, FACTS[1]]
    task = TASK.model_copy(update={"turns": json.dumps(facts)})
    for answer, right in (("I cannot answer this.", True), ("Twelve.", False)):
        label = "REWARD_FINAL_ANSWER_MATCH" if right else "REWARD_FINAL_ANSWER_NO_MATCH"
        assert begun(task)[0].step(Turn(text=answer)).labels == (label,)


def test_a_judge_of_your_own():
    asked = []

    def judge(question, right, given):
        asked.append((question, right, given))
        return None if given == "?" else given == "12"

    environment, _ = begun(judge=judge)
    assert environment.step(Turn(text="12")).labels == ("REWARD_FINAL_ANSWER_MATCH",)
    assert asked == [("How many trees?", "Twelve.", "12")]
    assert environment.step(Turn(text="?")).labels == ()
    assert environment.score(adp_trajectory("?")).success is None


@settings(max_examples=10)
@given(st.integers(0, 99))
def test_the_final_answer_policy_follows_from_the_seed(seed):
    _, result = begun(seed=seed)
    _, other = begun(seed=seed)
    assert result == other
    policy = result.policies["policy_final_answer"]
    assert sum(text in policy for text in scenario.FALLBACKS) == 1
    assert "Be quick." in result.messages[0]["content"]
    assert policy in result.messages[0]["content"]


def test_policies_are_drawn():
    policies = {begun(seed=seed)[1].policies["policy_final_answer"] for seed in range(300)}
    assert len(policies) == len(scenario.FALLBACKS) * len(scenario.INSUFFICIENT)
    _, start = begun(ordering="api_before_rag")
    assert scenario.ORDERINGS["api_before_rag"] in start.messages[0]["content"]
    assert start.info["scenario"] == "both_api_rag-api_before_rag"


@given(st.lists(st.sampled_from(["API", "RETRIEVE", "FINAL", "OTHER"]), max_size=6))
def test_following_a_scenario_as_m3_checks_it(kinds):
    text = "".join(kind[0] for kind in kinds)
    first = {name: text.find(name) for name in "AR"}
    both = min(first.values()) >= 0
    assert scenario.followed("x-api_before_rag", kinds) == (both and text.rfind("A") < first["R"])
    assert scenario.followed("x-rag_before_api", kinds) == (both and text.rfind("R") < first["A"])
    assert scenario.followed("rag_only", kinds) == ("A" not in text)
    assert scenario.followed("api_only", kinds) == ("R" not in text)
    assert scenario.followed(None, kinds)
    assert scenario.followed("both_api_rag", kinds)


def run(environment, actor, task=TASK):
    about = About("m3", 0, task, "expert", "m3", 3, timed=False)
    return asyncio.run(run_episode(about, environment, actor))


@pytest.mark.parametrize("availability", [None, "only_api", "neither_api_rag"])
def test_the_expert_solves_every_scenario(availability):
    result = run(
        M3Environment(M3Settings(availability=availability)), ExpertPolicy().actors.actor()
    )
    assert (result.success, result.terminated) == (True, True)
    assert result.policy_tool_availability == (availability or "both_api_rag")
    assert result.policy_tool_usage == "Be quick."
    last = [step for step in result.steps if step.source == "agent" and not step.synthetic][-1]
    assert last.labels == ["REWARD_FINAL_ANSWER_MATCH"]


def test_an_informed_run_over_several_turns_has_alternates():
    script = [Turn(text="?")] * 9
    actor = Assistance(AssistSettings(), Scripted(script)).actor()
    result = run(M3Environment(), actor)
    assert result.success
    sides = [branch.steps[0] for branch in result.branches]
    assert [step.labels for step in sides] == [["REWARD_FINAL_ANSWER_NO_MATCH"]] * 3
    assert [step.turn for step in sides] == [0, 0, 1]
    labels = [step.labels for step in result.steps if step.actor]
    good, match = ["REWARD_SUCCESS_TOOL_CALL"], ["REWARD_FINAL_ANSWER_MATCH"]
    assert labels == [good, good, match, good, match]
    # What was copied into the new conversation is no action.
    scores = {score.metric: score.value for score in M3Scorer().score(Item(result))}
    assert (scores["run_length"], scores["helps"]) == (5, 5)
    assert (scores["actions_retrieve"], scores["scenario_followed"]) == (1, 1)


def test_the_expert_as_a_plain_policy():
    # Answers are judged by what is in the task, also when it is only asked for turns.
    result = run(M3Environment(), Alone(ExpertPolicy()))
    assert result.success
    with pytest.raises(UsageError, match="needs an expert"):
        run(Chain(), Alone(ExpertPolicy()), Task(task_id="x", instruction="?"))


def test_around_another_environment():
    task = Task(task_id="t", instruction="Where does a lead?")
    environment = M3Environment(M3Settings(horizon=4), inner=Knowing())
    actor = Assistance(AssistSettings(), Scripted([look("x")] * 9)).actor()
    result = run(environment, actor, task)
    assert [step.actor for step in result.steps if step.actor] == [
        "agent",
        "agent",
        "expert",
        "agent",
    ]
    assert (result.truncated, result.stop_reason, result.success) == (True, "horizon", False)
    assert result.steps[2].observations[0].text == "ToolCallError: nothing lies at x"
    assert len(result.branches) == 3
    result = run(M3Environment(M3Settings(results="plain"), inner=Knowing()),
                ExpertPolicy().actors.actor(), task)  # fmt: skip
    assert result.success
    assert result.steps[2].observations[0].text == '{"value": "b", "count": 1}'


def test_a_fork_is_independent():
    environment, _ = begun()
    fork = environment.fork()
    assert fork.step(Turn(text="Twelve")).messages == ("And the owner?",)
    assert environment.step(COUNT).labels == ("REWARD_SUCCESS_TOOL_CALL",)
    assert environment.step(Turn(text="no")).labels == ("REWARD_FINAL_ANSWER_NO_MATCH",)
    assert fork.step(Turn(text="Ada")).terminated
    assert fork.score(adp_trajectory("Ada")).success
    assert len(environment._verdicts) == 1


def test_a_task_without_tools_is_refused():
    with pytest.raises(UsageError, match="does not tell its tools"):
        begun(Task(task_id="t", instruction="?"))
    with pytest.raises(UsageError, match="needs a task"):
        begun(None, inner=Nothing())
    with pytest.raises(UsageError, match="store=STORE"):
        KIND.tasks(M3Settings(), "train", None, 0)


class Nothing(Chain):
    def reset(self, task=None, *, seed=None):
        from adp.rollouts.environment import Start

        return Start(())


def test_settings_of_the_command_line():
    kind, settings = load(ENVIRONMENTS, "m3:inner=toolworld,horizon=6")
    environment = kind.make(settings)
    (task, *_) = kind.tasks(settings, "train", 3, 0)
    result = run(environment, ExpertPolicy().actors.actor(), task)
    assert result.success is True


@pytest.mark.parametrize("mode", ["ground_truth", "informed"])
def test_whether_there_is_an_expert_is_known_before_the_episode_begins(mode):
    assistance = Assistance(AssistSettings(mode=mode), Scripted([]))
    bare = Task(task_id="bare", instruction="How many trees?")
    assert assistance.missing(TASK, M3Environment()) is None
    assert "needs an expert" in assistance.missing(bare, M3Environment())
    only = Assistance(AssistSettings(mode=mode, expert="environment"), Scripted([]))
    assert "needs an expert" in only.missing(TASK, M3Environment())


@shared
def test_reference_data_of_m3(tmp_path):
    store = str(tmp_path / "s")
    adp.convert([str(GOLD)], store)
    tasks = KIND.tasks(M3Settings(store=store), "test", None, 0)
    assert len(tasks) == 6
    (file,) = GOLD.rglob("*.json")
    raw = {sample["sample_id"]: sample for sample in json.loads(file.read_text())}
    for task in tasks:
        result = run(M3Environment(), ExpertPolicy().actors.actor(), task)
        sample = raw[task.task_id]
        assert (result.success, result.terminated) == (True, True)
        assert result.final_answer == sample["turns"][-1]["answer"]
        given = [step.observations[0].text for step in result.steps if step.observations]
        wanted = [item["response"] for turn in sample["trajectory"] for item in turn
                  if "response" in item]  # fmt: skip
        assert given == [f"ToolCallSuccessful: {response}" for response in wanted]
        tools = {tool["function"]["name"]: tool["function"] for tool in json.loads(result.tools)}
        assert set(tools) == {tool["name"] for tool in sample["tools"]}
        assert set(tools["retrieve_documents"]["parameters"]["properties"]) == {
            "collection",
            "query",
        }
    # Documents are not needed here, so their absence changes nothing.
    result = run(M3Environment(M3Settings(availability="only_rag")), ExpertPolicy().actors.actor(),
                tasks[0])  # fmt: skip
    assert result.success
    assert scenario.is_refusal(result.final_answer)


def test_a_store_without_tasks_is_refused(tmp_path):
    from tests.curation.ops.pair_checks import store_of

    store_of(tmp_path / "s", {"steps": []})
    with pytest.raises(EmptyResultError, match="no task with a reference run"):
        KIND.tasks(M3Settings(store=str(tmp_path / "s")), "test", None, 0)
