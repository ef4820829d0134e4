"""Figures that are missing for one reason, as one line."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from adp.eval.scorer import Figure

MANY = 4
"""As many of a kind are shown as one line."""

T = TypeVar("T")


def groups(rows: Sequence[T], kinds: Sequence[Hashable]) -> Iterator[list[T]]:
    """Rows of one kind together, where the first of them stands.

    Args:
        rows: the rows.
        kinds: the kind of each; None: it stands alone. Fewer than `MANY` stand alone, too.
    """
    results: dict[Hashable, list[T]] = {}
    for number, (row, kind) in enumerate(zip(rows, kinds, strict=True)):
        results.setdefault(("alone", number) if kind is None else ("kind", kind), []).append(row)
    for group in results.values():
        if len(group) < MANY:
            yield from ([row] for row in group)
        else:
            yield group


def together(names: Sequence[str]) -> str:
    """``a, b and 9 more``; up to three names in full."""
    if len(names) < MANY:
        return ", ".join(names)
    return f"{', '.join(names[:2])} and {len(names) - 2:,} more"


def folded(figures: Sequence[Figure]) -> Iterator[Figure]:
    """Figures, with those that are missing for one reason as one: ``a, b and 9 more``."""
    kinds = [
        (figure.reason, figure.unscored, figure.infrastructure)
        if figure.value is None and not figure.count and figure.reason
        else None
        for figure in figures
    ]
    for group in groups(figures, kinds):
        yield replace(group[0], name=together([item.name for item in group]))
