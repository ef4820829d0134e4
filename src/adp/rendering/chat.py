"""What the model saw: a trajectory as chats, each with the steps that are trained in it.

A chat is a list of messages as chat templates know them: system, user, assistant and tool. Each
one knows the step that it comes from, and an assistant's message has a weight in the loss. A
trajectory is one chat, unless its context was edited on the way: then there is one chat for each
stretch between two edits, which begins with what the edit left. Messages that an earlier chat
holds already are context in the later one, and have no weight there.

- Steps that the model did not see (``visibility`` user or none) and events are left out.
- A result of a call is a message of the tool. What the environment says by itself is a message
  of the user, for no template knows another place for it.
- Calls that were found in the text of a step are calls; its text is what is left without them.
- An image is a short mark in the text: a tokenizer for text has nothing for it.
- An edit with the boundary ``replace`` or ``truncate`` keeps the messages of the steps from
  ``edit_from`` up to, not with, ``edit_to`` (without these: the system's messages); the summary
  follows them. One with ``append`` only adds its summary.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from adp.rendering.arguments import object_of, tools_of, whole_text
from adp.rendering.chat_call_ids import ChatCallIds
from adp.rendering.policies import Policies
from adp_schema.model import Observation, Pair, Step, ToolCall, Trajectory
from adp_schema.parts import JOINT, resolve

Role = Literal["system", "user", "assistant", "tool"]

MEDIA_MARK = "[{kind}]"
"""What stands in the text for an image or a sound."""

LARGEST = 3.4028234e38
"""Weights are stored as float32."""

_LIFTED = re.compile(r"adp-media:([\w.+-]+)/[\w.+-]+;[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class ChatCall:
    """A call that an assistant's message makes.

    Attributes:
        name: name of the tool.
        arguments: the value of the arguments; the text as it was written when it is no JSON object.
        text: the arguments as JSON text, as the source wrote them.
        call_id: id, unique in the chat; made up when the source had none.
        valid: whether the arguments are a JSON object.
        language: programming language, of a call that is code.
    """

    name: str
    arguments: Any
    text: str
    call_id: str
    valid: bool = True
    language: str | None = None


@dataclass(frozen=True, slots=True)
class WebPage:
    """The web page that a message shows, for formats that write it in a form of their own.

    Attributes:
        url: its address.
        tree: its accessibility tree.
        is_text: whether the text of the message is that of the page, and no other words.
    """

    url: str | None
    tree: str | None
    is_text: bool


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a chat.

    Attributes:
        role: system, user, assistant or tool.
        text: the text; empty when there is none.
        step: index of the step that it comes from; of a result, the step after which it arrived.
        reasoning: reasoning of an assistant, kept apart.
        calls: calls of an assistant.
        call_id: of a tool's message, the call that it answers.
        name: of a tool's message, the name of the tool.
        weight: weight in the loss; above 0 only for assistants. 0 is context.
        page: the web page that it shows, when it shows one.
    """

    role: Role
    text: str
    step: int
    reasoning: str | None = None
    calls: tuple[ChatCall, ...] = ()
    call_id: str | None = None
    name: str | None = None
    weight: float = 0.0
    page: WebPage | None = None


@dataclass(frozen=True, slots=True)
class Chat:
    """Messages that the model saw in this order, with the tools on offer.

    Attributes:
        trajectory_id: where they come from.
        seq: its place in the store.
        segment: number of the stretch between two edits of the context, from 0.
        messages: the messages.
        tools: tools on offer, each as ``{"type": "function", "function": {...}}``; may be empty.
        cut: whether messages in the middle were left out to fit a window.
        policies: of the run; only the wire forms of M3 write them.
    """

    trajectory_id: str
    seq: int
    segment: int
    messages: tuple[Message, ...]
    tools: tuple[dict[str, Any], ...] = ()
    cut: bool = False
    policies: Policies = field(default_factory=Policies)

    def trained(self) -> list[int]:
        """Indices of the messages that are trained."""
        return [index for index, message in enumerate(self.messages) if message.weight > 0]

    def weigh(self, wanted: Sequence[int]) -> Chat:
        """The same chat in which only some of the trained messages keep their weight.

        Args:
            wanted: indices of messages.
        """
        keep = frozenset(wanted)
        messages = tuple(
            message if not message.weight or index in keep else replace(message, weight=0.0)
            for index, message in enumerate(self.messages)
        )
        return replace(self, messages=messages)


