"""The interpreter as a tool of an environment."""

from __future__ import annotations

import json

import pytest

from adp.rollouts.environments.python import KIND, PythonSettings
from adp.rollouts.sandbox.command import bubblewrap
from adp.rollouts.turns import Call, Turn
from adp_schema.errors import UsageError
from adp_schema.model import Task

try:
    bubblewrap()
    WORKS = True
except UsageError:
    WORKS = False

pytestmark = pytest.mark.skipif(not WORKS, reason="bubblewrap is not installed or cannot work")


def step(code, **settings):
    environment = KIND.make(PythonSettings(**({"seconds": 300.0} | settings)))
    environment.reset(Task(task_id="t", instruction="Compute."))
    outcome = environment.step(Turn(calls=(Call("python", json.dumps({"code": code}), "c"),)))
    return outcome.results[0]


def test_output_errors_and_limits_are_results():
    assert step("print(1)\n2").text == "1\n2"
    assert step("x = 1").text == "(no output)"
    failed = step("1 / 0")
    assert (failed.error, failed.exit_code) == ("execution", 1)
    # Asleep, so that the time that a slow machine needs for the start is cheap to give.
    late = step("print('begun', flush=True)\nimport time\ntime.sleep(3600)", seconds=10.0)
    assert late.error == "timeout"
    assert late.text.startswith("begun\nError: the program ran longer than 10 s")
    assert step("while True: print('x' * 100)", output_bytes=1000).error == "limit"
    assert step("x = [bytearray(50 << 20) for _ in range(50)]", memory_mb=128).error == "execution"


def test_the_task_ends_with_an_answer():
    environment = KIND.make(PythonSettings())
    environment.reset(Task(task_id="t", instruction="Compute."))
    assert environment.step(Turn(text="3")).terminated
    environment.fork().close()
