"""Where trained messages stand in a render, without rendering what came before each of them.

The sure way (`adp.rendering.spans`) compares two prefixes of the chat with the whole of it for
every trained message, which takes time that grows with the square of the chat. But what a template
does at a message follows from the form of the messages around it and from what kinds of messages
the chat has before and after, hardly ever from their words. So the sure way is taken once for each
such form, and what it found is remembered:

- whether a message of this form fits the render of the whole chat;
- which text of the template stands between the words of a message and the place where its span
  begins or ends. To find the words, the chat is rendered a second time, with marks around the
  words of every message; both renders must be equal but for the marks. A template that marks what
  is generated tells the places by itself.

In the first chats, and in some of the later ones, one more message is compared, whatever its form.
When the memory was wrong there, its form is not relied on any more, and the chat is done in the
sure way. So is a chat whose words hold what templates look for and cut at.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from adp.rendering.anchors import Anchors, keep, recall
from adp.rendering.forms import Form, Surroundings, form_of
from adp.rendering.template_prefixes import Speller

FAR, NEAR = 200, 12
"""Characters between the words of two messages that are compared; and those before a span that
are, where it is not known which of them are the template's."""

ALWAYS, EVERY = 16, 4
"""Chats in which what is remembered is tested: the first ones, then about one in so many."""

CAPACITY = 4096
"""Forms that are remembered."""

_UNKNOWN = object()

Place = tuple[int, int]


class Memory:
    """What was found out about a template in the sure way.

    Attributes:
        fits: form of a message and its surroundings -> whether it fits; None: do not rely on it.
        starts: forms -> texts that end where the words of a message begin, and how many
            characters before that its span begins.
        ends: the same for the end of a span, before the words of the next message.
        other: form of a message and its surroundings -> whether its prompt is another one at
            inference; None: do not rely on it.
        prompts: forms before a message -> what its prompt says after the words before it.
        turns: the same -> the token that ends its turn.
    """

    def __init__(self) -> None:
        self.prompts: dict[Form, str | None] = {}
        self.turns: dict[Form, str] = {}
        self.other: dict[Form, bool | None] = {}
        self.fits: dict[Form, bool | None] = {}
        self.starts: dict[Form, dict[str, int]] = {}
        self.ends: dict[Form, dict[str, int]] = {}
        self._looks = 0

    def due(self, text: str) -> bool:
        """Whether what is remembered is to be tested at this render: the first ones, and some."""
        self._looks += 1
        return self._looks <= ALWAYS or len(text) % EVERY == 0

    def clear(self) -> None:
        """Forget everything."""
        self.fits.clear()
        self.starts.clear()
        self.ends.clear()
        self.other.clear()
        self.prompts.clear()
        self.turns.clear()
        self._looks = 0

    def trim(self) -> None:
        """Forget everything when there is too much of it."""
        if max(len(self.fits), len(self.starts), len(self.ends)) > CAPACITY:
            self.clear()


