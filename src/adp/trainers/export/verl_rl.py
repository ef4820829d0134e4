"""``verl-rl``: one row for each task, for reinforcement learning with verl.

A row holds what stands before the first step of the agent, and what a reward can compare with. It
does not hold what an agent once did. A file beside it rewards: by the answer, or as ET-Agent does.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from importlib import resources
from typing import Any, Literal

from adp.rendering.chat import Chat
from adp.trainers.export.exporter import (
    ExporterOptions,
    ExportItem,
    Form,
    RowExporter,
    UnwritableChatError,
)
from adp.trainers.export.readme import page
from adp.trainers.export.shapes import json_text, plain
from adp.trainers.export.single_file import shipped_file
from adp_schema.ids import digest
from adp_schema.model import Task, Trajectory

_ORDER = ("first_turn", "answers", "expected_calls", "tests")

BODY = """\
## Train

With verl 0.9.1, in this folder:

```sh
python -m verl.trainer.main_ppo \\
    algorithm.adv_estimator=grpo \\
    data.train_files=$PWD/train.parquet data.val_files=$PWD/train.parquet \\
    data.train_batch_size=64 data.max_prompt_length=4096 data.max_response_length=4096 \\
    data.return_raw_chat=True data.filter_overlong_prompts=True \\
    reward.custom_reward_function.path=$PWD/reward.py \\
    reward.custom_reward_function.name=compute_score \\
    actor_rollout_ref.model.path={model} \\
    actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=8 \\
    actor_rollout_ref.actor.use_kl_loss=True \\
    actor_rollout_ref.actor.ppo_mini_batch_size=64 \\
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 \\
    actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=1 \\
    actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=1 \\
    trainer.nnodes=1 trainer.n_gpus_per_node=1 trainer.total_epochs=1
```

- `reward_model.ground_truth` is text: {truth}. `reward.py` gives 1 when the last words of the
  answer are it, else 0; put your own in its place.
- `extra_info.tools` holds the tools that were on offer, as JSON text. verl wants a program for
  each: name them with `actor_rollout_ref.rollout.multi_turn.tool_config_path` and set
  `actor_rollout_ref.rollout.agent.default_agent_loop=tool_agent`.
"""


ET_AGENT = """\
## Train

With verl 0.9.1, in this folder:

```sh
python -m verl.trainer.main_ppo \\
    algorithm.adv_estimator=grpo \\
    data.train_files=$PWD/train.parquet data.val_files=$PWD/train.parquet \\
    data.train_batch_size=32 data.max_prompt_length=2000 data.max_response_length=4096 \\
    data.return_raw_chat=True data.filter_overlong_prompts=True \\
    reward.num_workers=1 \\
    reward.reward_manager.source=importlib \\
    reward.reward_manager.name=EtAgentRewardManager \\
    reward.reward_manager.module.path=$PWD/reward.py \\
    +reward.reward_kwargs.sigma_tool=0.2 +reward.reward_kwargs.sigma_len=0.5 \\
    actor_rollout_ref.model.path={model} \\
    actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=16 \\
    actor_rollout_ref.actor.use_kl_loss=True actor_rollout_ref.actor.kl_loss_coef=0 \\
    actor_rollout_ref.actor.ppo_mini_batch_size=4 \\
    actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=1 \\
    actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=1 \\
    actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu=1 \\
    trainer.val_before_train=False trainer.test_freq=-1 trainer.total_training_steps=100 \\
    trainer.nnodes=1 trainer.n_gpus_per_node=1
```

- `reward.py` is ET-Agent's reward R = r * f_tool * f_len + f_fmt over the responses to one prompt.
  Its settings are the arguments of `EtAgentOptions` in it, given as `+reward.reward_kwargs.NAME=`.
- Responses wait for the others of their prompt, so one process gives all rewards, and
  `data.train_batch_size` times (`rollout.n` - 1) stays below 1,000.
- Rows whose `extra_info.split` is not `train` only measure, and get r alone. To validate, name a
  file of such rows as `data.val_files`, and set `trainer.test_freq`.
- `reward_model.ground_truth` is text: {truth}, a list as JSON. `data_source` names the rule: the
  same formula for sets such as aime24, F1 of words for others; `metric=math` or `qa` overrides it.
"""

BODIES = {"answer": BODY, "et_agent": ET_AGENT}
REWARDS = {"answer": "reward.py", "et_agent": "et_agent_reward.py"}


class VerlRlOptions(ExporterOptions):
    """Options of ``verl-rl``."""

    ground_truth: Literal[
        "auto", "answers", "first_turn", "expected_calls", "tests", "final_answer"
    ] = "auto"
    """What a reward compares with: a column of the task, the gold answer of its first turn, or
    the final answer of a run that succeeded. auto: the first that the task has of first_turn,
    answers, expected_calls and tests."""
    reward: Literal["answer", "et_agent"] = "answer"
    """What `reward.py` holds: 1 for an answer that ends with the ground truth (answer), or
    ET-Agent's reward over the responses to a prompt (et_agent)."""
    model_name_or_path: str = "Qwen/Qwen3-8B"
    """Model that the README names."""


