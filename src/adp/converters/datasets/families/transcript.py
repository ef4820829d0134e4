"""Rows that hold a run as one text, cut by marks such as ``USER:``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from adp.converters.datasets.reader_specs import TranscriptSpec
from adp.converters.datasets.turns import DatasetRow, Source, new_step
from adp.converters.reading import QUOTE
from adp_schema import jsontext
from adp_schema.errors import RecordError

MARKS = "cut"
"""Key of ``extra`` of a turn: the characters before and after its words, so that the text can be
put together again."""


class CutTurn(NamedTuple):
    """A turn in a text: its words, and the characters before and after them."""

    source: Source
    before: str
    words: str
    after: str


def read(row: DatasetRow) -> None:
    """Read the text of a row.

    Raises:
        RecordError: there is none.
    """
    spec = row.recipe.transcript
    assert spec is not None
    for path in spec.system:
        if text := row.take_text(path):
            row.say("system", text)
    for path in spec.text:
        raw = row.look(path)
        if raw is None or jsontext.first_byte(raw) != QUOTE:
            continue
        if str(jsontext.decode_value(raw)).strip():
            add_text(row, row.take_text(path) or "")
            return
    raise RecordError(f"there is no text under {' or '.join(spec.text)}")


def add_text(row: DatasetRow, text: str) -> None:
    """Add the turns of a text to the run at hand."""
    spec = row.recipe.transcript
    assert spec is not None
    for turn in cut(text, spec):
        words = row.builder.text(turn.words)
        if turn.source == "result":
            result = row.run.observe({}, by_order=True)
            result.parts.text(words)
            extra = result.extra
        else:
            step = new_step(row.run, turn.source)
            if turn.source == "agent" and turn.words in spec.unrecorded:
                words, step.columns["loss_weight"] = "", 0.0
                turn = turn._replace(words="", after=turn.words + turn.after)
            step.parts.text(words)
            extra = step.extra
        if turn.before or turn.after:
            extra[MARKS] = [turn.before, turn.after]


@cache
def _pattern(marks: tuple[str, ...]) -> re.Pattern[str]:
    longest = sorted(marks, key=len, reverse=True)
    return re.compile("|".join(map(_regex, longest)), re.MULTILINE)


def _regex(mark: str) -> str:
    """A mark counts where a word may begin; with ``^`` at the beginning of a line only."""
    words = mark.removeprefix("^")
    start = "^" if words != mark else r"(?<!\S)" if words[:1].isalnum() else ""
    return start + re.escape(words)


def cut(text: str, spec: TranscriptSpec) -> Iterator[CutTurn]:
    """The turns of a text, in order; their characters make up all of it.

    Args:
        text: the text.
        spec: what turns begin and end with.
    """
    sources = {mark.removeprefix("^"): kind for kind, marks in spec.marks.items() for mark in marks}
    pattern = _pattern(tuple(mark for marks in spec.marks.values() for mark in marks))
    source: Source = spec.first
    start = words = 0
    for match in pattern.finditer(text):
        if start or text[: match.start()].strip():
            yield _turn(source, text[start:words], text[words : match.start()], spec)
            start = match.start()
        source, words = sources[match[0]], match.end()
    if text[start:].strip():
        yield _turn(source, text[start:words], text[words:], spec)


def _turn(source: Source, mark: str, text: str, spec: TranscriptSpec) -> CutTurn:
    """A turn without what stands around its words."""
    words = text.lstrip()
    before = mark + text[: len(text) - len(words)]
    kept = words.rstrip()
    for end in spec.ends:
        if kept.endswith(end):
            kept = kept.removesuffix(end).rstrip()
            break
    return CutTurn(source, before, kept, words[len(kept) :])
