"""Vectors of trajectories: a column of the pool, or vectors of our own (see `hashed`).

Vectors get length 1. Their numbers are rounded to multiples of 2**-25 (about the precision of
float32). Products and sums of such numbers are exact in float64, in whatever order they are added,
so a cosine is the same on every machine and with any number of threads, and two equal vectors are
equally far from everything. That is why ties can be broken by the order of the trajectories.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import polars as pl
from pydantic import Field, field_validator

from adp.curation.op import OpOptions
from adp.curation.pool import Pool
from adp.curation.texts.hashed import hashed_vectors
from adp.curation.texts.views import Kind, check_kinds
from adp_schema.errors import RecipeError

Array = np.ndarray[Any, Any]
Item = TypeVar("Item")
Answer = TypeVar("Answer")

GRID = float(1 << 25)
"""Numbers of vectors are multiples of 1 / GRID."""

BLOCK = 4096
"""Rows that are turned into float64 at a time."""


class VectorOptions(OpOptions):
    """Options of all ops that compare vectors."""

    embedding: str | None = None
    """Column of the pool with a vector for each trajectory, such as one that annotate read from
    a file. Without it, vectors are made from the words of the texts: no model and no download,
    and no sense of words that mean the same."""
    views: tuple[Kind, ...] = ("task", "agent", "actions")
    """Texts that the vectors are made from: any of system, task, user, agent, actions,
    observations, patch, all. Not used with embedding."""
    dimensions: int = Field(384, ge=8, le=4096)
    """Dimensions of the vectors that are made from texts."""

    @field_validator("views")
    @classmethod
    def _views(cls, value: tuple[Kind, ...]) -> tuple[Kind, ...]:
        check_kinds(value)
        return value


@dataclass
class Vectors:
    """Vectors of the members, in the order of ``seq``.

    Attributes:
        matrix: n x dimensions, float32; rows have length 1, or are all zeros.
        zeros: number of rows of zeros: trajectories of which nothing is known.
        origin: where they come from, in a few words.
    """

    matrix: Array
    zeros: int
    origin: str


def vectors_of(pool: Pool, options: VectorOptions) -> Vectors:
    """The vectors of all members.

    Raises:
        RecipeError: the column does not hold one vector a trajectory, all of one length.
    """
    if options.embedding is not None:
        raw = column_matrix(pool.members[options.embedding], pool.members["trajectory_id"])
        origin = f"the column {options.embedding}"
    else:
        raw = hashed_vectors(pool, tuple(options.views), options.dimensions)
        origin = "words of " + ", ".join(options.views)
    matrix = unit(raw)
    zeros = int((~matrix.any(axis=1)).sum())
    return Vectors(matrix, zeros, origin)


def column_matrix(column: pl.Series, names: Sequence[str] | pl.Series) -> Array:
    """A column of lists of numbers as a matrix.

    Args:
        column: the column.
        names: ids of the rows, for messages.

    Raises:
        RecipeError: it holds something else, a null, a number that is none, or lists of several
            lengths.
    """
    name = column.name
    advice = "give every trajectory a list of numbers, all of one length"
    if isinstance(column.dtype, pl.Array):
        column = column.arr.to_list()
    if not isinstance(column.dtype, pl.List) or not column.dtype.inner.is_numeric():
        raise RecipeError(f"the column {name} holds {column.dtype}, not vectors; {advice}")
    lengths = column.list.len()
    missing = column.is_null() | (lengths == 0)
    if missing.any():
        first = names[int(missing.arg_max() or 0)]
        raise RecipeError(
            f"the column {name} has no vector for {int(missing.sum()):,} trajectories, the first "
            f"is {first}; {advice}, or filter those out before"
        )
    if not len(column):
        return np.zeros((0, 1))
    if (other := lengths != lengths[0]).any():
        place = int(other.arg_max() or 0)
        raise RecipeError(
            f"the vectors of the column {name} have several lengths: {names[0]} has "
            f"{lengths[0]:,} numbers, {names[place]} has {lengths[place]:,}; {advice}"
        )
    flat = column.explode().cast(pl.Float64)
    values = flat.fill_null(float("nan")).to_numpy().reshape(len(column), int(lengths[0]))
    bad = ~np.isfinite(values).all(axis=1)
    if bad.any():
        raise RecipeError(
            f"the vector of {names[int(bad.argmax())]} in the column {name} has a number that is "
            f"null, NaN or infinite; {advice}"
        )
    return values


def unit(matrix: Array) -> Array:
    """Rows of length 1, on the grid; rows of zeros stay zeros.

    Args:
        matrix: n x d, finite numbers.

    Returns:
        n x d, float32.
    """
    values = np.zeros(matrix.shape, np.float32)
    for start in range(0, len(matrix), BLOCK):
        rows = matrix[start : start + BLOCK].astype(np.float64)
        top = np.abs(rows).max(axis=1, keepdims=True, initial=0)
        rows /= np.where(top > 0, top, 1)
        length = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
        rows /= np.where(length > 0, length, 1)
        values[start : start + BLOCK] = np.rint(rows * GRID) / GRID
    return values


def squares(matrix: Array) -> Array:
    """The squared length of each row, exact: 1, less what rounding took, or 0."""
    values = np.empty(len(matrix))
    for start in range(0, len(matrix), BLOCK):
        rows = matrix[start : start + BLOCK].astype(np.float64)
        values[start : start + BLOCK] = np.einsum("ij,ij->i", rows, rows)
    return values


@contextmanager
def one_thread() -> Iterator[None]:
    """Let matrix products use one thread: many small ones lose more by waiting than they gain."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        yield


def in_threads(work: Callable[[Item], Answer], items: Iterable[Item]) -> Iterator[Answer]:
    """Do independent pieces of work on matrices in threads of our own, one a core, at most 8.

    Whole pieces side by side keep the cores busier than the threads of each product do, which
    wait for each other. The results come in the order of the items.
    """
    count = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1, 8)
    with one_thread(), ThreadPoolExecutor(count) as executor:
        yield from executor.map(work, items)
