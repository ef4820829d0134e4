"""The report as one HTML file: styles and plots inside, no script, nothing to load."""

from __future__ import annotations

import base64
from importlib import resources

from adp.core.composition import Composition
from adp.workflows.report_data import words
from adp.workflows.report_data.plots import WIDTH, Plot, draw
from adp.workflows.report_data.sections import sections, tiles

_TEMPLATE, _STYLE = "template.html.j2", "style.css"


def html_report(found: Composition) -> str:
    """Write the report of a store.

    Every text from the data is escaped; what is in it is never taken for HTML or for a template.

    Args:
        found: the numbers.

    Returns:
        The page. The same numbers give the same characters.
    """
    import jinja2

    folder = resources.files("adp.workflows.report_data")
    engine = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    engine.filters["uri"] = _uri
    template = engine.from_string((folder / _TEMPLATE).read_text(encoding="utf-8"))
    plots = draw(found)
    made = sections(found)
    return template.render(
        name=words.name(found.name),
        subtitle=_subtitle(found),
        style=(folder / _STYLE).read_text(encoding="utf-8"),
        tiles=tiles(found),
        sections=made,
        plots=plots,
        width=WIDTH,
    )


def _subtitle(found: Composition) -> str:
    acts = [words.name(act["act"], 40) for act in found.lineage]
    made = f", made by {', '.join(acts)}" if acts else ""
    growing = ", still growing" if found.growing else ""
    size = words.bytes_of(found.bytes)
    return f"adp store, schema {found.schema_version}, {size}{made}{growing}"


def _uri(data: bytes) -> str:
    """An SVG as an address of its own, so that its markup is no part of the page."""
    return "data:image/svg+xml;base64," + base64.b64encode(data).decode()


__all__ = ["Plot", "html_report"]
