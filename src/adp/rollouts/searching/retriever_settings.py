"""How documents are looked up: by BM25, vectors, Elasticsearch, Chroma, or at random."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from adp.rollouts.environment import Settings
from adp_schema.errors import UsageError

Retriever = Literal["bm25", "dense", "elasticsearch", "chroma", "random"]


class RetrieverSettings(Settings):
    """Settings of what looks documents up."""

    retriever: Retriever = "bm25"
    """What looks documents up: bm25, dense (vectors), elasticsearch, chroma or random."""
    embedding_model: str | None = None
    """Model of the vectors (dense, chroma): a folder or a Hub name, of model2vec or
    sentence-transformers."""
    vectors: Path | None = None
    """File that keeps the vectors of dense by their texts (SQLite); none: in memory."""
    retriever_url: str | None = None
    """Address of Elasticsearch or of a Chroma server, such as https://HOST:9200."""
    retriever_key_env: str | None = None
    """Environment variable of the API key of Elasticsearch."""
    retriever_user_env: str | None = None
    """Environment variable of a name for Elasticsearch; retriever_password_env goes with it."""
    retriever_password_env: str | None = None
    """Environment variable of its password."""
    retriever_cert: Path | None = None
    """Certificate of the authority that Elasticsearch's was made by."""
    match: Literal["bm25", "elser", "sparse_vector"] = "bm25"
    """How Elasticsearch matches: multi_match, or ELSER by text_expansion or sparse_vector."""
    fields: tuple[str, ...] = ("text",)
    """Fields that Elasticsearch matches by bm25."""
    elser_model: str = ".elser_model_2"
    """Model or inference endpoint of ELSER."""
    elser_field: str = "ml.tokens"
    """Field of its tokens."""
    chroma: Path | None = None
    """Folder of Chroma's data."""
    chunk: int = Field(default=1_500, ge=1)
    """Characters of a piece of a document that goes into Chroma."""
    overlap: int = Field(default=150, ge=0)
    """Characters that a piece has in common with the one before."""
    search_seconds: float = Field(default=60.0, gt=0)
    """Seconds that a search of a server may take."""

    @model_validator(mode="after")
    def _retrievable(self) -> RetrieverSettings:
        kind = self.retriever
        if kind in ("dense", "chroma") and self.embedding_model is None:
            raise ValueError(f"retriever={kind} needs embedding_model")
        if kind == "elasticsearch" and self.retriever_url is None:
            raise ValueError("retriever=elasticsearch needs retriever_url")
        if kind == "chroma" and (self.chroma is None) == (self.retriever_url is None):
            raise ValueError("retriever=chroma needs either chroma, a folder, or retriever_url")
        if (self.retriever_user_env is None) != (self.retriever_password_env is None):
            raise ValueError("retriever_user_env and retriever_password_env go together")
        if self.retriever_user_env is not None and self.retriever_key_env is not None:
            raise ValueError("give either retriever_key_env or a name with its password")
        if self.overlap >= self.chunk:
            raise ValueError("overlap must be less than chunk")
        return self

    @property
    def waits(self) -> bool:
        """Whether a search waits for a disk or a network."""
        return self.retriever in ("elasticsearch", "chroma")

    def key(self) -> str | None:
        """The API key.

        Raises:
            UsageError: the environment variable is not set.
        """
        return None if self.retriever_key_env is None else _variable(self.retriever_key_env)

    def user(self) -> tuple[str, str] | None:
        """Name and password.

        Raises:
            UsageError: an environment variable is not set.
        """
        if self.retriever_user_env is None or self.retriever_password_env is None:
            return None
        return _variable(self.retriever_user_env), _variable(self.retriever_password_env)


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise UsageError(f"the environment variable {name} is not set")
    return value
