"""The environment ``search``: two tools over a corpus of the user's own.

``search(query)`` finds documents by BM25 (`adp.rollouts.environments.bm25`), ``open_document(id)``
gives the text of one. `adp.rollouts.environments.corpus` says what a corpus may be; without one
there are a few short documents to try it with.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from adp.rollouts.environment import CONTENT, EnvironmentKind, Settings
from adp.rollouts.environments.bm25 import Bm25
from adp.rollouts.environments.corpus import Document, read_corpus
from adp.rollouts.tool_environment import ToolEnvironment
from adp.rollouts.tools import FunctionTool, ToolError, arguments_schema
from adp.rollouts.turns import ErrorType, Result

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


class Library:
    """Documents with an index; it never changes, so copies share it.

    Args:
        documents: the documents.
        k1: parameter of BM25.
        b: parameter of BM25.
    """

    def __init__(self, documents: Sequence[Document], k1: float = 1.2, b: float = 0.75) -> None:
        self._documents = documents
        self._by_id = {document.id: document for document in documents}
        self._index = Bm25((f"{document.title}\n{document.text}" for document in documents), k1, b)

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

    def search(query: str) -> Result:
        hits = value.search(query, limit)
        lines = [
            f"[{document.id}] {document.title}\n{_shortened(document.text)}" for document, _ in hits
        ]
        structured = [{"id": document.id, "score": round(score, 6)} for document, score in hits]
        return Result(text="\n\n".join(lines) or "No document matches.", structured=structured)

    about = f"Searches {len(value):,} documents; it shows the {limit} that match the query best."
    return FunctionTool(NAME, about, query_parameters(), search, read_only=True)


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


def _shortened(text: str) -> str:
    return text if len(text) <= SNIPPET else text[:SNIPPET] + " ..."


class SearchSettings(Settings):
    """Settings of the environment ``search``."""

    corpus: Path | None = Field(default=None, json_schema_extra=CONTENT)
    """File or folder of documents, or a store; without it, a few to try."""
    column: str | None = None
    """When the corpus is a store: its texts, such as tasks.instruction."""
    limit: int = Field(default=5, ge=1, le=100)
    """Documents that a search shows."""
    k1: float = Field(default=1.2, ge=0)
    """How much repeating a word counts."""
    b: float = Field(default=0.75, ge=0, le=1)
    """How much length counts against it."""


class SearchEnvironment(ToolEnvironment):
    """The tools ``search`` and ``open_document``.

    Args:
        settings: the corpus, and how it is searched.
    """

    def __init__(self, settings: SearchSettings | None = None) -> None:
        chosen = settings or SearchSettings()
        path = chosen.corpus.resolve() if chosen.corpus else None
        documents = library(path, chosen.column, chosen.k1, chosen.b)
        super().__init__([search_tool(documents, chosen.limit), open_tool(documents)])


KIND = EnvironmentKind(
    name=NAME,
    about="Search by BM25 over documents of one's own, and reading them.",
    settings=SearchSettings,
    make=SearchEnvironment,
)
"""What the registry holds."""
