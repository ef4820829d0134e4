"""Finding the few cells of a column that are worth a close look, at the speed of the engine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import polars as pl
import pyarrow as pa

from adp.stores.redact.escapes import HIDES
from adp.stores.redact.invisible import ESCAPED_SIGNS, SIGNS
from adp.stores.redact.rules import Rule

Column: TypeAlias = pa.ChunkedArray | pa.Array | list[str]

SMALL = 1 << 16
"""Bytes of a column up to which preparing all patterns takes longer than the search."""

GROUP = 6
"""Gates that a small column is asked for together: few enough patterns to stay prepared."""


_ESCAPED = f"{HIDES}|{ESCAPED_SIGNS}"


class Prefilter:
    """Finds the cells that may hold something, and the rules that may find it.

    One pass over a column looks for all literals at once, and one for each gate, with an engine
    that takes linear time. Rules may share a gate.

    Args:
        rules: the rules.
    """

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._by_word: dict[str, list[Rule]] = {}
        for rule in rules:
            for word in () if rule.gate else rule.starts:
                self._by_word.setdefault(word, []).append(rule)
        self._gates: dict[str, list[Rule]] = {}
        for rule in rules:
            if rule.gate:
                self._gates.setdefault(rule.gate, []).append(rule)
        self._words = list(self._by_word)
        self._any: str | None = None
        self._groups: list[str] | None = None

    def rows(self, column: Column) -> dict[int, list[Rule]]:
        """The rows of a text column to look at, in order, with the rules to try.

        A row with escapes that may hide something may have no rules: they are tried on what is
        behind the escapes.
        """
        if isinstance(column, list):
            column = _array(column)
        if column.null_count == len(column):
            return {}

        series = pl.Series(column)
        gates = list(enumerate(self._gates))
        if column.nbytes <= SMALL:
            if self._is_clean(series):
                return {}
            gates = self._likely(series)
        cells = pl.col("cells").str
        masks = {str(number): cells.contains(gate) for number, gate in gates}
        # Two patterns: one for both is ten times as slow.
        masks["signs"] = cells.contains(SIGNS)
        masks["escaped"] = cells.contains(_ESCAPED)
        if self._words:
            # Faster than `contains_any`, whose automaton is not built for so many literals.
            masks["words"] = cells.contains("|".join(map(re.escape, self._words)))
        frame = pl.DataFrame({"cells": series})
        # One at a time: together they would take the threads of the other workers.
        result = frame.select(**{name: mask.fill_null(value=False) for name, mask in masks.items()})
        out: dict[int, list[Rule]] = {row: [] for row in _true(result["signs"] | result["escaped"])}
        if self._words:
            self._add_words(frame["cells"], _true(result["words"]), out)
        for number, gate in gates:
            for row in _true(result[str(number)]):
                out.setdefault(row, []).extend(self._gates[gate])
        return dict(sorted(out.items()))

    def _is_clean(self, cells: pl.Series) -> bool:
        """Whether no cell holds anything, by one pattern that is prepared only once.

        The engine keeps too few prepared patterns for all of them. On large columns the single
        one is no faster.
        """
        if self._any is None:
            self._any = _either([*self._gates, SIGNS, _ESCAPED, *map(re.escape, self._words)])
        return not cells.str.contains(self._any).any()

    def _likely(self, cells: pl.Series) -> list[tuple[int, str]]:
        """The gates, with their numbers, that may open for a cell: those of groups that do."""
        gates = list(enumerate(self._gates))
        groups = [gates[start : start + GROUP] for start in range(0, len(gates), GROUP)]
        if self._groups is None:
            self._groups = [_either([gate for _, gate in group]) for group in groups]
        opened = zip(groups, self._groups, strict=True)
        return [gate for group, any_ in opened if cells.str.contains(any_).any() for gate in group]

    def _add_words(self, cells: pl.Series, rows: list[int], out: dict[int, list[Rule]]) -> None:
        """Add the rules whose literals some rows hold."""
        if not rows:
            return
        some = cells.gather(pl.Series(rows, dtype=pl.UInt32))
        # Overlapping, or one literal would hide another that begins inside it.
        words = some.str.extract_many(self._words, overlapping=True).list.unique(
            maintain_order=True
        )
        for row, row_words in zip(rows, words.to_list(), strict=True):
            rules = out.setdefault(row, [])
            for word in row_words:
                rules += [rule for rule in self._by_word[word] if rule not in rules]


def _either(patterns: list[str]) -> str:
    """One pattern for any of several."""
    either = "|".join(f"(?:{pattern})" for pattern in patterns)
    try:
        pl.Series([""]).str.contains(either)
    except pl.exceptions.ComputeError:
        return ""  # two patterns of the caller may not fit together; it is in any text
    return either


def _array(texts: list[str]) -> pa.Array:
    """Texts as a column; a byte that was no UTF-8 is a question mark there."""
    try:
        return pa.array(texts, pa.large_string())
    except UnicodeEncodeError:
        known = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
        return pa.array(known, pa.large_string())


def _true(mask: pl.Series) -> list[int]:
    return [int(row) for row in np.flatnonzero(mask.to_numpy())]
