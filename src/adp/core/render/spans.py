"""Which characters of a rendered chat are trained.

A trained message is trained from where the model begins to write to the end of its turn. Where it
begins is known from the prompt that the model gets at inference: the render of what came before,
with the generation prompt. Where it ends is known from the render that ends with the message: after
its last special token, the end of turn, so a line end that only the template writes is not
trained. A template that marks what is generated (``{% generation %}``) is taken at its word.

A render fits a message when it begins with that prompt and goes on with that very message.
Templates that rewrite history (reasoning of earlier turns left out, another token at the end of the
last turn) do not fit all messages at once. Then there are several renders, each up to another
trained message, and each trains the messages that it fits: the model learns every step from what
it will see.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from adp.core.render.anchors import with_marks
from adp.core.render.sampled import Memory, Sampler
from adp.core.render.template import ChatTemplate, Plain, TemplateRefusalError

FIRST = "\ue000"
"""A character of private use: it marks where a message's own words begin."""


@dataclass(frozen=True, slots=True)
class Span:
    """The part of a render that trains one message.

    Attributes:
        index: index of the message in its chat.
        start: its first character.
        end: the character after its last one.
    """

    index: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Render:
    """A chat as text, up to its last trained message.

    Attributes:
        text: the text.
        spans: what is trained in it, in order.
        last: index of the message that it ends with.
    """

    text: str
    spans: tuple[Span, ...]
    last: int


class Speller:
    """Writes the prefixes of one chat; each of them once.

    Args:
        template: the chat template.
        messages: the whole chat, as the template wants it.
        tools: tools on offer.
        special: finds the special tokens of the tokenizer in a text.
    """

    def __init__(
        self,
        template: ChatTemplate,
        messages: Sequence[Plain],
        tools: Sequence[Plain],
        special: re.Pattern[str],
    ) -> None:
        self._template = template
        self._messages = messages
        self._tools = tools
        self._special = special
        self._prompts: dict[int, str] = {}
        self._wholes: dict[int, str] = {}
        self._marked: dict[int, list[tuple[int, int]]] = {}

    @property
    def messages(self) -> Sequence[Plain]:
        """The whole chat."""
        return self._messages

    @property
    def marks(self) -> bool:
        """Whether the template marks what the model generates."""
        return self._template.marks

    def prompt(self, index: int) -> str:
        """What the model sees before it writes a message."""
        if index not in self._prompts:
            before = self._messages[:index]
            try:
                self._prompts[index] = self._template.render(before, self._tools, prompt=True)
            except TemplateRefusalError:
                if index:
                    raise
                # Many templates cannot write an empty chat; what the model begins with is known.
                whole, told = self.whole(index), self._template.forms.prompt
                self._prompts[index] = whole[: whole.find(told) + len(told)] if told else ""
        return self._prompts[index]

    def whole(self, index: int) -> str:
        """The chat up to a message, with it."""
        if index not in self._wholes:
            before = self._messages[: index + 1]
            if self._template.marks:
                text, self._marked[index] = self._template.render_marked(before, self._tools)
            else:
                text = self._template.render(before, self._tools)
            self._wholes[index] = text
        return self._wholes[index]

    def marked(self, index: int) -> list[tuple[int, int]] | None:
        """What the template marks in `whole`: one part for each assistant, else None."""
        self.whole(index)
        found = self._marked.get(index)
        said = sum(message["role"] == "assistant" for message in self._messages[: index + 1])
        return found if found is not None and len(found) == said else None

    def span(self, index: int) -> tuple[int, int, bool]:
        """Start and end of a message in the render that it ends, and whether the prompt fits."""
        text, prompt = self.whole(index), self.prompt(index)
        marked = self.marked(index)
        fits = text.startswith(prompt)
        if marked is not None:
            return (*marked[-1], fits or text.startswith(prompt[: marked[-1][0]]))
        start = len(prompt) if fits else self._begin(index, prompt)
        return start, self.end(text, start), fits

    def place(self, index: int, last: int) -> tuple[int, int] | None:
        """Where a message stands in a later render; None when that does not fit it."""
        text, own = self.whole(last), self.whole(index)
        start, end, fits = self.span(index)
        if not fits or text[:end] != own[:end]:
            return None
        return start, end

    def anchored(self, index: int) -> str:
        """The chat up to a message, with marks around the words of all messages."""
        return self._template.render(with_marks(self._messages[: index + 1]), self._tools)

    def _begin(self, index: int, prompt: str) -> int:
        """Where a message begins, when its render does not begin with the prompt.

        Its words are marked first, so that they cannot be taken for the end of the prompt.
        """
        marked = [*self._messages[:index], _with_mark(self._messages[index])]
        text = self._template.render(marked, self._tools)
        return _common(prompt, text)

    def end(self, text: str, start: int) -> int:
        """The end of turn: after the last special token when only white space follows it."""
        end = start
        for found in self._special.finditer(text, start):
            end = found.end()
        if end == start or text[end:].strip():
            return len(text)
        return end

    def special_before(self, text: str, start: int, end: int) -> int:
        """Where the special token begins that ends at a place; the place itself without one."""
        place = end
        for found in self._special.finditer(text, start, end):
            place = found.start() if found.end() == end else end
        return place


