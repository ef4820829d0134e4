"""Exporters whose rows are conversations with calls as text: what they share."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from adp.rendering.chat import Chat
from adp.trainers.export.exporter import ExportItem, Form, RowExporter
from adp.trainers.export.harness.conversation import (
    ChatLine,
    conversation,
    row_id,
    with_source_system,
)
from adp.trainers.export.harness.options import weighted_form
from adp.trainers.export.readme import page


class TextChatWriter(Protocol):
    """Writes one chat as a harness shows it."""

    def system(self) -> str:
        """The system prompt."""
        ...

    def lines(self) -> Iterator[ChatLine]:
        """The messages."""
        ...


class TextRows(RowExporter):
    """A row a chat: its messages and the system prompt."""

    takes = "chats"
    mask = "binary"
    file = "train.jsonl"
    heading: str
    """Heading of the page beside the rows."""
    readme: str
    """Its text."""

    @abstractmethod
    def writer(
        self, chat: Chat, options: Any, changed: Counter[str], *, quoted: bool
    ) -> TextChatWriter:
        """What writes a chat.

        Args:
            chat: the chat.
            options: options of the exporter.
            changed: counts what is written otherwise than it was.
            quoted: whether texts in arguments have quotes around them, as in ADP v1.
        """

    def form(self, options: Any) -> Form:
        """Weights for messages, or none."""
        return weighted_form(options, self.file)

    def row(self, item: ExportItem, options: Any, changed: Counter[str]) -> dict[str, Any]:
        """One row a chat."""
        assert item.chat is not None
        quoted = item.trajectory.source_format == "adp_v1"
        writer = self.writer(item.chat, options, changed, quoted=quoted)
        lines = list(writer.lines())
        return {
            "id": row_id(item),
            "conversations": conversation(lines, options),
            "system": with_source_system(writer.system(), item.chat, options),
        }

    def files(self, options: Any, facts: Mapping[str, Any]) -> Mapping[str, str]:
        """How to train on it."""
        return {"README.md": page(self.heading, self.readme, facts)}
