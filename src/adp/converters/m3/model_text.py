"""What a model wrote: a thought in tags, and a call as JSON or an answer in tags."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from adp.converters.text_calls import CallGroup, find_bare
from adp_schema import jsontext

_ANSWER = re.compile(r"\s*<FINAL>(.*)</FINAL>\s*", re.DOTALL)
_THOUGHT = re.compile(r"<think>(.*?)</think>", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


@dataclass
class ModelTextParts:
    """The pieces of a text.

    Attributes:
        thought: the text between the tags of the thought; None when it begins with none.
        prose: what is left without thought, calls and tags; None when nothing was recovered.
        answer: the final answer; None when there is none.
        group: the calls.
    """

    thought: str | None = None
    prose: str | None = None
    answer: str | None = None
    group: CallGroup | None = None
    objects: list[str] = field(default_factory=list)


def take_apart(text: str, thought: str | None, *, calling: bool) -> ModelTextParts:
    """Find the pieces of a text.

    Args:
        text: what the model wrote.
        thought: the thought, where the source says it; it may hold the tags itself.
        calling: whether calls are looked for.
    """
    out = ModelTextParts()
    start = 0
    if thought is not None and text.startswith(f"<think>{thought}</think>"):
        out.thought, start = thought, len(thought) + len("<think></think>")
    elif (match := _THOUGHT.match(text)) is not None:
        out.thought, start = match.group(1), match.end()
    groups = find_bare(text) if calling else []
    if len(groups) == 1 and groups[0].start >= start and not _is_odd(groups[0]):
        group = out.group = groups[0]
        out.objects = [text[call.object.start : call.object.end] for call in group.calls]
        before = text[start : group.start].removesuffix("\n")
        out.prose = before + text[group.end :]
    elif (match := _ANSWER.fullmatch(text, start)) is not None:
        out.answer = out.prose = match.group(1)
    elif start:
        out.prose = text[start:]
    return out


def _is_odd(group: CallGroup) -> bool:
    """Whether a value cannot be stored as it is: it has lone surrogates."""
    values = [value for call in group.calls for value in call.values if value is not None]
    return any(_SURROGATE.search(value) for value in values)


def with_thought(text: str, thought: str) -> str:
    """The text with another thought, when it begins with one."""
    if text.startswith(f"<think>{thought}</think>"):
        return text
    return _THOUGHT.sub(lambda _: f"<think>{thought}</think>", text, count=1)


def arguments_of(model_text_parts: ModelTextParts) -> str | None:
    """What the metadata say of the calls of a text, as JSON; None when it has none."""
    if not model_text_parts.objects:
        return None
    return (
        model_text_parts.objects[0]
        if len(model_text_parts.objects) == 1
        else f"[{', '.join(model_text_parts.objects)}]"
    )


def plain_text(text: str) -> str:
    """JSON text with the characters of its strings in the place of escapes."""

    def written(match: re.Match[str]) -> str:
        value = json.loads(match.group(), strict=False)
        return str(bytes(jsontext.encode(jsontext.string(value))).decode("utf-8"))

    return _STRING.sub(written, text)


def same_json(first: str, second: str) -> bool:
    """Whether two JSON texts say the same: keys in order, numbers as they are spelled."""
    if first == second:
        return True
    try:
        return bool(_spelled(first) == _spelled(second))
    except (ValueError, RecursionError):
        return False


def _spelled(text: str) -> Any:
    def number(source: str) -> tuple[str]:
        return (source,)

    return json.loads(
        text,
        parse_int=number,
        parse_float=number,
        parse_constant=number,
        object_pairs_hook=lambda pairs: ("object", pairs),
    )
