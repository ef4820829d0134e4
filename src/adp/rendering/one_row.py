"""A chat as one row, although its template rewrites history.

A message that the template writes differently in history is trained as it stands in the render of
the whole chat: after the generation prompt, as far as that stands before it, up to its end of turn.
Its context is not what the model will see at inference; the row is shorter than the several rows
that would be. The places are found by marks around the words of all messages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from adp.rendering.anchors import Anchors
from adp.rendering.forms import Surroundings, form_of
from adp.rendering.probe import common
from adp.rendering.sampled import Memory
from adp.rendering.spans import Render, Span, last_render
from adp.rendering.template_prefixes import Speller

DRIFT = "steps whose context is written differently at inference"
MISSING = "steps that the template leaves out of history"

NEAR = 24
"""Characters by which the words of a message are found again."""


def one_row(
    speller: Speller, trained: Sequence[int], notes: Counter[str], memory: Memory | None = None
) -> list[Render]:
    """The render of the whole chat, with every trained message that it holds.

    Args:
        speller: of the chat.
        trained: indices of the messages to train, in order; at least one.
        notes: counts what drifts.
        memory: what is known about the template; added to. None: every message is compared.

    Raises:
        TemplateRefusalError: the template refuses the chat.
    """
    render = last_render(speller, trained, notes, memory)
    placed = {span.index: span for span in render.spans}
    if len(placed) == len(trained):
        return [render]
    text, last = speller.whole(render.last), render.last
    if render.text != text:
        # The last message was put after its prompt, which the whole chat writes differently.
        result = ((index, speller.place(index, last)) for index in trained[:-1])
        placed = {index: Span(index, *place) for index, place in result if place is not None}
    other = [index for index in trained if index not in placed]
    finder = _Finder(speller, last, memory or Memory())
    for index in other:
        place = finder.find(index)
        if place is None:
            notes[MISSING] += 1
        else:
            notes[DRIFT] += 1
            placed[index] = Span(index, *place)
    spans = tuple(placed[index] for index in trained if index in placed)
    return [Render(text, spans, last)]


class _Finder:
    """Finds messages in a render that writes them in its own way."""

    def __init__(self, speller: Speller, last: int, memory: Memory) -> None:
        self._speller = speller
        self._text = speller.whole(last)
        self._memory = memory
        self._around = Surroundings([form_of(message) for message in speller.messages])
        self._marked = speller.marked(last)
        self._anchors = speller.anchors(last) if self._marked is None else None

    def find(self, index: int) -> tuple[int, int] | None:
        """Start and end of a message; None when it is not there."""
        if self._marked is not None:
            start, end = self._marked[self._speller.turn(index)]
            return (start, end) if start < end else None
        at = None if self._anchors is None else self._anchors.at(index)
        if self._anchors is None or at is None:
            return None
        start = self._start(self._anchors, index, at)
        after = self._anchors.next(index)
        if after is None:
            return start, self._speller.end(self._text, start)
        words_end, _ = self._anchors.before(after[0])
        return start, self._end(index, at, max(words_end, at), after[1])

    def _start(self, anchors: Anchors, index: int, at: int) -> int:
        """After what the gap before the words has in common with the prompt at inference."""
        bound, pure = anchors.before(index)
        gap = self._text[bound:at]
        asked = self._asked(index) if pure else None
        if asked is None:
            given_prefix = self._speller.prompt_form
            count = len(given_prefix)
            while count and given_prefix[:count] not in gap:
                count -= 1
            return bound + gap.rfind(given_prefix[:count]) + count if count else at
        return bound + self._speller.cut(gap, common(asked, gap))

    def _asked(self, index: int) -> str | None:
        """What the prompt of a message says after the words of the message before."""
        key = self._around.prompt_key(index)
        if key not in self._memory.prompts:
            self._memory.prompts[key] = self._speller.asked(index)
        return self._memory.prompts[key]

    def _end(self, index: int, at: int, words_end: int, limit: int) -> int:
        """After the token that ends the turn of a message by itself, or where that would stand."""
        key = self._around.prompt_key(index)
        if key not in self._memory.turns:
            message_render = self._speller.message_render(index)
            begin = self._speller.special_before(
                message_render.text, message_render.start, message_render.end
            )
            self._memory.turns[key] = message_render.text[begin : message_render.end]
        token = self._memory.turns[key]
        place = self._text.find(token, words_end, limit) if token else -1
        if place >= 0:
            return place + len(token)
        message_render = self._speller.message_render(index)
        words = self._text[at:limit]
        begin = message_render.text.find(words[:NEAR], message_render.start, message_render.end)
        if begin < 0:
            return words_end
        return at + self._speller.cut(
            words, common(message_render.text[begin : message_render.end], words)
        )
