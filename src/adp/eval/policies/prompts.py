"""The prompt of a policy in process: the conversation in the model's own chat template.

It is rendered by the code that renders training data, so a model sees in a rollout what it was
trained on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from adp.core.answers import AnswerReader, FormName
from adp.core.render.arguments import object_of, whole_text
from adp.core.render.chat import Call, Chat, Message
from adp.core.render.options import RenderOptions
from adp.core.render.prepare import plain_tools, prepare
from adp.core.render.render import Renderer
from adp.core.render.template import TemplateRefusalError
from adp.eval.policies.loading import ModelSettings
from adp.eval.policy import Request
from adp.eval.turns import Message as ChatMessage
from adp.eval.turns import Tool
from adp_schema.errors import AdpError, InputError, UsageError


class PromptSettings(ModelSettings):
    """How the conversation is written for the model, and how its answers are read."""

    call_form: FormName = Field(
        "auto",
        description="How the model writes calls: auto (as its template does), tags, json, mistral, "
        "pythonic, library (the parser of transformers), none.",
    )
    chat_template: Path | None = Field(
        None, description="A file with a chat template in place of the model's own."
    )
    template_options: dict[str, Any] = Field(
        default_factory=dict, description="Given to the template, such as {enable_thinking: false}."
    )
    tools_in: Literal["template", "text"] = Field(
        "template",
        description="Where tools and calls stand: in the template's own form, or as text in the "
        "Hermes manner, for templates that know no tools.",
    )
    reasoning: Literal["keep", "strip", "last_turn"] = Field(
        "keep", description="Which reasoning of earlier turns the template is given."
    )
    parallel_calls: Literal["keep", "split"] = Field(
        "keep", description="split: for templates that take one call a message."
    )


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the model is given.

    Attributes:
        text: the prompt.
        ids: its token ids.
    """

    text: str
    ids: tuple[int, ...]


class Prompter:
    """Writes prompts, and reads answers, for one model.

    Args:
        tokenizer: of the model.
        settings: what is asked for.

    Attributes:
        renderer: with the tokenizer and the template.
        reader: of the model's answers.
        ends: ids of the tokens that end a turn.

    Raises:
        UsageError: the tokenizer has no template, or a setting does not fit it.
        InputError: the file of the template cannot be read.
    """

    def __init__(self, tokenizer: Any, settings: PromptSettings) -> None:
        given: dict[str, Any] = {
            "template_options": settings.template_options,
            "tools": settings.tools_in,
            "reasoning": settings.reasoning,
            "parallel_calls": settings.parallel_calls,
        }
        if settings.chat_template is not None:
            try:
                given["chat_template"] = settings.chat_template.read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise InputError(f"{settings.chat_template} cannot be read: {error}") from error
        options = RenderOptions.model_validate(given)
        self.renderer = Renderer(tokenizer, options)
        in_text = settings.tools_in == "text" and settings.call_form == "auto"
        self.reader = AnswerReader(self.renderer, "tags" if in_text else settings.call_form)
        self.ends = turn_ends(self.renderer)

    def prompt(self, request: Request) -> Prompt:
        """The prompt of a request.

        Raises:
            UsageError: the template cannot write tools, or its calls cannot be read.
            AdpError: the template refuses this conversation.
        """
        chat = chat_of(request.messages, request.tools)
        renderer = self.renderer
        forms = renderer.template.forms
        if chat.tools and renderer.options.tools == "template" and not forms.tools:
            raise UsageError("the chat template writes no tools; set tools_in=text")
        if chat.tools and not self.reader.knows_calls:
            raise UsageError(
                "the calls that this chat template writes cannot be read; set call_form"
            )
        try:
            ready = prepare(chat, renderer.options, forms, Counter())
            plain = renderer.template.plain(ready)
            text = renderer.template.render(plain, plain_tools(ready), prompt=True)
        except TemplateRefusalError as error:
            raise AdpError(f"the conversation cannot be written: {error}") from error
        return Prompt(text, tuple(renderer.encoder.encode(text, ()).ids.tolist()))


def chat_of(messages: Sequence[ChatMessage], tools: Sequence[Tool]) -> Chat:
    """Messages in the OpenAI shape as a chat for the renderer."""
    found = [_message(message, step) for step, message in enumerate(messages)]
    return Chat("", 0, 0, tuple(found), tuple(dict(tool) for tool in tools))


def _message(message: ChatMessage, step: int) -> Message:
    role = str(message.get("role") or "user")
    text = whole_text(_text(message.get("content")))
    if role == "tool":
        call_id, name = message.get("tool_call_id"), message.get("name")
        return Message(
            "tool",
            text,
            step,
            call_id=str(call_id) if call_id else None,
            name=str(name) if name else None,
        )
    if role != "assistant":
        return Message("system" if role in ("system", "developer") else "user", text, step)
    calls = tuple(_call(call) for call in message.get("tool_calls") or ())
    reasoning = message.get("reasoning_content")
    return Message("assistant", text, step, reasoning=reasoning or None, calls=calls)


def _call(call: Mapping[str, Any]) -> Call:
    function = call["function"]
    text = whole_text(function["arguments"])
    value, valid = object_of(text)
    return Call(
        name=whole_text(function["name"]),
        arguments=value if valid else text,
        text=text,
        call_id=str(call.get("id") or ""),
        valid=valid,
    )


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list | tuple) else []
    return "\n\n".join(str(part.get("text", "")) for part in parts if isinstance(part, Mapping))


def turn_ends(renderer: Renderer) -> frozenset[int]:
    """Ids of the tokens that end a turn: the tokenizer's, and what its template writes."""
    tokenizer, template = renderer.tokenizer, renderer.template
    ends = {tokenizer.eos_token_id}
    words = "probe answer"
    chat = Chat("", 0, 0, (Message("user", "probe", 0), Message("assistant", words, 1)))
    try:
        text = template.render(template.plain(chat), None)
    except TemplateRefusalError:
        text = ""
    after = text.rpartition(words)[2].lstrip()
    mark = template.special.match(after) if words in text else None
    if mark is not None:
        ends.add(tokenizer.convert_tokens_to_ids(mark[0]))
    return frozenset(int(end) for end in ends if isinstance(end, int) and end >= 0)
