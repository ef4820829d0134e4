"""The report of evaluations: one HTML file that needs nothing else, Markdown, or the numbers.

    found = evaluation([Store.open("base"), Store.open("tuned")])
    html_report(found), markdown_report(found), found.plain()

`episodes` and `numbers` collect, `sections` puts the numbers into tables of text, `plots` draws
them.
"""

from __future__ import annotations

from functools import partial

from adp.workflows.report_eval.model import Evaluation
from adp.workflows.report_eval.numbers import EvaluationOptions, evaluation
from adp.workflows.report_eval.plots import draw
from adp.workflows.report_eval.sections import sections, tiles
from adp.workflows.report_page import Page, html_page, markdown_page
from adp.workflows.report_page.words import name

__all__ = ["Evaluation", "EvaluationOptions", "evaluation", "html_report", "markdown_report"]


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


def html_report(value: Evaluation) -> str:
    """Write the report as HTML; see `html_page`."""
    return html_page(report_page(value))


def markdown_report(value: Evaluation, *, level: int = 1) -> str:
    """Write the report as Markdown; see `markdown_page`."""
    return markdown_page(report_page(value), level=level)
