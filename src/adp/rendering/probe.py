"""What a chat template can write: found by trying it on small conversations.

Templates differ in what they take: arguments as an object or as text, an empty text or none beside
calls, one call a message or several, a system message or none. Nothing says which.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from adp.rendering.endings import Ending, Tried, ending

Plain = dict[str, Any]
"""A message as templates take it."""


class TemplateRefusalError(Exception):
    """A template refuses a conversation; the message says why, in its own words."""


@dataclass(frozen=True)
class Forms:
    """What a template can write, and how it wants to be given it.

    Attributes:
        arguments: ``object`` or ``text``; None when it writes no calls.
        empty: the content of a message that has calls and no text; None leaves the key out, as
            transformers does with every key whose value is None.
        text_with_calls: whether it writes the text of a message that has calls.
        words_before: whether it takes the text of such a message as a message before it.
        results: whether it writes messages of tools.
        tools: whether it writes the tools on offer.
        system: whether it takes a system message.
        later_system: whether it writes a system message in the middle of a chat, and the first one.
        parallel: whether it takes several calls in one message.
        alternates: whether it refuses two messages of the user in a row.
        short_ids: whether ids of calls must be nine letters or digits.
        reasoning: ``field``, ``inline`` (as text between tags), or None: it drops all of it.
        prompt: the generation prompt: what follows a message of the user before the model writes.
        answer: how it ends a turn without calls.
        calls: how it ends a turn with calls.
    """

    arguments: str | None = None
    empty: str | None = ""
    text_with_calls: bool = False
    words_before: bool = False
    results: bool = False
    tools: bool = False
    system: bool = False
    later_system: bool = False
    parallel: bool = False
    alternates: bool = False
    short_ids: bool = False
    reasoning: str | None = None
    prompt: str = ""
    answer: Ending = field(default_factory=Ending)
    calls: Ending = field(default_factory=Ending)


_TOOL = {
    "type": "function",
    "function": {
        "name": "probe_tool",
        "description": "probe",
        "parameters": {"type": "object", "properties": {"key": {"type": "string"}}},
    },
}
_USER = {"role": "user", "content": "probe question"}
_ANSWER = {"role": "assistant", "content": "probe answer"}
_NEXT = {"role": "user", "content": "probe reply"}
_LONG, _SHORT = ("call_000001", "call_000002"), ("abcdef123", "abcdef124")

Render = Callable[..., str]


class _Trial:
    """Small conversations in a template, with the tools that it can do nothing without."""

    def __init__(self, render: Render) -> None:
        self._render = render

    def write(self, *messages: Plain, tools: bool = False, prompt: bool = False) -> str:
        """A conversation; empty when the template refuses it."""
        try:
            return self._render(list(messages), [_TOOL] if tools else None, prompt)
        except TemplateRefusalError:
            return ""

    def either(self, *messages: Plain, prompt: bool = False) -> str:
        """A conversation without tools; with them, when the template refuses it without."""
        write = self.write(*messages, prompt=prompt)
        return write or self.write(*messages, tools=True, prompt=prompt)

    def after(self, words: str, *messages: Plain, prompt: bool = False) -> str:
        """What follows the given words in a conversation."""
        return self.either(*messages, prompt=prompt).rpartition(words)[2]


def probe(render: Render, special: re.Pattern[str], eos: Collection[str]) -> Forms:
    """Try a template out on small conversations.

    Args:
        render: as `ChatTemplate.render`.
        special: finds special tokens.
        eos: the end-of-sequence tokens of the model.
    """
    trial = _Trial(render)
    short = not _call_form(trial, _LONG)[0] and _call_form(trial, _SHORT)[0] is not None
    ids = _SHORT if short else _LONG
    arguments, empty = _call_form(trial, ids)
    result, both = _calls(ids[:1], arguments, empty), _calls(ids, arguments, empty)
    results = [_result(name, number) for number, name in enumerate(ids)]
    with_text = trial.write(_USER, {**result, "content": "probe words"}, results[0], tools=True)
    parallel = trial.write(_USER, both, *results, tools=True)
    system = {"role": "system", "content": "probe system"}
    later = {"role": "system", "content": "probe later"}
    systems = trial.either(system, _USER, _ANSWER, later, _USER)
    systems = systems or trial.either(system, _USER, later, _USER)
    answer = ending(_tried(trial, "probe answer", _USER, _ANSWER, _NEXT), special, eos)
    calls = answer
    if arguments is not None:
        calls = ending(
            _tried(trial, "probe value 0", _USER, result, results[0], two=both), special, eos
        )
    return Forms(
        arguments=arguments,
        empty=empty,
        text_with_calls="probe words" in with_text and "probe value 0" in with_text,
        words_before=_words_before(trial, result, results),
        results="probe result 0" in trial.write(_USER, result, results[0], tools=True),
        tools="probe_tool" in trial.write(_USER, tools=True),
        system="probe system" in trial.either(system, _USER),
        later_system="probe system" in systems and "probe later" in systems,
        parallel="probe value 0" in parallel and "probe value 1" in parallel,
        alternates=not trial.either(_USER, _USER, _ANSWER) and bool(trial.either(_USER, _ANSWER)),
        short_ids=short,
        reasoning=_reasoning(trial, result, results[0]),
        prompt=_prompt(trial, special),
        answer=answer,
        calls=calls,
    )


def _words_before(trial: _Trial, value: Plain, results: Sequence[Plain]) -> bool:
    """Whether words may be a message before that of the calls, early and late in a turn."""
    words = {"role": "assistant", "content": "probe words"}
    early = trial.write(_USER, words, value, results[0], _ANSWER, _NEXT, tools=True)
    late = trial.write(_USER, value, results[0], words, value, results[0], _ANSWER, tools=True)
    return all(
        part in text
        for text in (early, late)
        for part in ("probe words", "probe value 0", "probe answer")
    )


def _prompt(trial: _Trial, special: re.Pattern[str]) -> str:
    """What stands between the end of the user's turn and the words of the model."""
    words = str(_USER["content"])
    asked = trial.after(words, _USER, prompt=True)
    plain = trial.after(words, _USER)
    if asked.startswith(plain):
        return asked[len(plain) :]
    # Something else ends a chat: the user's turn ends with what another turn of the user follows.
    more = f"{words} once more"
    other = trial.after(more, {**_USER, "content": more}, _USER)
    return asked[_boundary(asked, other, special) :]


