"""A model in process: whole episodes, batches, and answers that cannot be read."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

torch = pytest.importorskip("torch", reason="needs the train extra")

from adp.rendering.tiny import SHAPE  # noqa: E402
from adp.rollouts.collecting.actor import Alone  # noqa: E402
from adp.rollouts.collecting.episode import run_episode  # noqa: E402
from adp.rollouts.collecting.limits import Limits  # noqa: E402
from adp.rollouts.collecting.recorder import About  # noqa: E402
from adp.rollouts.policies.loading import load_for_generation  # noqa: E402
from adp.rollouts.policies.transformers import TransformersPolicy, TransformersSettings  # noqa: E402
from adp.trainers.config import TinySection  # noqa: E402
from adp_schema.errors import UsageError  # noqa: E402
from tests.rollouts.policies.small_agent import (  # noqa: E402
    BROKEN,
    BROKEN_CALL,
    TASKS,
    Sums,
    write_agent,
)

pytestmark = [
    pytest.mark.train,
    # How peft asks transformers about a model.
    pytest.mark.filterwarnings("ignore:.is_gradient_checkpointing.:FutureWarning"),
]


@pytest.fixture(scope="module")
def agent(tmp_path_factory):
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield write_agent(tmp_path_factory.mktemp("agent"))
    torch.set_num_threads(threads)


def play(policy, count=2):
    async def answer(number):
        about = About(dataset="sums", task=TASKS[number % 2], attempt=number // 2, timed=False)
        return await run_episode(about, Sums(), Alone(policy))

    async def everything():
        return await asyncio.gather(*map(answer, range(count)))

    return asyncio.run(everything())


def test_a_trained_model_calls_the_tool_and_answers(agent):
    policy = TransformersPolicy(TransformersSettings(model=str(agent), max_tokens=64))
    result = play(policy)
    assert [item.success for item in result] == [True, True]
    assert [item.final_answer for item in result] == ["42", "7"]
    step = result[0].steps[2]
    assert step.calls[0].arguments == '{"a": 17, "b": 25}'
    assert step.tokens_in == len(step.prompt_token_ids)
    assert step.tokens_out == len(step.completion_token_ids)
    assert [step.stop_reason for step in result[0].steps[2:]] == ["tool_calls", "stop"]


def test_a_call_that_is_no_json_is_told_to_the_model(agent):
    policy = TransformersPolicy(TransformersSettings(model=str(agent), max_tokens=64))
    about = About(dataset="sums", task=BROKEN, timed=False)
    result = asyncio.run(run_episode(about, Sums(), Alone(policy), Limits(max_turns=2)))
    step = result.steps[2]
    assert (step.text, step.observations[0].error_type) == (BROKEN_CALL, "parsing")
    assert json.loads(step.extra)["malformed"].startswith("a call in this turn cannot be read")
    assert result.steps[2].observations[0].text.startswith("Error: a call")


def test_a_full_context_truncates_and_a_long_answer_is_cut(agent):
    given = {"model": str(agent), "max_tokens": 64}
    (first, *_) = play(TransformersPolicy(TransformersSettings(**given)))
    prompt = first.steps[2].tokens_in
    policy = TransformersPolicy(TransformersSettings(**given, context_length=prompt))
    result = play(policy)[0]
    assert (result.truncated, result.stop_reason) == (True, "context_length")
    assert (result.error_type, len(result.steps)) == (None, 2)
    policy = TransformersPolicy(TransformersSettings(**given, context_length=prompt + 5))
    result = play(policy)[0]
    assert (result.steps[2].stop_reason, result.steps[2].tokens_out) == ("length", 5)


def test_a_lora_adapter_is_loaded_with_the_model_that_it_names(agent, tmp_path):
    peft = pytest.importorskip("peft", reason="needs the train extra")
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(agent)
    config = peft.LoraConfig(target_modules=["q_proj"], init_lora_weights=False)
    adapted = peft.get_peft_model(model, config).eval()
    adapted.save_pretrained(tmp_path / "adapter")
    ids = torch.tensor([[5, 6, 7, 8]])
    wanted = adapted(ids).logits
    for given in (
        {"model": str(tmp_path / "adapter")},
        {"model": str(agent), "adapter": str(tmp_path / "adapter")},
    ):
        loaded, _ = load_for_generation(TransformersSettings(**given))
        assert torch.allclose(loaded(ids).logits, wanted, atol=1e-5)
    plain, _ = load_for_generation(TransformersSettings(model=str(agent)))
    assert not torch.allclose(plain(ids).logits, wanted, atol=1e-3)


def test_what_cannot_be_loaded_is_one_sentence(tmp_path):
    for model in (str(tmp_path), str(tmp_path / "none"), "/no/such/folder"):
        with pytest.raises(UsageError, match="folder"):
            TransformersPolicy(TransformersSettings(model=model))


def test_the_shape_of_tiny_is_that_of_training():
    assert TinySection().model_dump() == SHAPE


def test_a_model_that_fails_breaks_its_episodes_and_not_the_run(agent):
    policy = TransformersPolicy(TransformersSettings(model=str(agent), max_tokens=64))

    def broken(jobs):
        raise RuntimeError("out of memory")

    real, policy._generator.generate = policy._generator.generate, broken
    assert [item.error_type for item in play(policy)] == ["policy", "policy"]
    policy._generator.generate = real
    assert [item.success for item in play(policy)] == [True, True]


def test_an_episode_that_is_cut_while_it_waits_harms_no_other(agent):
    policy = TransformersPolicy(TransformersSettings(model=str(agent), max_tokens=64))
    real = policy._generator.generate
    policy._generator.generate = lambda jobs: time.sleep(2.5) or real(jobs)

    async def everything():
        def episode(task, limits):
            return run_episode(About(dataset="s", task=task), Sums(), Alone(policy), limits)

        short = Limits(max_seconds=1.2)
        return await asyncio.gather(episode(TASKS[0], short), episode(TASKS[1], None))

    cut, whole = asyncio.run(everything())
    assert (cut.error_type, cut.stop_reason) == ("infrastructure", "timeout")
    assert whole.success is True
