"""How to publish, checked before any work is done."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field

from adp.stores.licenses import Assessment, find_license
from adp.stores.redact import RedactOptions
from adp.stores.visible_text import visible
from adp.workflows.publish.check import check_tag
from adp_schema.errors import FindingsError, UsageError


@dataclass(frozen=True)
class PublishOptions:
    """How to publish.

    Attributes:
        title: name of the data set for people; None for the NAME of OWNER/NAME.
        license: license of the trajectories that state none, as the publisher says.
        tag: name of the revision, for the citation.
        date: day of the publication, ``YYYY-MM-DD``, for the Croissant metadata.
        redact: replace secrets and personal data.
        allow_findings: publish secrets and personal data as they are.
        search: what counts as a secret or personal data.
        accept_licenses: publish whatever the licenses say.
        all_tables: publish the tables ``raw`` and ``rejects`` too.
        about: text of the publisher for the data card, in Markdown.
        traces: whether a data set of sessions is published too; the data card names it.
        workers: number of processes; None takes one a core. The bytes do not depend on it.

    Raises:
        UsageError: the license is not known, or the tag or the date is none.
    """

    title: str | None = None
    license: str | None = None
    tag: str | None = None
    date: str | None = None
    redact: bool = False
    allow_findings: bool = False
    search: RedactOptions = field(default_factory=RedactOptions)
    accept_licenses: bool = False
    all_tables: bool = False
    about: str | None = None
    traces: bool = False
    workers: int | None = None

    def __post_init__(self) -> None:
        check_license(self.license)
        check_tag(self.tag)
        check_date(self.date)


def check_license(text: str | None) -> None:
    """Check that a text names a license.

    Raises:
        UsageError: it names none that is known.
    """
    if text is not None and find_license(text) is None:
        raise UsageError(
            f"'{visible(text[:80])}' is no license that adp knows; write an id of the Hub such as "
            "apache-2.0, cc-by-4.0"
        )


def check_date(text: str | None) -> None:
    """Check that a text is a day.

    Raises:
        UsageError: it is none.
    """
    try:
        if text is not None:
            datetime.date.fromisoformat(text)
    except ValueError:
        raise UsageError(f"'{text}' is no date; write it as 2026-05-03") from None


def title_line(text: str | None) -> str:
    """A title as one line of at most 200 characters, none of which is hidden."""
    return visible(" ".join((text or "")[:800].split()))[:200]


def license_error(assessment: Assessment, stated: str | None = None) -> FindingsError:
    """The error for licenses that stand in the way: which data sets, and what to do.

    Args:
        assessment: what is mixed.
        stated: the license that the publisher stated for what states none.
    """
    rows = assessment.refused()
    words = [f"{row.dataset or '(none)'} ({row.reasons[0]})" for row in rows[:5]]
    more = f" and {len(rows) - 5:,} more" if len(rows) > 5 else ""
    names = "; ".join(word if len(word) < 200 else word[:200] + "…" for word in words)
    silent = stated is None and any("no license is stated" in row.reasons for row in rows)
    state = "state the license of your own data (--license), " if silent else ""
    return FindingsError(
        f"licenses stand in the way: {names}{more}; leave these out (adp drop STORE --where ...), "
        f"{state}or publish all the same with --accept-licenses"
    )
