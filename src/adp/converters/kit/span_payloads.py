"""Requests and responses of models as spans record them whole, by the keys that they have."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

from msgspec import Raw

from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.span_blocks import (
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
from adp.converters.kit.span_tree import TraceSpan
from adp.converters.kit.usage import GEMINI, OPENAI, UsageKeys, set_usage
from adp.converters.reading import BRACE, BRACKET, NULL, QUOTE, begins
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
        arguments: key of the arguments.
        result: key of the result, which may be a message that says what it answers.
    """
    use = span.use
    if place.first(arguments) not in (0, NULL):
        use.arguments = place.take(arguments)
    if place.first(result) in (0, NULL):
        return
    use.result = place.take(result)
    message = opened(SourceObject(unwrapped(use.result), place.path, place.losses))
    use.call_id = use.call_id or message.word("tool_call_id") or None


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
    first = 0 if value is None else jsontext.first_byte(value)
    if value is None or first in (0, NULL):
        return None
    if first == QUOTE:
        return Payload([plain({"role": "user", "content": value})])
    if first == BRACKET:
        messages = _listed(value)
        return Payload(messages) if messages else None
    if first != BRACE:
        return None
    source = SourceObject(value, path, losses)
    if is_message(value):
        return Payload([value])
    payload = Payload(rest=source)
    _take_system(source, payload)
    for key in ("messages", "contents", "input", "prompt", "new_message", "question", "query"):
        inner = unwrapped(source.values.get(key))
        if inner is None or jsontext.first_byte(inner) not in (QUOTE, BRACKET, BRACE):
            continue
        kind = jsontext.first_byte(inner)
        listed = _listed(inner) if kind == BRACKET else []
        if kind == QUOTE and key not in ("messages", "contents"):
            listed = [plain({"role": "user", "content": inner})]
        elif kind == BRACE and is_message(inner):
            listed = [inner]
        if listed:
            source.drop(key)
            payload.messages.extend(listed)
            break
    if not payload.messages:
        return None
    payload.tools = source.take("tools") or source.take("functions")
    payload.columns["model"] = source.text("model")
    return payload


def _role(message: Raw) -> str:
    return word_of(jsontext.decode_object(message).get("role"))


def _take_system(source: SourceObject, payload: Payload) -> None:
    config = source.child("config")
    for place in (source, config):
        for key in ("instructions", "system", "system_instruction", "systemInstruction"):
            if place.first(key) in (QUOTE, BRACE, BRACKET) and len(place.values[key]) > 2:
                content = place.take(key)
                inner = {} if content is None or jsontext.first_byte(content) != BRACE else (
                    jsontext.decode_object(content))  # fmt: skip
                content = inner.get("parts", content)
                payload.messages.append(plain({"role": "system", "content": content}))
    if config and config.first("tools") == BRACKET:
        source.values["tools"] = config.values.pop("tools")


def _listed(raw: Raw) -> list[Raw]:
    """The messages of a list, or of the only list in it; none when something else is in it."""
    items = items_of(raw)
    if len(items) == 1 and jsontext.first_byte(items[0]) == BRACKET:
        items = items_of(items[0])
    texts = [it for it in items if jsontext.first_byte(it) == QUOTE]
    if items and len(texts) == len(items):
        return [plain({"role": "user", "content": it}) for it in items]
    return items if items and all(map(is_message, items)) else []


def is_message(raw: Raw) -> bool:
    """Whether an object is a message, or an item beside messages."""
    if jsontext.first_byte(raw) != BRACE:
        return False
    values = jsontext.decode_object(raw)
    kind = word_of(values.get("type"))
    if "role" in values:
        return word_of(values.get("role")) != ""
    if kind.startswith(("function_call", "custom_tool_call", "mcp_call", "reasoning")):
        return True
    if kind in _ROLES and ("content" in values or "data" in values):
        return True
    return word_of(values.get("type")) == "constructor" or set(values) == {"message"} or (
        set(values) <= {"parts", "role"} and bool(values))  # fmt: skip


