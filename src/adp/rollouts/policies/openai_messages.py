"""Messages as an OpenAI-compatible endpoint takes them, and its answers as turns.

Servers differ in what they leave out: contents, ids, usage and arguments may be null or missing,
and arguments may be an object instead of text.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from adp.rendering.answers import TAGS, split_thought
from adp.rendering.arguments import object_of
from adp.rendering.m3_answers import read_action
from adp.rendering.m3_forms import WireForm, written
from adp.rendering.prepare import as_text
from adp.rendering.probe import TemplateRefusalError
from adp.rollouts.policies.entropy import top_entropy
from adp.rollouts.policies.names import model_name
from adp.rollouts.policies.prompts import chat_of
from adp.rollouts.policy import Request
from adp.rollouts.turns import Call, Message, Turn, Usage
from adp_schema.errors import AdpError

INVALID = "invalid_arguments"
"""The member under which arguments stand that are no JSON object. Servers refuse them otherwise:
they give arguments to the chat template as objects."""

_LARGEST = (1 << 31) - 1
"""Counts, ids of tokens and costs beyond it are nonsense."""


def wire_messages(messages: Sequence[Message], *, reasoning: bool = False) -> list[dict[str, Any]]:
    """The conversation as it is sent.

    Args:
        messages: as the rollout keeps them.
        reasoning: whether reasoning of earlier turns is sent.
    """
    return [_wire(message, reasoning) for message in messages]


def _wire(message: Message, reasoning: bool) -> dict[str, Any]:
    wire = {key: value for key, value in message.items() if value is not None}
    if not reasoning:
        wire.pop("reasoning_content", None)
    if not wire.get("name"):
        wire.pop("name", None)
    if wire.get("tool_calls"):
        wire["content"] = wire.get("content") or None
        wire["tool_calls"] = [_wire_call(call) for call in wire["tool_calls"]]
    else:
        wire.setdefault("content", "")
    return wire


def _wire_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = dict(call["function"])
    if not object_of(function["arguments"])[1]:
        function["arguments"] = json.dumps({INVALID: function["arguments"]})
    return {**call, "function": function}


def message_in_text(request: Request) -> list[dict[str, Any]]:
    """The conversation with tools, calls and results in the texts, in the Hermes manner."""
    chat = as_text(chat_of(request.messages, request.tools), Counter())
    return [{"role": message.role, "content": message.text} for message in chat.messages]


def message_by_m3(request: Request, form: WireForm, words: str | None) -> list[dict[str, Any]]:
    """The conversation in a wire form of M3, with results as messages of the user.

    Args:
        request: the conversation.
        form: name of the form.
        words: the system's message with slots; None for ours.

    Raises:
        AdpError: the form cannot write it.
    """
    chat = chat_of(request.messages, request.tools)
    try:
        chat = written(chat, form, words, Counter(), roles=False)
    except TemplateRefusalError as error:
        raise AdpError(f"the conversation cannot be written: {error}") from error
    return [{"role": message.role, "content": message.text} for message in chat.messages]


def read_turn(
    body: Mapping[str, Any],
    model: str,
    tries: int = 1,
    *,
    in_text: bool = False,
    wire_form: WireForm = "template",
) -> Turn:
    """An answer as a turn.

    Args:
        body: what the endpoint answered, with at least one choice that has a message.
        model: what was asked for; the answer may name another one.
        tries: how often the request was made.
        in_text: whether calls stand in the text.
        wire_form: in which form the answer is written.
    """
    choice = body["choices"][0]
    message = choice["message"]
    text = _text(message.get("content"))
    reasoning = _reasoning(message)
    calls, malformed = _calls(message)
    if wire_form != "template" and not calls and malformed is None:
        if reasoning is not None and "<think>" not in text:
            text = f"<think>{reasoning}</think>{text}"  # a server took it out
        text, reasoning, read, malformed = read_action(text, wire_form)
        calls = tuple(Call(call.name, call.text) for call in read)
    elif in_text and malformed is None:
        text, reasoning, calls, malformed = _from_text(text, reasoning)
    elif reasoning is None:
        reasoning, text = _thought(text)
    extra: dict[str, Any] = {"tries": tries} if tries > 1 else {}
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        extra["refusal"] = refusal
        text = text or refusal
    stop = choice.get("finish_reason")
    if stop == "tool_calls" and not calls and malformed is None and not text:
        malformed = "the turn was to call a tool, and holds no call"
    return Turn(
        text=text,
        calls=calls,
        reasoning=reasoning,
        malformed=malformed,
        model=model_name(_string(body.get("model")) or model),
        response_id=_string(body.get("id")),
        stop_reason=_string(stop),
        usage=_usage(body.get("usage")),
        prompt_token_ids=_ids(choice.get("prompt_token_ids") or body.get("prompt_token_ids")),
        completion_token_ids=_ids(choice.get("token_ids")),
        logprobs=_logprobs(choice.get("logprobs")),
        extra=extra,
    )


def _from_text(
    text: str, known: str | None
) -> tuple[str, str | None, tuple[Call, ...], str | None]:
    thought, answer = split_thought(text)
    read = TAGS.read(answer)
    if read is None:
        return text, known, (), "a call in this turn cannot be read; write JSON between the tags"
    for call in reversed(read):
        answer = answer[: call.start] + answer[call.end :]
    calls = tuple(Call(call.name, call.text) for call in read)
    return answer.strip(), known or thought, calls, None


def _thought(text: str) -> tuple[str | None, str]:
    """Reasoning that a server left in the text, and the rest.

    Servers without a parser for it hand on what the model wrote, some without the mark at its
    beginning, since that is part of the prompt.
    """
    thought, answer = split_thought(text)
    return (None, text) if answer == text else (thought, answer.lstrip())


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))


def _reasoning(message: Mapping[str, Any]) -> str | None:
    for name in ("reasoning_content", "reasoning"):
        if isinstance(message.get(name), str) and message[name]:
            return str(message[name])
    return None


def _calls(message: Mapping[str, Any]) -> tuple[tuple[Call, ...], str | None]:
    """The calls, and why they cannot be read."""
    listed = message.get("tool_calls")
    if not listed and isinstance(message.get("function_call"), dict):
        listed = [{"function": message["function_call"]}]
    if not listed:
        return (), None
    calls = []
    for item in listed if isinstance(listed, list) else [None]:
        entry = item if isinstance(item, dict) else {}
        function = entry.get("function")
        name = function.get("name") if isinstance(function, dict) else None
        if not isinstance(function, dict) or not isinstance(name, str) or not name:
            return (), "a call in this turn names no tool"
        given = _arguments(function.get("arguments"))
        calls.append(Call(name, given, _string(entry.get("id")) or ""))
    return tuple(calls), None


def _arguments(given: Any) -> str:
    """The arguments as text; none at all are an empty object."""
    if given is None or given == "":
        return "{}"
    return given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)


def _usage(given: Any) -> Usage:
    if not isinstance(given, dict):
        return Usage()
    prompt, written = given.get("prompt_tokens_details"), given.get("completion_tokens_details")
    return Usage(
        tokens_in=_count(given.get("prompt_tokens")),
        tokens_out=_count(given.get("completion_tokens")),
        tokens_cached=_count(prompt.get("cached_tokens")) if isinstance(prompt, dict) else None,
        tokens_reasoning=(
            _count(written.get("reasoning_tokens")) if isinstance(written, dict) else None
        ),
        cost_usd=_cost(given.get("cost")),
        raw=given,
    )


def _count(value: Any) -> int | None:
    full = isinstance(value, int) and not isinstance(value, bool)
    return value if full and 0 <= value <= _LARGEST else None


def _cost(value: Any) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number and 0 <= value <= _LARGEST else None


def _ids(value: Any) -> tuple[int, ...] | None:
    if not isinstance(value, list) or any(_count(item) is None for item in value):
        return None
    return tuple(value)


def _logprobs(value: Any) -> tuple[float, ...] | None:
    content = value.get("content") if isinstance(value, dict) else None
    if not isinstance(content, list) or not content:
        return None
    results = [item.get("logprob") if isinstance(item, dict) else None for item in content]
    if not all(isinstance(item, int | float) for item in results):
        return None
    return tuple(float(item) for item in results if item is not None)


def entropies_of(body: Mapping[str, Any], count: int) -> tuple[float, ...] | None:
    """Of each written token the entropy over the likeliest ones; None where they are missing.

    Args:
        body: what the endpoint answered, with at least one choice.
        count: how many of the likeliest to take.
    """
    given = body["choices"][0].get("logprobs")
    content = given.get("content") if isinstance(given, dict) else None
    if not isinstance(content, list) or not content:
        return None
    rows = []
    for item in content:
        listed = item.get("top_logprobs") if isinstance(item, dict) else None
        if not isinstance(listed, list) or not listed:
            return None
        values = [entry.get("logprob") if isinstance(entry, dict) else None for entry in listed]
        if not all(isinstance(value, int | float) for value in values):
            return None
        rows.append([float(value) for value in values if value is not None])
    return tuple(top_entropy(row, count) for row in rows)


def _string(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
