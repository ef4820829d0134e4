"""The report of a store; `adp.workflows.report` writes it.

All numbers come from `adp.stores.composition`. `sections` puts them into tables of text, and
`plots` draws them.
"""

from __future__ import annotations

from functools import partial

from adp.stores.composition import Composition
from adp.stores.visible_text import human_size
from adp.workflows.report_data.plots import draw
from adp.workflows.report_data.sections import sections, tiles
from adp.workflows.report_page import Page, words


def report_page(composition: Composition) -> Page:
    """The page that shows the numbers of a store."""
    acts = [words.name(act["act"], 40) for act in composition.lineage]
    made = f", made by {', '.join(acts)}" if acts else ""
    growing = ", still growing" if composition.growing else ""
    size = human_size(composition.bytes)
    return Page(
        name=words.name(composition.name),
        kind="Data report",
        subtitle=f"adp store, schema {composition.schema_version}, {size}{made}{growing}",
        tiles=tiles(composition),
        all_sections=sections(composition),
        draw=partial(draw, composition),
    )
