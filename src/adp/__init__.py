"""adp: the data workbench for agent trajectories.

    store = adp.convert("logs/", "my_store")     # or adp.open("my_store")
    adp.query(store, "SELECT name, count(*) FROM calls GROUP BY name")
    adp.export(store, "openai_chat", "chats")

Everything else is imported when it is first used, so ``import adp`` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    import pyarrow as pa

    from adp.converters.export import ExportReport
    from adp_schema.model import (
        Link,
        Media,
        Observation,
        Pair,
        Row,
        Step,
        Task,
        ToolCall,
        Trajectory,
    )
    from adp_schema.store import Store

    PathText = str | PathLike[str]

__version__ = "0.1.0"

__all__ = [
    "Link",
    "Media",
    "Observation",
    "Pair",
    "Row",
    "Step",
    "Store",
    "Task",
    "ToolCall",
    "Trajectory",
    "__version__",
    "convert",
    "export",
    "open",
    "query",
]

_FROM_SCHEMA = frozenset(
    {
        *("Link", "Media", "Observation", "Pair", "Row", "Step", "Store", "Task", "ToolCall"),
        "Trajectory",
    }
)


def convert(
    sources: PathText | Sequence[PathText],
    out: PathText,
    *,
    format: str | None = None,  # noqa: A002
    workers: int | None = None,
    strict: bool = False,
    keep_raw: bool = False,
    dataset: str | None = None,
    license: str | None = None,  # noqa: A002
) -> Store:
    """Convert files into a store, and open it.

    Args:
        sources: a file or a folder, or several.
        out: folder of the new store.
        format: name of the format; None recognises it.
        workers: number of processes; None takes one a core. The store does not depend on it.
        strict: stop at the first loss or reject.
        keep_raw: keep the raw records in the store.
        dataset: name of the data set; None takes it from the path.
        license: license of the content, for every trajectory.

    Returns:
        The store. ``store.manifest.counts`` says what became of the records.

    Raises:
        InputError: a source is missing or of no known format.
        OutputExistsError: the output holds a store, or something that is none.
        ConversionLossError: with ``strict``, something would be lost.
    """
    import os

    from adp.converters.run import ConvertOptions
    from adp.converters.run import convert as run

    several = [sources] if isinstance(sources, str | os.PathLike) else sources
    options = ConvertOptions(
        format=format,
        workers=workers,
        strict=strict,
        keep_raw=keep_raw,
        dataset=dataset,
        license=license,
    )
    run([os.fspath(source) for source in several], os.fspath(out), options=options)
    return open(out)


def open(path: PathText) -> Store:  # noqa: A001
    """Open a store by its local path or its URL.

    Raises:
        StoreError: there is no store, or its manifest is damaged.
        StoreVersionError: a newer version of this package wrote it.
    """
    import os

    from adp_schema.store import Store

    return Store.open(os.fspath(path))


def query(store: PathText | Store, sql: str) -> pa.Table:
    """Answer one SELECT over the views of a store.

    Args:
        store: the store, or its path or URL.
        sql: one SELECT; ``docs/schema.md`` lists the views.

    Raises:
        StoreError: there is no store.
        QueryError: the statement is not a SELECT, or the engine rejects it.
    """
    return _opened(store).query(sql)


def export(
    store: PathText | Store,
    to: str,
    out: PathText,
    *,
    flavour: str | None = None,
    single: str | None = None,
    strict: bool = False,
) -> ExportReport:
    """Write the trajectories of a store as files of a format.

    Args:
        store: the store, or its path or URL.
        to: name of the format.
        out: folder for the files; it must be empty or absent.
        flavour: way to write the format, where it has several.
        single: write one file of this name instead of one a source file.
        strict: stop at the first loss.

    Returns:
        How much was written, and what the format could not hold.

    Raises:
        UsageError: there is no such format or flavour.
        OutputExistsError: the folder holds something, or cannot be written.
        ConversionLossError: with ``strict``, the format cannot hold something.
    """
    import os

    from adp.converters.export import export as run

    return run(_opened(store), to, os.fspath(out), flavour=flavour, single=single, strict=strict)


def _opened(store: PathText | Store) -> Store:
    import os

    return open(store) if isinstance(store, str | os.PathLike) else store


def __getattr__(name: str) -> Any:
    if name not in _FROM_SCHEMA:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import adp_schema

    value = getattr(adp_schema, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
