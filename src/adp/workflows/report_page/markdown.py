"""A page as Markdown: the same sections as tables, without plots."""

from __future__ import annotations

from collections.abc import Iterator

from adp.stores.markdown_text import escape, fenced
from adp.workflows.report_page.model import Page, Section, TextTable

CELL = 600
"""Characters of a cell; names are cut before."""


def markdown_page(page: Page, *, level: int = 1) -> str:
    """Write a page as Markdown; every text from data is escaped.

    Args:
        page: what it shows; plots are left out.
        level: level of the first heading, 1 to 4.

    Returns:
        The text. The same numbers give the same characters.
    """
    lines = [f"{'#' * level} {escape(page.name, CELL)}", ""]
    for tile in page.tiles:
        remark = f" ({tile.remark})" if tile.remark else ""
        lines.append(f"- {tile.value} {tile.what}{remark}")
    for section in page.sections:
        lines += ["", *section_lines(section, level + 1)]
    return "\n".join(lines) + "\n"


def section_lines(section: Section, level: int) -> Iterator[str]:
    """The lines of one section.

    Args:
        section: the section.
        level: level of its heading.
    """
    yield f"{'#' * level} {section.title}"
    for line in section.lines:
        yield ""
        yield line
    for table in section.tables:
        yield ""
        yield f"{'#' * (level + 1)} {escape(table.title, CELL)}"
        yield ""
        yield from table_lines(table)
    for code in section.code:
        yield ""
        yield f"{'#' * (level + 1)} {escape(code.title, CELL)}"
        yield ""
        yield f"{code.note.removesuffix('.')}:"
        yield ""
        yield fenced(code.text)


def table_lines(table: TextTable) -> Iterator[str]:
    """The lines of one table."""
    yield "| " + " | ".join(escape(column.head, CELL) for column in table.columns) + " |"
    yield "|" + "|".join("---:" if column.number else "---" for column in table.columns) + "|"
    for row in table.rows:
        cells = [
            cell if column.number else escape(cell, CELL)
            for cell, column in zip(row, table.columns, strict=True)
        ]
        yield "| " + " | ".join(cells) + " |"
    if table.note:
        yield ""
        yield table.note