@dataclass(frozen=True)
class PairChats:
    """A preference pair.

    Attributes:
        pair: the row of the table ``pairs``.
        chosen: context and better side; the steps of the side have a weight.
        rejected: context and worse side.
        shared: number of messages at the beginning that both have in common: the prompt.
    """

    pair: Pair
    chosen: Chat
    rejected: Chat
    shared: int


@dataclass
class Chats:
    """The chats of one trajectory.

    Attributes:
        chats: in order.
        steps: steps of the agent that have a weight in the store.
        untrained: reason -> number of those steps that are not trained after all.
        notes: what was changed or left out -> how often.
    """

    chats: list[Chat] = field(default_factory=list)
    steps: int = 0
    untrained: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)


def chats_of(trajectory: Trajectory, *, first_step: int = 0, end_step: int | None = None) -> Chats:
    """Turn a trajectory into chats.

    Args:
        trajectory: with the steps of its parent, when it is a branch (``resolve=True``).
        first_step: the first step that may be trained; earlier ones are context. For a branch
            without its parent's steps under the loss: its ``parent_step``.
        end_step: the step before which the chats end; None takes all.

    Returns:
        The chats; those without a trained message are left out, unless there is no other.
    """
    return _Reader(trajectory, first_step, end_step).read()


def expand(chat: Chat) -> Iterator[Chat]:
    """One chat for each trained message: it comes last, and what came before is its context."""
    for index in chat.trained():
        yield replace(chat, messages=chat.messages[: index + 1]).weigh([index])


