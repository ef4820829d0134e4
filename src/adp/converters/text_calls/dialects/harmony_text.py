"""Harmony (gpt-oss) as text: ``<|channel|>commentary to=functions.f<|message|>{...}<|call|>``.

The channel ``analysis`` is reasoning, ``final`` the answer. Code for the tool ``python`` is code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from adp.converters.text_calls.dialect import (
    Dialect,
    Marked,
    ParsedCall,
    ParsedResult,
    ParsedTurn,
    Piece,
    Span,
)
from adp.converters.text_calls.frames import code_call, written_frame
from adp.converters.text_calls.special_tokens import token_call
from adp.converters.text_calls.thoughts import trimmed

_HEAD = re.compile(
    r"(?:<\|start\|>(?P<role>[^<|\n]{1,300}))?(?:<\|channel\|>(?P<channel>[^<|\n]{1,300}))?"
    r"(?:<\|constrain\|>[^<|\n]{0,100})?<\|message\|>"
)
_END = re.compile(r"<\|(?:end|call|return|start)\|>|<\|channel\|>")
_TO = re.compile(r"\bto=([^\s<|]{1,200})")
_MESSAGE = "<|message|>"


@dataclass(frozen=True, slots=True)
class _HarmonyMessage:
    """A message of the text: where it stands, and what its head says."""

    span: Span
    words: Span
    head: Span
    role: str
    channel: str
    recipient: re.Match[str] | None
    offset: int


class HarmonyText(Dialect):
    """The dialect ``harmony_text``."""

    name = "harmony_text"
    title = "Harmony (`<|channel|>commentary to=functions.f<|message|>{...}<|call|>`)"
    example = (
        "<|channel|>analysis<|message|>I look.<|end|><|start|>assistant<|channel|>commentary "
        'to=functions.f <|constrain|>json<|message|>{"a": 1}<|call|>'
    )
    marks = (_MESSAGE,)
    prompts = ("# Valid channels:", "namespace functions {")
    results = ("<|start|>functions.", "<|start|>browser", "<|start|>python")

    def parse(self, text: str, tools: Sequence[str] = ()) -> ParsedTurn:
        """Take a turn of an agent apart."""
        calls: list[ParsedCall] = []
        thoughts: list[Marked] = []
        answer = None
        for message in _messages(text):
            if _is_result(message):
                continue
            if message.recipient is not None:
                call = _call(text, message, message.recipient)
                if call is not None:
                    calls.append(call)
            elif message.channel.startswith("analysis"):
                thoughts.append(Marked(message.span, message.words))
            elif message.channel.startswith("final"):
                answer = Marked(message.span, message.words)
        return ParsedTurn(tuple(calls), tuple(thoughts), answer)

    def results_in(self, text: str, calls: Sequence[ParsedCall]) -> tuple[ParsedResult, ...]:
        """The results in a turn that follows calls."""
        results = [it for it in _messages(text) if _is_result(it)]
        if not results:
            return super().results_in(text, calls)
        return tuple(
            ParsedResult(Marked(it.span, it.words), name=_tool(it.role.split()[0]))
            for it in results
        )

    def pieces(self, text: str) -> Sequence[Piece]:
        """The turns in a text that holds a whole run."""
        pieces: list[Piece] = []
        for message in _messages(text):
            source = "result" if _is_result(message) else "agent"
            if pieces and pieces[-1].source == source:
                continue
            start = message.span[0] if pieces else 0
            if pieces:
                pieces[-1] = Piece(pieces[-1].source, (pieces[-1].span[0], start))
            pieces.append(Piece("result" if source == "result" else "agent", (start, len(text))))
        is_run = len(pieces) > 1 and pieces[0].source == "agent"
        return pieces if is_run else ()

    def write(self, call: ParsedCall) -> str | None:
        """The characters of a call."""
        return written_frame(call)


def _messages(text: str) -> list[_HarmonyMessage]:
    """The messages of a text, in order."""
    out: list[_HarmonyMessage] = []
    position = 0
    while (match := _HEAD.search(text, position)) is not None:
        end = _END.search(text, match.end())
        stop = len(text) if end is None else end.start()
        last = stop
        if end is not None and end.group() in ("<|end|>", "<|call|>", "<|return|>"):
            last = end.end()
        role, channel = (match["role"] or "").strip() or "assistant", match["channel"] or ""
        recipient, offset = _TO.search(channel), match.start("channel")
        if recipient is None and match["role"]:
            recipient, offset = _TO.search(match["role"]), match.start("role")
        if match["role"] or match["channel"]:
            words = trimmed(text, (match.end(), stop))
            head = (match.start(), match.end())
            out.append(
                _HarmonyMessage(
                    (match.start(), last), words, head, role, channel, recipient, offset
                )
            )
        position = last
    return out


def _is_result(message: _HarmonyMessage) -> bool:
    """Whether a message is one of a tool."""
    return not message.role.startswith("assistant")


def _tool(name: str) -> str:
    """The name of a tool without the namespace of all functions."""
    return name.removeprefix("functions.")


def _call(text: str, message: _HarmonyMessage, recipient: re.Match[str]) -> ParsedCall | None:
    """A message to a tool as a call."""
    assert message.recipient is not None
    name = message.recipient[1]
    if name == "python":
        return code_call(text, message.span, message.words, "python", closing="<|")
    start, end = (message.offset + at for at in recipient.span(1))
    start += len(name) - len(_tool(name))
    return token_call(text, message.span, (start, end), message.words, "<|")


DIALECT = HarmonyText()