def response(raw: Raw | None, path: str, losses: Losses) -> Payload | None:
    """Take a response apart; None when there is none. JSON of no known form is an answer's text."""
    value = unwrapped(raw)
    first = 0 if value is None else jsontext.first_byte(value)
    if value is None or first in (0, NULL):
        return None
    if first == BRACKET:
        listed = _listed(value)
        if not listed:
            return Payload(choices=[[_spoken(value)]])
        nested = listed[0] if len(listed) == 1 else None
        return Payload(choices=[listed if nested is None else [nested]])
    if first != BRACE:
        odd = first != QUOTE and b"e" in bytes(value).lower()  # true, false, 1e5: not what it wrote
        return None if odd else Payload(choices=[[_spoken(value)]])
    if is_message(value):
        return Payload(choices=[[value]])
    source = SourceObject(value, path, losses)
    payload = Payload(rest=source)
    _take_choices(source, payload)
    if not payload.choices:
        return Payload(choices=[[_spoken(value)]])
    payload.columns["model"] = source.text("model", "modelVersion", "model_version")
    payload.columns["response_id"] = source.text("id", "responseId", "response_id")
    payload.tools = source.take("tools") if source.first("tools") == BRACKET else None
    for key, keys in (("usage", OPENAI), ("usage_metadata", GEMINI), ("usageMetadata", GEMINI)):
        if source.first(key) == BRACE:
            payload.columns["usage"] = source.json(key)
            record = SourceObject(Raw(payload.columns["usage"].encode()), path, losses)
            set_usage(record, payload.columns, keys)
    return payload


def _spoken(value: Raw) -> Raw:
    text = value if jsontext.first_byte(value) == QUOTE else plain(jsontext.one_line(value))
    return plain({"role": "assistant", "content": text})


def _take_choices(source: SourceObject, payload: Payload) -> None:
    for choice in source.objects("choices") + source.objects("candidates"):
        message = choice.take("message") or choice.take("content") or choice.take("delta")
        if message is None and choice.first("text") == QUOTE:
            message = _spoken(choice.take("text") or Raw(b'""'))
        payload.columns.setdefault("stop_reason", choice.text("finish_reason", "finishReason"))
        payload.choices.append([] if message is None else [message])
        _keep(source, f"choice {len(payload.choices)}", choice)
    if payload.choices:
        return
    if generations := _flat(source.values.get("generations")):
        source.drop("generations")
        for item in generations:
            generation = SourceObject(item, source.path, source.losses)
            message = generation.take("message") or _spoken(
                generation.values.get("text", Raw(b'""'))
            )
            payload.choices.append([message])
            _take_counts(payload, message, source)
            _keep(source, f"generation {len(payload.choices)}", generation)
    elif source.first("output") == BRACKET and _listed(source.values["output"]):
        payload.choices.append(_listed(source.take("output") or Raw(b"[]")))
    elif source.first("content") == BRACE:
        payload.choices.append([source.take("content") or Raw(b"{}")])
        payload.columns["stop_reason"] = source.text("finish_reason", "finishReason")
    elif source.first("message") == BRACE:
        payload.choices.append([source.take("message") or Raw(b"{}")])
    elif source.first("messages") == BRACKET and _listed(source.values["messages"]):
        *earlier, last = _listed(source.take("messages") or Raw(b"[]"))
        payload.choices.append([last])
        if earlier:
            source.values["earlier messages"] = plain(earlier)
    elif source.first("content") == BRACKET:
        payload.choices.append([plain({"role": "assistant", "content": source.take("content")})])
        payload.columns["stop_reason"] = source.text("stop_reason")


def _take_counts(payload: Payload, message: Raw, source: SourceObject) -> None:
    """The tokens that a message of LangChain counts, which stay with it."""
    inner = opened(SourceObject(message, source.path, source.losses))
    if inner.first("usage_metadata") == BRACE:
        record = SourceObject(inner.values["usage_metadata"], source.path, source.losses)
        set_usage(record, payload.columns, LANGCHAIN)


def _keep(source: SourceObject, key: str, left: SourceObject) -> None:
    if rest := left.rest():
        source.values[key] = plain(rest)


def _flat(raw: Raw | None) -> list[Raw]:
    """The objects of a list, or of the lists in it; none when anything else is there."""
    first = 0 if raw is None else jsontext.first_byte(raw)
    items = (
        [inner for item in items_of(raw) for inner in items_of(item)] if first == BRACKET else []
    )
    return items if all(jsontext.first_byte(item) == BRACE for item in items) else []
