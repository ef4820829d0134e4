"""A chat as a harness plays it: turns of the agent with their actions, each with its results."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from adp.rendering.chat import Chat, Message
from adp.trainers.export.harness.actions import Action, action_of, finish

_FINISH, _END = "<finish>", "</finish>"


@dataclass(frozen=True, slots=True)
class HarnessTurn:
    """One turn.

    Attributes:
        role: who speaks; ``result``: a result that does not follow the turn of its call.
        message: the message of the chat.
        text: what is said besides actions.
        actions: what the agent does.
        results: of each action, the messages that answer it.
    """

    role: Literal["system", "user", "agent", "result"]
    message: Message
    text: str
    actions: tuple[Action, ...] = ()
    results: tuple[tuple[Message, ...], ...] = ()


def turns(chat: Chat, *, quoted: bool = False) -> Iterator[HarnessTurn]:
    """The turns of a chat.

    Results that follow the turn of their calls at once are part of it, in the order of the calls.
    What the user says right after calls without a result is the result of the last one: many data
    sets give what the environment says to the user. A final answer in ``<finish>`` is an action.

    Args:
        chat: the chat.
        quoted: whether arguments may be Python strings with their quotes; see `action_of`.
    """
    messages = chat.messages
    index = 0
    while index < len(messages):
        message = messages[index]
        index += 1
        if message.role == "assistant":
            end = index
            while message.calls and end < len(messages) and messages[end].role == "tool":
                end += 1
            if message.calls and end == index < len(messages) and messages[end].role == "user":
                end += 1
            yield from _agent(message, messages[index:end], quoted)
            index = end
        elif message.role == "tool":
            yield HarnessTurn("result", message, message.text)
        else:
            yield HarnessTurn(message.role, message, message.text)


def _agent(message: Message, following: tuple[Message, ...], quoted: bool) -> Iterator[HarnessTurn]:
    if not message.calls:
        text, actions = _finished(message)
        yield HarnessTurn("agent", message, text, actions, ((),) * len(actions))
        return
    actions = tuple(action_of(call, quoted=quoted) for call in message.calls)
    by_call: dict[str | None, list[Message]] = {action.call_id: [] for action in actions}
    late = [
        result for result in following if result.role == "tool" and result.call_id not in by_call
    ]
    for result in following:
        if result.call_id in by_call:
            by_call[result.call_id].append(result)
        elif result.role == "user":
            by_call[actions[-1].call_id].append(result)
    results = tuple(tuple(by_call.pop(action.call_id, ())) for action in actions)
    yield HarnessTurn("agent", message, message.text, actions, results)
    for result in late:
        yield HarnessTurn("result", result, result.text)


def _finished(message: Message) -> tuple[str, tuple[Action, ...]]:
    """Text and final action of a message without calls."""
    begin = message.text.find(_FINISH)
    end = message.text.find(_END, begin) if begin >= 0 else -1
    if end < 0:
        return message.text, ()
    answer = message.text[begin + len(_FINISH) : end].strip()
    rest = (message.text[:begin].strip(), message.text[end + len(_END) :].strip())
    call_id = f"call_{message.step:06d}_finish"
    return "\n\n".join(part for part in rest if part), (finish(answer, call_id),)


def shows_pages(chat: Chat) -> bool:
    """Whether a message of a chat shows a web page."""
    return any(message.page is not None for message in chat.messages)