class VerlRl(RowExporter):
    """Prompt, ground truth and what else verl's ``RLHFDataset`` reads."""

    name = "verl-rl"
    title = "verl: one prompt a task, with the ground truth for a reward"
    takes = "prompts"
    mask = "last"
    file = "train.parquet"
    options = VerlRlOptions

    def form(self, options: VerlRlOptions) -> Form:
        """Prompts; a task that was tried several times has one row."""
        return Form("prompts", "last", self.file, unique=True)

    def schema(self, options: VerlRlOptions) -> Any:
        """Columns as verl reads them. Every struct has the same fields in all rows."""
        import pyarrow as pa

        text = pa.string()
        message = pa.struct([("role", text), ("content", text)])
        info = [("split", text), ("index", pa.int64()), ("task_id", text), ("tools", text)]
        return pa.schema(
            [
                ("data_source", text),
                ("prompt", pa.list_(message)),
                ("ability", text),
                ("reward_model", pa.struct([("style", text), ("ground_truth", text)])),
                ("extra_info", pa.struct(info)),
            ]
        )

    def row(
        self, item: ExportItem, options: VerlRlOptions, changed: Counter[str]
    ) -> dict[str, Any]:
        """One row, or none. Attempts at the same task give equal rows."""
        assert item.chat is not None
        run, chat = item.trajectory, item.chat
        prompt = [
            {"role": message.role, "content": plain(message.text)} for message in chat.messages
        ]
        if any(message.calls or message.role == "tool" for message in chat.messages):
            raise UnwritableChatError("calls in the prompt; --set tools=text writes them as words")
        truth = ground_truth(run.task, run, options.ground_truth)
        if truth is None:
            raise UnwritableChatError("nothing that a reward could compare with")
        task_id = run.task_id or digest(json_text(prompt).encode())
        return {
            "data_source": plain(item.dataset or "adp"),
            "prompt": prompt,
            "ability": plain((run.task and run.task.difficulty) or "agent"),
            "reward_model": {"style": "rule", "ground_truth": truth},
            "extra_info": {
                "split": run.split or "train",
                "index": int(digest(task_id.encode())[:15], 16),
                "task_id": plain(task_id),
                "tools": _tools(chat),
            },
        }

    def files(self, options: VerlRlOptions, facts: Mapping[str, Any]) -> Mapping[str, str]:
        """README and a reward function."""
        what = options.ground_truth.replace("_", " ")
        body = BODIES[options.reward].format(
            model=options.model_name_or_path,
            truth="the first of first turn, answers, expected calls and tests that the task has"
            if what == "auto"
            else what,
        )
        return {
            "README.md": page("verl, reinforcement learning", body, facts),
            "reward.py": shipped_file(REWARDS[options.reward]),
        }


def ground_truth(task: Task | None, run: Trajectory, choice: str) -> str | None:
    """What a reward compares with, as text: one type for all rows.

    Args:
        task: the task, when the store has it.
        run: an attempt at it.
        choice: a column, or auto for the first that is there.
    """
    for name in _ORDER if choice == "auto" else (choice,):
        if name == "final_answer":
            final_answer = run.final_answer if run.success else None
        elif name == "first_turn":
            final_answer = _first_gold(task)
        else:
            final_answer = _simple(getattr(task, name)) if task is not None else None
        if final_answer:
            return str(plain(final_answer))
    return None


def _first_gold(task: Task | None) -> str | None:
    """The gold answer of the first turn, where the prompt of the row ends."""
    turns = task.json_value("turns") if task is not None else None
    first = turns[0] if isinstance(turns, list) and turns else None
    gold = first.get("gold_answer") if isinstance(first, dict) else None
    return _simple(json_text(gold)) if gold is not None else None


def _simple(text: str | None) -> str | None:
    """A JSON text; a text or a single text in a list without the quotes."""
    if text is None:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if value is None or value == [] or value == {}:
        return None
    return value if isinstance(value, str) else text


def _tools(chat: Chat) -> str:
    return json_text(list(chat.tools)) if chat.tools else ""


def shipped(name: str) -> str:
    """A file that lies beside the exporters and is copied into an export."""
    folder = resources.files("adp.trainers.export") / "shipped"
    return (folder / name).read_text(encoding="utf-8")


EXPORTER = VerlRl()
