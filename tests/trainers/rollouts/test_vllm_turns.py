"""Turns by TRL's vLLM, against an object with its interface; vLLM itself needs a GPU."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from adp.rollouts.policies.generation import GenerationJob, Generator
from adp.rollouts.policies.settings import SamplingSettings
from adp.rollouts.policies.transformers import TransformersPolicy, TransformersSettings
from adp.rollouts.policy import InfrastructureError, Request
from adp.trainers.rollouts.vllm_turns import VllmTurns
from adp_schema.errors import RolloutError
from adp_schema.store import Store
from tests.trainers.preference_runs import prepare, trainer
from tests.trainers.rollouts.acting_runs import acting_config, sums

pytestmark = [
    pytest.mark.train,
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

END = 2


class Engine:
    """What TRL's VLLMGeneration offers, with answers of our own."""

    def __init__(self, answers: Any) -> None:
        self.answers = answers
        self.generation_kwargs: Any = {"min_tokens": 1}
        self.asked: list[dict[str, Any]] = []
        self.synced = 0

    def sync_weights(self) -> None:
        """Count."""
        self.synced += 1

    def generate(self, **given: Any) -> Any:
        """As in TRL 1.16: prompts, ids, chances (tokens x 1), ids of these."""
        self.asked.append(given)
        answers = self.answers(given["prompts"])
        ids = [written for written, _ in answers]
        chances = [[[chance] for chance in drawn] for _, drawn in answers]
        return given["prompts"], ids, chances, ids


def test_answers_are_cut_ended_and_have_their_chances():
    engine = Engine(
        lambda prompts: [([5, END], [-0.1, -0.2]), ([6, 7, 8], [-0.3, None, -0.4]), ([], [])]
    )
    turns = VllmTurns(engine, [END, 9])
    assert engine.generation_kwargs == {"min_tokens": 1, "stop_token_ids": [END, 9]}
    jobs = [GenerationJob((1, n), seed=0, longest=2) for n in range(3)]
    first, second, third = turns.generate(jobs)
    assert (first.ids, first.logprobs, first.ended) == ([5, END], [-0.1, -0.2], True)
    # One chance is not known, so none of the turn are.
    assert (second.ids, second.logprobs, second.ended) == ([6, 7], [], False)
    assert (third.ids, third.logprobs, third.ended) == ([], [], False)
    (asked,) = engine.asked
    assert asked == {"prompts": [[1, 0], [1, 1], [1, 2]], "images": None, "num_generations": 1}


def test_a_dead_server_breaks_turns_and_no_more():
    def dead(prompts: Any) -> Any:
        raise ConnectionError("no route to host")

    turns = VllmTurns(Engine(dead), [END])
    job = GenerationJob((1,), seed=0, longest=2)
    with pytest.raises(InfrastructureError, match="gave no answer: no route to host") as caught:
        turns.generate([job])
    assert caught.value.kind == "vllm"
    with pytest.raises(InfrastructureError, match="gave 1 answers for 2"):
        VllmTurns(Engine(lambda prompts: [([1], [-1.0])]), [END]).generate([job, job])
    stale = VllmTurns(Engine(dead), [END], fault=OSError("port closed"))
    with pytest.raises(InfrastructureError, match=r"weights could not.*port closed"):
        stale.generate([job])


def test_a_policy_asks_it_for_many_turns_at_once():
    from adp.rendering.tiny import tiny_tokenizer

    tokenizer = tiny_tokenizer()
    end = tokenizer.eos_token_id
    ids = [*tokenizer.encode("hello", add_special_tokens=False), end]
    engine = Engine(lambda prompts: [(ids, [-0.5] * len(ids)) for _ in prompts])
    settings = TransformersSettings(model="tiny", logprobs=True, batch_size=3)

    async def turns() -> list[Any]:
        policy = TransformersPolicy(settings, None, None, lambda ends: VllmTurns(engine, ends))
        message = {"role": "user", "content": "hi"}
        acts = [policy.act(Request([message], [])) for _ in range(3)]
        results = await asyncio.gather(*acts)
        await policy.close()
        return list(results)

    for turn in asyncio.run(turns()):
        assert turn.text == "hello"
        assert turn.completion_token_ids == tuple(ids)
        assert turn.logprobs == tuple([-0.5] * len(ids))
    (asked,) = engine.asked
    assert len(asked["prompts"]) == 3


def with_engine(made: Any, answers: Any) -> Engine:
    """Let a trainer believe that it has vLLM."""
    engine = Engine(answers)
    made.use_vllm, made.vllm_generation, made._last_loaded_step = True, engine, -1
    made.vllm_importance_sampling_correction = True
    return engine


def test_a_trainer_brings_weights_up_to_date_once_a_step_and_its_ratios_are_one(tmp_path):
    """The engine writes with the model that is trained, so its chances are those of TRL."""
    config = acting_config(sums(tmp_path), {"max_turns": 2}, max_completion_length=8)
    config = config.model_copy(update={"grpo": config.grpo.model_copy(update={"temperature": 0.7})})
    prepare(config, tmp_path / "run")
    made = trainer(config, tmp_path / "run", tmp_path / "out")

    def answers(prompts: Any) -> Any:
        sampling = SamplingSettings(temperature=0.7)
        ends = frozenset({made.processing_class.eos_token_id})
        writer = Generator(made.model, ends, sampling, tempered=True)
        jobs = [GenerationJob(ids, seed=n, longest=8) for n, ids in enumerate(prompts)]
        return [(written.ids, written.logprobs) for written in writer.generate(jobs)]

    engine = with_engine(made, answers)
    made.train()
    assert engine.synced == 2
    lines = [line for line in made.state.log_history if "reward" in line]
    assert len(lines) == 2
    for line in lines:
        assert line["sampling/sampling_logp_difference/max"] < 1e-4
        assert line["sampling/importance_sampling_ratio/max"] == pytest.approx(1, abs=1e-3)


def test_a_training_outlives_a_server_for_a_while(tmp_path):
    def dead(prompts: Any) -> Any:
        raise ConnectionError("no route to host")

    config = acting_config(sums(tmp_path), {"max_failures": 12, "concurrency": 2})
    prepare(config, tmp_path / "run")
    made = trainer(config, tmp_path / "run", tmp_path / "out")
    engine = with_engine(made, dead)
    with pytest.raises(RolloutError, match=r"12 episodes in a row broke \(infrastructure: vllm"):
        made.train()
    assert engine.synced == 2
    kept = list(Store.open(str(Path(tmp_path / "out" / "rollouts"))).trajectories())
    assert len(kept) == 8
    for row in kept:
        assert json.loads(row.extra or "{}")["grpo"]["left_out"] == "broken"
