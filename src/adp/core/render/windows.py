"""Rows that are too long: cut between steps, never inside one.

Every way of cutting says which messages to write and which of them to train; the row is then
rendered anew, so its tokens are those that the template gives for these messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from adp.core.render.chat import Chat
from adp.core.render.options import RenderOptions

Measure = Callable[[Chat], int]
"""Tokens of a chat up to its last trained message."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """One window.

    Attributes:
        chat: its messages; those that are trained here have a weight.
        lost: steps whose messages are in no window at all because of this cut.
    """

    chat: Chat | None
    lost: tuple[int, ...] = ()


def fit(chat: Chat, options: RenderOptions, measure: Measure) -> Iterator[Fitted]:
    """Cut a chat that is too long.

    Args:
        chat: with the messages that are to be trained; it ends with the last of them.
        options: `max_length`, `window` and `overlap`.
        measure: counts the tokens of a chat.
    """
    assert options.max_length is not None
    if options.window == "drop":
        yield Fitted(None, _steps(chat, chat.trained()))
    elif options.window == "keep_start":
        yield _keep_start(chat, options.max_length, measure)
    elif options.window == "keep_ends":
        yield _keep_ends(chat, options.max_length, measure)
    else:
        yield from _sliding(chat, options.max_length, options.overlap, measure)


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


def _largest(count: int, fits: Callable[[int], bool]) -> int:
    """Largest number up to a count for which something is true that is true for all smaller ones.

    0 counts as true.
    """
    low, high = 0, count
    while low < high:
        middle = (low + high + 1) // 2
        if fits(middle):
            low = middle
        else:
            high = middle - 1
    return low


def _keep_start(chat: Chat, limit: int, measure: Measure) -> Fitted:
    trained = chat.trained()
    kept = _largest(len(trained), lambda n: measure(_upto(chat, trained[n - 1])) <= limit)
    if not kept:
        return Fitted(None, _steps(chat, trained))
    return Fitted(_upto(chat, trained[kept - 1]), _steps(chat, trained[kept:]))


def _starts(chat: Chat) -> list[int]:
    """Where the end of a chat may begin: at messages of assistants."""
    return [index for index, message in enumerate(chat.messages) if message.role == "assistant"]


def _keep_ends(chat: Chat, limit: int, measure: Measure) -> Fitted:
    trained = chat.trained()
    end = trained[-1] + 1
    starts = [index for index in _starts(chat) if index < end][::-1]
    kept = _largest(len(starts), lambda n: measure(_tail(chat, starts[n - 1], end)) <= limit)
    if not kept:
        return Fitted(None, _steps(chat, trained))
    first = starts[kept - 1]
    return Fitted(_tail(chat, first, end), _steps(chat, [i for i in trained if i < first]))


def _sliding(chat: Chat, limit: int, overlap: float, measure: Measure) -> Iterator[Fitted]:
    """Windows that train every message once; each may begin with steps of the one before."""
    trained = chat.trained()
    starts = _starts(chat)
    first = True
    while trained:
        begin = trained[0]
        if not first:
            begin = _earlier(chat, starts, begin, int(limit * overlap), measure)
        begin = head_of(chat) if first else begin
        window, count = _window(chat, begin, trained, limit, measure)
        if not count and begin != trained[0]:
            window, count = _window(chat, trained[0], trained, limit, measure)
        first = False
        if not count:
            yield Fitted(None, _steps(chat, trained[:1]))
            trained = trained[1:]
            continue
        assert window is not None
        yield Fitted(window)
        trained = trained[count:]


def _window(
    chat: Chat, begin: int, trained: Sequence[int], limit: int, measure: Measure
) -> tuple[Chat | None, int]:
    """The longest window from a message on, and how many messages it trains."""

    def upto(count: int) -> Chat:
        return _tail(chat.weigh(trained[:count]), begin, trained[count - 1] + 1)

    count = _largest(len(trained), lambda n: measure(upto(n)) <= limit)
    return (upto(count), count) if count else (None, 0)


def _earlier(chat: Chat, starts: list[int], begin: int, room: int, measure: Measure) -> int:
    """The earliest message that may stand before a window, so that the overlap is not too large."""
    before = [index for index in starts if index < begin][::-1]
    empty = measure(replace(chat, messages=chat.messages[: head_of(chat)]))

    def size(count: int) -> int:
        return measure(_tail(chat.weigh([]), before[count - 1], begin)) - empty

    kept = _largest(len(before), lambda n: size(n) <= room)
    return before[kept - 1] if kept else begin
