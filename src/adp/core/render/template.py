"""A model's own chat template: what it can write, and in which form it wants to be given it.

Templates differ in what they take: arguments as an object or as text, an empty text or none beside
calls, one call a message or several, a system message or none. Nothing says which, so a template is
tried out once on small conversations, see `probe`. Reasoning goes under the names that transformers
gives it (``reasoning_content`` and ``thinking``); a template that reads neither gets it as text
between ``<think>`` tags.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from adp.core.render.chat import Chat, Message
from adp.core.render.options import RenderOptions
from adp_schema.errors import MissingExtraError, UsageError
from adp_schema.ids import digest

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
        results: whether it writes messages of tools.
        tools: whether it writes the tools on offer.
        system: whether it takes a system message.
        later_system: whether it writes a system message in the middle of a chat, and the first one.
        parallel: whether it takes several calls in one message.
        alternates: whether it refuses two messages of the user in a row.
        short_ids: whether ids of calls must be nine letters or digits.
        reasoning: ``field``, ``inline`` (as text between tags), or None: it drops all of it.
        prompt: the generation prompt: what follows a message of the user before the model writes.
        tail: what it writes at the end of a chat after the end of the last turn, such as the end
            of the text.
    """

    arguments: str | None = None
    empty: str | None = ""
    text_with_calls: bool = False
    results: bool = False
    tools: bool = False
    system: bool = False
    later_system: bool = False
    parallel: bool = False
    alternates: bool = False
    short_ids: bool = False
    reasoning: str | None = None
    prompt: str = ""
    tail: str = ""


class ChatTemplate:
    """A chat template with the special tokens of its tokenizer.

    Args:
        tokenizer: a tokenizer of transformers.
        options: date, options of the template, and perhaps another template.

    Attributes:
        texts: the template, and that for conversations with tools on offer, which is mostly the
            same.
        digest: names the template and everything else that its output depends on.
        marks: whether it marks what the model generates (``{% generation %}``).
        forms: what it can write.
        special: finds special tokens in a text.

    Raises:
        UsageError: the tokenizer has no template, or it is no valid one.
    """

    def __init__(self, tokenizer: Any, options: RenderOptions) -> None:
        try:
            from transformers.utils.chat_template_utils import _compile_jinja_template
        except ImportError as error:
            raise MissingExtraError("transformers", "train") from error
        import jinja2

        own = options.chat_template
        self.texts = (own, own) if own else _own_templates(tokenizer)
        # The sandbox of transformers: templates come with models, so they are data.
        try:
            self._compiled = [_compile_jinja_template(text) for text in self.texts]
        except jinja2.TemplateError as error:
            raise UsageError(f"the chat template is not valid: {error}") from error
        day = datetime.strptime(options.date, "%Y-%m-%d")
        self._values = {
            **tokenizer.special_tokens_map,
            **options.template_options,
            "strftime_now": day.strftime,
        }
        told = (
            self.texts,
            sorted(tokenizer.special_tokens_map.items()),
            sorted(options.template_options.items()),
            options.date,
        )
        self.digest = digest(repr(told).encode("utf-8", "surrogatepass"))
        self.marks = any("endgeneration" in text for text in self.texts)
        self.special = special_pattern(tokenizer)
        self.forms = probe(self.render, self.special)

    def render(
        self, messages: Sequence[Plain], tools: Sequence[Plain] | None, prompt: bool = False
    ) -> str:
        """Write a conversation.

        Args:
            messages: as `plain` makes them.
            tools: tools on offer; None or empty for none.
            prompt: end with the words after which the model begins to write.

        Raises:
            TemplateRefusalError: the template refuses the conversation.
        """
        try:
            text: str = self._compiled[bool(tools)].render(
                messages=messages,
                tools=list(tools) if tools else None,
                documents=None,
                add_generation_prompt=prompt,
                **self._values,
            )
        except Exception as error:
            # A template is a program of its own: it raises what it likes.
            words = " ".join(str(error).split()) or type(error).__name__
            raise TemplateRefusalError(words[:300]) from error
        return text

    def render_marked(
        self, messages: Sequence[Plain], tools: Sequence[Plain] | None
    ) -> tuple[str, list[tuple[int, int]]]:
        """Write a conversation, and say where the template marks what the model generates.

        Returns:
            The text, and first and last character of each marked part.
        """
        blocks: list[str] = []
        places: list[tuple[int, int]] = []
        values = {
            "messages": messages,
            "tools": list(tools) if tools else None,
            "documents": None,
            "add_generation_prompt": False,
            **self._values,
        }
        compiled = self._compiled[bool(tools)]
        try:
            with compiled.environment.activate_tracker(blocks, places):
                for block in compiled.generate(**values):
                    blocks.append(block)
        except Exception as error:
            words = " ".join(str(error).split()) or type(error).__name__
            raise TemplateRefusalError(words[:300]) from error
        return "".join(blocks), places

    def plain(self, chat: Chat) -> list[Plain]:
        """The messages of a chat in the form that the template wants."""
        return [self._message(message) for message in chat.messages]

    def _message(self, message: Message) -> Plain:
        if message.role == "tool":
            result = {"role": "tool", "content": message.text, "tool_call_id": message.call_id}
            return result if message.name is None else {**result, "name": message.name}
        content = message.text
        plain: Plain = {"role": message.role}
        if message.reasoning and self.forms.reasoning == "field":
            plain["reasoning_content"] = plain["thinking"] = message.reasoning
        elif message.reasoning and self.forms.reasoning == "inline":
            content = f"<think>\n{message.reasoning}\n</think>\n\n{message.text}"
        if not message.calls:
            return {**plain, "content": content}
        if content or self.forms.empty is not None:
            plain["content"] = content
        plain["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {
                    "name": call.name,
                    "arguments": call.text if self.forms.arguments == "text" else call.arguments,
                },
            }
            for call in message.calls
        ]
        return plain


