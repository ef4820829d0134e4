"""Requests and responses of models as spans record them whole, by the keys that they have."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

from msgspec import Raw

from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.usage import ANTHROPIC, GEMINI, OPENAI, UsageKeys, set_usage
from adp.converters.reading import BRACE, BRACKET, NULL, NUMBER, QUOTE, begins
from adp.converters.spans.blocks import (
    AGENT,
    SYSTEM,
    TOOL,
    USER,
    items_of,
    opened,
    plain,
    unwrapped,
    word_of,
)
from adp.converters.spans.messages import is_item
from adp.converters.spans.tree import TraceSpan
from adp_schema import jsontext
from adp_schema.losses import Losses
from adp_schema.model import Columns

_ROLES = (*SYSTEM, *USER, *AGENT, *TOOL)


LANGCHAIN = UsageKeys(
    prompt=("input_tokens",),
    written=("output_tokens",),
    cached=("input_token_details.cache_read",),
    cache_write=("input_token_details.cache_creation",),
    reasoning=("output_token_details.reasoning",),
    cost=("total_cost",),
)


@dataclass(slots=True)
class Payload:
    """What a request or a response holds.

    Attributes:
        messages: of a request.
        choices: of a response, each a list of messages.
        tools: definitions of tools.
        columns: model, reason to stop and tokens, as far as it says them.
        rest: what is left of it.
    """

    messages: list[Raw] = field(default_factory=list)
    choices: list[list[Raw]] = field(default_factory=list)
    tools: Raw | None = None
    columns: Columns = field(default_factory=dict)
    rest: SourceObject | None = None


def take_request(span: TraceSpan, place: SourceObject, key: str) -> bool:
    """Take a request from a span; False when it holds no messages that are understood."""
    payload = request(place.values.get(key), f"{place.path}.{key}", place.losses)
    if payload is None:
        return False
    place.drop(key)
    span.prompt.extend(payload.messages)
    _fill(span, place, key, payload)
    return True


def take_response(span: TraceSpan, place: SourceObject, key: str) -> bool:
    """Take a response from a span; False when there is none."""
    payload = response(place.values.get(key), f"{place.path}.{key}", place.losses)
    if payload is None or len(place.values[key]) <= 2:
        return False
    place.drop(key)
    span.answers = payload.choices
    if payload.rest is not None and not any(_role(it) in SYSTEM for it in span.prompt):
        _take_system(payload.rest, payload)  # a response of the Responses API repeats it
        span.prompt[:0] = payload.messages
    if payload.rest is not None:
        known = set(map(bytes, span.prompt))
        earlier = items_of(payload.rest.values.get("earlier messages"))
        if all(bytes(message) in known for message in earlier):
            payload.rest.drop("earlier messages")
    _fill(span, place, key, payload)
    return True


def take_use(span: TraceSpan, place: SourceObject, arguments: str, result: str) -> None:
    """Take the arguments and the result of a call from a span of a tool.

    Args:
        span: the span.
        place: where they are.
        arguments: key of the arguments; empty for none.
        result: the same of the result, which may be a message that says what it answers.
    """
    use = span.use
    if arguments and _is_value(place.values.get(arguments)):
        use.arguments = place.take(arguments)
    if not result or not _is_value(place.values.get(result)):
        return
    use.result = place.take(result)
    message = opened(SourceObject(unwrapped(use.result), place.path, place.losses))
    use.call_id = use.call_id or message.word("tool_call_id") or None


def _is_value(raw: Raw | None) -> bool:
    """Whether there is a value whose text says it all; a number may be spelled in many ways."""
    first = 0 if raw is None else jsontext.first_byte(raw)
    return first not in (0, NULL) and (first not in NUMBER or b"e" not in bytes(raw or b"").lower())


def take_tools(span: TraceSpan, place: SourceObject, *keys: str) -> None:
    """Take the definitions of tools: the first list, which may stand in a string."""
    for key in keys:
        tools = unwrapped(place.values.get(key))
        if span.tools is None and begins(tools, BRACKET) and len(tools) > 2:
            place.drop(key)
            span.tools = tools


def set_cost(span: TraceSpan, *costs: Raw | None) -> None:
    """Fill the column of the cost from the first number, or string of one; the source stays."""
    for raw in costs:
        text = word_of(raw) or ("" if raw is None else bytes(raw).decode("utf-8", "replace"))
        if text[:1] in "-0123456789." and text and span.columns.get("cost_usd") is None:
            with suppress(ValueError):
                span.columns["cost_usd"] = float(text)


def _fill(span: TraceSpan, place: SourceObject, key: str, payload: Payload) -> None:
    """Take from a payload what the span itself does not say."""
    if payload.tools is not None and span.tools is None:
        span.tools = payload.tools
    elif payload.tools is not None and payload.rest is not None:
        payload.rest.values["tools"] = payload.tools
    for name, value in payload.columns.items():
        if value is not None and span.columns.get(name) is None:
            span.columns[name] = value
        elif value is not None and span.columns[name] != value:
            place.values[f"{key} {name}"] = plain(value)
    if payload.rest is not None and (rest := payload.rest.rest()):
        place.values[key] = plain(rest)


def request(raw: Raw | None, path: str, losses: Losses) -> Payload | None:
    """Take a request apart; None when it holds no messages that are understood."""
    value = unwrapped(raw)
    if value is None or jsontext.first_byte(value) not in (QUOTE, BRACKET, BRACE):
        return None
    if messages := _messages(value, "user"):
        return Payload(messages)
    source = SourceObject(value, path, losses)
    payload = Payload(rest=source)
    _take_system(source, payload)
    for key in ("messages", "contents", "input", "prompt", "prompts", "new_message", "question",
                "query"):  # fmt: skip
        inner = unwrapped(source.values.get(key))
        if inner is not None and (messages := _messages(inner, "user")):
            source.drop(key)
            payload.messages.extend(messages)
            break
    if not payload.messages:
        return None
    payload.tools = source.take("tools") or source.take("functions")
    payload.columns["model"] = source.text("model")
    return payload


def _messages(raw: Raw, role: str) -> list[Raw]:
    """The messages that a value is: a text, a message, or a list that holds nothing else."""
    if jsontext.first_byte(raw) == QUOTE:
        return [plain({"role": role, "content": raw})]
    if jsontext.first_byte(raw) == BRACE:
        return [raw] if is_message(raw) else []
    items = items_of(raw) if jsontext.first_byte(raw) == BRACKET else []
    if len(items) == 1 and jsontext.first_byte(items[0]) == BRACKET:
        items = items_of(items[0])
    if all(jsontext.first_byte(it) == QUOTE for it in items):
        return [plain({"role": role, "content": it}) for it in items]
    return items if all(map(is_message, items)) else []


def is_message(raw: Raw) -> bool:
    """Whether an object is a message, or an item beside messages."""
    if jsontext.first_byte(raw) != BRACE:
        return False
    values = jsontext.decode_object(raw)
    kind = word_of(values.get("type"))
    if "role" in values or is_item(values):
        return word_of(values.get("role")) != "" or "role" not in values
    wrapped = kind == "constructor" or set(values) in ({"message"}, {"parts"})
    return wrapped or (kind in _ROLES and bool({"content", "data"} & set(values)))


def _role(message: Raw) -> str:
    return word_of(jsontext.decode_object(message).get("role"))


def _take_system(source: SourceObject, payload: Payload) -> None:
    config = source.child("config")
    for place in (source, config):
        for key in ("instructions", "system", "system_instruction", "systemInstruction"):
            if place.first(key) in (QUOTE, BRACE, BRACKET) and len(place.values[key]) > 2:
                content = place.values.pop(key)
                inner = jsontext.decode_object(content) if begins(content, BRACE) else {}
                content = inner.get("parts", content)
                payload.messages.append(plain({"role": "system", "content": content}))
    if config.first("tools") == BRACKET:
        source.values["tools"] = config.values.pop("tools")


def response(raw: Raw | None, path: str, losses: Losses) -> Payload | None:
    """Take a response apart; None when there is none. JSON of no known form is an answer's text."""
    value = unwrapped(raw)
    if value is None or not _is_value(value):
        return None
    if listed := _messages(value, "assistant") or _calls(value):
        payload = Payload(choices=[listed])
        _take_counts(payload, listed[-1], path, losses)
        return payload
    source = SourceObject(value, path, losses)
    payload = Payload(rest=source)
    _take_choices(source, payload)
    if not payload.choices:
        text = plain(jsontext.one_line(value))
        return Payload(choices=[_messages(text, "assistant")])
    payload.columns["model"] = source.text("model", "modelVersion", "model_version")
    payload.columns["response_id"] = source.text("id", "responseId", "response_id")
    payload.tools = source.take("tools") if source.first("tools") == BRACKET else None
    for key, keys in (("usage", OPENAI), ("usage_metadata", GEMINI), ("usageMetadata", GEMINI)):
        if source.first(key) == BRACE:
            payload.columns["usage"] = source.json(key)
            record = SourceObject(Raw(payload.columns["usage"].encode()), path, losses)
            cached = {"cache_read_input_tokens", "cache_creation_input_tokens"} & set(record.values)
            set_usage(record, payload.columns, ANTHROPIC if cached else keys)
    return payload


