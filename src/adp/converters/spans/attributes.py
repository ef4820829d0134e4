"""Attributes of spans, whatever convention they follow: what a span is, and what it says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Raw

from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import BRACE, BRACKET, NULL, QUOTE
from adp.converters.spans.blocks import items_of, plain, undotted, unwrapped
from adp.converters.spans.events import has_messages, take_messages, take_output
from adp.converters.spans.payloads import (
    set_cost,
    take_request,
    take_response,
    take_tools,
    take_use,
)
from adp.converters.spans.tables import (
    CLAUDE,
    CLAUDE_NAMES,
    COLUMNS,
    CONVERSATION,
    COSTS,
    MESSAGES,
    OPERATIONS,
    TOKENS,
    USAGE,
    USE,
    VERCEL,
)
from adp.converters.spans.tree import AGENT, EVENT, LLM, TOOL, TraceSpan
from adp_schema import jsontext
from adp_schema.losses import Losses


def classify(span: TraceSpan, losses: Losses) -> None:
    """Say what a span is, by its attributes, which stay as they are."""
    attributes = span.attributes
    span.conversation = next((name for key in CONVERSATION if (name := attributes.word(key))), None)
    span.kind = _kind(span, losses)
    names = ("gen_ai.agent.name", "agent.name", "agent_name", "gen_ai.workflow.name")
    span.agent = next((attributes.word(key) for key in names if attributes.word(key)), None)
    if span.agent is None and span.kind == AGENT:
        keys = ("graph.node.id", "traceloop.entity.name", "ai.telemetry.functionId")
        span.agent = next((attributes.word(key) for key in keys if attributes.word(key)), None)
        span.agent = span.agent or span.name or None
    span.has_messages = any(key in attributes for key in MESSAGES)
    span.is_empty = (
        span.kind == LLM
        and not is_claude(span)
        and not any(key.startswith(_CONTENTS) for key in attributes.values)
        and bytes(span.source.values.get("events", b"[]")) in (b"[]", b"null")
    )


_CONTENTS = (
    *("llm.input_messages", "llm.output_messages", "llm.prompts", "gen_ai.prompt"),
    *("gen_ai.completion", "gen_ai.input", "gen_ai.output", "gen_ai.system_instructions"),
    *("input", "output", "ai.prompt", "ai.response", "request_data", "response_data", "mlflow."),
    *("pydantic_ai.", "traceloop.entity", "all_messages", "events"),
)
"""How keys begin that have what was said."""


def _kind(span: TraceSpan, losses: Losses) -> str:
    attributes = span.attributes
    for key, words in OPERATIONS.items():
        word = attributes.word(key).lower()
        if key not in attributes or (key == "span.type" and not is_claude(span)):
            continue
        if key == "gen_ai.operation.name" and word.startswith("ai."):
            continue  # the operation of the Vercel AI SDK, which says it itself
        if word in words:
            return words[word]
        losses.unknown(f"{key} {word}")
    operation = attributes.word("ai.operationId")
    if operation.endswith((".doGenerate", ".doStream")):
        return LLM
    if operation in VERCEL:
        return VERCEL[operation]
    if is_claude(span):
        return CLAUDE_NAMES.get(span.name, EVENT)
    if "gen_ai.tool.call.id" in attributes or "gen_ai.tool.name" in attributes:
        return TOOL
    spoken = ("gen_ai.prompt.0.role", "gen_ai.prompt.0.content", "gen_ai.completion.0.role",
              "gen_ai.completion.0.content", "gen_ai.input.messages", "request_data")  # fmt: skip
    return LLM if any(key in attributes for key in spoken) or has_messages(span) else EVENT


def is_claude(span: TraceSpan) -> bool:
    """Whether Claude Code wrote a span."""
    return span.name.startswith("claude_code.")


def take(span: TraceSpan) -> None:
    """Take what a model's turn or a call says from the attributes of a span."""
    if span.end is None and span.attributes.word("duration_ms").isdecimal():
        span.columns["duration_ms"] = float(span.attributes.text("duration_ms") or "nan")
    if span.kind == TOOL:
        _take_use(span)
        return
    for column, keys in COLUMNS.items():
        value = take_first(span.attributes, keys)
        if value is not None:
            span.columns[column] = _word(value)
    _take_usage(span)
    _take_tools(span)
    _take_prompt(span)
    _take_answers(span)