def _tried(trial: _Trial, words: str, *messages: Plain, two: Plain | None = None) -> Tried:
    """A turn with such words after a message of the user, alone and followed by a message.

    Args:
        trial: writes them.
        words: words of the turn.
        messages: the message of the user, the turn, and what follows.
        two: a turn of two parts; None when there is none.
    """
    asked, turn, following = messages
    tools = bool(turn.get("tool_calls"))

    def write(*some: Plain, prompt: bool = False) -> str:
        if tools:
            return trial.write(*some, tools=True, prompt=prompt)
        return trial.either(*some, prompt=prompt)

    full, prompt = write(asked, turn), write(asked, prompt=True)
    head, _, alone = full.rpartition(words)
    last = str(following["content"])
    followed = write(asked, turn, following).rpartition(last)[0].rpartition(words)[2]
    parts = "" if two is None else write(asked, two)
    between = parts.rpartition("probe value 1")[0].rpartition(words)[2]
    before, _, after = trial.either(asked).rpartition(str(asked["content"]))
    return Tried(alone, followed, head[common(head, prompt) :], between, before, after)


def common(text: str, other: str) -> int:
    """Length of the common beginning of two texts."""
    low, high = 0, min(len(text), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if text[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _boundary(text: str, other: str, special: re.Pattern[str]) -> int:
    """The same, without a part of a word or of a special token at its end.

    A first text that is all in the other is taken whole.
    """
    count = common(text, other)
    ends = {match.end() for match in special.finditer(text)}
    while 0 < count < len(text) and count not in ends and not text[count - 1].isspace():
        count -= 1
    return count


def _calls(ids: Sequence[str], form: str | None, empty: str | None) -> Plain:
    """A message with a call for each id; each call has a value of its own."""
    values = [{"key": f"probe value {number}"} for number in range(len(ids))]
    calls = [
        {
            "id": name,
            "type": "function",
            "function": {
                "name": "probe_x",
                "arguments": json.dumps(value) if form == "text" else value,
            },
        }
        for name, value in zip(ids, values, strict=True)
    ]
    plain: Plain = {"role": "assistant", "tool_calls": calls}
    return plain if empty is None else {**plain, "content": empty}


def _result(call_id: str, number: int) -> Plain:
    content = f"probe result {number}"
    return {"role": "tool", "content": content, "tool_call_id": call_id, "name": "probe_x"}


def _call_form(trial: _Trial, ids: Sequence[str]) -> tuple[str | None, str | None]:
    """How arguments and the missing text are given, so that a call is written whole."""
    for form in ("object", "text"):
        for empty in ("", None):
            for rest in ([_result(ids[0], 0)], []):
                text = trial.write(_USER, _calls(ids[:1], form, empty), *rest, tools=True)
                # Arguments that are text already must not become text once more.
                twice = '\\"probe value' in text or "\\'probe value" in text
                if "probe_x" in text and "probe value 0" in text and not twice:
                    return form, empty
    return None, ""


def _reasoning(trial: _Trial, calling: Plain, result: Plain) -> str | None:
    thought = "probe thought"
    named = {"reasoning_content": thought, "thinking": thought}
    if thought in trial.either(_USER, {**_ANSWER, **named}):
        return "field"
    if thought in trial.write(_USER, {**calling, **named}, result, tools=True):
        return "field"
    inline = {**_ANSWER, "content": f"<think>\n{thought}\n</think>\n\n{_ANSWER['content']}"}
    return "inline" if thought in trial.either(_USER, inline) else None
