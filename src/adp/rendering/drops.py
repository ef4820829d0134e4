"""Which counts of rendering are drops: what a store holds and no row does.

``--strict`` makes each of them an error. All counts are drops but those listed here, so a count
that is new is one until it is said that nothing is missing because of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from adp.rendering.m3_forms import NO_THOUGHT, WORDS_THOUGHT
from adp.rendering.one_row import DRIFT
from adp.rendering.prepare import SHORT_IDS, WORDS_BEFORE
from adp.rendering.spans import MORE_ROWS
from adp_schema.errors import ConversionLossError

CHOSEN = frozenset({"not the last step", "not in the last turn", "the step is empty"})
"""Reasons of steps that are in no row: asked for by ``train``, or there is nothing to train."""

WRITTEN = frozenset(
    {
        *(DRIFT, MORE_ROWS, NO_THOUGHT, SHORT_IDS, WORDS_BEFORE, WORDS_THOUGHT),
        "chats whose tools stand as text",
        "context edits",
        "events",
        "messages of the user joined with the one before",
        "pairs whose prompt is rendered differently on the two sides",
        "results without a call, as a message of the user",
        "rows taken once more to fill the last step of an epoch",
        "rows that were rendered and are not trained on",
        "steps put after their prompt, which the template rewrites later",
        "steps the model did not see",
        "steps whose calls are split into messages",
        "steps whose prompt at inference is another one",
        "system messages written into one of the user",
    }
)
"""Notes of what is written differently, or drifts, and is all there."""

_LONGEST = "tokens beyond the "
"""How the note begins that says how much longer than the model's context the longest row is."""


def drops(lost: Mapping[str, int], notes: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    """The counts that are drops.

    Args:
        lost: reason -> number of steps that are in no row.
        notes: what was written differently, or drifts -> how often.
    """
    counts = [(name, count) for name, count in lost.items() if name not in CHOSEN]
    counts += [
        (name, count)
        for name, count in notes.items()
        if name not in WRITTEN and not name.startswith(_LONGEST)
    ]
    yield from ((name, count) for name, count in sorted(counts) if count)


def check_drops(lost: Mapping[str, int], notes: Mapping[str, int]) -> None:
    """Refuse every drop, as ``--strict`` wants.

    Args:
        lost: reason -> number of steps that are in no row.
        notes: what was written differently, or drifts -> how often.

    Raises:
        ConversionLossError: there are some; names them with their counts.
    """
    results = [f"{name}: {count:,}" for name, count in drops(lost, notes)]
    if results:
        raise ConversionLossError(
            f"--strict: {'; '.join(results)}; choose a template or options of rendering that keep "
            "these, or leave out --strict"
        )
