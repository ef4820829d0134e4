"""Reasoning in tags and no actions: ``<think>`` in turns whose calls are rows of their own.

Every dialect takes reasoning in tags; this one is for data sets that keep their calls apart.
"""

from __future__ import annotations

from collections.abc import Sequence

from adp.converters.text_calls.dialect import Dialect, ParsedCall, ParsedResult, ParsedTurn
from adp.converters.text_calls.thoughts import LONE, TAGS


class Think(Dialect):
    """The dialect ``think``."""

    name = "think"
    title = "Reasoning alone (`<think>`), beside calls that are no text"
    example = "<think>I look it up.</think>\nIt is 4."
    marks = (*TAGS, *LONE)
    automatic = False
    results = ()
    answers_all = False

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """A turn without actions; its reasoning is taken as in any dialect."""
        return ParsedTurn()

    def results_in(self, text: str, calls: Sequence[ParsedCall]) -> tuple[ParsedResult, ...]:
        """No results: they are rows of their own."""
        return ()


DIALECT = Think()
