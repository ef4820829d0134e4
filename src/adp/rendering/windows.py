"""Rows that are too long: cut between steps, never inside one.

Every way of cutting says which messages to write and which of them to train; the row is then
rendered anew, so its tokens are those that the template gives for these messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from adp.rendering.chat import Chat
from adp.rendering.options import RenderOptions

Measure = Callable[[Chat], int]
"""Tokens of a chat up to its last trained message."""

MARKUP = 40
"""Characters that a template writes around a message, about."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """One window.

    Attributes:
        chat: its messages; those that are trained here have a weight.
        lost: steps whose messages are in no window at all because of this cut.
    """

    chat: Chat | None
    lost: tuple[int, ...] = ()


def fit(
    chat: Chat, options: RenderOptions, measure: Measure, tokens: int | None = None
) -> Iterator[Fitted]:
    """Cut a chat that is too long.

    Args:
        chat: with the messages that are to be trained; it ends with the last of them.
        options: `max_length`, `window` and `overlap`.
        measure: counts the tokens of a chat.
        tokens: what it counts for the whole chat, when that is known. It only saves time.
    """
    assert options.max_length is not None
    sizes = _Sizes(chat, tokens)
    if options.window == "drop":
        yield Fitted(None, _steps(chat, chat.trained()))
    elif options.window == "keep_start":
        yield _keep_start(chat, options.max_length, measure, sizes)
    elif options.window == "keep_ends":
        yield _keep_ends(chat, options.max_length, measure, sizes)
    else:
        yield from _sliding(chat, options.max_length, options.overlap, measure, sizes)


class _Sizes:
    """About how many tokens messages have, told by their characters.

    Args:
        chat: the messages.
        tokens: of all of them; None when it is not known.
    """

    def __init__(self, chat: Chat, tokens: int | None) -> None:
        weights = [
            MARKUP
            + len(message.text)
            + len(message.reasoning or "")
            + sum(len(call.name) + len(call.text) for call in message.calls)
            for message in chat.messages
        ]
        weights[0] += sum(len(str(tool)) for tool in chat.tools)
        self._sums = [0, *accumulate(weights)]
        self._tokens_per_character = None if tokens is None else tokens / max(self._sums[-1], 1)

    def guess(self, parts: Iterable[tuple[int, int]], head: int, room: int) -> int | None:
        """How many of some stretches fit, each longer than the one before.

        Args:
            parts: first message of each stretch, and the one after its last.
            head: messages that stand before each of them.
            room: tokens.
        """
        if self._tokens_per_character is None:
            return None
        sums = self._sums
        limit = room / self._tokens_per_character - sums[head]
        return sum(sums[end] - sums[first] <= limit for first, end in parts)


def head_of(chat: Chat) -> int:
    """Number of messages before the first of an assistant: the system's, and the task."""
    for index, message in enumerate(chat.messages):
        if message.role == "assistant":
            return index
    return len(chat.messages)


def _steps(chat: Chat, indices: Sequence[int]) -> tuple[int, ...]:
    return tuple(chat.messages[index].step for index in indices)


def _upto(chat: Chat, index: int) -> Chat:
    """The chat up to a message, with it."""
    return replace(chat, messages=chat.messages[: index + 1], cut=True)


def _tail(chat: Chat, first: int, end: int) -> Chat:
    """Head, and the messages from one of an assistant up to, not with, another."""
    head = min(head_of(chat), first)
    messages = chat.messages[:head] + chat.messages[first:end]
    return replace(chat, messages=messages, cut=True)


def _largest(count: int, fits: Callable[[int], bool], guess: int | None = None) -> int:
    """Largest number up to a count for which something is true that is true for all smaller ones.

    0 counts as true. A guess that is nearly right saves most of the questions.
    """
    low, high = 0, count
    step, probe = 1, guess
    while low < high:
        middle = (low + high + 1) // 2 if probe is None else min(max(probe, low + 1), high)
        good = fits(middle)
        if good:
            low = middle
        else:
            high = middle - 1
        if probe is not None:
            # Further and further from the guess, until the number lies between two answers.
            probe = middle + step if good else middle - step
            probe = None if (low > 0 and high < count) else probe
            step *= 2
    return low


