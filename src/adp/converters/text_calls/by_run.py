"""Parsing the texts of a file whose runs have dialects of their own, as a recipe says."""

from __future__ import annotations

from collections.abc import Callable

from adp.converters.text_calls.apply import TextParser
from adp.converters.text_calls.numbering import StepNumbers, pair_changes
from adp.converters.text_calls.of_file import NONE
from adp.converters.text_calls.registry import DIALECTS
from adp_schema.builder import RowBuilder
from adp_schema.model import Columns
from adp_schema.row_changes import TrajectoryRows

_TEXTS = 4


class ParserByRun:
    """Parses the texts of each trajectory by the dialect that it has.

    Args:
        dialect_for: gives its name, from the columns of the trajectory and its first texts; None or
            ``none`` for one whose texts are left as they are.
        parser: gives the parser of a dialect.
    """

    def __init__(
        self,
        dialect_for: Callable[[Columns, list[str]], str | None],
        parser: Callable[[str], TextParser],
    ) -> None:
        self._dialect_for = dialect_for
        self._parser = parser

    def change_record(self, builder: RowBuilder) -> None:
        """Parse the texts of the trajectories that a builder made of the record at hand."""
        numbers: dict[str, StepNumbers] = {}

        def change(run: TrajectoryRows) -> None:
            texts = [step["text"] for step in run.steps[:_TEXTS] if step.get("text")]
            name = self._dialect_for(run.columns, texts)
            if name is None or name == NONE or name not in DIALECTS:
                return
            parser = self._parser(name)
            parser.numbers = numbers
            parser.change(run)

        builder.change(change)
        if numbers:
            for pair in builder.made("pairs"):
                pair.update(pair_changes(pair, numbers))
