"""The parts of a page: sections, tables of text, transcripts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from adp.stores.composition import Ranking
from adp.workflows.report_page.drawing import Plot
from adp.workflows.report_page.words import MISSING, name, number, percent

ROWS = 50
"""Rows of a table; what is left is a number."""

Row = tuple[str, ...]

RANKED = 15
"""Rows of a list of names and counts."""


@dataclass(frozen=True)
class Column:
    """A column: its head, and whether it holds numbers of ours (which need no escaping)."""

    head: str
    number: bool = False


@dataclass(frozen=True)
class TextTable:
    """A table of texts.

    Attributes:
        title: what it shows.
        columns: its columns.
        rows: its cells.
        note: a sentence below it.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    note: str = ""

    @property
    def wide(self) -> bool:
        """Whether it needs the whole width of a page."""
        widths = [max(map(len, cells), default=0) for cells in zip(*self.rows, strict=True)]
        return len(self.columns) > 4 or any(width > 100 for width in widths) or sum(widths) > 90


@dataclass(frozen=True)
class Code:
    """A transcript.

    Attributes:
        title: id of the trajectory.
        note: why it is shown.
        text: the lines.
    """

    title: str
    note: str
    text: str


@dataclass(frozen=True)
class Section:
    """A section of a report.

    Attributes:
        key: its anchor.
        title: its heading.
        lines: paragraphs of our own words and numbers.
        plots: names of plots, see `Page.draw`.
        tables: its tables.
        code: transcripts.
    """

    key: str
    title: str
    lines: tuple[str, ...] = ()
    plots: tuple[str, ...] = ()
    tables: tuple[TextTable, ...] = ()
    code: tuple[Code, ...] = ()


@dataclass(frozen=True)
class Tile:
    """A number on top of a report, with what it counts and a remark."""

    value: str
    what: str
    remark: str = ""


@dataclass(frozen=True)
class Page:
    """What a report shows.

    Attributes:
        name: its title.
        kind: what kind of report it is.
        subtitle: a line below the title.
        tiles: the headline numbers.
        all_sections: its sections; those without content are left out.
        draw: draws all plots that its sections name: name of a plot -> the plot.
    """

    name: str
    kind: str
    subtitle: str
    tiles: Sequence[Tile]
    all_sections: Sequence[Section]
    draw: Callable[[], Mapping[str, Plot]]

    @property
    def sections(self) -> list[Section]:
        """The sections with content."""
        return [
            section
            for section in self.all_sections
            if section.lines or section.plots or section.tables or section.code
        ]


def columns(heads: Sequence[str]) -> tuple[Column, ...]:
    """Columns; the head of one with numbers begins with ``#``."""
    return tuple(Column(head.removeprefix("#"), head.startswith("#")) for head in heads)


def table(
    title: str, heads: Sequence[str], rows: Sequence[Row], *, left_out: Collection[str] = ()
) -> TextTable:
    """A table, cut at `ROWS`. A column ``note`` in which no row has one is left out.

    Args:
        title: what it shows.
        heads: its columns, see `columns`.
        rows: its cells.
        left_out: heads of columns that say nothing here.
    """
    kept = [
        place
        for place, head in enumerate(heads)
        if head not in left_out
        and not (head == "note" and all(row[place] == MISSING for row in rows))
    ]
    left = len(rows) - ROWS
    note = f"{left:,} more rows are left out." if left > 0 else ""
    cells = tuple(tuple(row[place] for place in kept) for row in rows[:ROWS])
    return TextTable(title, columns([heads[place] for place in kept]), cells, note)


def ranking(title: str, head: str, value: Ranking, unit: str) -> Iterator[TextTable]:
    """A table of names, or nothing when there are none but the empty one."""
    if not [count for count in value.rows if count.name is not None]:
        return
    shown = value.rows[:RANKED]
    rows = [
        (name(count.name, 300), number(count.count), percent(count.count, value.total))
        for count in shown
    ]
    left = value.names - len(shown)
    note = ""
    if left > 0:
        rest = value.total - sum(count.count for count in shown)
        note = f"{left:,} more with {rest:,} {unit} are left out."
    yield TextTable(title, columns((head, f"#{unit}", "#share")), tuple(rows), note)