def take_first(attributes: SourceObject, keys: Sequence[str]) -> Raw | None:
    """Take the first of some values, and those that are the same."""
    kept: Raw | None = None
    for key in keys:
        raw = attributes.values.get(key)
        if raw is None or len(raw) <= 2 or jsontext.first_byte(raw) not in (QUOTE, BRACKET):
            continue
        if kept is None or bytes(kept) == bytes(raw):
            kept = attributes.take(key)
    return kept


def _word(raw: Raw) -> str:
    items = items_of(raw)
    value = items[0] if len(items) == 1 else raw
    if jsontext.first_byte(value) == QUOTE:
        return str(jsontext.decode_value(value))
    return jsontext.one_line(value)


def _take_usage(span: TraceSpan) -> None:
    attributes = span.attributes
    keys = [key for key in attributes.values if key.startswith(USAGE) or key in COSTS]
    if is_claude(span):
        keys += [key for key in CLAUDE if key in attributes]
    if not keys:
        return
    usage = SourceObject(
        plain({key: attributes.take(key) for key in keys}), "usage", attributes.losses
    )
    span.columns["usage"] = jsontext.text_of(usage.values)
    for column, names in TOKENS.items():
        numbers = [usage.integer_at(key) for key in names]
        span.columns[column] = next((it for it in numbers if it is not None), None)
    if is_claude(span) and "input_tokens" in usage:
        counts = {key: _count(usage, key) for key in CLAUDE}
        span.columns |= {CLAUDE[key]: count for key, count in counts.items()}
        parts = ("input_tokens", "cache_read_tokens", "cache_creation_tokens")
        span.columns["tokens_in"] = sum(counts[key] or 0 for key in parts)
    set_cost(span, *(usage.values.get(key) for key in COSTS))


def _count(usage: SourceObject, key: str) -> int | None:
    """A number of tokens, which records of logs write as a string."""
    text = usage.word(key)
    return int(text) if text.isdecimal() and len(text) < 19 else usage.integer_at(key)


def _take_tools(span: TraceSpan) -> None:
    attributes = span.attributes
    take_tools(span, attributes, "gen_ai.tool.definitions", "ai.prompt.tools",
               "gen_ai.request.tools")  # fmt: skip
    if span.tools is not None:
        return
    rows = nested(attributes, "llm.tools.") or nested(attributes, "llm.request.functions.")
    tools = []
    for row in rows:
        values = jsontext.decode_object(row) if jsontext.first_byte(row) == BRACE else {}
        if "tool" in values and jsontext.first_byte(values["tool"]) == BRACE:
            values = jsontext.decode_object(values["tool"])
        schema = values.get("json_schema")
        tools.append(unwrapped(schema) if schema is not None and len(values) == 1 else row)
    if tools:
        span.tools = plain(tools)


def nested(attributes: SourceObject, prefix: str) -> list[Raw]:
    """Take the list that attributes like ``prefix0.name`` spell out, or that is there as one."""
    whole = attributes.values.get(prefix[:-1])
    if whole is not None and jsontext.first_byte(whole) == BRACKET:
        attributes.drop(prefix[:-1])
        return [undotted(item) for item in items_of(whole)]
    keys = [key for key in attributes.values if key.startswith(prefix)]
    keys = [key for key in keys if key[len(prefix) :].split(".")[0].isdecimal()]
    tree: dict[str, Any] = {}
    for key in keys:
        *outer, last = key[len(prefix) :].split(".")
        at = tree
        for name in outer:
            inner = at.setdefault(name, {})
            if not isinstance(inner, dict):
                break
            at = inner
        else:
            if not isinstance(at.get(last), dict):
                at[last] = attributes.take(key)
    return [plain(_listed(tree[name])) for name in sorted(tree, key=int)]


def _listed(value: Any) -> Any:
    """An object whose keys are numbers, as the list that it is."""
    if not isinstance(value, dict):
        return value
    if value and all(key.isdecimal() for key in value):
        return [_listed(value[key]) for key in sorted(value, key=int)]
    return {key: _listed(item) for key, item in value.items()}


