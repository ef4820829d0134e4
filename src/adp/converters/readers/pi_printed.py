"""What ``pi --mode json`` prints: messages while they grow, whole messages, results of calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from adp.converters.kit.key_tables import take_columns
from adp.converters.kit.session import TreeLog
from adp.converters.kit.source_object import SourceObject

PRINTED = frozenset(
    {"agent_start", "agent_end", "agent_settled", "turn_start", "turn_end", "message_start",
     "tool_execution_start", "tool_execution_update", "auto_compaction_start",
     "auto_compaction_end", "auto_retry_start", "auto_retry_end", "queue_update", "response"}
)  # fmt: skip
"""What ``pi --mode json`` prints beside messages and results."""


class PiPrinted(TreeLog):
    """The lines that are printed, and are in no file of a session."""

    handlers: ClassVar[Mapping[str, str]] = {
        "message_update": "growth",
        "message_end": "printed",
        "tool_execution_end": "executed",
    }
    kept: ClassVar[frozenset[str]] = PRINTED
    _growing: SourceObject | None = None

    def set_up(self) -> None:
        """The calls whose results were printed."""
        self._executed: set[str] = set()

    def message(self, source: SourceObject) -> None:
        """A message, by its role."""
        raise NotImplementedError

    def growth(self, source: SourceObject) -> None:
        """A message that is printed while it grows; only the last state of one that stays so."""
        self._outgrown()
        if self._type is not None:
            source.values[self.type_key] = self._type
        self._growing = source

    def printed(self, source: SourceObject) -> None:
        """A message that is complete; the result of a call was printed before it."""
        self._outgrown()
        message = source.peek("message")
        if message.word("role") == "toolResult" and message.word("toolCallId") in self._executed:
            self.keep(source)
        else:
            self.message(source)

    def _outgrown(self) -> None:
        if self._growing is not None:
            self.losses.add(self._growing.path, "the state of a message before it was complete")
            self._growing = None

    def executed(self, source: SourceObject) -> None:
        """The result of a call."""
        self._executed.add(source.word("toolCallId"))
        draft = self.begin_result(source, source.name("toolCallId"))
        take_columns(source, draft.columns, {"name": "toolName", "is_error": "isError"})
        result = source.child("result")
        content = result.take("content") if result else source.take("result")
        self.blocks.result(content, draft, f"{source.path}.result")
        draft.columns["structured"] = result.json("details")
        draft.extra = source.rest()

    def finish(self) -> None:
        """A message that was never complete is kept as it is."""
        if self._growing is not None:
            self.other(self._growing)
