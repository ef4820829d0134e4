"""The report of a store: one HTML file that needs nothing else, or Markdown.

All numbers come from `adp.stores.composition`. `sections` puts them into tables of text, `plots`
draws them, `html` and `markdown` write the file.
"""

from __future__ import annotations

from adp.workflows.report_data.html import html_report
from adp.workflows.report_data.markdown import markdown_report

__all__ = ["html_report", "markdown_report"]
