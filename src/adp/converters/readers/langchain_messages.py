"""Messages of LangChain, and states of LangGraph that hold them.

A file is a list of messages, or states, each a trajectory of its own: ``{messages}``, the
``{values}`` of a thread, the ``{channel_values}`` of a checkpoint. Sources: what the libraries for
Python and JavaScript write.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Raw

from adp.converters.exchanges.conversations import items_of
from adp.converters.exchanges.langchain_messages import read_message, role_of
from adp.converters.kit.chat_messages import ChatMessages
from adp.converters.kit.drafts import TrajectoryDraft, emit
from adp.converters.kit.session import LogReader, SessionLog, word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_end
from adp.converters.reading import BRACE, BRACKET
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.losses import Losses
from adp_schema.protocols import Match

_WRAPPERS = ("values", "channel_values", "state", "checkpoint", "output", "kwargs")
_MARKS = frozenset(
    {"additional_kwargs", "response_metadata", "usage_metadata", "invalid_tool_calls", "lc",
     "tool_call_id", "kwargs", "data"}
)  # fmt: skip
"""Keys that messages of LangChain have, one at least, beside a type of theirs."""


class MessageFile(SessionLog):
    """The messages or the states of a file."""

    def read(self) -> None:
        """Read states as trajectories of their own, and messages as one."""
        data = self.record.data
        is_list = jsontext.first_byte(data) == BRACKET
        items: list[Raw] = jsontext.decode_array(data) if is_list else [Raw(data)]
        messages: list[tuple[Raw, str]] = []
        for number, item in enumerate(items):
            path = f"$[{number}]" if is_list else "$"
            if jsontext.first_byte(item) == BRACKET and len(items) == 1:
                nested = enumerate(items_of(item))
                messages += [(raw, f"{path}[{place}]") for place, raw in nested]
            elif jsontext.first_byte(item) == BRACE and _lists(item, self.losses):
                self._state(item, path)
            else:
                messages.append((item, path))
        if messages:
            self._begin()
            for raw, path in messages:
                read_message(self.chat, raw, path)
            self._end("$")

    def _begin(self) -> None:
        self.run = self.blocks.run = TrajectoryDraft()
        self.chat = ChatMessages(self.blocks)

    def _end(self, path: str) -> None:
        models = [it for step in self.run.steps if (it := step.columns.get("model"))]
        if models:
            self.run.columns["agent_model"] = models[-1]
        if all(step.columns["kind"] == "event" for step in self.run.steps):
            raise RecordError("there is no message of LangChain", path)
        emit(self.run, self.builder)

    def _state(self, item: Raw | bytes, path: str) -> None:
        """A state: its messages, and what else it holds."""
        self._begin()
        source = SourceObject(item, path, self.losses)
        place = source
        while "messages" not in place:
            key = next(key for key in _WRAPPERS if _lists(place.values.get(key), self.losses))
            place = place.child(key)
        for number, raw in enumerate(items_of(place.take("messages"))):
            read_message(self.chat, raw, f"{place.path}.messages[{number}]")
        columns, settings = self.run.columns, source.child("config").child("configurable")
        thread = settings.word("thread_id") or source.word("thread_id")
        columns["session_id"] = thread or None
        columns["source_id"] = source.name("id", "checkpoint_id")
        take_end(source, columns, "created_at", "ts")
        self.run.extra.update(source.rest())
        self._end(path)


def _lists(raw: Raw | bytes | None, losses: Losses, depth: int = 0) -> bool:
    """Whether a state holds a list of messages, at a place where states have it."""
    if raw is None or jsontext.first_byte(raw) != BRACE or depth > len(_WRAPPERS):
        return False
    values: dict[str, Raw] = jsontext.decode_object(raw)
    if "messages" in values:
        return bool(items_of(values["messages"]))
    return any(_lists(values.get(key), losses, depth + 1) for key in _WRAPPERS)


class LangChainMessages(LogReader):
    """The format ``langchain_messages``."""

    name = "langchain_messages"
    title = "Messages of LangChain, and states of LangGraph"
    recognised = "a message of the type human or ai with what LangChain writes beside it"
    versions = "reads plain messages, those with data, constructors, states and checkpoints"
    log = MessageFile

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A message, or a state whose first message has a type of LangChain."""
        if "run_type" in record or "uuid" in record:
            return Match.NO
        values = dict(record)
        for _ in range(4):
            if "messages" in values:
                break
            key = next((key for key in _WRAPPERS if _lists(values.get(key), Losses())), None)
            if key is None:
                return Match.STAMP if _is_stamped(record) else Match.NO
            values = jsontext.decode_object(values[key])
        messages = items_of(values.get("messages"))[:3]
        objects = [jsontext.decode_object(it) for it in messages if _is_object(it)]
        return Match.STAMP if any(map(_is_stamped, objects)) else Match.NO


def _is_object(raw: Raw) -> bool:
    return jsontext.first_byte(raw) == BRACE


def _is_stamped(message: Mapping[str, Raw]) -> bool:
    """A type of LangChain with a key that only its messages have."""
    kind = word(message, "type")
    if kind == "constructor":
        names = bytes(message.get("id", b""))
        return b"Message" in names and b"langchain" in names
    return bool(role_of(kind)) and "role" not in message and bool(_MARKS & set(message))


CONVERTER = LangChainMessages()
