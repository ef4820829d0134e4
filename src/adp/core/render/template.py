"""A model's own chat template: what it can write, and in which form it wants to be given it.

Templates differ in what they take: arguments as an object or as text, an empty text or none beside
calls, one call a message or several, a system message or none. Nothing says which, so a template is
tried out once on small conversations, see `probe`. Reasoning goes under the names that transformers
gives it (``reasoning_content`` and ``thinking``); a template that reads neither gets it as text
between ``<think>`` tags.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
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
        empty: the content of a message that has calls and no text.
        text_with_calls: whether it writes the text of a message that has calls.
        results: whether it writes messages of tools.
        tools: whether it writes the tools on offer.
        system: whether it takes a system message.
        parallel: whether it takes several calls in one message.
        alternates: whether it refuses two messages of the user in a row.
        short_ids: whether ids of calls must be nine letters or digits.
        reasoning: ``field``, ``inline`` (as text between tags), or None: it drops all of it.
        prompt: the generation prompt: what follows a message of the user before the model writes.
    """

    arguments: str | None = None
    empty: str | None = ""
    text_with_calls: bool = False
    results: bool = False
    tools: bool = False
    system: bool = False
    parallel: bool = False
    alternates: bool = False
    short_ids: bool = False
    reasoning: str | None = None
    prompt: str = ""


class ChatTemplate:
    """A chat template with the special tokens of its tokenizer.

    Args:
        tokenizer: a tokenizer of transformers.
        options: date, options of the template, and perhaps another template.

    Attributes:
        text: the template.
        digest: names the template and everything else that its output depends on.
        marks: whether it marks what the model generates (``{% generation %}``).
        forms: what it can write.

    Raises:
        UsageError: the tokenizer has no template, or it is no valid one.
    """

    def __init__(self, tokenizer: Any, options: RenderOptions) -> None:
        try:
            from transformers.utils.chat_template_utils import _compile_jinja_template
        except ImportError as error:
            raise MissingExtraError("transformers", "train") from error
        import jinja2

        self.text = options.chat_template or _own_template(tokenizer)
        # The sandbox of transformers: templates come with models, so they are data.
        try:
            self._compiled = _compile_jinja_template(self.text)
        except jinja2.TemplateError as error:
            raise UsageError(f"the chat template is not valid: {error}") from error
        day = datetime.strptime(options.date, "%Y-%m-%d")
        self._values = {
            **tokenizer.special_tokens_map,
            **options.template_options,
            "strftime_now": day.strftime,
        }
        told = (
            self.text,
            sorted(tokenizer.special_tokens_map.items()),
            sorted(options.template_options.items()),
            options.date,
        )
        self.digest = digest(repr(told).encode("utf-8", "surrogatepass"))
        self.marks = "generation" in self.text and "endgeneration" in self.text
        self.forms = replace(probe(self.render), prompt=self._prompt())

    def _prompt(self) -> str:
        try:
            without, asked = self.render([_USER], None), self.render([_USER], None, prompt=True)
        except TemplateRefusalError:
            return ""
        return asked[len(without) :] if asked.startswith(without) else ""

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
            text: str = self._compiled.render(
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
        try:
            with self._compiled.environment.activate_tracker(blocks, places):
                for block in self._compiled.generate(**values):
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
        plain["content"] = content or self.forms.empty
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


def _own_template(tokenizer: Any) -> str:
    text = tokenizer.chat_template
    if isinstance(text, Mapping):
        text = text.get("tool_use") or text.get("default")
    if not text:
        raise UsageError(
            "the tokenizer has no chat template; give one: --chat-template FILE.jinja, "
            "or choose the instruct version of the model"
        )
    return str(text)


_TOOL = {
    "type": "function",
    "function": {
        "name": "probe_tool",
        "description": "probe",
        "parameters": {"type": "object", "properties": {"key": {"type": "string"}}},
    },
}
_USER = {"role": "user", "content": "probe question"}
_LONG, _SHORT = ("call_000001", "call_000002"), ("abcdef123", "abcdef124")

Render = Callable[[Sequence[Plain], Sequence[Plain] | None], str]


def probe(render: Render) -> Forms:
    """Try a template out on small conversations."""

    def write(messages: Sequence[Plain], tools: Sequence[Plain] | None = None) -> str:
        try:
            return render(messages, tools)
        except TemplateRefusalError:
            return ""

    answer = {"role": "assistant", "content": "probe answer"}
    short = not _has_call(write, _LONG[:1]) and _has_call(write, _SHORT[:1])
    ids = _SHORT if short else _LONG
    arguments, empty = _call_form(write, ids)
    one = _calls(ids[:1], arguments, empty)
    result = {"role": "tool", "content": "probe result", "tool_call_id": ids[0], "name": "probe_x"}
    both = _calls(ids, arguments, empty)
    results = [result, {**result, "tool_call_id": ids[1], "content": "probe second"}]
    with_text = {**one, "content": "probe words"}
    written = write([_USER, with_text, result], [_TOOL])
    return Forms(
        arguments=arguments,
        empty=empty,
        text_with_calls="probe words" in written and "probe_x" in written,
        results="probe result" in write([_USER, one, result], [_TOOL]),
        tools="probe_tool" in write([_USER], [_TOOL]),
        system="probe system" in write([{"role": "system", "content": "probe system"}, _USER]),
        parallel=write([_USER, both, *results], [_TOOL]).count("probe_x") >= 2,
        alternates=not write([_USER, _USER, answer]) and bool(write([_USER, answer])),
        short_ids=short,
        reasoning=_reasoning(write),
    )


def _calls(ids: Sequence[str], form: str | None, empty: str | None) -> Plain:
    value: Any = '{"key": "probe value"}' if form == "text" else {"key": "probe value"}
    calls = [
        {"id": name, "type": "function", "function": {"name": "probe_x", "arguments": value}}
        for name in ids
    ]
    return {"role": "assistant", "content": empty, "tool_calls": calls}


def _call_form(write: Callable[..., str], ids: Sequence[str]) -> tuple[str | None, str | None]:
    """How arguments and the missing text are given, so that a call is written whole."""
    result = {"role": "tool", "content": "probe result", "tool_call_id": ids[0], "name": "probe_x"}
    for form in ("object", "text"):
        for empty in ("", None):
            for rest in ([result], []):
                text = write([_USER, _calls(ids[:1], form, empty), *rest], [_TOOL])
                if "probe_x" in text and "probe value" in text and '\\"' not in text:
                    return form, empty
    return None, ""


def _has_call(write: Callable[..., str], ids: Sequence[str]) -> bool:
    return _call_form(write, ids)[0] is not None


def _reasoning(write: Callable[..., str]) -> str | None:
    thought, answer = "probe thought", "probe answer"
    plain = {"role": "assistant", "content": answer}
    field = {**plain, "reasoning_content": thought, "thinking": thought}
    if thought in write([_USER, field]):
        return "field"
    inline = {**plain, "content": f"<think>\n{thought}\n</think>\n\n{answer}"}
    return "inline" if thought in write([_USER, inline]) else None
