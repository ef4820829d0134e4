"""Exporters whose rows are conversations with calls as text: what they share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from adp.rendering.chat import Chat, Message
from adp.trainers.export.exporter import ExportItem, Form, RowExporter
from adp.trainers.export.harness.conversation import (
    ChatLine,
    conversation,
    row_id,
    with_source_system,
)
from adp.trainers.export.harness.options import weighted_form
from adp.trainers.export.harness.texts import escaped, page_text
from adp.trainers.export.harness.turns import HarnessTurn, turns
from adp.trainers.export.readme import page


class TextConversation(ABC):
    """Writes one chat as a harness shows it: calls at the end of messages, results by the user.

    Args:
        chat: the chat.
        options: options of the exporter.
        changed: counts what is written otherwise than it was.
        quoted: whether texts in arguments have quotes around them, as in ADP v1.
    """

    def __init__(self, chat: Chat, options: Any, changed: Counter[str], *, quoted: bool) -> None:
        self._chat = chat
        self._options = options
        self._changed = changed
        self._quoted = quoted

    @abstractmethod
    def system(self) -> str:
        """The system prompt."""

    @abstractmethod
    def signatures(self) -> str:
        """What the first turn of the user says of tools that the harness does not bring."""

    @abstractmethod
    def acts(self, turn: HarnessTurn) -> Iterator[ChatLine]:
        """The messages of a turn of the agent, with their results."""

    @abstractmethod
    def result(self, message: Message, name: str | None = None) -> ChatLine:
        """The message of a result."""

    def docs(self, place: str) -> bool:
        """Whether the signatures stand here: ``system`` or ``first_user``."""
        return bool(self._options.tool_docs == place and self._options.other_tools != "tool")

    def lines(self) -> Iterator[ChatLine]:
        """The messages, in order."""
        for _, line in self.lines_of_turns():
            yield line

    def lines_of_turns(self) -> Iterator[tuple[HarnessTurn, ChatLine]]:
        """The messages, in order, each with the turn that it is of."""
        docs = self.signatures() if self.docs("first_user") else ""
        for turn in turns(self._chat, quoted=self._quoted):
            for line in self._turn(turn):
                if docs and line.kind == "user":
                    line.text, docs = docs + line.text, ""
                yield turn, line

    def _turn(self, turn: HarnessTurn) -> Iterator[ChatLine]:
        if turn.role == "system":
            if self._options.source_system == "drop":
                self._changed["system messages of the source, left out"] += 1
        elif turn.role == "user":
            yield ChatLine("user", escaped(page_text(turn.message), self._changed))
        elif turn.role == "result":
            yield self.result(turn.message)
        else:
            yield from self.acts(turn)


class TextRows(RowExporter):
    """A row a chat: its messages and the system prompt."""

    takes = "chats"
    mask = "binary"
    file = "train.jsonl"
    heading: str
    """Heading of the page beside the rows."""
    readme: str
    """Its text."""

    conversation: type[TextConversation]
    """What writes a chat."""

    def form(self, options: Any) -> Form:
        """Weights for messages, or none."""
        return weighted_form(options, self.file)

    def row(self, item: ExportItem, options: Any, changed: Counter[str]) -> dict[str, Any]:
        """One row a chat."""
        assert item.chat is not None
        quoted = item.trajectory.source_format == "adp_v1"
        writer = self.conversation(item.chat, options, changed, quoted=quoted)
        lines = list(writer.lines())
        return {
            "id": row_id(item),
            "conversations": conversation(lines, options),
            "system": with_source_system(writer.system(), item.chat, options),
        }

    def files(self, options: Any, facts: Mapping[str, Any]) -> Mapping[str, str]:
        """How to train on it."""
        return {"README.md": page(self.heading, self.readme, facts)}
