"""The ops of curation."""

from __future__ import annotations

from adp.core.registry import Registry
from adp.curation.op import Op

OPS: Registry[Op] = Registry(
    "op",
    "adp.ops",
    has=("name", "options", "run"),
    builtin={
        name: f"adp.curation.ops.{name}:OP"
        for name in (
            "annotate",
            "coreset",
            "decontaminate",
            "dedup_exact",
            "dedup_near",
            "dedup_semantic",
            "filter",
            "judge",
            "mask",
            "measure",
            "mix",
            "pairs",
            "pareto",
            "python",
            "replay",
            "score",
            "split",
        )
    },
)
