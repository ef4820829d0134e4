"""What a recipe did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from adp.curation.outputs import OutputSelection
from adp.curation.state import State


@dataclass
class Curated:
    """What a recipe did.

    Attributes:
        report: inputs, stages and outputs with their counts; plain JSON.
        ledger: one row a fact: why each trajectory is in or out.
        state: all that is known of the trajectories.
        outputs: what each output takes.
    """

    report: dict[str, Any]
    ledger: pl.DataFrame
    state: State
    outputs: list[OutputSelection]
