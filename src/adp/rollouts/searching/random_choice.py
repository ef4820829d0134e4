"""Documents at random, as a floor to compare with: the query alone chooses them."""

from __future__ import annotations

import random
from collections.abc import Sequence

from adp_schema.ids import digest


class RandomIndex:
    """Chooses documents.

    Args:
        documents: how many there are.
    """

    def __init__(self, documents: int) -> None:
        self._documents = documents

    def search(self, query: str, limit: int) -> Sequence[tuple[int, float]]:
        """Different documents, the same ones for the same query; all scores are 0."""
        draw = random.Random(digest(query.encode("utf-8", "replace")))
        count = min(max(limit, 0), self._documents)
        return [(number, 0.0) for number in draw.sample(range(self._documents), count)]
