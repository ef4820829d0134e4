"""The section of a training configuration about data that are made before the training."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from adp.trainers.config_section import ConfigSection

TOOLBENCH_FILE = "toolllama_G123_dfs_train.json"
"""The file of ToolBench that a configuration of Tiny Tool Use means by ``real``."""


class MakeSection(ConfigSection):
    """Data that `adp train` makes into OUT/data, in the manner of Tiny Tool Use."""

    strategy: Literal["manual_templates", "toolbench", "teacher_mode"]
    """manual_templates: adp make templates. toolbench: adp make synthetic, or a file when it is
    real. teacher_mode: adp make teacher with policy; without one synthetic, as the original."""
    generation_type: Literal["synthetic", "real"] = "synthetic"
    """real: with toolbench, a file is converted."""
    tools: tuple[dict[str, Any], ...] = ()
    """Tools, as in a file of the environment configured."""
    count: int | None = Field(default=None, ge=1)
    """Samples, at most; null: 10 sentences of each tool and their paraphrases, or 20 samples of
    each tool."""
    policy: str | dict[str, Any] | None = None
    """Policy that is the teacher: openai:model=m."""
    file: str = TOOLBENCH_FILE
    """The file that is real; relative to the configuration."""
    pairs: int = Field(default=100, ge=1)
    """DPO: pairs with a call whose tags are gone, at most. With a teacher, the calls that failed
    are the rejected sides instead."""
    test_cases: str | None = None
    """A file of tasks that the trained model is tried on; relative to the configuration."""
    test_count: int = Field(default=0, ge=0)
    """Without test_cases: samples that are made beside those of the training for it; 0: none."""
    max_tokens: int = Field(default=256, ge=1)
    """Tokens of a turn in that trial."""
