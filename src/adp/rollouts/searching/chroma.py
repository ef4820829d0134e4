"""Searching by Chroma, through its own client: in a folder, or at a server that the user names.

Documents of a corpus are cut into pieces, embedded by a local model, and put into a collection of
their name when it is not there yet. Chroma embeds nothing itself and sends no telemetry.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from adp.rollouts.environments.corpus import Document
from adp.rollouts.policy import InfrastructureError
from adp.rollouts.searching.dense import Embedder
from adp.rollouts.searching.retriever_settings import RetrieverSettings
from adp.rollouts.tools import LONGEST_REASON
from adp_schema.errors import AdpError, InputError, MissingExtraError, UsageError
from adp_schema.ids import digest

KIND = "chroma"
_CONTENT = "adp_content"
_BATCH = 1_000


class ChromaDocuments:
    """Documents of a collection of Chroma.

    Args:
        settings: folder or address, and how documents are cut.
        collection: its name: 3 to 512 letters, digits, ``.``, ``_`` and ``-``.
        embedder: makes the vectors.
        documents: what belongs into the collection; None: it is there already.

    Raises:
        MissingExtraError: the client is not installed.
        UsageError: there is no such collection, or it holds other documents.
        InputError: Chroma cannot be opened.
    """

    def __init__(
        self,
        settings: RetrieverSettings,
        collection: str,
        embedder: Embedder,
        documents: Sequence[Document] | None = None,
    ) -> None:
        self._embedder = embedder
        client = _client(settings)
        try:
            if documents is None:
                self._collection = client.get_collection(collection, embedding_function=None)
            else:
                self._collection = self._filled(client, collection, documents, settings)
        except AdpError:
            raise
        except Exception as error:  # the client has no class for all of its errors
            raise UsageError(
                f"the collection '{collection}' of Chroma cannot be opened: {error}"
            ) from error

    def __deepcopy__(self, memo: dict[int, Any]) -> ChromaDocuments:
        return self

    def search(self, query: str, limit: int) -> Sequence[tuple[Document, float]]:
        """The nearest pieces, with 1 - distance; of equal ones, in the order of their ids.

        Raises:
            InfrastructureError: Chroma fails.
        """
        vector = self._embedder.embed([query])[0].tolist()
        try:
            answer = self._collection.query(
                query_embeddings=[vector],
                n_results=limit,
                include=["documents", "metadatas", "distances"],
            )
        except Exception as error:  # likewise
            text = str(error)[:LONGEST_REASON]
            raise InfrastructureError(KIND, f"Chroma cannot be asked: {text}") from error
        hits = zip(
            *(answer[name][0] for name in ("ids", "documents", "metadatas", "distances")),
            strict=True,
        )
        results = [
            (Document(name, str((about or {}).get("title", "")), text or ""), 1.0 - distance)
            for name, text, about, distance in hits
        ]
        return sorted(results, key=lambda hit: (-hit[1], hit[0].id))

    def _filled(
        self, client: Any, name: str, documents: Sequence[Document], settings: RetrieverSettings
    ) -> Any:
        pieces = list(cut(documents, settings.chunk, settings.overlap))
        facts = [self._embedder.identity, *(f"{piece.id}\n{piece.text}" for piece in pieces)]
        content = digest("\n".join(facts).encode("utf-8", "replace"))
        about = {"hnsw:space": "cosine", _CONTENT: content}
        collection = client.get_or_create_collection(name, metadata=about, embedding_function=None)
        if (collection.metadata or {}).get(_CONTENT) != content:
            raise UsageError(
                f"the collection '{name}' of Chroma holds other documents, or their vectors by "
                "another model; remove it, or give another folder"
            )
        if collection.count() < len(pieces):  # a process that was killed may have left a part
            for start in range(0, len(pieces), _BATCH):
                part = pieces[start : start + _BATCH]
                texts = [f"{piece.title}\n{piece.text}".strip() for piece in part]
                collection.upsert(
                    ids=[piece.id for piece in part],
                    documents=[piece.text for piece in part],
                    metadatas=[{"title": piece.title} for piece in part],
                    embeddings=self._embedder.embed(texts).tolist(),
                )
        return collection


def cut(documents: Sequence[Document], chunk: int, overlap: int) -> Iterator[Document]:
    """Cut documents into pieces that overlap.

    Args:
        documents: the documents.
        chunk: characters of a piece.
        overlap: characters that a piece has in common with the one before.
    """
    for document in documents:
        text = document.text
        if len(text) <= chunk:
            yield document
            continue
        for number, start in enumerate(range(0, len(text) - overlap, chunk - overlap)):
            piece = text[start : start + chunk]
            yield Document(f"{document.id}#{number + 1}", document.title, piece)


def _client(settings: RetrieverSettings) -> Any:
    try:
        import chromadb
        from chromadb.config import Settings as ChromaSettings
    except ImportError as error:
        raise MissingExtraError("chromadb", KIND) from error
    about = ChromaSettings(anonymized_telemetry=False)
    try:
        if settings.chroma is not None:
            return chromadb.PersistentClient(str(settings.chroma.resolve()), about)
        parts = urlsplit(settings.retriever_url or "")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"'{settings.retriever_url}' is no address, such as http://HOST:8000")
        return chromadb.HttpClient(
            parts.hostname, parts.port or 8000, parts.scheme == "https", settings=about
        )
    except AdpError:
        raise
    except Exception as error:  # the client has no class for all of its errors
        place = settings.chroma or settings.retriever_url
        raise InputError(f"Chroma cannot be opened at {place}: {error}") from error
