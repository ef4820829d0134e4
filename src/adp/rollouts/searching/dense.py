"""Vectors of texts by a local model, and exact search among them by cosine.

A model is one of model2vec (a folder or Hub repository whose ``config.json`` or ``modules.json``
says so), or any of sentence-transformers. Vectors are kept by the content of model and text, so a
corpus that grows has only its new texts embedded.
"""

from __future__ import annotations

import functools
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from adp_schema.errors import InputError, MissingExtraError, UsageError
from adp_schema.ids import digest

_BATCH = 256
_DIGITS = 9
"""Digits of a cosine by which documents are ranked; what differs less is a tie."""


class Embedder(Protocol):
    """Makes vectors of texts.

    Attributes:
        identity: tells the model from others, for the cache.
    """

    identity: str

    def embed(self, texts: Sequence[str]) -> Any:
        """A vector for each text: an array of floats of the shape (texts, dimensions)."""
        ...


class ModelEmbedder:
    """A model of model2vec or sentence-transformers.

    Args:
        model: a folder or a name on the Hub.

    Raises:
        MissingExtraError: the package is not installed.
        UsageError: there is no such model.
    """

    def __init__(self, model: str) -> None:
        place = Path(model)
        self.identity = _content(place) if place.is_dir() else model
        try:
            self._model, self._options = _loaded(model)
        except (MissingExtraError, UsageError):
            raise
        except Exception as error:
            raise UsageError(
                f"'{model}' cannot be loaded as an embedding model: {error}"
            ) from error

    def embed(self, texts: Sequence[str]) -> Any:
        """A vector for each text."""
        return np.asarray(self._model.encode(list(texts), **self._options), dtype=np.float32)


@functools.lru_cache(maxsize=4)
def load_embedder(model: str) -> Embedder:
    """Load a model once.

    Raises:
        MissingExtraError: the package is not installed.
        UsageError: there is no such model.
    """
    return ModelEmbedder(model)


def _loaded(model: str) -> tuple[Any, dict[str, Any]]:
    if _is_static(model):
        try:
            from model2vec import StaticModel
        except ImportError as error:
            raise MissingExtraError("model2vec", "dense") from error
        # Several processes would give the same vectors, later.
        return StaticModel.from_pretrained(model), {"use_multiprocessing": False}
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError as error:
        raise MissingExtraError("sentence-transformers", "sentence-transformers") from error
    return SentenceTransformer(model), {"convert_to_numpy": True, "show_progress_bar": False}


def _is_static(model: str) -> bool:
    """Whether it is a model of model2vec, by what its files say."""
    files = {name: _text(model, name) for name in ("config.json", "modules.json")}
    return '"model2vec"' in files["config.json"] or "StaticEmbedding" in files["modules.json"]


def _text(model: str, name: str) -> str:
    """The text of a file of a model; empty when there is none."""
    path = Path(model) / name
    if not Path(model).is_dir():
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import EntryNotFoundError

        try:
            path = Path(hf_hub_download(model, name))
        except EntryNotFoundError:
            return ""
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _content(folder: Path) -> str:
    """A hash of the files of a model."""
    names = sorted(path for path in folder.rglob("*") if path.is_file())
    parts = [f"{path.relative_to(folder)} {digest(path.read_bytes())}" for path in names]
    return digest("\n".join(parts).encode("utf-8", "replace"))


class DenseIndex:
    """Vectors of documents; it never changes, so copies share it.

    Args:
        texts: texts of the documents.
        embedder: makes vectors.
        vectors: file that keeps them; None: nothing is kept.

    Raises:
        InputError: the file cannot be used.
    """

    def __init__(
        self, texts: Iterable[str], embedder: Embedder, vectors: Path | None = None
    ) -> None:
        self._embedder = embedder
        self._matrix = _unit(_vectors(list(texts), embedder, vectors))

    def search(self, query: str, limit: int) -> Sequence[tuple[int, float]]:
        """The nearest documents with their cosine; of equal ones the earlier comes first."""
        if not len(self._matrix):
            return []
        scores = np.round(self._matrix @ _unit(self._embedder.embed([query]))[0], _DIGITS)
        best = np.argsort(-scores, kind="stable")[: max(limit, 0)]
        return [(int(number), float(scores[number])) for number in best]


def _unit(vectors: Any) -> Any:
    """Vectors of the length 1; one without a direction stays 0."""
    rows = np.nan_to_num(np.asarray(vectors, dtype=np.float64))
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)


def _vectors(texts: Sequence[str], embedder: Embedder, place: Path | None) -> Any:
    if place is None:
        known: dict[str, Any] = {}
        return np.stack(_filled(texts, texts, known, embedder)) if texts else np.zeros((0, 1))
    keys = [digest(f"{embedder.identity}\n{text}".encode("utf-8", "replace")) for text in texts]
    try:
        with closing(sqlite3.connect(place, timeout=60.0)) as file, file:
            file.execute(
                "CREATE TABLE IF NOT EXISTS vectors (key TEXT PRIMARY KEY, value BLOB NOT NULL)"
            )
            known = {}
            for key in dict.fromkeys(keys):
                row = file.execute("SELECT value FROM vectors WHERE key = ?", (key,)).fetchone()
                if row is not None:
                    known[key] = np.frombuffer(row[0], dtype=np.float32)
            before = set(known)
            rows = _filled(keys, texts, known, embedder)
            new = [(key, known[key].tobytes()) for key in known if key not in before]
            file.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", new)
    except (sqlite3.Error, ValueError) as error:
        raise InputError(
            f"the vectors {place} cannot be used ({error}); name another file, or delete it"
        ) from error
    return np.stack(rows) if rows else np.zeros((0, 1))


def _filled(
    keys: Sequence[str], texts: Sequence[str], known: dict[str, Any], embedder: Embedder
) -> list[Any]:
    """The vector of each key; what is not known is made, once for equal texts."""
    missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
    names = list(missing)
    for start in range(0, len(names), _BATCH):
        part = names[start : start + _BATCH]
        made = np.asarray(embedder.embed([missing[name] for name in part]), dtype=np.float32)
        known.update(zip(part, made, strict=True))
    return [known[key] for key in keys]
