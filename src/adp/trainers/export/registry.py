"""The exporters by name. Built-in ones stand in the table; others come from entry points."""

from __future__ import annotations

from adp.core.registry import Registry
from adp.trainers.export.exporter import Exporter

BUILTIN: dict[str, str] = {
    "alpaca": "adp.trainers.export.alpaca:EXPORTER",
    "chatml": "adp.trainers.export.chatml:EXPORTER",
    "trl-dpo": "adp.trainers.export.trl_dpo:EXPORTER",
    "trl-grpo": "adp.trainers.export.trl_grpo:EXPORTER",
    "trl-kto": "adp.trainers.export.trl_kto:EXPORTER",
    "trl-prompt-completion": "adp.trainers.export.trl_prompt_completion:EXPORTER",
    "trl-sft": "adp.trainers.export.trl_sft:EXPORTER",
}

exporters: Registry[Exporter] = Registry("exporter", "adp.exporters", BUILTIN)
"""All exporters, loaded when they are asked for."""
