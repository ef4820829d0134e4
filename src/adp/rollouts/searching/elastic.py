"""Searching by Elasticsearch, through its own client.

``match=bm25`` sends a ``multi_match`` over the fields, ``elser`` a ``text_expansion`` of the tokens
of a model (Elasticsearch 8), ``sparse_vector`` the query of that name (8.15 and later). Only the
address that the user names is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adp.rollouts.environments.corpus import Document
from adp.rollouts.policy import InfrastructureError
from adp.rollouts.searching.remote import read_document
from adp.rollouts.searching.retriever_settings import RetrieverSettings
from adp.rollouts.tools import LONGEST_REASON
from adp_schema.errors import MissingExtraError, UsageError

KIND = "elasticsearch"


class ElasticDocuments:
    """Documents of an index of Elasticsearch.

    Args:
        settings: address, key and the way to match.
        index: name of the index.
        retries: tries after the first one.

    Raises:
        MissingExtraError: the client is not installed.
        UsageError: the address is none, or the key is not set.
    """

    def __init__(self, settings: RetrieverSettings, index: str, retries: int = 3) -> None:
        try:
            from elasticsearch import Elasticsearch
        except ImportError as error:
            raise MissingExtraError(KIND, KIND) from error
        self._settings, self._index = settings, index
        options: dict[str, Any] = {}
        if settings.retriever_cert is not None:
            options["ca_certs"] = str(settings.retriever_cert)
        try:
            self._client = Elasticsearch(
                settings.retriever_url,
                api_key=settings.key(),
                basic_auth=settings.user(),
                request_timeout=settings.search_seconds,
                max_retries=retries,
                retry_on_timeout=True,
                **options,
            )
        except (ValueError, OSError) as error:
            raise UsageError(
                f"'{settings.retriever_url}' is no address of Elasticsearch, such as "
                f"https://HOST:9200: {error}"
            ) from error

    def __deepcopy__(self, memo: dict[int, Any]) -> ElasticDocuments:
        return self

    def search(self, query: str, limit: int) -> Sequence[tuple[Document, float]]:
        """The documents that the server finds; of equal scores, in the order of their ids.

        Raises:
            InfrastructureError: it fails, or its answer cannot be read.
        """
        from elasticsearch import ApiError, TransportError

        try:
            answer = self._client.search(index=self._index, query=self._query(query), size=limit)
        except (ApiError, TransportError, ValueError) as error:
            text = str(error)[:LONGEST_REASON]
            raise InfrastructureError(KIND, f"Elasticsearch cannot be asked: {text}") from error
        return _documents(getattr(answer, "body", answer), limit)

    def _query(self, text: str) -> dict[str, Any]:
        settings = self._settings
        if settings.match == "elser":
            tokens = {"model_id": settings.elser_model, "model_text": text}
            return {"text_expansion": {settings.elser_field: tokens}}
        if settings.match == "sparse_vector":
            field, model = settings.elser_field, settings.elser_model
            return {"sparse_vector": {"field": field, "inference_id": model, "query": text}}
        return {"multi_match": {"query": text, "fields": list(settings.fields)}}


def _documents(answer: Any, limit: int) -> list[tuple[Document, float]]:
    try:
        hits = [
            ({"id": hit["_id"], **hit["_source"]}, hit["_score"]) for hit in answer["hits"]["hits"]
        ]
    except (TypeError, KeyError) as error:
        raise InfrastructureError(KIND, "Elasticsearch answers no list of hits") from error
    results = [read_document(item, number, score) for number, (item, score) in enumerate(hits)]
    results.sort(key=lambda hit: (-hit[1], hit[0].id))
    return results[:limit]
