"""The environment ``search``: two tools over a corpus of the user's own.

``search(query)`` finds documents by BM25 (`adp.rollouts.environments.bm25`), ``open_document(id)``
gives the text of one. `adp.rollouts.environments.corpus` says what a corpus may be; without one
there are a few short documents to try it with. With ``server`` a search server is asked instead,
with ``retriever`` vectors, Elasticsearch or Chroma.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from pydantic import Field, model_validator

from adp.rollouts.environment import CONTENT, EnvironmentKind
from adp.rollouts.environments.bm25 import Bm25
from adp.rollouts.environments.corpus import Document, read_corpus
from adp.rollouts.searching.chroma import ChromaDocuments
from adp.rollouts.searching.dense import DenseIndex, load_embedder
from adp.rollouts.searching.elastic import ElasticDocuments
from adp.rollouts.searching.random_choice import RandomIndex
from adp.rollouts.searching.remote import RemoteDocuments
from adp.rollouts.searching.retriever_settings import RetrieverSettings
from adp.rollouts.searching.searcher import Searcher, SearchLimits
from adp.rollouts.searching.server import SearchableDocuments
from adp.rollouts.searching.summary import Summarizer
from adp.rollouts.tool_environment import ToolEnvironment
from adp.rollouts.tools import FunctionTool, ToolError, arguments_schema
from adp.rollouts.turns import ErrorType

NAME = "search"
LONGEST_QUERY = 1000
"""Characters of a query."""
SNIPPET = 300
"""Characters of a text that are shown with a hit."""
PAGE = 10_000
"""Characters of a text that are shown at once."""

SAMPLE = (
    Document("bm25", "BM25", "BM25 ranks documents by how often they hold the words of a query."),
    Document(
        "machine-learning",
        "Machine learning",
        "Machine learning is the study of programs that improve with data. Python is the language "
        "that most tutorials about machine learning use.",
    ),
    Document(
        "neural-network",
        "Neural network",
        "A neural network is a model of layers of simple units whose weights are learned from "
        "examples by gradient descent.",
    ),
    Document(
        "python",
        "Python",
        "Python is a programming language. Guido van Rossum released its first version in 1991.",
    ),
    Document(
        "reinforcement-learning",
        "Reinforcement learning",
        "Reinforcement learning is learning from rewards: an agent acts in an environment and "
        "changes its policy so that it earns more.",
    ),
    Document(
        "trajectory",
        "Trajectory",
        "A trajectory of an agent is the record of its turns, its calls of tools and what they "
        "brought, from the first message to the answer.",
    ),
)


class DocumentIndex(Protocol):
    """Ranks documents by their numbers."""

    def search(self, query: str, limit: int) -> Sequence[tuple[int, float]]:
        """The documents that fit a query best, with their scores."""
        ...


class Library:
    """Documents with an index; it never changes, so copies share it.

    Args:
        documents: the documents.
        k1: parameter of BM25.
        b: parameter of BM25.
        make: makes another index of their texts.
    """

    def __init__(
        self,
        documents: Sequence[Document],
        k1: float = 1.2,
        b: float = 0.75,
        make: Callable[[Iterable[str]], DocumentIndex] | None = None,
    ) -> None:
        self._documents = documents
        self._by_id = {document.id: document for document in documents}
        texts = (f"{document.title}\n{document.text}" for document in documents)
        self._index: DocumentIndex = Bm25(texts, k1, b) if make is None else make(texts)

    def __len__(self) -> int:
        return len(self._documents)

    def __deepcopy__(self, memo: dict[int, Any]) -> Library:
        return self

    def search(self, query: str, limit: int) -> Sequence[tuple[Document, float]]:
        """The documents that fit a query best, with their scores."""
        return [
            (self._documents[number], score) for number, score in self._index.search(query, limit)
        ]

    def get(self, document_id: str) -> Document:
        """A document by its id.

        Raises:
            ToolError: there is none.
        """
        if document_id not in self._by_id:
            raise ToolError(f"there is no document '{document_id[:100]}'", ErrorType.INVALID_ARGS)
        return self._by_id[document_id]


@functools.lru_cache(maxsize=8)
def library(path: Path | None, column: str | None, k1: float, b: float) -> Library:
    """Read and index a corpus once; None is the small one to try it with.

    Raises:
        InputError: it cannot be read.
        UsageError: the kind of file or the column is unknown.
        EmptyResultError: it holds no document.
    """
    return Library(SAMPLE if path is None else read_corpus(path, column), k1, b)


@functools.lru_cache(maxsize=8)
def _retriever(
    settings: str, path: Path | None, column: str | None, name: str, b25: tuple[float, float]
) -> SearchableDocuments:
    about = RetrieverSettings.model_validate_json(settings)
    if about.retriever == "bm25":
        return library(path, column, *b25)
    if about.retriever == "elasticsearch":
        return ElasticDocuments(about, name)
    documents = SAMPLE if path is None else read_corpus(path, column)
    if about.retriever == "random":
        return Library(documents, make=lambda _: RandomIndex(len(documents)))
    embedder = load_embedder(str(about.embedding_model))
    if about.retriever == "dense":
        return Library(documents, make=lambda texts: DenseIndex(texts, embedder, about.vectors))
    return ChromaDocuments(about, name, embedder, documents if path is not None else None)


def retriever(
    settings: RetrieverSettings,
    path: Path | None,
    name: str,
    column: str | None = None,
    b25: tuple[float, float] = (1.2, 0.75),
) -> SearchableDocuments:
    """What looks documents up; it is made once for the same settings.

    Args:
        settings: how.
        path: the corpus; None: a few to try it with; of elasticsearch and chroma, what is there.
        name: the index of Elasticsearch, or the collection of Chroma.
        column: column of a store that is the corpus.
        b25: the parameters k1 and b of BM25.

    Raises:
        InputError: the corpus, the file of vectors or Chroma cannot be read.
        UsageError: the model, the address or the collection is none.
        MissingExtraError: a package is not installed.
        EmptyResultError: there is no document.
    """
    about = RetrieverSettings.model_validate(
        {field: getattr(settings, field) for field in RetrieverSettings.model_fields}
    )
    return _retriever(about.model_dump_json(), path, column, name, b25)


def query_parameters(**more: Any) -> dict[str, Any]:
    """JSON Schema of arguments with a ``query``, and others before it."""
    query = {
        "type": "string",
        "description": "The words to look for.",
        "minLength": 1,
        "maxLength": LONGEST_QUERY,
    }
    return arguments_schema({**more, "query": query})


def search_tool(value: Library, limit: int) -> FunctionTool:
    """The tool ``search`` over documents.

    Args:
        value: the documents.
        limit: how many it shows.
    """
    return searching_tool(Searcher(value, SearchLimits(limit, SNIPPET)), limit, len(value))


def searching_tool(searcher: Searcher, limit: int, documents: int | None = None) -> FunctionTool:
    """The tool ``search`` over a corpus or a server.

    Args:
        searcher: the search.
        limit: how many documents it shows.
        documents: how many there are; None: that is not known.
    """
    many = "documents" if documents is None else f"{documents:,} documents"
    about = f"Searches {many}; it shows the {limit} that match the query best."
    return FunctionTool(NAME, about, query_parameters(), searcher.result, read_only=True)


def open_tool(value: Library) -> FunctionTool:
    """The tool ``open_document`` over documents."""

    def open_document(id: str, start: int = 0) -> str:  # noqa: A002 - the name of the argument
        text = value.get(id).text
        end = start + PAGE
        rest = f"\n[{len(text) - end:,} more characters; go on with start={end}]"
        return text[start:end] + (rest if len(text) > end else "")

    name = {"type": "string", "description": "Id of the document, as search shows it."}
    place = {
        "type": "integer",
        "minimum": 0,
        "description": "Character to begin at; 0 is the first.",
    }
    parameters = arguments_schema({"id": name, "start": place}, optional=("start",))
    about = f"Gives the text of a document, {PAGE:,} characters at a time."
    return FunctionTool("open_document", about, parameters, open_document, read_only=True)


class ServedSearchSettings(RetrieverSettings):
    """Where a search looks: documents of one's own, or a server."""

    corpus: Path | None = Field(default=None, json_schema_extra=CONTENT)
    """File or folder of documents, or a store; without it, a few to try."""
    column: str | None = None
    """When the corpus is a store: its texts, such as tasks.instruction."""
    server: str | None = None
    """Address of a search server, in the place of a corpus: http://HOST:PORT takes POST /search
    with query and top_n, as adp serve-search and FlashRAG do."""
    index: str = NAME
    """Index of Elasticsearch or collection of Chroma."""
    limit: int = Field(default=5, ge=1, le=100)
    """Documents that a search shows."""
    k1: float = Field(default=1.2, ge=0)
    """How much repeating a word counts."""
    b: float = Field(default=0.75, ge=0, le=1)
    """How much length counts against it."""
    cache: Path | None = None
    """File for what searches and summaries brought, shared by all who name it (SQLite)."""
    summary: str | None = None
    """Policy that summarises what a search found, such as openai:model=...; none: it is shown as
    it is."""

    @model_validator(mode="after")
    def _possible(self) -> ServedSearchSettings:
        if self.server is not None and self.corpus is not None:
            raise ValueError("a search looks in a corpus or asks a server; give one of them")
        if self.server is not None and self.retriever != "bm25":
            raise ValueError("a search asks a server or a retriever; give one of them")
        if self.retriever == "elasticsearch" and self.corpus is not None:
            raise ValueError("elasticsearch has its documents already; give no corpus")
        return self

    def searcher(self, characters: int, total: int) -> Searcher:
        """The search.

        Args:
            characters: of a document that are shown.
            total: characters of the result.

        Raises:
            InputError: the corpus or the cache cannot be read.
            UsageError: the address, the policy or the kind of a file is none.
            EmptyResultError: there is no document.
        """
        documents: SearchableDocuments = (
            self.documents() if self.server is None
            else RemoteDocuments(self.server, self.search_seconds)
        )  # fmt: skip
        place = self.server or f"{self.corpus and self.corpus.resolve()} {self.column}"
        if self.retriever != "bm25":
            names = [*RetrieverSettings.model_fields, "index"]
            place += f" {self.model_dump_json(include=set(names))}"
        summarizer = None if self.summary is None else Summarizer(self.summary)
        limits = SearchLimits(self.limit, characters, total)
        return Searcher(documents, limits, place, self.cache, summarizer)

    def documents(self) -> SearchableDocuments:
        """The corpus with its index, or what another retriever has."""
        path = self.corpus.resolve() if self.corpus else None
        return retriever(self, path, self.index, self.column, (self.k1, self.b))


class SearchSettings(ServedSearchSettings):
    """Settings of the environment ``search``."""

    characters: int = Field(default=SNIPPET, ge=1)
    """Characters of a document that a search shows."""
    total_characters: int = Field(default=20_000, ge=1)
    """Characters of the result of a search."""


class SearchEnvironment(ToolEnvironment):
    """The tools ``search`` and ``open_document``; the second only for a corpus of one's own.

    Args:
        settings: the corpus or the server, and how it is searched.
    """

    def __init__(self, settings: SearchSettings | None = None) -> None:
        chosen = settings or SearchSettings()
        self.blocking = chosen.server is not None or chosen.summary is not None or chosen.waits
        searcher = chosen.searcher(chosen.characters, chosen.total_characters)
        documents = None if chosen.server is not None else chosen.documents()
        if not isinstance(documents, Library):
            super().__init__([searching_tool(searcher, chosen.limit)])
            return
        tool = searching_tool(searcher, chosen.limit, len(documents))
        super().__init__([tool, open_tool(documents)])


KIND = EnvironmentKind(
    name=NAME,
    about="Search by BM25 over documents of one's own, and reading them.",
    settings=SearchSettings,
    make=SearchEnvironment,
)
"""What the registry holds."""
