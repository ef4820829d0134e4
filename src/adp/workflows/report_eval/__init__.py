"""The report of evaluations: one HTML file that needs nothing else, Markdown, or the numbers.

    figures = evaluation([Store.open("base"), Store.open("tuned")])
    html_report(figures), markdown_report(figures), figures.plain()

`episodes` and `numbers` collect, `sections` puts the numbers into tables of text, `plots` draws
them; page and style are those of the report about data.
"""

from __future__ import annotations

from adp.workflows.report_data.html import Page, html_page
from adp.workflows.report_data.markdown import markdown_page
from adp.workflows.report_data.words import name
from adp.workflows.report_eval.model import Evaluation
from adp.workflows.report_eval.numbers import EvaluationOptions, evaluation
from adp.workflows.report_eval.plots import draw
from adp.workflows.report_eval.sections import sections, tiles

__all__ = ["Evaluation", "EvaluationOptions", "evaluation", "html_report", "markdown_report"]


def html_report(value: Evaluation) -> str:
    """Write the report as a page; every text from the data is escaped.

    Returns:
        The page. The same numbers give the same characters.
    """
    stores = dict.fromkeys(run.store for run in value.runs)
    listed = ", ".join(name(store, 60) for store in stores)
    page = Page(
        name=name(value.name),
        kind="Evaluation report",
        subtitle=f"Rollouts in {listed}" if listed else "No rollouts",
        tiles=tiles(value),
        sections=sections(value),
        plots=draw(value),
    )
    return html_page(page)


def markdown_report(value: Evaluation, *, level: int = 1) -> str:
    """Write the report as Markdown; every text from the data is escaped.

    Args:
        value: the numbers.
        level: level of the first heading, 1 to 4.
    """
    return markdown_page(value.name, tiles(value), sections(value), level=level)
