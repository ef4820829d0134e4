"""Environments of adp played by verifiers itself: its harness, its servers of tools, its scoring.

``make rl-tests`` installs verifiers; without it these tests are skipped. The model is a scripted
server on this machine. verifiers would install its chat program with uv; here it runs with the
Python that has what the program needs already.
"""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from pathlib import Path

import pytest

vf = pytest.importorskip("verifiers.v1", reason="make rl-tests installs verifiers")

from adp.rollouts.environments.calculator import KIND  # noqa: E402
from adp.rollouts.turns import Call, Turn  # noqa: E402
from tests.rollouts.policies.chat_server import delta, events, serving  # noqa: E402


def streamed(finish: str, **parts):
    """An answer in chunks, the last of which says what it cost."""
    head = {"object": "chat.completion.chunk", "created": 0}
    usage = {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}
    pieces = [delta(role="assistant", **parts), delta(finish)]
    return events(*({**piece, **head} for piece in pieces),
                  {"id": "r1", "model": "m", "choices": [], "usage": usage, **head})  # fmt: skip


def say(text: str):
    return streamed("stop", content=text)


def calling(name: str, arguments: str):
    function = {"name": name, "arguments": arguments}
    call = {"index": 0, "id": "c1", "type": "function", "function": function}
    return streamed("tool_calls", tool_calls=[call])


def settings(**taskset):
    given = {"id": "adp_verifiers", "environment": "calculator", "tasks": "test:3", **taskset}
    agent = {"harness": {"id": "null"}, "runtime": {"type": "subprocess"}, "max_turns": 4}
    config = {"taskset": given, "agent": agent}
    return vf.SingleAgentEnvConfig.model_validate(config)


@pytest.fixture
def local_programs(monkeypatch, tmp_path):
    """The harness's program is run by this Python, not by one that uv installs."""

    async def prepared(self, script, env=None, *, activate=True):
        path = tmp_path / f"{uuid.uuid4().hex}.py"
        path.write_text(script if isinstance(script, str) else script.decode())
        return [sys.executable, str(path)]

    monkeypatch.setattr(vf.Runtime, "prepare_uv_script", prepared)
    monkeypatch.setenv("ADP_TEST_KEY", "none")
    root = str(Path(__file__).parents[2] / "src")
    monkeypatch.setenv("PYTHONPATH", root)


def played(config, number: int, *script):
    """The trace of a task that is played with scripted answers, and what the model was asked."""

    async def run(url: str):
        environment = vf.load_environment(config)
        task = list(environment.taskset)[number]
        client = vf.EvalClientConfig(base_url=url, api_key_var="ADP_TEST_KEY")
        context = vf.ModelContext(model="m", client=client)
        async with environment.serving():
            return await environment.run_episode(task, context)

    with serving(*script) as server:
        episode = asyncio.run(run(server.url))
    assert not episode.errors, episode.errors
    (trace,) = episode.traces
    return trace, [seen.body for seen in server.seen]


def test_tasks_are_those_of_the_environment() -> None:
    tasks = list(vf.load_taskset(settings().taskset))
    wanted = KIND.tasks(KIND.settings(), "test", 3, 0)
    assert [task.data.id for task in tasks] == [task.task_id for task in wanted]
    assert [task.data.prompt for task in tasks] == [task.instruction for task in wanted]
    assert len({task.key for task in tasks}) == 3


def test_verifiers_plays_an_environment(local_programs) -> None:
    task = KIND.tasks(KIND.settings(), "test", 3, 0)[1]
    answer = json.loads(task.answers)[0]
    arguments = json.dumps({"expression": f"{answer} + 0"})
    trace, asked = played(
        settings(), 1, calling("calculator", arguments), say(f"The answer is {answer}")
    )
    assert trace.ok, trace.errors
    assert trace.rewards["environment"].score == 1.0
    assert trace.metrics["calls"] == 1.0
    assert trace.num_turns == 2
    (result,) = trace.tool_messages
    assert result.content == str(answer)
    # The model sees the schema of the tool as `adp collect` shows it.
    (wanted,) = KIND.make(KIND.settings()).tools()
    (tool,) = asked[0]["tools"]
    assert tool["function"]["name"] == wanted["function"]["name"]
    assert tool["function"]["description"] == wanted["function"]["description"]
    assert tool["function"]["parameters"] == wanted["function"]["parameters"]
    assert asked[0]["messages"][-1]["content"] == task.instruction


def test_a_wrong_answer_and_a_wrong_call_are_judged_as_ours(local_programs) -> None:
    trace, _ = played(settings(), 0, calling("calculator", '{"expression": "1 +"}'), say("hm"))
    assert trace.ok, trace.errors
    assert trace.rewards["environment"].score == 0.0
    (result,) = trace.tool_messages
    environment = KIND.make(KIND.settings())
    environment.reset(KIND.tasks(KIND.settings(), "test", 1, 0)[0], seed=0)
    outcome = environment.step(Turn(calls=(Call("calculator", '{"expression": "1 +"}', "c"),)))
    assert result.content == outcome.results[0].text


def test_toolworld_is_played_to_its_end(local_programs) -> None:
    """Every tool of another environment is on offer, and its verdict is its own."""
    trace, asked = played(settings(environment="toolworld:max_hops=1"), 0, say("I give up"))
    assert trace.ok, trace.errors
    assert len(asked[0]["tools"]) > 1
    assert trace.rewards["environment"].score == 0.0
