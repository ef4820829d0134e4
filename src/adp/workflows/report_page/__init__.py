"""The page of a report: tables of text, plots and transcripts in sections, as HTML or as Markdown.

A report puts its numbers into a `Page` (`model`); `html` and `markdown` write it. Both show the
same sections, so they show the same numbers. `words` says how numbers and names are written, and
`drawing` how plots look. Texts in a page come from data, and each writer escapes them.
"""

from __future__ import annotations

from adp.workflows.report_page.html import html_page
from adp.workflows.report_page.markdown import markdown_page
from adp.workflows.report_page.model import Page
from adp.workflows.report_page.pages import write_pages

__all__ = ["Page", "html_page", "markdown_page", "write_pages"]
