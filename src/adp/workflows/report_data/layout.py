"""The parts of a report: sections, tables of text, transcripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from adp.stores.composition import Ranking
from adp.workflows.report_data.words import name, number, percent

ROWS = 50
"""Rows of a table; what is left is a number."""

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
    rows: tuple[tuple[str, ...], ...]
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
        plots: names of plots, see `plots.draw`.
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


def columns(*heads: str) -> tuple[Column, ...]:
    """Columns; the head of one with numbers begins with ``#``."""
    return tuple(Column(head.removeprefix("#"), head.startswith("#")) for head in heads)


def table(title: str, heads: Sequence[str], rows: Sequence[tuple[str, ...]]) -> TextTable:
    """A table, cut at `ROWS`.

    Args:
        title: what it shows.
        heads: its columns, see `columns`.
        rows: its cells.
    """
    left = len(rows) - ROWS
    note = f"{left:,} more rows are left out." if left > 0 else ""
    return TextTable(title, columns(*heads), tuple(rows[:ROWS]), note)


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
    yield TextTable(title, columns(head, f"#{unit}", "#share"), tuple(rows), note)
