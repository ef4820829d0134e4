"""Messages of a chat, as OpenAI's API has them and most harnesses keep them, into a draft."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Raw

from adp.converters.kit.blocks import BlockReader, call_columns
from adp.converters.kit.drafts import ObservationDraft, StepDraft
from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import BRACE, NULL
from adp_schema import jsontext
from adp_schema.model import Columns

_SOURCES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "agent",
    "ai": "agent",
    "model": "agent",
}
_RESULTS = ("tool", "function")
_REASONING = ("reasoning_content", "reasoning", "thinking", "thought")


def chat_message(message: SourceObject, blocks: BlockReader) -> StepDraft | ObservationDraft:
    """Read a message into the trajectory at hand; what no column holds is in its ``extra``.

    Args:
        message: role, content, and by the role calls, reasoning, or the id that is answered.
        blocks: reads its content, and has the trajectory.

    Returns:
        The step; the observation when it is the result of a tool.
    """
    role = message.word("role")
    if role in _RESULTS:
        return chat_result(message, blocks)
    source = _SOURCES.get(role, "environment")
    if source == "environment":
        blocks.losses.unknown(f"role {role or 'without a name'}")
    step = blocks.run.step(source, "llm_turn" if source == "agent" else "message")
    chat_turn(message, step, blocks)
    step.extra.update(message.rest())
    return step


def chat_turn(message: SourceObject, step: StepDraft, blocks: BlockReader) -> None:
    """Read reasoning, content and calls of a message into a step; the rest of it stays."""
    if message.word("role") in ("system", "user", "assistant"):
        message.drop("role")
    take_reasoning(message, step, blocks)
    if message.first("content") not in (0, NULL):
        blocks.content(message.take("content"), step, f"{message.path}.content")
    take_calls(message, step, blocks)


def chat_result(message: SourceObject, blocks: BlockReader) -> ObservationDraft:
    """Read the result of a call, by its id, or by the name of its function."""
    if message.word("role") == "tool":
        message.drop("role")
    columns: Columns = {}
    name = message.text("name")
    if name is not None:
        columns["name"] = name
    answers = message.name("tool_call_id")
    draft = blocks.run.observe(columns, answers=answers, by_order=True)
    if message.first("content") not in (0, NULL):
        blocks.result(message.take("content"), draft, f"{message.path}.content")
    draft.extra = message.rest()
    return draft


def take_reasoning(message: SourceObject, step: StepDraft, blocks: BlockReader) -> None:
    """Take the reasoning that stands in keys of its own.

    Where a provider's blocks and their text are both there, the blocks say more: they have the
    signatures. A text that says something else stays in the message.
    """
    texts = []
    for block in message.objects("thinking_blocks"):
        texts.append(block.word("thinking"))
        blocks.part(block, step.parts)
    for key in _REASONING:
        text = message.word(key)
        if text and texts and text in ("".join(texts), "\n".join(texts)):
            message.drop(key)
        elif text and not texts:
            step.parts.reasoning(blocks.builder.text(text))
            texts = [text]
            message.drop(key)


def take_calls(message: SourceObject, step: StepDraft, blocks: BlockReader) -> None:
    """Take the calls of a message, and the only one of the old form ``function_call``."""
    for call in message.objects("tool_calls"):
        _call(call, step, blocks)
    if message.first("function_call") == BRACE:
        _call(
            SourceObject(message.take("function_call"), message.path, blocks.losses), step, blocks
        )


def _call(call: SourceObject, step: StepDraft, blocks: BlockReader) -> None:
    kind = call.word("type")
    function = call
    for key in ("function", "custom"):
        if call.first(key) == BRACE:
            function = call.child(key)
    name = function.text("name") if function is not call else call.text("name", "function")
    raw = next((function.take(key) for key in ("arguments", "input") if key in function), None)
    columns = call_columns(name, call.name("id", "call_id"), raw)
    requestor = call.word("requestor")
    if requestor == "user":
        columns["requestor"] = call.text("requestor")
    elif requestor == "assistant":
        call.drop("requestor")
    if kind == "function":
        call.drop("type")
    step.call(columns, call.rest())


def drop_repeated(source: SourceObject, written: Mapping[str, Raw]) -> None:
    """Drop the values that another object has under the same keys, layout aside.

    Args:
        source: what a reply of the API says, beside a message that was made of it.
        written: the values of the message.
    """
    for key, raw in list(source.values.items()):
        other = written.get(key)
        if other is not None and jsontext.one_line(other) == jsontext.one_line(raw):
            del source.values[key]


class MessagePool:
    """Messages that were kept once, so that a list that repeats them can refer to them."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._places: dict[str, int] = {}

    def add(self, message: Raw | bytes) -> None:
        """Note the next message."""
        text = jsontext.one_line(message)
        self._places.setdefault(text, len(self._texts))
        self._texts.append(text)

    def has(self, text: str) -> bool:
        """Whether a message of these characters, on one line, was noted."""
        return text in self._places

    def references(self, messages: list[Raw]) -> list[Raw | list[int]]:
        """A list of messages, with each run of known ones as ``[start, end]``.

        Args:
            messages: as the source wrote them; one that is not known stays as it is.
        """
        out: list[Raw | list[int]] = []
        for message in messages:
            text = jsontext.one_line(message)
            last = out[-1] if out else None
            if isinstance(last, list) and self._texts[last[1] : last[1] + 1] == [text]:
                last[1] += 1
            elif (place := self._places.get(text)) is not None:
                out.append([place, place + 1])
            else:
                out.append(jsontext.raw(text))
        return out