class _Reader:
    """Reads one trajectory, step by step."""

    def __init__(self, trajectory: Trajectory, first_step: int, end_step: int | None) -> None:
        self._trajectory = trajectory
        self._first = first_step
        self._end = end_step
        self._chats = Chats()
        self._context: list[Message] = []
        self._ids = ChatCallIds(trajectory)
        self._tools = tools_of(trajectory.tools, self._chats.notes)

    def read(self) -> Chats:
        for item in self._trajectory.early_observations:
            self._result(item, -1)
        for number, step in enumerate(self._trajectory.steps):
            index = number if step.step is None else step.step
            if self._end is not None and index >= self._end:
                break
            self._step(step, index)
            for item in step.observations:
                self._result(item, index)
        self._close(last=True)
        return self._chats

    def _close(self, *, last: bool = False) -> None:
        """End a chat. One without a trained message says nothing, unless it is the only one."""
        chats = self._chats.chats
        if any(message.weight for message in self._context) or (last and not chats):
            chats.append(
                Chat(
                    trajectory_id=self._trajectory.trajectory_id or "",
                    seq=self._trajectory.seq or 0,
                    segment=len(chats),
                    messages=tuple(self._context),
                    tools=self._tools,
                    policies=Policies.of(self._trajectory),
                )
            )
        self._context = [replace(message, weight=0.0) for message in self._context]

    def _step(self, step: Step, index: int) -> None:
        notes = self._chats.notes
        if step.kind == "context_edit":
            self._edit(step, index)
            return
        weight = self._weight(step, index)
        if step.kind == "event" or step.visibility in ("user", "none"):
            notes["events" if step.kind == "event" else "steps the model did not see"] += 1
            if weight:
                self._chats.untrained["the model did not see the step"] += 1
            return
        text = self._text(step)
        if step.source != "agent":
            role: Role = "system" if step.source == "system" else "user"
            if step.calls:
                notes["calls of the user"] += len(step.calls)
            self._context.append(Message(role, text, index))
            return
        calls = tuple(self._call(call, index) for call in step.calls)
        reasoning = self._plain(step.reasoning) or None
        if weight and not (text or calls or reasoning):
            self._chats.untrained["the step is empty"] += 1
            weight = 0.0
        elif weight and not all(call.valid for call in calls):
            self._chats.untrained["arguments of a call are no JSON object"] += 1
            weight = 0.0
        self._context.append(
            Message("assistant", text, index, reasoning=reasoning, calls=calls, weight=weight)
        )

    def _weight(self, step: Step, index: int) -> float:
        """Weight of a step in the loss; the same rules as ``loss_weight`` in the store."""
        if step.source != "agent" or step.kind in ("context_edit", "event"):
            return 0.0
        if step.is_copied_context or step.llm_call_count == 0 or index < self._first:
            return 0.0
        weight = 1.0 if step.loss_weight is None else float(step.loss_weight)
        if not weight > 0:
            return 0.0
        self._chats.steps += 1
        if weight > LARGEST:
            self._chats.untrained["the weight of the step is too large"] += 1
            return 0.0
        return weight

    def _edit(self, step: Step, index: int) -> None:
        self._chats.notes["context edits"] += 1
        if step.edit_boundary != "append":
            self._close()
            if step.edit_from is None and step.edit_to is None:
                kept = [message for message in self._context if message.role == "system"]
            else:
                first, end = step.edit_from or 0, step.edit_to
                kept = [
                    message
                    for message in self._context
                    if first <= message.step and (end is None or message.step < end)
                ]
            self._context = kept
        if step.edit_summary:
            # M3 lets the golden answer stand for what the agent did; elsewhere it is told.
            by_agent = step.source == "agent" or self._trajectory.source_format == "m3"
            role: Role = "assistant" if by_agent else "user"
            self._context.append(Message(role, self._plain(step.edit_summary), index))

    def _call(self, call: ToolCall, index: int) -> ChatCall:
        name = call.name or call.language or call.kind or "call"
        call_id = self._ids.of_call(call, index)
        language = call.language or call.name if call.kind == "code" else None
        if call.arguments is None and call.arguments_raw is None:
            return ChatCall(name, {}, "{}", call_id, language=language)
        if call.arguments is not None:
            text = self._plain(call.arguments)
            value, valid = object_of(text)
            return ChatCall(name, value if valid else text, text, call_id, valid, language)
        raw = self._plain(call.arguments_raw)
        if call.arguments_kind == "text":
            child = {"code" if call.kind == "code" else "input": raw}
            text = json.dumps(child, ensure_ascii=False)
            return ChatCall(name, child, text, call_id, language=language)
        value, valid = object_of(raw)
        return ChatCall(name, value if valid else raw, raw, call_id, valid, language)

    def _result(self, item: Observation, index: int) -> None:
        text = self._text(item)
        page = _page_of(item)
        answered = self._ids.answered(item)
        if answered is None:
            if text:
                self._chats.notes["results without a call, as a message of the user"] += 1
                self._context.append(Message("user", text, index, page=page))
            return
        call_id, name = answered
        self._context.append(
            Message("tool", text, index, call_id=call_id, name=item.name or name, page=page)
        )

    def _text(self, row: Step | Observation) -> str:
        """The words that the model saw, with a mark for each image."""
        text = row.text
        if isinstance(row, Step):
            text = row.prose if row.prose is not None else row.text
        elif row.visible_text is not None:
            return self._plain(row.visible_text)
        elif text is None and row.content is None:
            text = row.axtree if row.axtree is not None else row.html
        if row.content is not None and '"media"' in row.content:
            return self._plain(self._marked(row, text))
        return self._plain(text)

    def _marked(self, row: Step | Observation, text: str | None) -> str:
        reasoning = row.reasoning if isinstance(row, Step) else None
        words: list[str] = []
        for part in resolve(row.content, row.text, reasoning):
            if part.type == "text":
                words.append(part.text)
            elif part.type == "media":
                words.append(self._mark(part.media_id))
        return JOINT.join(words) if words else text or ""

    def _mark(self, media_id: str | None) -> str:
        self._chats.notes["images and sounds, as a mark in the text"] += 1
        blob = self._trajectory.media.get(media_id or "")
        kind = (blob.mime if blob is not None and blob.mime else "image").partition("/")[0]
        return MEDIA_MARK.format(kind=kind)

    def _plain(self, text: str | None) -> str:
        """A text in which lifted images are marks."""
        if not text:
            return ""
        text = whole_text(text)
        if "adp-media:" not in text:
            return text
        text, count = _LIFTED.subn(lambda item: MEDIA_MARK.format(kind=item.group(1)), text)
        self._chats.notes["images and sounds, as a mark in the text"] += count
        return text


def _page_of(item: Observation) -> WebPage | None:
    if item.axtree is None and item.html is None and item.url is None:
        return None
    return WebPage(item.url, item.axtree, item.text is None and item.content is None)
