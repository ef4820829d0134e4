"""The prompt of a policy in process: the conversation in the model's own chat template.

It is rendered by the code that renders training data, so a model sees in a rollout what it was
trained on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from adp.core.input_files import read_text
from adp.rendering.answers import AnswerReader
from adp.rendering.arguments import object_of, whole_text
from adp.rendering.chat import Chat, Message
from adp.rendering.chat import ChatCall as ChatCall
from adp.rendering.options import RenderOptions
from adp.rendering.prepare import REASONING_DROPPED, plain_tools, prepare
from adp.rendering.probe import TemplateRefusalError
from adp.rendering.render import Renderer, dropped
from adp.rollouts.collecting.rows import content_text
from adp.rollouts.policies.names import model_name
from adp.rollouts.policies.settings import InProcessSettings
from adp.rollouts.policy import AgentLimitError, Request
from adp.rollouts.turns import Call, Tool, Turn, Usage
from adp.rollouts.turns import Message as ChatMessage
from adp_schema.errors import AdpError, InputError, UsageError

_SEEN = 64
"""Characters of a prompt's end that may open the thought of the answer."""


@dataclass(frozen=True, slots=True)
class ModelPrompt:
    """What the model is given.

    Attributes:
        text: the prompt.
        ids: its token ids.
    """

    text: str
    ids: tuple[int, ...]


@dataclass(slots=True)
class Generated:
    """What a model wrote.

    Attributes:
        ids: token ids, the one that ended it included.
        logprobs: their log probabilities before temperature and cuts; empty when not known.
        ended: whether it ended by itself.
        entropies: of each token the entropy over the likeliest ones; empty when not asked for.
    """

    ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    ended: bool = False
    entropies: list[float] = field(default_factory=list)


