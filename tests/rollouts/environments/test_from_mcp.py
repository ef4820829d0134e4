"""The tools of an MCP server: a real one, over stdio and over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from pydantic import ValidationError

from adp.rollouts.collecting.actor import Alone
from adp.rollouts.collecting.episode import run_episode
from adp.rollouts.collecting.limits import Limits
from adp.rollouts.collecting.recorder import About
from adp.rollouts.environment import AsyncEnvironment, CannotForkError
from adp.rollouts.environments.from_mcp import KIND
from adp.rollouts.environments.trl import to_trl
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.turns import Call, Turn
from adp_schema.errors import UsageError
from adp_schema.model import Task
from tests.waiting import PATIENCE

pytest.importorskip("mcp")

SERVER = (sys.executable, str(Path(__file__).with_name("mcp_server.py")))
PATH = ("PYTHONPATH",) if "PYTHONPATH" in os.environ else ()
TASK = Task(task_id="t", instruction="What is 2 + 3?", answers='["5"]')


def made(**settings):
    usual = {"command": SERVER, "env": PATH, "start_timeout": PATIENCE, "timeout": PATIENCE}
    return KIND.make(KIND.settings(**(usual | settings)))


def call(name, /, **arguments):
    return Turn(calls=(Call(name, json.dumps(arguments)),))


def play(environment, script, limits=None):
    about = About(dataset="d", task=TASK, timed=False)
    return asyncio.run(run_episode(about, environment, Alone(Scripted(script)), limits))


def test_an_episode_with_a_server(monkeypatch):
    monkeypatch.setenv("SECRET_ONE", "first")
    monkeypatch.setenv("SECRET_TWO", "second")
    environment = made(env=(*PATH, "SECRET_TWO"))
    assert isinstance(environment, AsyncEnvironment)
    calls = [
        call("add", a=2, b=3),
        call("count"),
        call("count"),
        call("fail"),
        call("add", a="x"),
        call("nothing"),
        call("picture"),
        call("variable", name="SECRET_ONE"),
        call("variable", name="SECRET_TWO"),
        Turn(malformed="no"),
        Turn(text="5"),
    ]
    result = play(environment, calls)
    seen = [step.observations[0] for step in result.steps if step.observations]
    assert [item.text for item in seen[:3]] == ["5", "1", "2"]
    assert "it broke" in seen[3].text
    assert seen[6].text == "[image image/png]"
    assert [item.text for item in seen[7:9]] == ["", "second"]  # only what is named is passed on
    kinds = [item.error_type for item in seen]
    wrong = ["execution", "invalid_args", "unknown_tool", None, None, None, "parsing"]
    assert kinds == [None, None, None, *wrong]
    assert json.loads(seen[0].structured) == {"result": 5}
    assert (result.success, result.terminated, result.error_type) == (True, True, None)
    tools = {tool["function"]["name"]: tool["function"] for tool in json.loads(result.tools)}
    assert tools["add"]["description"] == "Adds."
    assert tools["add"]["parameters"]["required"] == ["a"]


def test_a_server_that_dies_is_no_fault_of_the_agent():
    result = play(made(), [call("add", a=1), call("die"), Turn(text="5")])
    assert (result.error_type, result.success) == ("infrastructure", None)
    assert result.stop_reason == "mcp_connection"
    assert len(result.steps) == 2  # what happened before is kept


def test_a_server_that_does_not_begin(tmp_path):
    with pytest.raises(UsageError, match="NO_SUCH is not set"):
        made(env=("NO_SUCH",))
    with pytest.raises(UsageError, match="NO_SUCH is not set"):
        made(command=None, url="http://x", headers={"A": "Bearer ${NO_SUCH}"})
    with pytest.raises(UsageError, match="cannot be started"):
        made(command=(str(tmp_path / "nothing"),))
    broken = play(made(command=(sys.executable, "-c", "import sys; sys.exit('no config')")), [])
    assert broken.error_type == "infrastructure"
    assert "it wrote: no config" in broken.error_message
    long = "import sys; sys.exit('Traceback ' * 100 + 'and why')"
    broken = play(made(command=(sys.executable, "-c", long)), [])
    assert "it wrote: ... " in broken.error_message
    assert broken.error_message.endswith("and why")
    silent = (sys.executable, "-c", "import time; time.sleep(1800)")
    assert "in time" in play(made(command=silent, start_timeout=0.5), []).error_message


@contextmanager
def serving():
    """Address of a server over HTTP."""
    with subprocess.Popen([*SERVER, "http"], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
        finally:
            process.kill()


@pytest.fixture(scope="module")
def address():
    with serving() as result:
        yield result


def test_a_tool_that_takes_too_long_and_one_that_says_too_much(address):
    script = [call("wait", seconds=PATIENCE), Turn(text="5")]
    result = play(made(command=None, url=address, timeout=4.0), script)
    assert result.steps[1].observations[0].error_type == "timeout"
    script = [call("say", text="x", times=1000), Turn(text="5")]
    result = play(made(command=None, url=address, longest=10), script)
    long = result.steps[1].observations[0]
    assert long.text == "xxxxxxxxxx\n[990 more characters]"


def test_an_episode_is_cut_while_a_tool_runs(address):
    result = play(
        made(command=None, url=address), [call("wait", seconds=PATIENCE)], Limits(max_seconds=8)
    )
    assert (result.error_type, result.stop_reason) == ("environment", "timeout")


def test_tools_can_be_chosen(address):
    result = play(made(command=None, url=address, only=("add",)), [call("count"), Turn(text="5")])
    assert result.steps[1].observations[0].error_type == "unknown_tool"
    result = play(made(command=None, url=address, only=("subtract",)), [])
    assert "no tool subtract; it has: add" in result.error_message
    assert result.success is None


def test_trl_can_use_it(address):
    instance = to_trl(lambda: made(command=None, url=address), first=TASK, answer="tool")()
    instance.reset(prompt="x")
    assert instance.add(a=1) == "2"
    instance.submit_answer(answer="5")
    instance.reset(prompt="x", answers=["5"])
    instance.submit_answer(answer="5")
    assert instance.get_reward() == 1.0
    from adp.rollouts.environments.trl import _wait

    _wait(instance._environment.close())


def test_a_server_over_http(address):
    result = play(made(command=None, url=address), [call("add", a=2, b=3), Turn(text="5")])
    assert result.steps[1].observations[0].text == "5"
    assert result.success is True


def test_settings_name_one_server():
    assert KIND.settings(url="https://x").command is None
    for wrong in ({}, {"command": SERVER, "url": "http://x"}, {"url": "file:///x"}):
        with pytest.raises(ValidationError):
            KIND.settings(**wrong)


def test_a_server_cannot_be_copied():
    with pytest.raises(CannotForkError):
        made().fork()


def test_a_server_over_http_that_is_gone():
    with serving() as address:
        dying = play(made(command=None, url=address), [call("die"), Turn(text="5")])
        assert dying.error_type == "infrastructure"
        gone = play(made(command=None, url=address), [])
        assert gone.error_type == "infrastructure"