def _own_templates(tokenizer: Any) -> tuple[str, str]:
    """The tokenizer's template without tools and with tools; some have two."""
    text = with_tools = tokenizer.chat_template
    if isinstance(text, Mapping):
        with_tools = text.get("tool_use") or text.get("default")
        text = text.get("default") or with_tools
    if not text:
        raise UsageError(
            "the tokenizer has no chat template; give one: --chat-template FILE.jinja, "
            "or choose the instruct version of the model"
        )
    return str(text), str(with_tools)


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
        found = self.write(*messages, prompt=prompt)
        return found or self.write(*messages, tools=True, prompt=prompt)

    def after(self, words: str, *messages: Plain, prompt: bool = False) -> str:
        """What follows the given words in a conversation."""
        return self.either(*messages, prompt=prompt).rpartition(words)[2]


def probe(render: Render, special: re.Pattern[str]) -> Forms:
    """Try a template out on small conversations.

    Args:
        render: as `ChatTemplate.render`.
        special: finds special tokens.
    """
    trial = _Trial(render)
    short = not _call_form(trial, _LONG)[0] and _call_form(trial, _SHORT)[0] is not None
    ids = _SHORT if short else _LONG
    arguments, empty = _call_form(trial, ids)
    one, both = _calls(ids[:1], arguments, empty), _calls(ids, arguments, empty)
    results = [_result(name, number) for number, name in enumerate(ids)]
    with_text = trial.write(_USER, {**one, "content": "probe words"}, results[0], tools=True)
    parallel = trial.write(_USER, both, *results, tools=True)
    told = {"role": "system", "content": "probe system"}
    later = {"role": "system", "content": "probe later"}
    systems = trial.either(told, _USER, _ANSWER, later, _USER)
    systems = systems or trial.either(told, _USER, later, _USER)
    return Forms(
        arguments=arguments,
        empty=empty,
        text_with_calls="probe words" in with_text and "probe value 0" in with_text,
        results="probe result 0" in trial.write(_USER, one, results[0], tools=True),
        tools="probe_tool" in trial.write(_USER, tools=True),
        system="probe system" in trial.either(told, _USER),
        later_system="probe system" in systems and "probe later" in systems,
        parallel="probe value 0" in parallel and "probe value 1" in parallel,
        alternates=not trial.either(_USER, _USER, _ANSWER) and bool(trial.either(_USER, _ANSWER)),
        short_ids=short,
        reasoning=_reasoning(trial, one, results[0]),
        prompt=_prompt(trial, special),
        tail=_tail(trial, special),
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


def _tail(trial: _Trial, special: re.Pattern[str]) -> str:
    """What follows the end of the last turn, and does not when another turn comes."""
    words = str(_ANSWER["content"])
    alone, followed = trial.after(words, _USER, _ANSWER), trial.after(words, _USER, _ANSWER, _USER)
    place = _boundary(alone, followed, special)
    return alone[place:] if alone[:place].strip() else ""


def common(one: str, other: str) -> int:
    """Length of the common beginning of two texts."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _boundary(one: str, other: str, special: re.Pattern[str]) -> int:
    """The same, without a part of a word or of a special token at its end.

    A first text that is all in the other is taken whole.
    """
    count = common(one, other)
    ends = {found.end() for found in special.finditer(one)}
    while 0 < count < len(one) and count not in ends and not one[count - 1].isspace():
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


def special_pattern(tokenizer: Any) -> re.Pattern[str]:
    """Finds every added token of a tokenizer, longest first."""
    names = {str(token) for token in tokenizer.all_special_tokens}
    names |= {str(token.content) for token in tokenizer.added_tokens_decoder.values()}
    words = sorted((name for name in names if name.strip()), key=lambda name: (-len(name), name))
    return re.compile("|".join(map(re.escape, words)) if words else r"(?!)")
