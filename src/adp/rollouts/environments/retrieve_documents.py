"""The environment ``retrieve_documents``: the tool of that name of M3, over several collections.

``retrieve_documents(collection, query)`` gives the texts of the documents of a collection that fit
the query best, by BM25 or another retriever. The names of the collections are an ``enum`` of the
tool's schema, so an unknown one is an error of the arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import Field, model_validator

from adp.core.input_files import check_inside
from adp.rollouts.environment import CONTENT, EnvironmentKind
from adp.rollouts.environments.corpus import ENDINGS
from adp.rollouts.environments.search import query_parameters, retriever
from adp.rollouts.searching.retriever_settings import RetrieverSettings
from adp.rollouts.searching.server import SearchableDocuments
from adp.rollouts.tool_environment import ToolEnvironment
from adp.rollouts.tools import FunctionTool
from adp.rollouts.turns import Result
from adp_schema.errors import EmptyResultError, InputError

NAME = "retrieve_documents"


def read_collections(
    folder: Path,
    k1: float = 1.2,
    b: float = 0.75,
    settings: RetrieverSettings | None = None,
    indexes: Mapping[str, str] | None = None,
) -> Mapping[str, SearchableDocuments]:
    """Read the collections of a folder: each folder and each file in it is one.

    Args:
        folder: the folder; a collection has the name of its folder, or of its file without the
            ending.
        k1: parameter of BM25.
        b: parameter of BM25.
        settings: what looks documents up; None: BM25.
        indexes: names of collections in Chroma, where they are others.

    Raises:
        InputError: something cannot be read, or two collections have one name.
        EmptyResultError: there is no collection.
    """
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise InputError(f"{folder} cannot be read as a folder of collections: {error}") from error
    collections: dict[str, SearchableDocuments] = {}
    for entry in entries:
        if entry.name.startswith(".") or not (entry.is_dir() or entry.suffix in ENDINGS):
            continue
        check_inside(entry, folder)
        name = entry.name if entry.is_dir() else entry.stem
        if name in collections:
            raise InputError(f"{folder} holds two collections '{name}'; rename one of them")
        index = (indexes or {}).get(name, name)
        collections[name] = retriever(
            settings or RetrieverSettings(), entry.resolve(), index, None, (k1, b)
        )
    if not collections:
        raise EmptyResultError(f"{folder} holds no collection: no folder, and no file of documents")
    return collections


def retrieve_tool(
    collections: Mapping[str, SearchableDocuments],
    limit: int = 3,
    every: SearchableDocuments | None = None,
) -> FunctionTool:
    """The tool ``retrieve_documents``.

    Args:
        collections: documents by the name of their collection.
        limit: how many documents it gives.
        every: documents of every collection, which then may have any name.
    """

    def retrieve_documents(collection: str, query: str) -> Result:
        hits = (every or collections[collection]).search(query, limit)
        texts = [f"{result.title}\n{result.text}".strip() for result, _ in hits]
        structured = [{"id": result.id, "score": round(score, 6)} for result, score in hits]
        return Result(text="\n\n".join(texts) or "No document matches.", structured=structured)

    names = {} if every is not None else {"enum": list(collections)}
    collection = {"type": "string", **names, "description": "Name of the collection."}
    about = f"Gives the {limit} documents of a collection that match the query best."
    parameters = query_parameters(collection=collection)
    return FunctionTool(NAME, about, parameters, retrieve_documents, read_only=True)


class RetrieveSettings(RetrieverSettings):
    """Settings of the environment ``retrieve_documents``."""

    collections: Path | None = Field(default=None, json_schema_extra=CONTENT)
    """Folder of the collections: each folder or file of documents in it is one."""
    indexes: Mapping[str, str] = Field(default_factory=dict)
    """Name of a collection -> its index in Elasticsearch, or its collection in Chroma."""
    index: str | None = None
    """One index, or collection in Chroma, for all collections, which then may have any name."""
    limit: int = Field(default=3, ge=1, le=100)
    """Documents that a call gives."""
    k1: float = Field(default=1.2, ge=0)
    """How much repeating a word counts."""
    b: float = Field(default=0.75, ge=0, le=1)
    """How much length counts against it."""

    @model_validator(mode="after")
    def _complete(self) -> RetrieveSettings:
        if self.index is not None and (self.indexes or self.collections or not self.waits):
            raise ValueError("index is for elasticsearch and chroma, with no other collections")
        if self.collections is None and not (self.waits and (self.indexes or self.index)):
            raise ValueError(
                "give collections, a folder; of elasticsearch and chroma, indexes will do, such as "
                "indexes={films: films-2024}, or one index for all"
            )
        if self.collections is not None and self.retriever == "elasticsearch":
            raise ValueError("elasticsearch has its documents already; give indexes alone")
        return self

    def read(self) -> Mapping[str, SearchableDocuments]:
        """The collections by name.

        Raises:
            InputError: something cannot be read.
            UsageError: a model, an address or a collection is none.
            MissingExtraError: a package is not installed.
        """
        if self.collections is not None:
            return read_collections(self.collections, self.k1, self.b, self, self.indexes)
        return {name: retriever(self, None, index) for name, index in self.indexes.items()}


class RetrieveDocuments(ToolEnvironment):
    """One tool, ``retrieve_documents``.

    Args:
        settings: the collections, and how they are searched.
    """

    def __init__(self, settings: RetrieveSettings) -> None:
        self.blocking = settings.waits
        every = None if settings.index is None else retriever(settings, None, settings.index)
        super().__init__([retrieve_tool(settings.read(), settings.limit, every)])


KIND = EnvironmentKind(
    name=NAME,
    about="M3's tool: documents out of several collections, by BM25, vectors or a server.",
    settings=RetrieveSettings,
    make=RetrieveDocuments,
)
"""What the registry holds."""
