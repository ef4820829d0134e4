"""ET-Agent's reward for verl 0.9: ``reward.reward_manager.name=EtAgentRewardManager``.

verl asks for the reward of each response alone, as it is finished; this reward compares those of
one prompt. So the manager lets each response wait for the others of its prompt, which needs one
process for rewards (``reward.num_workers=1``). `compute_score` does the same for responses that
are there at once, and needs no verl.

Settings stand in ``+reward.reward_kwargs.NAME=VALUE``; they are the arguments of `EtAgentOptions`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adp.core.answers.sources import rule_of
from adp.core.tagged_run import count_calls, invalid_v1, invalid_v2
from adp.trainers.rollouts.et_agent_formula import (
    MeasuredRollout,
    boxed_answer,
    rightness,
    shaped,
    sigma_share,
)

try:
    from verl.experimental.reward_loop.reward_manager.base import RewardManagerBase
except ImportError:
    RewardManagerBase = object

_MOST_WAITING = 1000
"""Calls that an actor of Ray takes at once; a group that needs more can never be whole."""


@dataclass(frozen=True)
class EtAgentOptions:
    """What can be set.

    Attributes:
        sigma_tool: how much fewer calls than the mean of the group are worth; 0: nothing.
        sigma_len: how much a shorter response than the mean is worth; 0: nothing.
        decay: whether both sigmas shrink to 0 over the steps of the training.
        format: v1 or v2, the validators; none takes nothing from a malformed text.
        metric: math, qa, or auto: by the row's data_source, and qa where that is not known.
        words: f1, or joined: 1 for the same words and else 0, as in ET-Agent's published code.
        train_split: rows of another ``extra_info.split`` only measure: they get r alone.
        wait_s: seconds that a response waits for the others of its prompt.
    """

    sigma_tool: float = 0.2
    sigma_len: float = 0.5
    decay: bool = True
    format: str = "v1"
    metric: str = "auto"
    words: str = "f1"
    train_split: str = "train"
    wait_s: float = 1800.0

    def __post_init__(self) -> None:
        known = {"format": ("v1", "v2", "none"), "metric": ("auto", "math", "qa")}
        for name, values in {**known, "words": ("f1", "joined")}.items():
            if getattr(self, name) not in values:
                raise ValueError(f"{name} is {getattr(self, name)!r}; use {' or '.join(values)}")


def measured(
    text: str, truth: Any, source: str, length: int, settings: EtAgentOptions
) -> MeasuredRollout:
    """What the formula needs of a response.

    Args:
        text: the response, results of tools included.
        truth: ``reward_model.ground_truth``: a text, a list, or JSON of a list in a text.
        source: ``data_source`` of the row.
        length: tokens of the response.
        settings: the settings.
    """
    rule = (rule_of(source) or "qa") if settings.metric == "auto" else settings.metric
    right = rightness(boxed_answer(text, rule), truths(truth), rule, settings.words)
    wrong = (invalid_v2 if settings.format == "v2" else invalid_v1)(text) is not None
    return MeasuredRollout(right, count_calls(text), length, wrong and settings.format != "none")


def truths(truth: Any) -> list[str]:
    """The reference answers of a row."""
    if isinstance(truth, str) and truth.lstrip().startswith("["):
        try:
            value = json.loads(truth)
        except ValueError:
            value = None
        truth = value if isinstance(value, list) else truth
    if hasattr(truth, "tolist"):
        truth = truth.tolist()
    listed = truth if isinstance(truth, list | tuple) else [truth]
    return [item if isinstance(item, str) else json.dumps(item) for item in listed]


def compute_score(
    data_sources: Sequence[str],
    solution_strs: Sequence[str],
    ground_truths: Sequence[Any],
    extra_infos: Sequence[Mapping[str, Any]],
    response_lengths: Sequence[int],
    progress: tuple[int, int] = (1, 1),
    settings: EtAgentOptions | None = None,
) -> list[float]:
    """The rewards of responses; those with the same ``extra_info.index`` are a group.

    Args:
        data_sources: of each response the name of its data set.
        solution_strs: the responses.
        ground_truths: what is right.
        extra_infos: the columns ``extra_info``.
        response_lengths: tokens of the responses.
        progress: number of the step of the training, from 1, and how many there are.
        settings: the settings.
    """
    chosen = settings or EtAgentOptions()
    rows = zip(solution_strs, ground_truths, data_sources, response_lengths, strict=True)
    rollouts = [measured(*row, chosen) for row in rows]
    scores = [rollout.right for rollout in rollouts]
    groups: dict[Any, list[int]] = {}
    for place, info in enumerate(extra_infos):
        if info.get("split", chosen.train_split) == chosen.train_split:
            groups.setdefault(info.get("index"), []).append(place)
    left = sigma_share(*progress) if chosen.decay else 1.0
    for places in groups.values():
        group = [rollouts[place] for place in places]
        rewards = shaped(group, chosen.sigma_tool * left, chosen.sigma_len * left)
        for place, reward in zip(places, rewards, strict=True):
            scores[place] = reward
    return scores


@dataclass
class _Group:
    """Responses to one prompt that wait for each other."""

    done: asyncio.Future[list[float]]
    rollouts: list[MeasuredRollout] = field(default_factory=list)
    step: int = 1


class EtAgentRewardManager(RewardManagerBase):  # type: ignore[misc]
    """Rewards the responses to a prompt together.

    Args:
        config: verl's configuration.
        tokenizer: turns responses into texts.
        compute_score: not used.
        reward_router_address: not used.
        reward_model_tokenizer: not used.
    """

    def __init__(
        self,
        config: Any,
        tokenizer: Any,
        compute_score: Any = None,
        reward_router_address: Any = None,
        reward_model_tokenizer: Any = None,
    ) -> None:
        if RewardManagerBase is not object:
            super().__init__(config, tokenizer, compute_score)
        self.tokenizer = tokenizer
        self.settings = EtAgentOptions(**dict(config.reward.get("reward_kwargs") or {}))
        self.rollouts = int(config.actor_rollout_ref.rollout.n)
        self.steps = steps_of(config)
        self.groups: dict[str, _Group] = {}
        if int(config.reward.num_workers) != 1:
            raise ValueError(
                "responses to one prompt are compared, so one process must see all of them; set "
                "reward.num_workers=1"
            )
        waiting = int(config.data.train_batch_size) * (self.rollouts - 1)
        if waiting >= _MOST_WAITING:
            raise ValueError(
                f"up to {waiting} responses would wait for each other, and a process of Ray takes "
                f"{_MOST_WAITING}; make data.train_batch_size or rollout.n smaller"
            )
        if self.settings.decay and self.steps is None:
            raise ValueError(
                "decay=True needs the number of steps; set trainer.total_training_steps, or "
                "+reward.reward_kwargs.decay=False"
            )

    async def run_single(self, data: Any) -> dict[str, Any]:
        """The reward of a response, when those of its prompt are there."""
        loop = asyncio.get_running_loop()
        item = data[-1:][0]  # of several sequences the last holds the answer, as verl has it
        ids = item.batch["responses"]
        length = int(item.batch["attention_mask"][item.batch["prompts"].shape[-1] :].sum())
        text = await loop.run_in_executor(None, self._text, ids[:length])
        columns = item.non_tensor_batch
        info = columns.get("extra_info") or {}
        truth = columns["reward_model"]["ground_truth"]
        rollout = measured(text, truth, str(columns["data_source"]), length, self.settings)
        if info.get("split", self.settings.train_split) != self.settings.train_split:
            return _answer(rollout.right, rollout)
        key = str(columns.get("uid", info.get("index")))
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = _Group(loop.create_future(), step=step_of(columns))
        place = len(group.rollouts)
        group.rollouts.append(rollout)
        if len(group.rollouts) >= self.rollouts:
            self._finish(key)
        try:
            rewards = await asyncio.wait_for(asyncio.shield(group.done), self.settings.wait_s)
        except TimeoutError:
            # A response of the prompt was lost; those that are there are compared without it.
            print(f"et_agent: {len(group.rollouts)} of {self.rollouts} responses came in time")
            if self.groups.get(key) is group:
                self._finish(key)
            rewards = group.done.result()
        return _answer(rewards[place], rollout)

    def _text(self, ids: Any) -> str:
        return str(self.tokenizer.decode(ids, skip_special_tokens=True))

    def _finish(self, key: str) -> None:
        """Reward a group, and forget it."""
        group = self.groups.pop(key)
        left = sigma_share(group.step, self.steps or 1) if self.settings.decay else 1.0
        sigmas = self.settings.sigma_tool * left, self.settings.sigma_len * left
        group.done.set_result(shaped(group.rollouts, *sigmas))


def _answer(reward: float, rollout: MeasuredRollout) -> dict[str, Any]:
    measures = {"raw_score": rollout.right, "tool_call": rollout.calls}
    measures["malformed"] = int(rollout.malformed)
    return {"reward_score": reward, "reward_extra_info": {"acc": rollout.right, **measures}}


def steps_of(config: Any) -> int | None:
    """The steps of a training; None when it is not known."""
    steps = config.trainer.get("total_training_steps")
    if not steps:
        steps = (
            config.actor_rollout_ref.get("actor", {}).get("optim", {}).get("total_training_steps")
        )
    return int(steps) if steps and int(steps) > 0 else None


def step_of(columns: Mapping[str, Any]) -> int:
    """The number of the step that a response is for: weights of step k make those of k + 1."""
    fields = columns.get("tool_extra_fields") or {}
    done = fields.get("min_global_steps")
    return 1 if done is None else int(done) + 1
