"""Messages of LangChain, in the forms in which it writes them, into the steps of a chat.

Plain (``{type: "ai", ...}``), with ``data``, as constructors (``{lc, id, kwargs}``), as pairs
``["human", "text"]``, and as OpenAI's dicts.
"""

from __future__ import annotations

from msgspec import Raw

from adp.converters.exchanges.apis import CHAT
from adp.converters.kit.chat import add_call
from adp.converters.kit.chat_messages import ChatMessages
from adp.converters.kit.drafts import StepDraft
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.usage import take_usage
from adp.converters.reading import BRACE, BRACKET, QUOTE
from adp_schema import jsontext
from adp_schema.losses import Losses
from adp_schema.model import Columns

_ROLES = {
    "human": "user",
    "user": "user",
    "ai": "assistant",
    "assistant": "assistant",
    "system": "system",
    "developer": "developer",
    "tool": "tool",
    "function": "function",
}
_PAIR = 2


def role_of(kind: str) -> str:
    """The role that a type or a class of message stands for; empty when it is none."""
    for ending in ("Chunk", "Message"):
        kind = kind.removesuffix(ending)
    return _ROLES.get(kind, _ROLES.get(kind.lower(), ""))


def open_message(raw: Raw, path: str, losses: Losses) -> tuple[SourceObject, str, SourceObject]:
    """Unwrap a message.

    Args:
        raw: the message.
        path: where it is.
        losses: takes keys that occur twice.

    Returns:
        What it says, its role (empty when it is no message), and the wrapper.
    """
    outer = SourceObject(raw, path, losses)
    kind = outer.word("type")
    if kind == "constructor" and outer.first("kwargs") == BRACE:
        name = _last_word(outer.values.get("id"))
        inner = outer.child("kwargs")
        inner = _detached(outer, inner, "kwargs")
        return inner, role_of(name) or inner.word("role"), outer
    if outer.first("data") == BRACE and role_of(kind) and "content" not in outer:
        inner = _detached(outer, outer.child("data"), "data")
        outer.drop("type")
        return inner, role_of(kind), outer
    role = role_of(kind)
    if role:
        outer.drop("type")
    elif outer.word("role"):
        role = _ROLES.get(outer.word("role"), outer.word("role"))
    outer.drop_text("role", role)
    return outer, role, outer


def is_message(raw: Raw, losses: Losses) -> bool:
    """Whether a value is a message of LangChain."""
    if jsontext.first_byte(raw) == BRACKET:
        return _pair(raw) is not None
    if jsontext.first_byte(raw) != BRACE:
        return False
    inner, role, _ = open_message(raw, "$", losses)
    return bool(role) and ("content" in inner or "tool_calls" in inner)


def read_message(chat: ChatMessages, raw: Raw, path: str) -> StepDraft | None:
    """Add a message.

    Args:
        chat: takes it.
        raw: the message.
        path: where it is.

    Returns:
        Its step; None for a result.
    """
    pair = _pair(raw)
    if pair is not None:
        source = SourceObject(None, path, chat.blocks.losses)
        source.values["content"] = jsontext.raw(jsontext.text_of(pair[1]))
        return chat.message(source, role_of(pair[0]) or "user")
    if jsontext.first_byte(raw) != BRACE:
        prompt = chat.run.step("user")
        chat.blocks.content(raw, prompt, path)
        return prompt
    source, role, outer = open_message(raw, path, chat.blocks.losses)
    if not role:
        kind = source.word("type")
        if kind != "remove":
            chat.blocks.losses.unknown(f"message {kind or 'without a type'}")
        event = chat.run.event(source)
        event.extra.update({"wrapper": outer.rest()} if outer is not source else {})
        return event
    columns: Columns = {}
    calls: list[SourceObject] = []
    if role == "assistant":
        _model_columns(source, columns)
        calls = source.objects("invalid_tool_calls")
    step = chat.message(source, role)
    rest = outer.rest() if outer is not source else {}
    if step is None:
        chat.run.observations[-1].extra.update({"wrapper": rest} if rest else {})
        return None
    for call in calls:
        add_call(call, step, step.calls).columns.setdefault("status", "invalid")
    step.columns.update(columns)
    step.extra.update({"wrapper": rest} if rest else {})
    return step


def _model_columns(source: SourceObject, columns: Columns) -> None:
    """Tokens, model and reason to stop; what else the provider said stays."""
    take_usage(source, "usage_metadata", columns, CHAT)
    metadata = SourceObject(source.values.get("response_metadata"), source.path, source.losses)
    more = SourceObject(source.values.get("additional_kwargs"), source.path, source.losses)
    if "usage" not in columns:
        for key in ("token_usage", "usage"):
            take_usage(metadata, key, columns, CHAT)
    columns["model"] = metadata.word("model_name") or metadata.word("model") or None
    columns["stop_reason"] = metadata.word("finish_reason") or metadata.word("stop_reason") or None
    columns["response_id"] = metadata.word("id") or None
    thought = more.word("reasoning_content")
    if thought and "reasoning_content" not in source:
        source.values["reasoning_content"] = jsontext.raw(jsontext.text_of(thought))
        more.drop("reasoning_content")
        source.values["additional_kwargs"] = jsontext.raw(jsontext.text_of(more.values))


def _detached(outer: SourceObject, inner: SourceObject, key: str) -> SourceObject:
    """An inner object whose rest is not part of the outer one's."""
    copy = SourceObject(None, f"{outer.path}.{key}", outer.losses)
    copy.values, inner.values = inner.values, {}
    return copy


def _last_word(raw: Raw | None) -> str:
    if raw is None or jsontext.first_byte(raw) != BRACKET:
        return ""
    items = jsontext.decode_array(raw)
    if not items or jsontext.first_byte(items[-1]) != QUOTE:
        return ""
    text: str = jsontext.decode_value(items[-1])
    return text


def _pair(raw: Raw) -> tuple[str, str] | None:
    """A role and a text; None for anything else."""
    if jsontext.first_byte(raw) != BRACKET:
        return None
    items = jsontext.decode_array(raw)
    if len(items) != _PAIR or any(jsontext.first_byte(item) != QUOTE for item in items):
        return None
    role, text = (jsontext.decode_value(item) for item in items)
    return (role, text) if role_of(role) else None