def _messages(attributes: SourceObject, *keys: str) -> list[Raw]:
    """Take the messages of the first attribute that holds a list of objects."""
    for key in keys:
        inner = unwrapped(attributes.values.get(key))
        if inner is None or jsontext.first_byte(inner) not in (BRACKET, BRACE):
            continue
        listed = items_of(inner)
        if listed and all(jsontext.first_byte(it) == BRACE for it in listed):
            attributes.drop(key)
            return listed
    return []


def _take_prompt(span: TraceSpan) -> None:
    attributes = span.attributes
    system = unwrapped(attributes.values.get("gen_ai.system_instructions"))
    if system is not None and len(system) > 2:
        attributes.drop("gen_ai.system_instructions")
        key = "content" if jsontext.first_byte(system) == QUOTE else "parts"
        span.prompt.append(plain({"role": "system", key: items_of(system) if key == "parts"
                                  else system}))  # fmt: skip
    messages = (
        _messages(attributes, "gen_ai.input.messages", "ai.prompt.messages")
        or nested(attributes, "llm.input_messages.") or nested(attributes, "gen_ai.prompt.")
        or take_messages(span, answers=False) or _all_messages(span)
    )  # fmt: skip
    span.prompt.extend(messages)
    if messages:
        return
    for key in ("request_data", "langfuse.observation.input", "input.value", "ai.prompt",
                "traceloop.entity.input", "gen_ai.prompt", "user_prompt"):  # fmt: skip
        if take_request(span, attributes, key):
            return


def _all_messages(span: TraceSpan) -> list[Raw]:
    """The messages of a whole run, for an agent whose calls of a model were not recorded."""
    messages = _messages(span.attributes, "pydantic_ai.all_messages", "all_messages_events")
    if messages and b'"assistant"' in bytes(messages[-1]):
        span.answers.append([messages.pop()])
    return messages


def _take_answers(span: TraceSpan) -> None:
    attributes = span.attributes
    if span.answers:
        return
    listed = (
        _messages(attributes, "gen_ai.output.messages")
        or nested(attributes, "llm.output_messages.")
        or nested(attributes, "gen_ai.completion.")
        or take_messages(span, answers=True)
    )
    if listed:
        span.answers = [[it] for it in listed]
        return
    if message := _vercel_answer(attributes):
        span.answers = [[message]]
        return
    for key in ("response_data", "langfuse.observation.output", "output.value", "final_result",
                "traceloop.entity.output", "gen_ai.completion",
                "response.model_output"):  # fmt: skip
        if take_response(span, attributes, key):
            return


def _vercel_answer(attributes: SourceObject) -> Raw | None:
    """The answer of a span of the Vercel AI SDK: text, reasoning and calls, each apart."""
    message: dict[str, Any] = {}
    reasoning, text = attributes.text("ai.response.reasoning"), attributes.text("ai.response.text")
    if reasoning:
        message["reasoning_content"] = reasoning
    if text:
        message["content"] = text
    elif content := attributes.text("ai.response.object"):
        message["content"] = content
    inner = unwrapped(attributes.values.get("ai.response.toolCalls"))
    if inner is not None and jsontext.first_byte(inner) == BRACKET and len(inner) > 2:
        attributes.drop("ai.response.toolCalls")
        message["tool_calls"] = inner
    return plain({"role": "assistant", **message}) if message else None


def _take_use(span: TraceSpan) -> None:
    attributes, use = span.attributes, span.use
    name = take_first(attributes, USE["name"])
    use.name = None if name is None else _word(name)
    use.name = use.name or span.name.removeprefix("execute_tool ").removesuffix(".tool") or None
    call_id = take_first(attributes, USE["call_id"])
    use.call_id = None if call_id is None else _word(call_id)
    present = [next((key for key in USE[part] if attributes.first(key) not in (0, NULL)), "")
               for part in ("arguments", "result")]  # fmt: skip
    take_use(span, attributes, *present)
    executed = [span, *(it for it in span.below if is_claude(it))]
    for it in executed if is_claude(span) and use.result is None else ():
        use.result = use.result or take_output(it)
    success = [bytes(it.attributes.values.get("success", b"")) for it in executed]
    if span.failed() or any(word in (b"false", b'"false"') for word in success):
        use.error = True
