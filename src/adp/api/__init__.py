"""The functions of `adp`: each checks its arguments, makes one call of the library, and returns.

The modules import what they need when they are called.
"""

from adp.api.datasets import curate, export, publish, report, stream
from adp.api.engines import use_engine
from adp.api.models import collect, render, score, train
from adp.api.stores import (
    convert,
    drop,
    grow,
    merge,
    open,  # noqa: A004
    parse,
    query,
    seal,
    search,
    show,
    validate,
)

__all__ = [
    "collect",
    "convert",
    "curate",
    "drop",
    "export",
    "grow",
    "merge",
    "open",
    "parse",
    "publish",
    "query",
    "render",
    "report",
    "score",
    "seal",
    "search",
    "show",
    "stream",
    "train",
    "use_engine",
    "validate",
]
