"""The stage ``train``: `adp train`, which begins with the model of the last such stage."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from pydantic import Field

from adp.core.options import OptionsModel
from adp.rollouts.spec import load_environment
from adp.trainers.config import Method, TrainConfig
from adp.trainers.config_file import read_config
from adp.trainers.grpo import check_groups
from adp.trainers.incompatible import refuse
from adp.trainers.record import RECORD
from adp.trainers.rewards import check_python
from adp.trainers.rollouts.reward_functions import make_rollout_rewards
from adp.trainers.run import TrainOptions, last_checkpoint, train
from adp.workflows.loop.hashes import combined, model_hash
from adp.workflows.loop.stage_kind import (
    ModelPlace,
    StageContext,
    StageFacts,
    StageKind,
    given_spec,
)
from adp.workflows.training_suite import SCORING, with_suite
from adp_schema.errors import UsageError

_METRICS = "metrics.jsonl"


class TrainStage(OptionsModel):
    """Options of a stage ``train``: those of the command."""

    method: Method
    """sft, dpo, kto, grpo, reward or distill."""
    config: str | dict[str, Any] = Field(default_factory=dict)
    """A configuration, or its file."""
    store: str | None = None
    """What to train on; in place of data.store."""
    env: str | None = None
    """grpo: let the model act in this environment."""
    tasks: str | None = None
    """grpo: tasks of env: a file, a store, or SPLIT:COUNT[:SEED]; null: those of the store."""
    model: str = "last"
    """The model that it begins with: last, base, a folder, or a name on the Hub."""
    changes: tuple[str, ...] = Field(default=(), alias="set")
    """Changes of the configuration, each PATH=VALUE."""
    launch: int | None = Field(default=None, ge=1)
    """Train in so many processes."""
    zero: int | None = None
    """DeepSpeed's ZeRO; not tested."""
    strict: bool = False
    """Stop when a row lacks something of the store."""


def _start(options: TrainStage, context: StageContext) -> ModelPlace:
    return context.model(options.model)


def config_of(options: TrainStage, context: StageContext) -> TrainConfig:
    """The configuration of the stage.

    Raises:
        UsageError: something in it is wrong, or it names a model itself.
    """
    source: Any = options.config
    if isinstance(source, str):
        source = context.given_path(source)
    start = _start(options, context)
    more = {
        "method": options.method,
        "model.model_name_or_path": start.base,
        "model.adapter_name_or_path": start.adapter,
        "data.store": None if options.store is None else context.given_path(options.store),
        "grpo.environment.name": None if options.env is None else given_spec(options.env, context),
        "grpo.environment.tasks": (
            None if options.tasks is None else context.given_path(options.tasks)
        ),
        "launch.processes": options.launch,
        "launch.zero": options.zero,
    }
    given = {name: value for name, value in more.items() if value is not None}
    config, _ = read_config(source, options.changes, given)
    if config.model.model_name_or_path != start.base:
        raise UsageError("name the model as model: of the stage, not in its configuration")
    if "seed" not in config.training.model_fields_set:
        training = config.training.model_copy(update={"seed": context.seed})
        config = config.model_copy(update={"training": training})
    return with_suite(config)


def _check(options: TrainStage, context: StageContext) -> None:
    config = config_of(options, context)
    refuse(config)
    if config.method != "grpo":
        return
    check_python(config.grpo, context.allow_python)
    check_groups(config)
    acting = config.grpo.environment
    if acting is not None:
        make_rollout_rewards(config.grpo, Path.cwd())
        kind, about = load_environment(acting.name)
        context.check_tasks(acting.tasks, acting.name, kind, about)


def _model(options: TrainStage, context: StageContext) -> ModelPlace:
    start = _start(options, context)
    if config_of(options, context).lora is None and start.adapter is None:
        return ModelPlace(f"{context.path}/model")
    return ModelPlace(start.base, f"{context.path}/adapter")


def _run(options: TrainStage, context: StageContext, out: Path) -> None:
    if (out / RECORD).exists():
        return  # a call before was killed when all was written
    resume = last_checkpoint(out) is not None
    if not resume:
        shutil.rmtree(out, ignore_errors=True)
    how = TrainOptions(
        resume=resume,
        command=["adp", "loop", f"round-{context.round}.{context.name}"],
        allow_python=context.allow_python,
        steps=context.progress,
        strict=options.strict,
        scoring=SCORING,
    )
    train(config_of(options, context), str(out), how)


def _facts(options: TrainStage, folder: Path) -> StageFacts:
    record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    result, plan = record["result"], record["plan"]
    counts = {"rows": plan.get("rows"), "steps": result.get("steps")}
    counts["trained_tokens"] = _trained_tokens(folder, record)
    episodes = result.get("episodes", {})
    for name in ("broken", "without_reward"):
        if episodes.get(name):
            counts[name] = episodes[name]
    for name in ("first_loss", "last_loss", "first_reward", "last_reward"):
        if name in result:
            counts[name] = result[name]
    word = "reward" if "first_reward" in result else "loss"
    line = f"{counts['steps']:,} steps"
    if f"first_{word}" in result:
        line += f", {word} {result[f'first_{word}']:.4g} -> {result[f'last_{word}']:.4g}"
    unjudged = episodes.get("broken", 0) + episodes.get("without_reward", 0)
    if unjudged:
        line += f", {unjudged:,} of {episodes['episodes']:,} episodes without a reward"
    hashes = {
        name: model_hash(folder / name) for name in ("adapter", "model") if (folder / name).is_dir()
    }
    return StageFacts(combined(hashes), counts, line=line)


def _trained_tokens(folder: Path, record: dict[str, Any]) -> int | None:
    """Tokens under the loss: of the rows, or of the episodes in which the model acted."""
    per_episode: list[float | None] = []
    path = folder / _METRICS
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        per_episode += [json.loads(line).get("rollouts/in_loss")]
    known = [float(value) for value in per_episode if value is not None]
    if not known:
        trained: int | None = record["plan"].get("trained")
        return trained
    training, launch = record["config"]["training"], record["config"]["launch"]
    together = training["per_device_train_batch_size"] * training["gradient_accumulation_steps"]
    episodes: int = together * launch["processes"] * record["result"]["steps"]
    return round(sum(known) / len(known) * episodes)


KIND = StageKind(
    name="train",
    about="A model is trained on a store.",
    options=TrainStage,
    run=_run,
    facts=_facts,
    check=_check,
    model=_model,
    free=frozenset({"launch"}),
)
