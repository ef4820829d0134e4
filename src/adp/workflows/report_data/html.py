"""The report as one HTML file: styles and plots inside, no script, nothing to load."""

from __future__ import annotations

import base64
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING

from adp.stores.composition import Composition
from adp.workflows.report_data import words
from adp.workflows.report_data.drawing import WIDTH, Plot
from adp.workflows.report_data.layout import Section, Tile
from adp.workflows.report_data.plots import draw
from adp.workflows.report_data.sections import sections, tiles

if TYPE_CHECKING:
    from jinja2 import Template

_FOLDER = "adp.workflows.report_data"
_TEMPLATE, _STYLE = "template.html.j2", "style.css"


@dataclass(frozen=True)
class Page:
    """What a page shows.

    Attributes:
        name: its title.
        kind: what kind of report it is.
        subtitle: a line below the title.
        tiles: the headline numbers.
        sections: its sections.
        plots: name of a plot -> the plot.
    """

    name: str
    kind: str
    subtitle: str
    tiles: Sequence[Tile]
    sections: Sequence[Section]
    plots: Mapping[str, Plot]


def html_report(composition: Composition) -> str:
    """Write the report of a store.

    Every text from the data is escaped; what is in it is never taken for HTML or for a template.

    Args:
        composition: the numbers.

    Returns:
        The page. The same numbers give the same characters.
    """
    page = Page(
        name=words.name(composition.name),
        kind="Data report",
        subtitle=_subtitle(composition),
        tiles=tiles(composition),
        sections=sections(composition),
        plots=draw(composition),
    )
    return html_page(page)


def html_page(page: Page) -> str:
    """Write a page; every text in it is escaped."""
    style = (resources.files(_FOLDER) / _STYLE).read_text(encoding="utf-8")
    return _template().render(**vars(page), style=style, width=WIDTH)


@functools.cache
def _template() -> Template:
    """The template, compiled once: that takes as long as a page."""
    import jinja2

    engine = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    engine.filters["uri"] = _uri
    return engine.from_string((resources.files(_FOLDER) / _TEMPLATE).read_text(encoding="utf-8"))


def _subtitle(composition: Composition) -> str:
    acts = [words.name(act["act"], 40) for act in composition.lineage]
    made = f", made by {', '.join(acts)}" if acts else ""
    growing = ", still growing" if composition.growing else ""
    size = words.bytes_of(composition.bytes)
    return f"adp store, schema {composition.schema_version}, {size}{made}{growing}"


def _uri(data: bytes) -> str:
    """An SVG as an address of its own, so that its markup is no part of the page."""
    return "data:image/svg+xml;base64," + base64.b64encode(data).decode()