def _groups(chat: Chat) -> list[list[int]]:
    """The trained messages, those of one step together: a step is cut in two nowhere."""
    groups: list[list[int]] = []
    for index in chat.trained():
        if groups and chat.messages[groups[-1][0]].step == chat.messages[index].step:
            groups[-1].append(index)
        else:
            groups.append([index])
    return groups


def _keep_start(chat: Chat, limit: int, measure: Measure, sizes: _Sizes) -> Fitted:
    groups = _groups(chat)
    guess = sizes.guess([(0, group[-1] + 1) for group in groups], 0, limit)
    kept = _largest(len(groups), lambda n: measure(_upto(chat, groups[n - 1][-1])) <= limit, guess)
    lost = _steps(chat, [group[0] for group in groups[kept:]])
    return Fitted(_upto(chat, groups[kept - 1][-1]) if kept else None, lost)


def _starts(chat: Chat) -> list[int]:
    """Where the end of a chat may begin: at the first messages of an assistant's steps."""
    starts: list[int] = []
    before: int | None = None
    for index, message in enumerate(chat.messages):
        if message.role == "assistant":
            if message.step != before:
                starts.append(index)
            before = message.step
    return starts


def _keep_ends(chat: Chat, limit: int, measure: Measure, sizes: _Sizes) -> Fitted:
    trained = chat.trained()
    end = trained[-1] + 1
    starts = [index for index in _starts(chat) if index < end][::-1]
    guess = sizes.guess([(first, end) for first in starts], head_of(chat), limit)
    kept = _largest(len(starts), lambda n: measure(_tail(chat, starts[n - 1], end)) <= limit, guess)
    if not kept:
        return Fitted(None, _steps(chat, trained))
    first = starts[kept - 1]
    return Fitted(_tail(chat, first, end), _steps(chat, [i for i in trained if i < first]))


def _sliding(
    chat: Chat, limit: int, overlap: float, measure: Measure, sizes: _Sizes
) -> Iterator[Fitted]:
    """Windows that train every step once; each may begin with steps of the one before."""
    groups = _groups(chat)
    starts = _starts(chat)
    first = True
    while groups:
        start = groups[0][0]
        begin = start
        if not first:
            begin = _earlier(chat, starts, begin, int(limit * overlap), measure, sizes)
        begin = head_of(chat) if first else begin
        window, count = _window(chat, begin, groups, limit, measure, sizes)
        if not count and begin != start:
            window, count = _window(chat, start, groups, limit, measure, sizes)
        first = False
        if window is None:
            yield Fitted(None, _steps(chat, [start]))
        else:
            yield Fitted(window)
        groups = groups[max(count, 1) :]


def _window(
    chat: Chat,
    begin: int,
    groups: Sequence[Sequence[int]],
    limit: int,
    measure: Measure,
    sizes: _Sizes,
) -> tuple[Chat | None, int]:
    """The longest window from a message on, and how many steps it trains."""

    def upto(count: int) -> Chat:
        wanted = [index for group in groups[:count] for index in group]
        return _tail(chat.weigh(wanted), begin, wanted[-1] + 1)

    head = min(head_of(chat), begin)
    guess = sizes.guess([(begin, group[-1] + 1) for group in groups], head, limit)
    count = _largest(len(groups), lambda n: measure(upto(n)) <= limit, guess)
    return (upto(count), count) if count else (None, 0)


def _earlier(
    chat: Chat, starts: list[int], begin: int, room: int, measure: Measure, sizes: _Sizes
) -> int:
    """The earliest message that may stand before a window, so that the overlap is not too large."""
    before = [index for index in starts if index < begin][::-1]
    empty = measure(replace(chat, messages=chat.messages[: head_of(chat)]))

    def size(count: int) -> int:
        return measure(_tail(chat.weigh([]), before[count - 1], begin)) - empty

    guess = sizes.guess([(first, begin) for first in before], 0, room)
    kept = _largest(len(before), lambda n: size(n) <= room, guess)
    return before[kept - 1] if kept else begin
