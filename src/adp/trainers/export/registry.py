"""The exporters by name. Built-in ones stand in the table; others come from entry points."""

from __future__ import annotations

from adp.core.code_files import load_code
from adp.core.registry import Registry
from adp.trainers.export.exporter import Exporter

BUILTIN: dict[str, str] = {
    "agentlab": "adp.trainers.export.agentlab:EXPORTER",
    "alpaca": "adp.trainers.export.alpaca:EXPORTER",
    "axolotl-dpo": "adp.trainers.export.axolotl_dpo:EXPORTER",
    "axolotl-kto": "adp.trainers.export.axolotl_kto:EXPORTER",
    "chatml": "adp.trainers.export.chatml:EXPORTER",
    "llamafactory-ranking": "adp.trainers.export.llamafactory_ranking:EXPORTER",
    "llamafactory-sharegpt": "adp.trainers.export.llamafactory_sharegpt:EXPORTER",
    "nemo-gym-rollouts": "adp.trainers.export.nemo_gym_rollouts:EXPORTER",
    "openai-ft-dpo": "adp.trainers.export.openai_ft_dpo:EXPORTER",
    "openai-ft-sft": "adp.trainers.export.openai_ft_sft:EXPORTER",
    "openhands-sdk": "adp.trainers.export.openhands_sdk:EXPORTER",
    "openhands-v0": "adp.trainers.export.openhands_v0:EXPORTER",
    "openrlhf-rollouts": "adp.trainers.export.openrlhf_rollouts:EXPORTER",
    "prime-rl-rollouts": "adp.trainers.export.prime_rl_rollouts:EXPORTER",
    "slime-rollouts": "adp.trainers.export.slime_rollouts:EXPORTER",
    "swe-agent": "adp.trainers.export.swe_agent:EXPORTER",
    "swift-dpo": "adp.trainers.export.swift_dpo:EXPORTER",
    "swift-kto": "adp.trainers.export.swift_kto:EXPORTER",
    "tinker-datums": "adp.trainers.export.tinker_datums:EXPORTER",
    "trl-dpo": "adp.trainers.export.trl_dpo:EXPORTER",
    "trl-grpo": "adp.trainers.export.trl_grpo:EXPORTER",
    "trl-kto": "adp.trainers.export.trl_kto:EXPORTER",
    "trl-prompt-completion": "adp.trainers.export.trl_prompt_completion:EXPORTER",
    "trl-sft": "adp.trainers.export.trl_sft:EXPORTER",
    "verifiers-traces": "adp.trainers.export.verifiers_traces:EXPORTER",
    "verl-rl": "adp.trainers.export.verl_rl:EXPORTER",
    "verl-rollouts": "adp.trainers.export.verl_rollouts:EXPORTER",
    "verl-sft": "adp.trainers.export.verl_sft:EXPORTER",
}

exporters: Registry[Exporter] = Registry(
    "exporter",
    "adp.exporters",
    BUILTIN,
    has=("name", "title", "takes", "mask", "file", "options", "schema", "rows", "files"),
)
"""All exporters, loaded when they are asked for."""


def is_exporter(name: str) -> bool:
    """Whether a name for ``--to``, which may be that of the user's own code, is an exporter's."""
    return hasattr(load_code(name)[0], "takes") if ":" in name else name in exporters
