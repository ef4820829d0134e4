"""The stage ``train``: `adp train`, which begins with the model of the last such stage."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from pydantic import Field

from adp.core.options import OptionsModel
from adp.trainers.config import Method, TrainConfig
from adp.trainers.config_file import read_config
from adp.trainers.incompatible import refuse
from adp.trainers.record import RECORD
from adp.trainers.run import TrainOptions, last_checkpoint, train
from adp.workflows.loop.hashes import combined, model_hash
from adp.workflows.loop.stage_kind import ModelPlace, StageContext, StageFacts, StageKind
from adp_schema.errors import UsageError

_METRICS = "metrics.jsonl"


class TrainStage(OptionsModel):
    """Options of a stage ``train``: those of the command."""

    method: Method
    """sft, dpo, kto or grpo."""
    config: str | dict[str, Any] = Field(default_factory=dict)
    """A configuration, or its file."""
    store: str | None = None
    """What to train on; in place of data.store."""
    model: str = "last"
    """The model that it begins with: last, base, a folder, or a name on the Hub."""
    changes: tuple[str, ...] = Field(default=(), alias="set")
    """Changes of the configuration, each PATH=VALUE."""
    launch: int | None = Field(default=None, ge=1)
    """Train in so many processes."""
    zero: int | None = None
    """DeepSpeed's ZeRO; not tested."""
    allow_python: bool = False
    """Rewards are Python functions; the call of the loop has to allow that, too."""
    strict: bool = False
    """Stop when a row lacks something of the store."""


def _start(options: TrainStage, context: StageContext) -> ModelPlace:
    return context.last if options.model == "last" else context.model(options.model)


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
    return config


def _check(options: TrainStage, context: StageContext) -> None:
    refuse(config_of(options, context))


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
        allow_python=options.allow_python and context.allow_python,
        steps=context.progress,
        strict=options.strict,
    )
    train(config_of(options, context), str(out), how)


def _facts(options: TrainStage, folder: Path) -> StageFacts:
    record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    result, plan = record["result"], record["plan"]
    counts = {"rows": plan.get("rows"), "steps": result.get("steps")}
    counts["trained_tokens"] = _trained_tokens(folder, plan)
    for name in ("first_loss", "last_loss", "first_reward", "last_reward"):
        if name in result:
            counts[name] = result[name]
    word = "reward" if "first_reward" in result else "loss"
    line = f"{counts['steps']:,} steps"
    if f"first_{word}" in result:
        line += f", {word} {result[f'first_{word}']:.4g} -> {result[f'last_{word}']:.4g}"
    hashes = {
        name: model_hash(folder / name) for name in ("adapter", "model") if (folder / name).is_dir()
    }
    return StageFacts(combined(hashes), counts, line=line)


def _trained_tokens(folder: Path, plan: dict[str, Any]) -> int | None:
    """Tokens that the training read, as the trainer counts; else those under the loss once."""
    path = folder / _METRICS
    counted = None
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            counted = json.loads(line).get("num_tokens", counted)
    return int(counted) if counted is not None else plan.get("trained")


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
