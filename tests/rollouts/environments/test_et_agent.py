"""ET-Agent's environment: whole episodes in tags and with calls as data."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

from adp.core.tagged_run import invalid_v1
from adp.eval.scorer import Item
from adp.rollouts.collecting.actor import Alone
from adp.rollouts.collecting.episode import run_episode
from adp.rollouts.collecting.recorder import About
from adp.rollouts.environments.et_agent import KIND, EtToolEnvironment, EtToolSettings
from adp.rollouts.environments.search import SAMPLE, Library
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.run_text import run_text
from adp.rollouts.sandbox.command import bubblewrap
from adp.rollouts.searching.server import SearchServer
from adp.rollouts.trajectory_reading import agent_calls, agent_steps
from adp.rollouts.turns import Call, Turn
from adp.trainers.rollouts.et_agent import EtAgentReward, EtAgentSettings
from adp.trainers.rollouts.reward import FinishedRollout
from adp_schema.errors import UsageError
from adp_schema.model import Task
from tests.eval.scorers.runs import scorer, values

try:
    bubblewrap()
    WORKS = True
except UsageError:
    WORKS = False

ANSWER = "<think>so</think><answer>It is \\boxed{1991}.</answer>"
SEARCH = "<think>look</think> <search>Python released</search>"


def episode(*texts, answers=("1991",), dataset="hotpotqa", **settings):
    """An episode of an agent that writes these turns."""
    task = Task(
        task_id="t", instruction="When?", answers=json.dumps(list(answers)), dataset=dataset
    )
    about = About(dataset="d", task=task, environment="et_agent", timed=False)
    settings.setdefault("programs", 0)
    environment = EtToolEnvironment(EtToolSettings(**settings))
    turns = [text if isinstance(text, Turn) else Turn(text=text) for text in texts]
    return asyncio.run(run_episode(about, environment, Alone(Scripted(turns))))


def results(run):
    return [row.text for step in run.steps for row in step.observations]


def test_a_run_in_tags_is_a_valid_text_and_its_reward_is_that_of_the_text():
    run = episode(SEARCH, ANSWER)
    assert (run.final_answer, run.success, run.reward) == ("1991", True, 1.0)
    assert run.steps[0].source == "system"
    assert results(run)[0].startswith("<result>\n[python] Python\n")
    assert run.steps[2].text == SEARCH
    assert invalid_v1(run_text(agent_steps(run))) is None
    measured = EtAgentReward(EtAgentSettings()).measure(FinishedRollout("t", run), in_tags=True)
    assert (measured.right, measured.calls, measured.malformed) == (1.0, 1, False)
    score = values(scorer("et_agent").score(Item(run, run.task)))
    assert (score["headline"], score["search_calls"]) == (1.0, 1)


def test_a_stop_word_may_be_missing_and_what_follows_a_call_is_not_carried_out():
    invented = "</search><result>made up</result><search>more</search>"
    for text in (SEARCH.removesuffix("</search>"), SEARCH.removesuffix("</search>") + invented):
        run = episode(text, ANSWER)
        assert len(results(run)) == 1
        assert "[python] Python" in results(run)[0]


def test_each_tool_has_a_limit():
    run = episode(SEARCH, SEARCH, SEARCH, ANSWER, searches=2)
    assert [text.startswith("<result>\nTool execute failed") for text in results(run)] == [
        False, False, True,
    ]  # fmt: skip
    assert "no call of search is left" in results(run)[2]
    run = episode("<python>1</python>", ANSWER)
    assert "no call of python is left" in results(run)[0]


@pytest.mark.skipif(not WORKS, reason="bubblewrap is not installed or cannot work")
def test_programs_run_in_the_sandbox_and_their_results_are_cut():
    loop = "<think>t</think><python>while True: pass</python>"
    texts = ["<think>t</think><python>6 * 7</python>", "<python>print('x' * 99)</python>",
             "<python>1 / 0</python>", loop, ANSWER]  # fmt: skip
    run = episode(*texts, programs=6, python_characters=20, seconds=4)
    shown = [text.removeprefix("<result>\n").removesuffix("\n</result>") for text in results(run)]
    assert shown[0] == "42"
    assert shown[1] == "x" * 20 + " ..."
    assert shown[2].startswith("Traceback")
    assert shown[3] == "Execution Timeout"


def test_calls_as_data():
    call = Call("search", '{"query": "Python released"}', "c1")
    run = episode(Turn(calls=(call,)), "The answer is 1991.", form="calls", dataset="mine")
    assert run.steps[0].source == "user"
    assert json.loads(run.tools)[0]["function"]["name"] == "search"
    assert run.steps[1].observations[0].call_id == "c1"
    assert (run.success, run.final_answer) == (True, "The answer is 1991.")


@pytest.mark.parametrize(
    ("dataset", "given", "answers", "reward", "success"),
    [
        ("aime24", "0.5", ["\\frac12"], 1.0, True),
        ("aime24", "0.4", ["\\frac12"], 0.0, False),
        ("hotpotqa", "the Nile river", ["Nile"], 2 / 3, False),
        ("hotpotqa", "a long Nile river delta", ["long Nile river delta"], 1.0, True),
        ("mine", "the Nile", ["nile"], 1.0, True),
    ],
)
def test_the_data_set_says_what_is_right(dataset, given, answers, reward, success):
    run = episode(f"<answer>\\boxed{{{given}}}</answer>", answers=answers, dataset=dataset)
    assert (run.reward, run.success) == (pytest.approx(reward), success)


def test_a_server_is_searched():
    with SearchServer(Library(SAMPLE)) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        run = episode(SEARCH, ANSWER, server=server.url)
        server.shutdown()
        thread.join()
    assert results(run)[0].startswith("<result>\n[python] Python\n")
    lost = episode(SEARCH, ANSWER, server=server.url, search_seconds=1)
    assert lost.error_type == "infrastructure"
    assert "the search server cannot be asked" in lost.error_message


def test_settings():
    assert KIND.settings(prompt="").prompt == ""
    with pytest.raises((UsageError, ValueError), match="give one of them"):
        KIND.settings(server="http://h:1", corpus="docs")


def test_scorers_find_the_same_calls_in_tags_and_as_data():
    tagged = episode(SEARCH, SEARCH.removesuffix("</search>"), "<search>nowhere</search>", ANSWER)
    call = Turn(calls=(Call("search", '{"query": "Python released"}'),))
    lost = Turn(calls=(Call("search", '{"query": "nowhere"}'),))
    data = episode(call, call, lost, Turn(text="\\boxed{1991}"), form="calls")
    first, second = agent_calls(tagged), agent_calls(data)
    assert [(made.step, made.name, made.arguments) for made in first] == [
        (made.step + 1, made.name, made.arguments) for made in second
    ], "the run in tags has a message of the system before it"
    texts = [[[row.text for row in made.results] for made in calls] for calls in (first, second)]
    assert texts[0] == texts[1]
    for name in ("execution", "conciseness", "efficiency"):
        judge = scorer(name)
        in_tags, as_data = (judge.score(Item(item, item.task)) for item in (tagged, data))
        assert values(in_tags) == values(as_data), name


def test_a_tag_that_was_not_carried_out_is_no_call():
    run = episode("<answer>\\boxed{1}</answer> <search>Python</search>")
    assert agent_calls(run) == []
    run.steps[-1].text = "<search>Python</search>"
    assert agent_calls(run) == []
