"""Which characters of a rendered chat are trained.

A trained message is trained from where the model begins to write to the end of its turn. Where it
begins is known from the prompt that the model gets at inference: the render of what came before,
with the generation prompt. Where it ends is known from the render that ends with the message: after
the token at which the model stops (`adp.rendering.endings`), so neither a line end that only the
template writes is trained nor the begin of the next message. A template that marks what is
generated (``{% generation %}``) is taken at its word, but for an end of turn that it leaves out.

A render fits a message when it begins with that prompt and goes on with that very message.
Templates that rewrite history (reasoning of earlier turns left out, another token at the end of the
last turn) do not fit all messages at once. Then there are several renders, each up to another
trained message, and each trains the messages that it fits: the model learns every step from what
it will see.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from adp.rendering.sampled import Memory, Sampler
from adp.rendering.template_prefixes import Speller

MORE_ROWS = "rows more, because the template rewrites history"
"""The note that counts them."""


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
    results: list[Render] = []
    while left:
        render = _render(speller, left, notes, sampler)
        results.append(render)
        done = {span.index for span in render.spans}
        left = [index for index in left if index not in done]
    if len(results) > 1:
        notes[MORE_ROWS] += len(results) - 1
    return results[::-1]


def last_render(
    speller: Speller, left: Sequence[int], notes: Counter[str], memory: Memory | None = None
) -> Render:
    """The render up to the last of some messages, with all messages that it fits.

    Args:
        speller: of the chat.
        left: indices of the messages, in order.
        notes: counts what drifts.
        memory: what is known about the template; added to. None: every message is compared.
    """
    return _render(speller, left, notes, None if memory is None else Sampler(speller, memory))


def _render(
    speller: Speller, left: Sequence[int], notes: Counter[str], sampler: Sampler | None
) -> Render:
    """The render up to the last message that is left, with all messages that it fits."""
    *others, last = left
    text = speller.whole(last)
    if sampler is None:
        places = _sure(speller, others, text, last)
        start, end, fits = speller.span(last)
        other = sum(speller.other(index) for index in places)
    else:
        places = sampler.places(left)
        start, end, fits = sampler.span(last)
        other = sum(sampler.other(index) for index in places)
    if not fits:
        message_render = speller.message_render(last)
        if message_render.moved:
            text, start, end = message_render.text, message_render.start, message_render.end
            places = _sure(speller, others, text, None)
            other = sum(speller.other(index) for index in places)
        other += message_render.other
        notes["steps put after their prompt, which the template rewrites later"] += (
            message_render.moved
        )
        lost = message_render.start == message_render.end == len(message_render.text)
        notes["steps that cannot be found in what the template writes"] += lost
    notes["steps whose prompt at inference is another one"] += other
    spans = [Span(index, *place) for index, place in places.items()]
    return Render(text, (*spans, Span(last, start, end)), last)


def _sure(
    speller: Speller, others: Sequence[int], text: str, last: int | None
) -> dict[int, tuple[int, int]]:
    """Where messages stand in a text, those that fit it."""
    results = {
        index: speller.place_in(index, text) if last is None else speller.place(index, last)
        for index in others
    }
    return {index: place for index, place in results.items() if place is not None}
