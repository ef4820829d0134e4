"""A model's own chat template: what it can write, and in which form it wants to be given it.

Templates differ in what they take: arguments as an object or as text, an empty text or none beside
calls, one call a message or several, a system message or none. Nothing says which, so a template is
tried out once on small conversations, see `probe`. Reasoning goes under the names that transformers
gives it (``reasoning_content`` and ``thinking``); a template that reads neither gets it as text
between ``<think>`` tags.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from adp.rendering.chat import Chat, Message
from adp.rendering.m3_forms import frame_of
from adp.rendering.options import RenderOptions
from adp.rendering.probe import Plain, TemplateRefusalError, probe
from adp.rendering.template_attributes import quick_attributes
from adp_schema.errors import MissingExtraError, UsageError
from adp_schema.ids import digest

_TAG = re.compile(r"<[^<>\s{}]{2,40}>|\[/?[A-Z_]{2,40}\]")
"""What looks like a tag in the source of a template."""


class ChatTemplate:
    """A chat template with the special tokens of its tokenizer.

    Args:
        tokenizer: a tokenizer of transformers.
        options: date, options of the template, and perhaps another template.
        stops: ids of tokens at which generation stops besides the tokenizer's own, such as those
            of the model's generation config.

    Attributes:
        texts: the template, and that for conversations with tools on offer, which is mostly the
            same.
        digest: names the template and everything else that its output depends on.
        marks: whether it marks what the model generates (``{% generation %}``).
        forms: what it can write.
        special: finds special tokens in a text.
        tags: finds the template's own tags in a text, such as ``<think>`` and ``[/INST]``.
        stops: ids of all tokens at which generation stops.
        stop: finds these tokens in a text.

    Raises:
        UsageError: the tokenizer has no template, or it is no valid one.
    """

    def __init__(self, tokenizer: Any, options: RenderOptions, stops: Collection[int] = ()) -> None:
        try:
            from transformers.utils.chat_template_utils import _compile_jinja_template
        except ImportError as error:
            raise MissingExtraError("transformers", "train") from error
        import jinja2

        chat_template = frame_of(options.wire_form) or options.chat_template
        self.texts = (chat_template, chat_template) if chat_template else _own_templates(tokenizer)
        # The sandbox of transformers: templates come with models, so they are data.
        try:
            self._compiled = [_compile_jinja_template(text) for text in self.texts]
        except jinja2.TemplateError as error:
            raise UsageError(f"the chat template is not valid: {error}") from error
        for template in self._compiled:
            quick_attributes(template.environment)
        day = datetime.strptime(options.date, "%Y-%m-%d")
        self._values = {
            **tokenizer.special_tokens_map,
            **options.template_options,
            "strftime_now": day.strftime,
        }
        arguments: tuple[object, ...] = (
            self.texts,
            sorted(tokenizer.special_tokens_map.items()),
            sorted(options.template_options.items()),
            options.date,
            sorted(stops),
        )
        if options.wire_form != "template":
            arguments += (options.wire_form, options.system_text)
        self.digest = digest(repr(arguments).encode("utf-8", "surrogatepass"))
        self.marks = any("endgeneration" in text for text in self.texts)
        self.special = special_pattern(tokenizer)
        self.tags = _any_of({tag for text in self.texts for tag in _TAG.findall(text)})
        added = {int(i): str(token) for i, token in tokenizer.added_tokens_decoder.items()}
        eos = tokenizer.special_tokens_map.get("eos_token")
        names = {added[number] for number in stops if number in added} | ({eos} if eos else set())
        self.forms = probe(self.render, self.special, names)
        names |= {item.stop for item in (self.forms.answer, self.forms.calls) if item.stop}
        self._stop_names = tuple(sorted(names))
        self.stop = _any_of(names)
        of_name = tokenizer.backend_tokenizer.token_to_id
        ids = {of_name(name) for name in names}
        self.stops = frozenset(stops) | {int(number) for number in ids if number is not None}

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

    def left(self, message: Plain, text: str) -> str:
        """What ends the turn of a message with which a conversation ends.

        Args:
            message: the last message of the conversation.
            text: the conversation as the template writes it.

        Returns:
            The beginning of the next message up to the token at which the model stops; empty when
            the template has ended the turn itself, or has no such token.
        """
        if message["role"] != "assistant":
            return ""
        ending = self.forms.calls if message.get("tool_calls") else self.forms.answer
        return "" if not ending.left or self.ended(text) else ending.left

    def ended(self, text: str) -> bool:
        """Whether a text ends with a token at which the model stops, but for white space."""
        return text.rstrip().endswith(self._stop_names)

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


def special_pattern(tokenizer: Any) -> re.Pattern[str]:
    """Finds every added token of a tokenizer, longest first."""
    names = {str(token) for token in tokenizer.all_special_tokens}
    names |= {str(token.content) for token in tokenizer.added_tokens_decoder.values()}
    return _any_of(names)


def _any_of(names: Collection[str]) -> re.Pattern[str]:
    """Finds each of some tokens in a text, the longest first."""
    words = sorted((name for name in names if name.strip()), key=lambda name: (-len(name), name))
    return re.compile("|".join(map(re.escape, words)) if words else r"(?!)")
