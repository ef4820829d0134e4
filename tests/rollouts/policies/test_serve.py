"""Episodes against ``transformers serve`` with a small model that was trained to call a tool."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import urllib.request

import pytest

pytest.importorskip("torch", reason="needs the train extra")
for package in ("fastapi", "openai", "uvicorn"):
    pytest.importorskip(package, reason="needs transformers[serving]")

from adp.rollouts.collecting.actor import Alone  # noqa: E402
from adp.rollouts.collecting.episode import run_episode  # noqa: E402
from adp.rollouts.collecting.limits import Limits  # noqa: E402
from adp.rollouts.collecting.recorder import About  # noqa: E402
from adp.rollouts.policies.openai import OpenAIPolicy, OpenAISettings  # noqa: E402
from tests.rollouts.policies.small_agent import BROKEN, TASKS, Sums, write_agent  # noqa: E402
from tests.waiting import PATIENCE, until  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.train]

_START = "from transformers.cli.transformers import main; main()"
_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """URL and model of a server on this machine."""
    import torch

    torch.set_num_threads(1)
    folder = write_agent(tmp_path_factory.mktemp("agent"))
    cache = tmp_path_factory.mktemp("cache")
    process, address = _started(folder, cache)
    try:
        yield f"{address}/v1", str(folder)
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _started(folder, cache):
    """The process of a server and its address, which its log tells: the system chose the port."""
    given = {"HF_HUB_CACHE": str(cache), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    options = [str(folder), "--host", "127.0.0.1", "--port", "0", "--device", "cpu"]
    log = cache / "log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-c", _START, "serve", *options],
            env={**os.environ, **given},
            stdout=file,
            stderr=file,
        )
    until(lambda: _ADDRESS.search(log.read_text()), process)
    address = _ADDRESS.search(log.read_text())[0]
    with urllib.request.urlopen(f"{address}/health", timeout=PATIENCE):
        return process, address


def play(served, task, **settings):
    url, model = served
    given = {"base_url": url, "model": model, "max_tokens": 64, "first_wait": 0.01, "retries": 20}
    policy = OpenAIPolicy(OpenAISettings.model_validate(given | settings))
    about = About(dataset="sums", task=task, timed=False)

    async def run():
        try:
            if task is BROKEN:  # a server that never answered could be broken itself
                before = About(dataset="sums", task=TASKS[0], timed=False)
                await run_episode(before, Sums(), Alone(policy), Limits(max_turns=3))
            return await run_episode(about, Sums(), Alone(policy), Limits(max_turns=3))
        finally:
            await policy.close()

    return asyncio.run(run())


@pytest.mark.parametrize("stream", [False, True])
def test_a_served_model_calls_the_tool_and_answers(served, stream):
    result = play(served, TASKS[0], stream=stream)
    assert (result.error_message, result.success, result.final_answer) == (None, True, "42")
    calling, answering = result.steps[2:]
    assert (calling.calls[0].name, calling.calls[0].arguments) == ("add", '{"a": 17, "b": 25}')
    assert [calling.stop_reason, answering.stop_reason] == ["tool_calls", "stop"]
    assert calling.tokens_out > 0


@pytest.mark.parametrize("stream", [False, True])
def test_a_call_that_is_no_json_is_a_format_error_of_the_model(served, stream):
    result = play(served, BROKEN, stream=stream)
    assert result.error_type is None
    assert result.steps[2].observations[0].error_type == "parsing"
    assert result.steps[2].observations[0].call_id is None
