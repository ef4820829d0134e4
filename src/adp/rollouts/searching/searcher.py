"""A search as an agent reads it: documents, cut to size, from a cache where they are there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adp.rollouts.environments.corpus import Document
from adp.rollouts.searching.cache import TextCache, query_key
from adp.rollouts.searching.server import SearchableDocuments
from adp.rollouts.searching.summary import Summarizer
from adp.rollouts.turns import Result

NOTHING = "No document matches."


@dataclass(frozen=True)
class SearchLimits:
    """How much of a search is shown.

    Attributes:
        documents: how many documents.
        characters: of the text of a document.
        total: characters of the result.
    """

    documents: int = 5
    characters: int = 1_000
    total: int = 20_000


class Searcher:
    """Searches documents.

    Args:
        documents: the documents.
        limits: how much is shown.
        place: where the documents are, for the keys of the cache.
        cache: file of a cache; None: nothing is cached.
        summary: policy that summarises; None: documents are shown as they are.

    Raises:
        InputError: the cache cannot be used.
        UsageError: there is no such policy.
    """

    def __init__(
        self,
        documents: SearchableDocuments,
        limits: SearchLimits,
        place: str = "",
        cache: Path | None = None,
        summary: Summarizer | None = None,
    ) -> None:
        self._documents, self._limits, self._place = documents, limits, place
        self._cache = None if cache is None else TextCache(cache)
        self._summary = summary

    def result(self, query: str) -> Result:
        """What a search brings.

        Raises:
            ToolError: the query is refused, or took too long.
            InfrastructureError: the search failed.
        """
        hits = self._hits(query)
        text = "\n\n".join(self._shown(document) for document, _ in hits)
        if self._summary is not None and hits:
            text = self._summarised(self._summary, query, text)
        structured = [{"id": document.id, "score": round(score, 6)} for document, score in hits]
        return Result(text=cut_to(text, self._limits.total) or NOTHING, structured=structured)

    def _hits(self, query: str) -> Sequence[tuple[Document, float]]:
        most = self._limits.documents
        key = query_key(query, self._place, most)
        if self._cache is not None and (known := self._cache.get(key)) is not None:
            return _read(known)
        hits = self._documents.search(query, most)
        if self._cache is None:
            return hits
        rows = [[document.id, document.title, document.text, score] for document, score in hits]
        return _read(self._cache.put(key, json.dumps(rows)))

    def _shown(self, document: Document) -> str:
        return f"[{document.id}] {document.title}\n{cut_to(document.text, self._limits.characters)}"

    def _summarised(self, summarizer: Summarizer, query: str, text: str) -> str:
        limits = self._limits
        key = query_key(query, self._place, limits.documents, limits.characters, summarizer.spec)
        if self._cache is not None and (known := self._cache.get(key)) is not None:
            return known
        summary = summarizer.summary(query, text)
        return summary if self._cache is None else self._cache.put(key, _whole(summary))


def cut_to(text: str, most: int) -> str:
    """A text, with ``...`` in the place of what is too long."""
    return text if len(text) <= most else text[:most] + " ..."


def _read(rows: str) -> list[tuple[Document, float]]:
    values: list[Any] = json.loads(rows)
    return [(Document(name, title, text), score) for name, title, text, score in values]


def _whole(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")
