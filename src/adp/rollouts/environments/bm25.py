"""BM25: which documents fit a query best.

The score of a document is, summed over the different terms of the query,

    idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / average length))
    idf = ln(1 + (N - n + 0.5) / (n + 0.5))

with ``tf`` how often the term is in the document, ``N`` the number of documents and ``n`` how many
of them hold the term. Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25
and Beyond", 2009, section 3; the ``1 +`` in ``idf``, which keeps it above 0, and the usual k1 = 1.2
and b = 0.75 are those of Lucene. Terms are runs of letters, digits and underscores, in lower case.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

import numpy as np

_TERM = re.compile(r"\w+")

Hit = tuple[int, float]
"""Number of a document, and its score."""


def terms_of(text: str) -> list[str]:
    """The terms of a text."""
    return _TERM.findall(text.casefold())


class Bm25:
    """An index; it never changes, so copies share it.

    Args:
        texts: texts of the documents.
        k1: how much repeating a term counts; 0: not at all.
        b: how much length counts against a document, from 0 to 1.
    """

    def __init__(self, texts: Iterable[str], k1: float = 1.2, b: float = 0.75) -> None:
        numbers: defaultdict[str, int] = defaultdict(count().__next__)
        terms, lengths = array("q"), array("q")
        for text in texts:
            result = terms_of(text)
            terms.extend([numbers[term] for term in result])
            lengths.append(len(result))
        self._numbers = dict(numbers)
        self._documents = len(lengths)
        self._index(np.asarray(terms, dtype=np.int64), np.asarray(lengths, dtype=np.int64), k1, b)

    def __len__(self) -> int:
        return self._documents

    def __deepcopy__(self, memo: dict[int, Any]) -> Bm25:
        return self

    def _index(self, terms: Any, lengths: Any, k1: float, b: float) -> None:
        """One sorted array of (term, document) pairs, and the weight of each."""
        size = max(self._documents, 1)
        owners = np.repeat(np.arange(self._documents, dtype=np.int64), lengths)
        keys, tf = np.unique(terms * size + owners, return_counts=True)
        of_term, self._owners = np.divmod(keys, size)
        self._starts = np.searchsorted(of_term, np.arange(len(self._numbers) + 1))
        holding = np.diff(self._starts)
        idf = np.log1p((self._documents - holding + 0.5) / (holding + 0.5))
        average = max(float(lengths.mean()) if self._documents else 0.0, 1e-9)
        norm = k1 * (1 - b + b * lengths[self._owners] / average)
        self._weights = idf[of_term] * tf * (k1 + 1) / (tf + norm)

    def search(self, query: str, limit: int) -> Sequence[Hit]:
        """The documents that fit best, best first; of equal ones the earlier comes first.

        Args:
            query: the query; a term that is there twice counts once.
            limit: how many at most. A document that holds no term is never among them.
        """
        scores = np.zeros(self._documents)
        # In the order of the index, so that the order of the words does not change the sum.
        for number in sorted({self._numbers.get(term, -1) for term in terms_of(query)} - {-1}):
            place = slice(self._starts[number], self._starts[number + 1])
            scores[self._owners[place]] += self._weights[place]
        hits = np.flatnonzero(scores)
        if len(hits) > limit > 0:
            least = np.partition(scores[hits], -limit)[-limit]
            hits = hits[scores[hits] >= least]
        best = hits[np.argsort(-scores[hits], kind="stable")][: max(limit, 0)]
        return [(int(number), float(scores[number])) for number in best]
