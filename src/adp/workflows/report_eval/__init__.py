"""The report of evaluations; `adp.workflows.report` writes it.

    found = evaluation([Store.open("base"), Store.open("tuned")])
    report_page(found), found.plain()

`episodes` and `numbers` collect, `sections` puts the numbers into tables of text, `plots` draws
them.
"""

from __future__ import annotations

from functools import partial

from adp.workflows.report_eval.model import Evaluation
from adp.workflows.report_eval.numbers import EvaluationOptions, evaluation
from adp.workflows.report_eval.plots import draw
from adp.workflows.report_eval.sections import sections, tiles
from adp.workflows.report_page import Page
from adp.workflows.report_page.words import name

__all__ = ["Evaluation", "EvaluationOptions", "evaluation", "report_page"]


def report_page(value: Evaluation) -> Page:
    """The page that shows the numbers of evaluations."""
    stores = dict.fromkeys(run.store for run in value.runs)
    listed = ", ".join(name(store, 60) for store in stores)
    return Page(
        name=name(value.name),
        kind="Evaluation report",
        subtitle=f"Rollouts in {listed}" if listed else "No rollouts",
        tiles=tiles(value),
        all_sections=sections(value),
        draw=partial(draw, value),
    )
