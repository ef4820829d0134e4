"""A rendered row for reading, with the trained tokens coloured."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from rich.text import Text

from adp.rendering.render import TokenRow
from adp.rendering.tokens import Encoder
from adp.stores.visible_text import visible

TRAINED, LESS, CONTEXT = "bold green", "bold yellow", "dim"
"""Styles: weight 1 and more, a weight below 1, not trained."""

OPEN, CLOSE = "⟦", "⟧"
"""What stands around trained text where there are no colours."""

_CUT = 300


def row_lines(row: TokenRow, encoder: Encoder, *, full: bool, colour: bool) -> Iterator[Text]:
    """The lines of a row.

    Args:
        row: the row.
        encoder: the one that made its tokens.
        full: show the text that is not trained whole; else its middle is left out.
        colour: colours; else marks stand around what is trained.
    """
    trained = int(np.count_nonzero(row.loss_weights))
    count = len(row.input_ids)
    steps = ", ".join(str(step) for step, _, _ in row.spans)
    title = f"row {row.segment}.{row.window}: {count:,} tokens, {trained:,} trained"
    title += f" ({100 * trained / max(count, 1):.1f} %), steps {steps}"
    title += ", messages left out to fit the window" if row.context_cut else ""
    yield Text(title, "bold")
    entire = Text()
    for text, weight in _pieces(row, encoder):
        if weight == 0:
            entire.append(text if full else _short(text), CONTEXT)
            continue
        words = text if colour else f"{OPEN}{text}{CLOSE}"
        if weight not in (0.0, 1.0):
            words += f"(x{weight:g})"
        entire.append(words, TRAINED if weight >= 1 else LESS)
    yield from entire.split("\n", allow_blank=True)


def _pieces(row: TokenRow, encoder: Encoder) -> Iterator[tuple[str, float]]:
    """The text in runs of equal weight. A character counts by the token that it belongs to."""
    tokens = encoder.encode(row.text)
    weights = np.zeros(len(row.text), np.float32)
    for start, end, weight in zip(tokens.starts, tokens.ends, row.loss_weights, strict=True):
        if weight:
            weights[start:end] = weight
    edges = np.flatnonzero(np.diff(weights)) + 1
    begin = 0
    for end in [*edges.tolist(), len(row.text)]:
        if end > begin:
            yield visible(row.text[begin:end]), float(weights[begin])
        begin = end


def _short(text: str) -> str:
    if len(text) <= 2 * _CUT:
        return text
    left = len(text) - 2 * _CUT
    return f"{text[:_CUT]}\n... {left:,} more characters (--full)\n{text[-_CUT:]}"
