"""A report as files: Markdown always, HTML where matplotlib is there."""

from __future__ import annotations

import contextlib
from pathlib import Path

from adp.core.extras import need
from adp.core.output_files import whole_file
from adp.workflows.report_page.html import html_page
from adp.workflows.report_page.markdown import markdown_page
from adp.workflows.report_page.model import Page
from adp_schema.errors import MissingExtraError


def write_pages(page: Page, place: Path) -> list[Path]:
    """Write a page as ``.md``, and as ``.html`` where matplotlib is there; they replace older ones.

    Args:
        page: the page.
        place: the files without their endings.

    Returns:
        What was written.

    Raises:
        OutputExistsError: a file cannot be written.
    """
    texts = {"md": markdown_page(page)}
    with contextlib.suppress(MissingExtraError):
        need("report")
        texts["html"] = html_page(page)
    written = []
    for ending, text in texts.items():
        path = place.with_name(f"{place.name}.{ending}")
        with whole_file(path) as part:
            part.write_text(text, encoding="utf-8")
        written.append(path)
    return written
