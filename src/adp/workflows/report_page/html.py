"""A page as one HTML file: styles and plots inside, no script, nothing to load."""

from __future__ import annotations

import base64
import functools
from importlib import resources

import jinja2

from adp.workflows.report_page.drawing import WIDTH
from adp.workflows.report_page.model import Page

_FILES = resources.files("adp.workflows.report_page")


def html_page(page: Page) -> str:
    """Write a page.

    Every text from the data is escaped; what is in it is never taken for HTML or for a template.

    Returns:
        The page. The same numbers give the same characters.
    """
    style = (_FILES / "style.css").read_text(encoding="utf-8")
    return _template().render(page=page, plots=page.draw(), style=style, width=WIDTH)


@functools.cache
def _template() -> jinja2.Template:
    """The template, compiled once: that takes as long as a page."""
    engine = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    engine.filters["uri"] = _uri
    return engine.from_string((_FILES / "template.html.j2").read_text(encoding="utf-8"))


def _uri(data: bytes) -> str:
    """An SVG as an address of its own, so that its markup is no part of the page."""
    return "data:image/svg+xml;base64," + base64.b64encode(data).decode()
