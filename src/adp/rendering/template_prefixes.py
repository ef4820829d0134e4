"""The prefixes of a chat as its template writes them, and where messages stand in these."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from adp.rendering.anchors import Anchors, Marks, free_marks, with_marks, without_marks
from adp.rendering.probe import Plain, TemplateRefusalError, common
from adp.rendering.template import ChatTemplate


@dataclass(frozen=True, slots=True)
class MessageRender:
    """The render that ends with a message.

    Attributes:
        text: the text.
        start: where the message begins in it.
        end: where its turn ends.
        fits: whether the text up to `start` is what the model sees at inference.
        other: whether the prompt at inference is another one, or goes on.
        moved: whether the message was put after its prompt, which the template would rewrite.
    """

    text: str
    start: int
    end: int
    fits: bool
    other: bool = False
    moved: bool = False


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
        self._parts: dict[int, list[tuple[int, int]] | None] = {}
        self._message_renders: dict[int, MessageRender] = {}
        self._marks: Marks | None = None
        self._anchors: tuple[int, Anchors | None] = (-1, None)

    @property
    def messages(self) -> Sequence[Plain]:
        """The whole chat."""
        return self._messages

    def holds_marks(self) -> bool:
        """Whether words of a message hold a special token or a tag of the template's own.

        What a template makes of such a message does not follow from its form alone.
        """
        texts = (text for message in self._messages for text in message.values())
        known = (self._special, self._template.tags)
        return any(tag.search(text) for text in texts if isinstance(text, str) for tag in known)

    @property
    def marks(self) -> bool:
        """Whether the template marks what the model generates."""
        return self._template.marks

    def _free(self) -> Marks:
        """Marks that stand nowhere in the chat and the template.

        Raises:
            TemplateRefusalError: there are none.
        """
        if self._marks is None:
            self._marks = free_marks(self._messages, self._tools, self._template.texts)
        return self._marks

    def prompt(self, index: int) -> str:
        """What the model sees before it writes a message."""
        if index not in self._prompts:
            before = self._messages[:index]
            self._prompts[index] = (
                self._template.render(before, self._tools, prompt=True)
                if index
                else self._first_prompt()
            )
        return self._prompts[index]

    def _first_prompt(self) -> str:
        """What the model sees before the first message of a chat.

        Templates cannot write an empty chat, or write it without what begins every other one. But
        what the model begins with is known.
        """
        marks = self._free()
        marked = self._template.render([_with_first(self._messages[0], marks)], self._tools)
        place = -1 if marks.within(self.whole(0)) else marked.find(marks.first)
        head, form = marked[: max(place, 0)], self._template.forms.prompt
        count = len(form)
        while count and form[:count] not in head:
            count -= 1
        return head[: head.rfind(form[:count]) + count] + form[count:] if count else head

    def whole(self, index: int) -> str:
        """The chat up to a message, with it and what ends its turn."""
        if index not in self._wholes:
            before = self._messages[: index + 1]
            if self._template.marks:
                text, self._marked[index] = self._template.render_marked(before, self._tools)
            else:
                text = self._template.render(before, self._tools)
            self._wholes[index] = text + self._template.left(self._messages[index], text)
        return self._wholes[index]

    def marked(self, index: int) -> list[tuple[int, int]] | None:
        """What the template marks in `whole`: one part for each assistant, else None.

        Each part must lie where its message does: a template may mark one turn twice and another
        one not at all, or mark what users say.
        """
        self.whole(index)
        if index not in self._parts:
            self._parts[index] = self._owned(index)
        return self._parts[index]

    def _owned(self, index: int) -> list[tuple[int, int]] | None:
        value = self._marked.get(index)
        if value is None:
            return None
        text = self.whole(index)
        value = [(start, self._closed(text, start, end)) for start, end in value]
        numbers = [number for number in range(index + 1) if self._assistant(number)]
        if len(value) > len(numbers):
            value = _joined(value)
        if len(value) != len(numbers):
            return None
        anchors = self.anchors(index)
        return value if anchors is not None and anchors.hold(value, numbers) else None

    def _assistant(self, index: int) -> bool:
        return bool(self._messages[index]["role"] == "assistant")

    def turn(self, index: int) -> int:
        """How many assistants' messages come before one."""
        return sum(map(self._assistant, range(index)))

    def message_render(self, index: int) -> MessageRender:
        """The render that ends with a message, and where the message stands in it."""
        if index not in self._message_renders:
            self._message_renders[index] = self._find(index)
        return self._message_renders[index]

    def _find(self, index: int) -> MessageRender:
        text, prompt = self.whole(index), self.prompt(index)
        marked = self.marked(index)
        if marked is not None:
            start, end = marked[-1]
            exact = text.startswith(prompt[:start])
            return MessageRender(text, start, end, exact, exact and not text.startswith(prompt))
        if text.startswith(prompt):
            return MessageRender(text, len(prompt), self.end(text, len(prompt)), True)
        start, whole_prompt = self._begin(index, prompt)
        if start < 0:
            return MessageRender(text, len(text), len(text), False)
        end = self.end(text, start)
        if whole_prompt:
            # The template rewrites what came before, now that it is followed by this message. The
            # model will see the prompt, so the message is put after that.
            shift = len(prompt) - start
            return MessageRender(
                prompt + text[start:], start + shift, end + shift, True, moved=True
            )
        return MessageRender(text, start, end, False, True)

    def span(self, index: int) -> tuple[int, int, bool]:
        """Start and end of a message in the render that it ends, and whether its prompt fits."""
        message_render = self.message_render(index)
        return (
            message_render.start,
            message_render.end,
            message_render.fits and not message_render.other and not message_render.moved,
        )

    def other(self, index: int) -> bool:
        """Whether the prompt of a message at inference is another one than in its render."""
        return self.message_render(index).other

    def place(self, index: int, last: int) -> tuple[int, int] | None:
        """Where a message stands in a later render; None when that does not fit it.

        It fits when all that comes before the message is the same, and the message too.
        """
        text, message_render = self.whole(last), self.message_render(index)
        marked = self.marked(last)
        if marked is None or self.marked(index) is None:
            return self.place_in(index, text)
        start, end = marked[self.turn(index)]
        fits = (
            start == message_render.start
            and end <= message_render.end
            and text[:end] == message_render.text[:end]
        )
        return (start, end) if fits else None

    def place_in(self, index: int, text: str) -> tuple[int, int] | None:
        """Where a message stands in a text that begins like the render that it ends."""
        message_render = self.message_render(index)
        return (
            (message_render.start, message_render.end)
            if text[: message_render.end] == message_render.text[: message_render.end]
            else None
        )

    def anchors(self, index: int) -> Anchors | None:
        """Where the words of messages begin in `whole`; None when marks would change it."""
        if self._anchors[0] != index:
            try:
                marks = self._free()
                marked = with_marks(self._messages[: index + 1], marks)
                text = self._template.render(marked, self._tools)
                text += self._template.left(self._messages[index], text)
                anchors = Anchors(self.whole(index), text, marks)
                self._anchors = index, anchors if anchors.sound else None
            except TemplateRefusalError:
                self._anchors = index, None
        return self._anchors[1]

    @property
    def anchored(self) -> int:
        """The message up to which `anchors` are known without another render; -1 for none."""
        return self._anchors[0]

    def asked(self, index: int) -> str | None:
        """What the prompt of a message says after the words of the messages before it."""
        marks = self._free()
        before = with_marks(self._messages[:index], marks)
        text = self._template.render(before, self._tools, prompt=True) if index else ""
        place = text.rfind(marks.last)
        return without_marks(text[place:], marks) if place >= 0 else None

    @property
    def prompt_form(self) -> str:
        """What follows a message of the user before the model writes."""
        return self._template.forms.prompt

    def _begin(self, index: int, prompt: str) -> tuple[int, bool]:
        """Where a message begins, when its render does not begin with the prompt.

        The words of the message, and the end of those before it, are marked first: what follows
        the words before is the end of the prompt, as far as both say the same.

        Returns:
            The first character, -1 when it cannot be told; and whether all of the prompt's end
            stands before it.
        """
        marks, full = self._free(), self.whole(index)
        if marks.within(full):
            return -1, False
        marked = [*self._messages[:index], _with_first(self._messages[index], marks)]
        if not index:
            return common(prompt, self._template.render(marked, self._tools)), False
        marked[index - 1] = _with_last(marked[index - 1], marks)
        asked = self._template.render(marked[:index], self._tools, prompt=True)
        text = self._template.render(marked, self._tools)
        there = asked.rfind(marks.last)
        here = text.rfind(marks.last, 0, max(text.find(marks.first), 0))
        if there < 0 or here < 0:
            return -1, False
        tail = text[here + 1 :]
        count = self.cut(tail, common(asked[there + 1 :], tail))
        if not count and not self._open(marked[:index], marks):
            return -1, False
        if full[: here + count] != text[:here] + text[here + 1 : here + 1 + count]:
            return -1, False
        return here + count, prompt == asked[:there] + asked[there + 1 :] and (
            len(asked) == there + 1 + count
        )

    def _open(self, marked: Sequence[Plain], marks: Marks) -> bool:
        """Whether nothing ends the turn of the last message, so what follows is another's."""
        return self._template.render(marked, self._tools).endswith(marks.last)

    def cut(self, text: str, count: int) -> int:
        """What two texts have in common, without a special token that both only begin.

        Args:
            text: one of them.
            count: characters that are equal.
        """
        begun = (match.start() for match in self._special.finditer(text) if match.end() > count)
        return min(count, next(begun, count))

    def end(self, text: str, start: int) -> int:
        """The end of turn: after the last stop token when only white space follows it."""
        end, limit = start, len(text)
        forms = self._template.forms
        for tail in (forms.answer.tail, forms.calls.tail):
            if tail and text.endswith(tail, start):
                limit -= len(tail)
                break
        for match in self._template.stop.finditer(text, start, limit):
            end = match.end()
        if end == start or text[end:limit].strip():
            return limit
        return end

    def _closed(self, text: str, start: int, end: int) -> int:
        """The end of a marked part, with the stop token that follows it and is not marked."""
        if self._template.ended(text[start:end]):
            return end
        place = end
        while text[place : place + 1].isspace():
            place += 1
        match = self._template.stop.match(text, place)
        return match.end() if match else end

    def special_before(self, text: str, start: int, end: int) -> int:
        """Where the special token begins that ends at a place; the place itself without one."""
        place = end
        for match in self._special.finditer(text, start, end):
            place = match.start() if match.end() == end else end
        return place


def _joined(places: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Parts of which each begins where the one before ends, as one."""
    results: list[tuple[int, int]] = []
    for start, end in places:
        if results and results[-1][1] == start:
            results[-1] = (results[-1][0], end)
        else:
            results.append((start, end))
    return results


def _with_first(message: Plain, marks: Marks) -> Plain:
    """A message whose own words begin with a mark."""
    marked: Plain = {**message}
    for key in ("content", "reasoning_content", "thinking"):
        if marked.get(key):
            marked[key] = marks.first + marked[key]
    if marked.get("tool_calls"):
        marked["tool_calls"] = [
            {**call, "function": {**function, "name": marks.first + function["name"]}}
            for call in marked["tool_calls"]
            for function in [call["function"]]
        ]
    return marked


def _with_last(message: Plain, marks: Marks) -> Plain:
    """A message whose own words end with a mark."""
    if message.get("tool_calls"):
        *rest, last = message["tool_calls"]
        function = {**last["function"], "name": last["function"]["name"] + marks.last}
        return {**message, "tool_calls": [*rest, {**last, "function": function}]}
    text = message.get("content") or ""
    core = len(text.rstrip())
    # Templates may strip the white space at the end.
    return {**message, "content": text[:core] + marks.last + text[core:]}
