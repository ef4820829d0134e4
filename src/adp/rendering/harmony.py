"""Answers of gpt-oss, in OpenAI's Harmony form: messages with a channel and a recipient.

    <|channel|>analysis<|message|>thought<|end|><|start|>assistant<|channel|>commentary
    to=functions.search <|constrain|>json<|message|>{"query": "x"}<|call|>

The recipient may stand before or after the channel.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from adp.rendering.arguments import object_of
from adp.rendering.call_form import WrittenCall

_MESSAGE = re.compile(
    r"(?P<head>(?:(?!<\|message\|>).)*?)<\|message\|>(?P<body>.*?)"
    r"(?P<end><\|end\|>|<\|call\|>|<\|return\|>|(?=<\|start\|>)|\Z)",
    re.DOTALL,
)
_RECIPIENT = re.compile(r"to=functions\.(\S+?)(?=[\s<]|$)")
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)")


@dataclass
class HarmonyAnswer:
    """What stands in an answer.

    Attributes:
        texts: what the user is told.
        thoughts: what is thought.
        calls: calls of functions.
        broken: whether a call cannot be read.
    """

    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[WrittenCall] = field(default_factory=list)
    broken: bool = False


def read_harmony(text: str) -> HarmonyAnswer:
    """Read an answer; words outside of its form are a text.

    Args:
        text: what the model wrote, special tokens included.
    """
    harmony_answer = HarmonyAnswer()
    position = 0
    while (message := _MESSAGE.match(text, position)) is not None:
        _take(harmony_answer, message["head"], message["body"])
        position = message.end()
        if message.end() == message.start():
            break
    rest = text[position:]
    if "to=functions." in rest:
        harmony_answer.broken = True
    elif rest.strip():
        harmony_answer.texts.append(rest)
    return harmony_answer


def _take(harmony_answer: HarmonyAnswer, head: str, body: str) -> None:
    recipient = _RECIPIENT.search(head)
    if recipient is not None:
        value, valid = object_of(body)
        if not valid:
            harmony_answer.broken = True
            return
        harmony_answer.calls.append(WrittenCall(recipient[1], value, body.strip()))
        return
    channel = _CHANNEL.search(head)
    thought = channel is not None and channel[1] == "analysis"
    (harmony_answer.thoughts if thought else harmony_answer.texts).append(body)
