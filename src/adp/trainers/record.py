"""The record of a run: what was trained on, how, with which versions, and what came out.

It holds no absolute path, no user name and no secret, so it can be published with the adapter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePath
from typing import Any

from adp.trainers.config import TrainConfig
from adp.trainers.curve import figure_curve, loss_curve
from adp.trainers.evaluation.history import summary
from adp.trainers.method import TrainingPlan
from adp.trainers.model_card import write_cards
from adp.trainers.rollouts.rollout_counts import rollout_counts
from adp.trainers.training_process import RESULT, WORK
from adp.version import __version__
from adp_schema.manifest import write_atomic
from adp_schema.store import Store

RECORD, CURVE, EVALUATION_CURVE = "run.json", "loss.svg", "evaluation.svg"

_PACKAGES = (
    "torch", "transformers", "trl", "peft", "accelerate", "deepspeed", "tokenizers", "pyarrow",
    "bitsandbytes",
)  # fmt: skip

_SECRET = re.compile(r"(^|[-_.])(token|secret|password|api_?key|authorization)$", re.IGNORECASE)


def write_record(
    config: TrainConfig, plan: TrainingPlan, out: Path, command: Sequence[str], seconds: float
) -> dict[str, Any]:
    """Write ``run.json`` and ``loss.svg``.

    Args:
        config: the run.
        plan: its plan.
        out: its folder.
        command: the words of the call.
        seconds: duration of the training, since the last start.

    Returns:
        The record.
    """
    result = json.loads((out / WORK / RESULT).read_text(encoding="utf-8"))
    log = result.pop("log")
    write_atomic(out / CURVE, loss_curve(log))
    if config.evaluate is not None:
        write_atomic(out / EVALUATION_CURVE, figure_curve(log, config.evaluate.metric))
    record = {
        "adp": __version__,
        "method": config.method,
        "ended": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 1),
        "command": [_bare(word) for word in command],
        "seed": config.training.seed,
        "config_hash": config.hash(),
        "config": _bare(config.plain()),
        "learning_rate": config.learning_rate,
        "stores": _stores(config),
        "mask": _mask(config, plan),
        "precision": plan.precision,
        "plan": {name: value for name, value in plan.plain().items() if name != "precision"},
        "result": {**result, **_metrics(log), **summary(config, log), **_episodes(out)},
        "versions": _versions(),
    }
    # First the cards: a run with a record is finished, and never looked at again.
    write_cards(config, record, out)
    write_atomic(out / RECORD, json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    return record


def _episodes(out: Path) -> dict[str, Any]:
    """What became of the episodes of a training in an environment."""
    counts = rollout_counts(out)
    return {} if counts is None else {"episodes": counts}


def _mask(config: TrainConfig, plan: TrainingPlan) -> dict[str, Any]:
    """What is under the loss."""
    policy = "the steps of the agent, by their weight in the store"
    written = config.distill.lmbda if config.method == "distill" else 0
    if written:
        here = "what the model wrote itself where such a step begins"
        policy = here if written == 1 else f"{policy}; in a share {written:g} of the steps {here}"
    mask: dict[str, Any] = {"policy": policy, "train": config.render.train}
    if "fractional_weights" in plan.facts:
        mask["fractional_weights"] = plan.facts["fractional_weights"]
    return mask


def _stores(config: TrainConfig) -> list[dict[str, Any]]:
    """Name, manifest hash and lineage of each store."""
    from adp.stores.shards import manifest_hash

    stores = []
    data = config.data
    replay = None if data.replay is None else data.replay.store
    for use, place in (("train", data.store), ("replay", replay), ("eval", data.eval_store)):
        if place is None:
            continue
        store = Store.open(place)
        lineage = [item.model_dump(mode="json") for item in store.manifest.lineage]
        store_hash = None if store.journal is not None else manifest_hash(store)
        stores.append(
            {
                "use": use,
                "name": PurePath(place).name,
                "manifest": store_hash,
                "lineage": _bare(lineage),
            }
        )
    return stores


def _metrics(log: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """First and last loss, and the last of every other number."""
    losses = [entry["loss"] for entry in log if "loss" in entry]
    results: dict[str, Any] = {}
    if losses:
        results |= {"first_loss": losses[0], "last_loss": losses[-1]}
        results["mean_loss"] = sum(losses) / len(losses)
    rewards = [entry["reward"] for entry in log if entry.get("reward") is not None]
    if rewards:
        results |= {"first_reward": rewards[0], "last_reward": rewards[-1]}
    measured = [entry for entry in log if "eval_loss" in entry]
    if measured:
        results |= {"eval_loss": measured[-1]["eval_loss"]}
    last: dict[str, Any] = next((entry for entry in reversed(log) if "loss" in entry), {})
    others = {
        key: value for key, value in last.items() if key not in ("loss", "step", "num_tokens")
    }
    return {**results, "last_log": others}


def _versions() -> dict[str, str]:
    import platform

    versions = {"python": platform.python_version(), "adp": __version__}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return versions


def _bare(value: Any) -> Any:
    """A value without absolute paths and secrets: of a path, its last part is left."""
    if isinstance(value, dict):
        return {
            key: "(left out)" if _SECRET.search(key) and isinstance(result, str) else _bare(result)
            for key, result in value.items()
        }
    if isinstance(value, list | tuple):
        return [_bare(item) for item in value]
    if not isinstance(value, str):
        return value
    name, equals, rest = value.partition("=")
    if equals and "/" not in name:
        return f"{name}={'(left out)' if _SECRET.search(name.lstrip('-')) else _bare(rest)}"
    # Word by word: also "~/x" and "../../home/me/x" tell where somebody works.
    if value.startswith(("/", "~", "..")) or re.match(r"[A-Za-z]:[\\/]", value):
        return PurePath(value.replace("\\", "/")).name
    return value
