"""What a recipe did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl

from adp.curation.state import State


@dataclass
class Curated:
    """What a recipe did.

    Attributes:
        report: inputs, stages and outputs with their counts; plain JSON.
        ledger: one row a fact: why each trajectory is in or out.
        state: all that is known of the trajectories.
    """

    report: dict[str, Any]
    ledger: pl.DataFrame
    state: State
