"""Messages of a chat, as OpenAI's API has them and most harnesses keep them, into a draft."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Raw

from adp.converters.kit.blocks import BlockReader, call_columns
from adp.converters.kit.drafts import CallDraft, ObservationDraft, StepDraft, merge_extra
from adp.converters.kit.source_object import SourceObject, embedded
from adp.converters.kit.times import take_time
from adp.converters.reading import NULL, QUOTE
from adp_schema import jsontext
from adp_schema.model import Columns

SOURCES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "agent",
    "ai": "agent",
    "model": "agent",
}
"""Role -> source of a step."""
RESULTS = frozenset({"tool", "function", "ipython", "observation"})
"""Roles of messages that answer a call."""
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
    if role in RESULTS:
        return chat_result(message, blocks)
    source = SOURCES.get(role, "environment")
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
    """Read the result of a call, by its id, or by the order."""
    if message.word("role") == "tool":
        message.drop("role")
    columns: Columns = {"name": message.text("name")}
    error = message.flag("is_error")
    if error is not None or message.word("status") in ("error", "success"):
        columns["is_error"] = error if error is not None else message.word("status") == "error"
    answers = message.name("tool_call_id", "tool_use_id", "call_id")
    draft = blocks.run.observe(columns, answers=answers, by_order=True)
    take_time(message, draft.columns, "timestamp", "created_at")
    if message.first("content") not in (0, NULL):
        blocks.result(message.take("content"), draft, f"{message.path}.content")
    if "artifact" in message:
        draft.columns["structured"] = message.json("artifact")
    draft.extra.update(message.rest())
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
    for detail in message.objects("reasoning_details") if not texts else ():
        words, rest = detail.text("text", "summary"), detail.rest()
        if words is None:
            step.parts.opaque(rest)
        else:
            step.parts.reasoning(blocks.builder.text(words), rest)


def take_calls(message: SourceObject, step: StepDraft, blocks: BlockReader) -> None:
    """Take the calls of a message, and the only one of the old form ``function_call``."""
    known = list(step.calls)
    for call in message.objects("tool_calls") or _spelled_calls(message):
        add_call(call, step, known)
    if message.peek("function_call").word("name"):
        add_call(message.take_child("function_call"), step)


def _spelled_calls(message: SourceObject) -> list[SourceObject]:
    """Calls that stand in the list as strings of JSON, as verifiers writes them."""
    path, losses = f"{message.path}.tool_calls", message.losses
    calls = [embedded(text, path, losses) for text in message.words("tool_calls")]
    if not calls or not all(calls) or len(calls) != len(message.copy().items("tool_calls")):
        return []
    message.drop("tool_calls")
    return calls


def add_call(call: SourceObject, step: StepDraft, known: Sequence[CallDraft] = ()) -> CallDraft:
    """Add a call of a list of calls.

    Args:
        call: with ``function``, with ``custom``, or with its name and arguments beside its id.
        step: takes it.
        known: calls of the content, which the list may repeat; one of them is there once.

    Returns:
        The call of the step.
    """
    kind = call.word("type")
    inner = next((it for key in ("function", "custom") if (it := call.child(key))), call)
    arguments = next(
        (inner.take(key) for key in ("arguments", "args", "input", "parameters") if key in inner),
        None,
    )
    name = inner.text("name") if inner is not call else call.text("name", "function")
    call_id = call.name("id", "call_id", "tool_call_id", "toolCallId")
    columns = call_columns(name, call_id, arguments)
    if kind == "custom" and arguments is not None and jsontext.first_byte(arguments) == QUOTE:
        columns = free_text(columns, jsontext.decode_value(arguments))
    requestor = call.word("requestor")
    if requestor == "user":
        columns["requestor"] = call.text("requestor")
    elif requestor == "assistant":
        call.drop("requestor")
    if kind in ("function", "tool_call"):
        call.drop("type")
    same = next((it for it in known if it.columns.get("call_id") == call_id), None)
    if same is None or call_id is None or same.columns.get("name") != name:
        return step.call(columns, call.rest())
    names = ("arguments", "arguments_raw")
    differing = {key: columns.get(key) for key in names}
    differing = {
        key: it for key, it in differing.items() if it not in (None, same.columns.get(key))
    }
    merge_extra(same.extra, differing | call.rest())
    return same


def free_text(columns: Columns, text: str) -> Columns:
    """The columns of a call whose arguments are no JSON but a text."""
    columns = {key: value for key, value in columns.items() if not key.startswith("arguments")}
    return columns | {"arguments_raw": text, "arguments_kind": "text"}


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