class Prompter:
    """Writes prompts, and reads answers, for one model.

    Args:
        tokenizer: of the model.
        settings: what is asked for.
        stops: ids of tokens at which the model stops besides the tokenizer's own, such as those of
            its generation config.

    Attributes:
        context: tokens of prompt and answer; None: there is no limit.
        renderer: with the tokenizer and the template.
        reader: of the model's answers.
        ends: ids of the tokens that end a turn.

    Raises:
        UsageError: the tokenizer has no template, or a setting does not fit it.
        InputError: the file of the template cannot be read.
    """

    def __init__(
        self, tokenizer: Any, settings: InProcessSettings, stops: Collection[int] = ()
    ) -> None:
        self._settings = settings
        given: dict[str, Any] = {
            "template_options": settings.template_options,
            "tools": settings.tools_in,
            "reasoning": settings.reasoning,
            "parallel_calls": settings.parallel_calls,
            "wire_form": settings.wire_form,
            "system_text": settings.words(),
        }
        if settings.chat_template is not None:
            try:
                given["chat_template"] = read_text(settings.chat_template)
            except OSError as error:
                place = settings.chat_template
                raise InputError(f"{place} cannot be read: {error.strerror}") from error
        try:
            options = RenderOptions.model_validate(given)
        except ValidationError as error:
            raise UsageError(error.errors()[0]["msg"].removeprefix("Value error, ")) from error
        self.renderer = Renderer(tokenizer, options, stops)
        in_text = settings.tools_in == "text" and settings.call_form == "auto"
        self.reader = AnswerReader(self.renderer, "tags" if in_text else settings.call_form)
        self.ends = self.renderer.template.stops
        self.context = settings.context_length
        self._prompts = 0
        self._notes: Counter[str] = Counter()

    def prompt(self, request: Request) -> ModelPrompt:
        """The prompt of a request.

        Raises:
            UsageError: the template cannot write tools, or its calls cannot be read.
            AdpError: the template refuses this conversation.
            AgentLimitError: the conversation fills the model's context.
        """
        chat = chat_of(request.messages, request.tools)
        renderer = self.renderer
        forms = renderer.template.forms
        by_template = renderer.options.wire_form == "template" == renderer.options.tools
        if chat.tools and by_template and not forms.tools:
            raise UsageError("the chat template writes no tools; set tools_in=text")
        if chat.tools and not self.reader.knows_calls:
            raise UsageError(
                "the calls that this chat template writes cannot be read; set call_form"
            )
        try:
            notes: Counter[str] = Counter()
            ready = prepare(chat, renderer.options, forms, notes)
            plain = renderer.template.plain(ready)
            text = renderer.template.render(plain, plain_tools(ready), prompt=True)
        except TemplateRefusalError as error:
            raise AdpError(f"the conversation cannot be written: {error}") from error
        self._note(ready, notes, text)
        ids = tuple(renderer.encoder.encode(text, ()).ids.tolist())
        if self.context is not None and len(ids) >= self.context:
            raise AgentLimitError(
                "context_length",
                f"the prompt has {len(ids)} tokens, and the context {self.context}",
            )
        return ModelPrompt(text, ids)

    def _note(self, ready: Chat, notes: Counter[str], text: str) -> None:
        """Count what a prompt lacks. A turn is in each later prompt, so prompts are counted."""
        # Of reasoning, `prepare` counts only what is trained, and nothing is trained here.
        names = {result for result, count in notes.items() if count or result == REASONING_DROPPED}
        for message in ready.messages:
            if message.role == "assistant":
                names.update(+dropped(message, text))
        self._prompts += 1
        self._notes.update(names)

    def remarks(self) -> list[str]:
        """What the template dropped from prompts, or wrote differently, and in how many."""
        return [
            f"in {count:,} of {self._prompts:,} prompts: {name}"
            for name, count in sorted(self._notes.items())
        ]

    def longest(self, prompt: ModelPrompt) -> int:
        """Tokens that an answer may have."""
        most = self._settings.max_tokens
        return most if self.context is None else min(most, self.context - len(prompt.ids))

    def turn(self, request: Request, prompt: ModelPrompt, written: Generated) -> Turn:
        """What a model wrote, as a turn."""
        settings = self._settings
        written_ids = list(written.ids)
        if written.ended and written_ids and written_ids[-1] in self.ends:
            written_ids.pop()
        text = str(self.renderer.tokenizer.decode(written_ids, skip_special_tokens=False))
        answer = self.reader.read(text, prompt.text[-_SEEN:], request.tools)
        stop = "tool_calls" if answer.calls else "stop"
        return Turn(
            text=answer.text,
            calls=tuple(Call(call.name, call.text) for call in answer.calls),
            reasoning=answer.reasoning,
            malformed=answer.malformed,
            model=model_name(settings.model),
            stop_reason=stop if written.ended else "length",
            usage=Usage(tokens_in=len(prompt.ids), tokens_out=len(written.ids)),
            prompt_token_ids=prompt.ids if settings.token_ids else None,
            completion_token_ids=tuple(written.ids) if settings.token_ids else None,
            logprobs=tuple(written.logprobs) if settings.logprobs and written.logprobs else None,
            entropies=tuple(written.entropies) if settings.entropies else None,
        )


def chat_of(messages: Sequence[ChatMessage], tools: Sequence[Tool]) -> Chat:
    """Messages in the OpenAI shape as a chat for the renderer."""
    results = [_message(message, step) for step, message in enumerate(messages)]
    return Chat("", 0, 0, tuple(results), tuple(dict(tool) for tool in tools))


def _message(message: ChatMessage, step: int) -> Message:
    role = str(message.get("role") or "user")
    text = whole_text(content_text(message.get("content")))
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


def _call(call: Mapping[str, Any]) -> ChatCall:
    function = call["function"]
    text = whole_text(function["arguments"])
    value, valid = object_of(text)
    return ChatCall(
        name=whole_text(function["name"]),
        arguments=value if valid else text,
        text=text,
        call_id=str(call.get("id") or ""),
        valid=valid,
    )
