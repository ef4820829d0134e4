"""Logs of what a program prints while it runs: texts of a turn come in pieces."""

from __future__ import annotations

from adp.converters.kit.drafts import StepDraft
from adp.converters.kit.session import SessionLog
from adp.converters.kit.source_object import SourceObject


class PrintedLog(SessionLog):
    """A session whose turns are printed piece by piece, and the whole text after them."""

    _turn: StepDraft | None = None
    _is_reasoning = False

    def set_up(self) -> None:
        """Begin without a piece."""
        self._pieces: list[str] = []

    def piece(self, source: SourceObject, text: str, *, reasoning: bool = False) -> StepDraft:
        """Add a piece of the text, or of the reasoning, of the turn that is open.

        Args:
            source: the line; the time of the first piece is that of the turn.
            text: the piece.
            reasoning: whether it is reasoning.
        """
        step = self.open_turn(source)
        if step is not self._turn or reasoning != self._is_reasoning:
            self.join()
        if self._pieces:
            self.losses.add(source.path, "pieces of a text are joined, with the time of the first")
            source.drop(*self.time_keys)
        self._turn, self._is_reasoning = step, reasoning
        self._pieces.append(text)
        return step

    def is_repeated(self, text: str) -> bool:
        """Whether a text is that of the pieces before it, as it is printed when all are there."""
        return bool(self._pieces) and text == "".join(self._pieces)

    def join(self) -> None:
        """Put the pieces into their turn, as one text."""
        if self._pieces and self._turn is not None:
            parts, text = self._turn.parts, self.builder.text("".join(self._pieces))
            (parts.reasoning if self._is_reasoning else parts.text)(text)
        self._pieces = []

    def finish(self) -> None:
        """The last pieces."""
        self.join()
