"""A model in process: whole episodes, batches, and answers that cannot be read."""

from __future__ import annotations

import asyncio

import pytest

torch = pytest.importorskip("torch", reason="needs the train extra")

from adp.eval.policies.transformers import TransformersPolicy, TransformersSettings  # noqa: E402
from adp.eval.rollout.actor import Alone  # noqa: E402
from adp.eval.rollout.episode import run_episode  # noqa: E402
from adp.eval.rollout.recorder import About  # noqa: E402
from tests.eval.policies.small_agent import TASKS, Sums, write_agent  # noqa: E402

pytestmark = pytest.mark.train


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield write_agent(tmp_path_factory.mktemp("agent"))
    torch.set_num_threads(threads)


def play(policy, count=2):
    async def one(number):
        about = About(dataset="sums", task=TASKS[number % 2], attempt=number // 2, timed=False)
        return await run_episode(about, Sums(), Alone(policy))

    async def everything():
        return await asyncio.gather(*map(one, range(count)))

    return asyncio.run(everything())


def test_a_trained_model_calls_the_tool_and_answers(agent):
    policy = TransformersPolicy(TransformersSettings(model=str(agent), max_tokens=64))
    found = play(policy)
    assert [one.success for one in found] == [True, True]
    assert [one.final_answer for one in found] == ["42", "7"]
    step = found[0].steps[2]
    assert step.calls[0].arguments == '{"a": 17, "b": 25}'
    assert step.tokens_in == len(step.prompt_token_ids)
    assert step.tokens_out == len(step.completion_token_ids)
    assert [step.stop_reason for step in found[0].steps[2:]] == ["tool_calls", "stop"]