def _calls(raw: Raw) -> list[Raw]:
    """A message of calls, for a list that holds nothing else (Vercel's SDK)."""
    items = items_of(raw) if jsontext.first_byte(raw) == BRACKET else []
    names = [set(jsontext.decode_object(it)) if begins(it, BRACE) else set() for it in items]
    if items and all({"toolCallId", "toolName"} <= keys for keys in names):
        return [plain({"role": "assistant", "tool_calls": raw})]
    return []


def _take_choices(source: SourceObject, payload: Payload) -> None:
    """Take the answers: choices side by side, or else the first key that holds messages."""
    choices = source.objects("choices") + source.objects("candidates")
    if generations := _flat(source.values.get("generations")):
        source.drop("generations")
        choices += [SourceObject(it, source.path, source.losses) for it in generations]
    for number, choice in enumerate(choices, 1):
        message = choice.take("message") or choice.take("content") or choice.take("delta")
        if message is not None:
            payload.choices.append([message])
            _take_counts(payload, message, source.path, source.losses)
        else:
            text = choice.take("text") if choice.first("text") == QUOTE else None
            payload.choices.append([] if text is None else _messages(text, "assistant"))
        if not payload.columns.get("stop_reason"):
            payload.columns["stop_reason"] = choice.text("finish_reason", "finishReason")
        if rest := choice.rest():
            source.values[f"choice {number}"] = plain(rest)
    for key in ("output", "content", "message", "messages"):
        raw = source.values.get(key)
        if raw is None or payload.choices or jsontext.first_byte(raw) not in (BRACE, BRACKET):
            continue
        listed = _messages(raw, "assistant")
        if begins(raw, BRACE) and key != "output":
            listed = [raw]
        elif begins(raw, BRACKET) and key == "content":
            listed = [plain({"role": "assistant", "content": raw})]
        if not listed:
            continue
        source.drop(key)
        if key == "messages" and len(listed) > 1:
            source.values["earlier messages"] = plain(listed[:-1])
            listed = listed[-1:]
        payload.choices.append(listed)
        reasons = ("finish_reason", "finishReason", "stop_reason")
        payload.columns["stop_reason"] = source.text(*reasons)


def _take_counts(payload: Payload, message: Raw, path: str, losses: Losses) -> None:
    """The tokens that a message of LangChain counts, which stay with it."""
    inner = opened(SourceObject(message, path, losses))
    metadata = SourceObject(inner.values.get("response_metadata"), path, losses)
    for place, key, keys in (
        (inner, "usage_metadata", LANGCHAIN),
        (metadata, "token_usage", OPENAI),
        (metadata, "usage", OPENAI),
    ):
        record = SourceObject(place.values.get(key), path, losses)
        if record and "tokens_in" not in payload.columns:
            set_usage(record, payload.columns, keys)
    if reason := metadata.word("finish_reason") or metadata.word("stop_reason"):
        payload.columns.setdefault("stop_reason", reason)


def _flat(raw: Raw | None) -> list[Raw]:
    """The objects of a list, or of the lists in it; none when anything else is there."""
    listed = items_of(raw) if begins(raw, BRACKET) else []
    items = [inner for item in listed for inner in items_of(item)]
    return items if all(jsontext.first_byte(item) == BRACE for item in items) else []
