"""What must not be published: secrets and personal data, as `adp.stores.redact` finds them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from adp.core.progress import Progress
from adp.stores import redact as redaction
from adp.stores.redact import RedactOptions
from adp.stores.redact.finder import ValueFinder
from adp_schema.errors import FindingsError
from adp_schema.store import Store

PLACES = 20
"""Places that are named."""


@dataclass(frozen=True)
class StoreFindings:
    """What was found in a store.

    Attributes:
        kinds: kind -> number of findings.
        places: where the first ones are, with no more than their first characters.
    """

    kinds: dict[str, int]
    places: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """Number of findings."""
        return sum(self.kinds.values())

    def plus(self, other: StoreFindings) -> StoreFindings:
        """The sum of both."""
        kinds = Counter(self.kinds) + Counter(other.kinds)
        return StoreFindings(dict(sorted(kinds.items())), (*self.places, *other.places))


def scan(store: Store, options: RedactOptions, progress: Progress) -> StoreFindings:
    """Look for secrets and personal data in every text of a store."""
    result = redaction.scan(store, replace(options, places=PLACES), progress)
    places = tuple(place.text() for place in result.places)
    return StoreFindings(dict(sorted(result.by_kind.items())), places)


def stop(store_findings: StoreFindings) -> FindingsError:
    """The error that stops a publication."""
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in store_findings.kinds.items())
    where = "; ".join(
        place if len(place) < 300 else place[:300] + "…" for place in store_findings.places[:3]
    )
    more = "; and other places" if store_findings.total > 3 else ""
    return FindingsError(
        f"the store holds what must not be published: {kinds}: {where}{more}; "
        "look at each with adp redact STORE --dry-run, then publish with --redact, or with "
        "--allow-findings to publish it as it is"
    )


def in_text(text: str, options: RedactOptions) -> tuple[str, StoreFindings]:
    """Look for secrets and personal data in one text.

    Returns:
        The text with placeholders, and what they stand for.
    """
    cleaned = ValueFinder(options.rules()).text(text)
    if cleaned is None:
        return text, StoreFindings({})
    return cleaned.text, StoreFindings(
        dict(sorted(Counter(item.kind for item in cleaned.values).items()))
    )


def stop_text(store_findings: StoreFindings) -> FindingsError:
    """The error for a text of the publisher that must not be published."""
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in store_findings.kinds.items())
    return FindingsError(
        f"the text of --about holds what must not be published: {kinds}; mend it, or publish with "
        "--redact, or with --allow-findings to publish it as it is"
    )