class Sampler:
    """Finds the trained messages of one chat by what is remembered, else in the sure way.

    Args:
        chat: the chat.
        memory: what is remembered; added to.
    """

    def __init__(self, chat: Speller, memory: Memory) -> None:
        memory.trim()
        self._chat = chat
        self._memory = memory
        self._forms = [form_of(message) for message in chat.messages]
        self._around = Surroundings(self._forms)
        forms = [form[0] == "assistant" for form in self._forms]
        self._numbers = [0, *accumulate(forms)]
        self._sure = chat.holds_marks()
        self._looked = False

    def places(self, left: Sequence[int]) -> dict[int, Place]:
        """Where messages stand in the render up to the last of them, if they fit it.

        Args:
            left: indices of the messages, in order.

        Returns:
            Start and end by index, in order, without the last message.
        """
        *others, last = left
        if self._sure:
            return self._all(others, last)
        text = self._chat.whole(last)
        places: dict[int, Place] = {}
        guessed: list[int] = []
        skipped: list[int] = []
        for index in others:
            key = self._around.key(index, last)
            verdict = self._memory.fits.get(key, _UNKNOWN)
            if verdict is False:
                skipped.append(index)
                continue
            place = self._guess(index, last) if verdict is True else None
            if place is not None:
                guessed.append(index)
            else:
                place = self._chat.place(index, last)
                self._learn(key, index, last, place)
            if place is not None:
                places[index] = place
        checks = (guessed, skipped) if not self._looked and self._memory.due(text) else ()
        self._looked = True
        if all(self._holds(few[len(text) % len(few)], last, places) for few in checks if few):
            return places
        self._sure = True
        return self._all(others, last)

    def span(self, last: int) -> tuple[int, int, bool]:
        """Start and end of a message in the render that it ends, and whether its prompt fits."""
        key = self._around.key(last, last)
        ready = self._chat.anchored == last or self._chat.marks
        if ready and not self._sure and self._memory.fits.get(key) is True:
            marked = self._chat.marked(last)
            if marked is not None:
                return (*marked[-1], True)
            start = self._start(last, last)
            if start is not None:
                return start, self._chat.end(self._chat.whole(last), start), True
        start, end, fits = self._chat.span(last)
        if fits:
            self._learn(key, last, last, (start, end), anchored=ready)
        return start, end, fits

    def other(self, index: int) -> bool:
        """Whether the prompt of a message at inference is another one than in its render."""
        key = self._around.prompt_key(index)
        known = None if self._sure else self._memory.other.get(key)
        if known is None:
            known = self._chat.other(index)
            if self._memory.other.setdefault(key, known) is not known:
                self._memory.other[key] = None
        return known

    def _all(self, others: Sequence[int], last: int) -> dict[int, Place]:
        results = {index: self._chat.place(index, last) for index in others}
        return {index: place for index, place in results.items() if place is not None}

    def _holds(self, index: int, last: int, fields: dict[int, Place]) -> bool:
        """Whether what memory says of a message is true of this one."""
        if index not in fields:
            if self._chat.place(index, last) is None:
                return True
            self._memory.fits[self._around.key(index, last)] = None
            return False
        start, end = fields[index]
        text, message_render = self._chat.whole(last), self._chat.whole(index)
        marked = self._chat.marked(index)
        ended = (
            end <= marked[-1][1]
            if marked is not None
            else self._chat.end(message_render, start) == end
        )
        if ended and message_render[:end] == text[:end]:
            return True
        self._memory.fits[self._around.key(index, last)] = None
        return False

    def _guess(self, index: int, last: int) -> Place | None:
        """Where a message that fits stands."""
        if self._chat.marks:
            marked = self._chat.marked(last)
            return None if marked is None else marked[self._numbers[index]]
        start, end = self._start(index, last), self._end(index, last)
        if (
            start is None
            or end is None
            or self._chat.end(self._chat.whole(last)[:end], start) != end
        ):
            return None
        return start, end

    def _start(self, index: int, last: int) -> int | None:
        anchors = self._chat.anchors(last)
        at = None if anchors is None else anchors.at(index)
        if at is None or not index:
            return None
        assert anchors is not None
        forms, gap = self._gap(anchors, index, last, at)
        known = self._memory.starts.get(forms, {})
        if gap is not None:
            back = known.get(gap, -1)
            return at - back if back >= 0 else None
        return None if self.other(index) else recall(known, self._chat.whole(last), at)

    def _gap(self, anchors: Anchors, index: int, last: int, at: int) -> tuple[Form, str | None]:
        """Forms by which the start of a message is remembered, and the text before its words.

        The text is that after the words of the message before; None when it is not known where
        these end.
        """
        bound, pure = anchors.before(index)
        full = pure and at - bound <= FAR
        forms = (*self._forms[index - 1 : index + 1], full)
        return forms, self._chat.whole(last)[bound:at] if full else None

    def _end(self, index: int, last: int) -> int | None:
        anchors = self._chat.anchors(last)
        after = None if anchors is None else anchors.next(index)
        if after is None:
            return None
        forms = tuple(self._forms[index : after[0] + 1])
        return recall(self._memory.ends.get(forms), self._chat.whole(last), after[1])

    def _learn(
        self, key: Form, index: int, last: int, place: Place | None, *, anchored: bool = True
    ) -> None:
        """Remember what was found in the sure way."""
        memory = self._memory
        fits = place is not None
        if memory.fits.setdefault(key, fits) is not fits:
            memory.fits[key] = None
        if place is None or self._chat.marks or not anchored:
            return
        anchors = self._chat.anchors(last)
        at = None if anchors is None else anchors.at(index)
        if anchors is None or at is None:
            return
        text = self._chat.whole(last)
        start, end = place
        bound, _ = anchors.before(index)
        if index and bound <= start <= at:
            forms, gap = self._gap(anchors, index, last, at)
            if gap is None and not self.other(index):
                gap = text[max(bound, start - NEAR) : at]
            if gap is not None:
                keep(memory.starts.setdefault(forms, {}), gap, at - start)
        after = anchors.next(index)
        if after is not None and end <= after[1]:
            forms = tuple(self._forms[index : after[0] + 1])
            tail = self._chat.special_before(text, start, end)
            keep(memory.ends.setdefault(forms, {}), text[tail : after[1]], after[1] - end)
