"""From a store of `adp evolve` to a set for rejection-sampling fine-tuning (RFT).

A recipe selects the trajectories that are right, of valid form and free of failed results; an
exporter writes them as rows.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adp.core.progress import Progress
from adp.curation.outputs import Curated
from adp.curation.recipe_file import read_recipe
from adp.curation.run import CurateOptions, run
from adp.trainers.export.run import RowsReport, export_rows
from adp_schema.store import Store

RECIPE = Path(__file__).with_name("recipes") / "evolve_rft.yaml"
"""The recipe; its input is named ``evolved``."""

EXPORTER = "alpaca"


@dataclass
class RftReport:
    """What was made.

    Attributes:
        curated: what the recipe did.
        rows: what the exporter wrote.
    """

    curated: dict[str, Any]
    rows: RowsReport

    def plain(self) -> dict[str, Any]:
        """As JSON."""
        stages = self.curated["stages"]
        return {
            "in": stages[0]["in"] if stages else 0,
            "stages": {stage["name"]: stage["dropped"] for stage in stages},
            "selected": self.curated["outputs"][0]["trajectories"],
            "rows": self.rows.rows,
            "left_out": self.rows.left_out,
        }


def make_rft(
    store: str | os.PathLike[str], out: str | os.PathLike[str], *, progress: Progress | None = None
) -> RftReport:
    """Select trajectories, and write them as rows.

    Args:
        store: a finished store of `adp evolve`.
        out: folder; the selection goes into its folder ``selected``, the rows into ``rows``.
        progress: told how far it is.

    Raises:
        EmptyResultError: no trajectory is left; nothing was written.
        OutputExistsError: the output holds something else.
        StoreError: the store is not finished.
    """
    recipe = read_recipe(str(RECIPE), [f"inputs.evolved={os.fspath(store)}"])
    folder = Path(out)
    curated: Curated = run(
        recipe, str(folder / "selected"), options=CurateOptions(RECIPE.parent), progress=progress
    )
    data = Store.open(str(folder / "selected" / "data"))
    rows = export_rows(data, EXPORTER, str(folder / "rows"), ["tools=text"])
    return RftReport(curated.report, rows)