def _common(one: str, other: str) -> int:
    """Length of the common beginning."""
    limit = min(len(one), len(other))
    for index in range(limit):
        if one[index] != other[index]:
            return index
    return limit


def _with_mark(message: Plain) -> Plain:
    """A message whose own words begin with a mark."""
    marked: Plain = {**message}
    for key in ("content", "reasoning_content", "thinking"):
        if marked.get(key):
            marked[key] = FIRST + marked[key]
    if marked.get("tool_calls"):
        marked["tool_calls"] = [
            {**call, "function": {**call["function"], "name": FIRST + call["function"]["name"]}}
            for call in marked["tool_calls"]
        ]
    return marked


def renders(
    speller: Speller, trained: Sequence[int], notes: Counter[str], memory: Memory | None = None
) -> list[Render]:
    """The renders that train all messages, each message once.

    Args:
        speller: of the chat.
        trained: indices of the messages to train, in order.
        notes: counts what drifts.
        memory: what is known about the template; added to. None: every message is compared.

    Returns:
        In the order of their last messages. One, unless the template rewrites history.

    Raises:
        TemplateRefusalError: the template refuses the chat.
    """
    sampler = None if memory is None else Sampler(speller, memory)
    left = list(trained)
    found: list[Render] = []
    while left:
        render = _render(speller, left, notes, sampler)
        found.append(render)
        done = {span.index for span in render.spans}
        left = [index for index in left if index not in done]
    if len(found) > 1:
        notes["rows more, because the template rewrites history"] += len(found) - 1
    return found[::-1]


def _render(
    speller: Speller, left: Sequence[int], notes: Counter[str], sampler: Sampler | None
) -> Render:
    """The render up to the last message that is left, with all messages that it fits."""
    *others, last = left
    text = speller.whole(last)
    if sampler is None:
        sure = {index: speller.place(index, last) for index in others}
        places = {index: place for index, place in sure.items() if place is not None}
        start, end, fits = speller.span(last)
    else:
        places = sampler.places(left)
        start, end, fits = sampler.span(last)
    if not fits:
        notes["steps whose prompt at inference ends differently"] += 1
    spans = [Span(index, *place) for index, place in places.items()]
    return Render(text, (*spans, Span(last, start, end)), last)


def special_pattern(tokenizer: Any) -> re.Pattern[str]:
    """Finds every added token of a tokenizer, longest first."""
    names = {str(token) for token in tokenizer.all_special_tokens}
    names |= {str(token.content) for token in tokenizer.added_tokens_decoder.values()}
    words = sorted((name for name in names if name.strip()), key=lambda name: (-len(name), name))
    return re.compile("|".join(map(re.escape, words)) if words else r"(?!)")
