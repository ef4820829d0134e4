"""A report, of data or of evaluations: its numbers, its text, and its file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adp.core.extras import need
from adp.core.output_files import whole_file
from adp.stores.composition import Composition
from adp.workflows import report_data, report_eval
from adp.workflows.report_eval import Evaluation
from adp.workflows.report_page import Page, html_page, markdown_page
from adp_schema.errors import OutputExistsError, UsageError

_FORMS = {".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown"}


def check_out(out: Path | None) -> None:
    """Check the name of a report's file, before anything is read.

    Raises:
        UsageError: it ends in neither .html nor .md, or its folder is not there.
        OutputExistsError: it is there already.
        MissingExtraError: it is a page, and matplotlib is missing.
    """
    if out is None:
        return
    if out.suffix.lower() not in _FORMS:
        raise UsageError(f"{out} ends in neither .html nor .md; name the file report.html")
    if out.exists():
        raise OutputExistsError(f"{out} is there already; choose another name")
    if not out.parent.is_dir():
        raise UsageError(f"the folder {out.parent} is not there; make it first")
    if _FORMS[out.suffix.lower()] == "html":
        need("report")


@dataclass(frozen=True, repr=False)
class Report:
    """A report for reading.

    Attributes:
        numbers: what it shows.
    """

    numbers: Composition | Evaluation

    def __repr__(self) -> str:
        return f"<Report {self.numbers.name}: plain(), html(), markdown(), write(FILE)>"

    def plain(self) -> dict[str, Any]:
        """The numbers as JSON has them."""
        return self.numbers.plain()

    def _page(self) -> Page:
        if isinstance(self.numbers, Evaluation):
            return report_eval.report_page(self.numbers)
        return report_data.report_page(self.numbers)

    def html(self) -> str:
        """The report as a page that needs nothing else."""
        return html_page(self._page())

    def markdown(self) -> str:
        """The report as Markdown."""
        return markdown_page(self._page())

    def write(self, out: Path) -> None:
        """Write a new file, which appears only when it is complete.

        Args:
            out: its name; the end says whether it is HTML or Markdown.

        Raises:
            UsageError: the name is wrong; see `check_out`.
            OutputExistsError: it is there already, or cannot be written.
        """
        check_out(out)
        text = self.html() if _FORMS[out.suffix.lower()] == "html" else self.markdown()
        with whole_file(out) as part:
            part.write_text(text, encoding="utf-8")
