"""The methods of SAGE's comparison, and methods of one's own, for `adp compare`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adp.workflows.methods import MethodFile, read_method, shipped_methods


@dataclass
class MethodConfig:
    """A method, with the fields and defaults of SAGE's."""

    name: str
    description: str = ""
    use_coreset: bool = False
    coreset_strategy: str = "loss_topk"
    coreset_target_size: int | None = None
    use_continual: bool = False
    continual_buffer_size: int = 2048
    continual_replay_ratio: float = 0.25
    max_train_samples: int | None = None
    num_epochs: int = 1
    learning_rate: float = 2e-5
    use_dora: bool = False
    use_lora_plus: bool = False
    lora_plus_lr_ratio: float = 16.0
    use_trajectory_collection: bool = False
    trajectory_min_reward: float = 0.5
    trajectory_require_success: bool = True
    trajectory_max_steps: int | None = 10
    use_multi_task: bool = False
    task_weights: dict[str, float] | None = None
    mixing_strategy: str = "weighted"

    def method_file(self) -> MethodFile:
        """The method as `adp compare` takes it.

        Raises:
            UsageError: a value is wrong.
        """
        lora: dict[str, Any] = {"use_dora": self.use_dora}
        if self.use_lora_plus:
            lora["loraplus_lr_ratio"] = self.lora_plus_lr_ratio
        training = {"num_train_epochs": self.num_epochs, "learning_rate": self.learning_rate}
        return read_method(
            {
                "method": 1,
                "name": "".join(c if c.isalnum() or c in "_-" else "_" for c in self.name),
                "about": self.description,
                "parts": 2 if self.use_continual else 1,
                "recipe": {"ops": self._ops()},
                "training": {"lora": lora, "training": training},
            }
        )

    def _ops(self) -> list[dict[str, Any]]:
        ops: list[dict[str, Any]] = []
        if self.use_trajectory_collection:
            rules = {"min_reward": self.trajectory_min_reward,
                     "require_success": self.trajectory_require_success,
                     "max_steps": self.trajectory_max_steps}  # fmt: skip
            ops.append({"filter": {"preset": "sage", **rules}})
        if self.use_multi_task:
            mix: dict[str, Any] = {"method": self.mixing_strategy, "compat": "sage"}
            if self.task_weights and self.mixing_strategy == "weighted":
                mix["weights"] = self.task_weights
            kinds = read_method("F_agenttuning").variables["by"]
            ops.append({"mix": {"by": kinds, **mix}})
        if self.max_train_samples is not None:
            taken = {"method": "random", "size": self.max_train_samples, "coverage": False}
            ops.append({"coreset": taken, "as": "taken"})
        if self.use_coreset:
            coreset = {"method": self.coreset_strategy, "size": self.coreset_target_size}
            ops.append({"coreset": {**coreset, "compat": "sage", "coverage": False}})
        if self.use_continual:
            replay = {"size": self.continual_buffer_size, "ratio": self.continual_replay_ratio}
            ops.append({"replay": {**replay, "policy": "coreset", "compat": "sage"}})
        return ops


class MethodRegistry:
    """The methods that come with this package, under SAGE's names."""

    @classmethod
    def get_all_methods(cls) -> dict[str, MethodConfig]:
        """The 16 methods of SAGE's code."""
        return {name: _config(name, read_method(name)) for name in shipped_methods("code")}

    @classmethod
    def get_quick_methods(cls) -> dict[str, MethodConfig]:
        """The 4 methods for a quick look."""
        return {
            (short := name.removeprefix("quick_")): _config(short, read_method(name))
            for name in shipped_methods("quick")
        }


def _config(name: str, method: MethodFile) -> MethodConfig:
    ops: dict[str, Mapping[str, Any]] = {}
    taken = None
    for item in method.ops:
        kind, options = next((key, value) for key, value in item.items() if key != "as")
        if kind == "coreset" and options.get("compat") is None:
            taken = options.get("size")
        else:
            ops[kind] = options
    training = method.training.get("training", {})
    lora = method.training.get("lora", {})
    config = MethodConfig(name, method.about, max_train_samples=taken)
    config.num_epochs = training.get("num_train_epochs", 1)
    config.learning_rate = training.get("learning_rate", 2e-5)
    config.use_dora = bool(lora.get("use_dora"))
    config.use_lora_plus = lora.get("loraplus_lr_ratio") is not None
    config.lora_plus_lr_ratio = lora.get("loraplus_lr_ratio") or 16.0
    if coreset := ops.get("coreset"):
        config.use_coreset, config.coreset_strategy = True, coreset["method"]
        config.coreset_target_size = coreset.get("size")
    if replay := ops.get("replay"):
        config.use_continual = True
        config.continual_buffer_size, config.continual_replay_ratio = (
            replay["size"],
            replay["ratio"],
        )
    if rules := ops.get("filter"):
        config.use_trajectory_collection = True
        config.trajectory_min_reward = rules["min_reward"]
        config.trajectory_require_success = rules["require_success"]
        config.trajectory_max_steps = rules["max_steps"]
    if mix := ops.get("mix"):
        config.use_multi_task, config.mixing_strategy = True, mix["method"]
        config.task_weights = dict(mix.get("weights") or {}) or None
    return config
