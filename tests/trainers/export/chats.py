"""Chats and pairs for the tests of exporters: a few by hand, and any that hypothesis draws."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from adp.rendering.chat import Chat, ChatCall, Message, PairChats, expand
from adp.trainers.export.exporter import ExportCounts, Exporter, ExporterOptions, ExportItem
from adp_schema.model import Pair, Task, Trajectory

TOOLS: tuple[dict[str, Any], ...] = (
    {
        "type": "function",
        "function": {
            "name": "look",
            "description": "Looks.",
            "parameters": {"type": "object", "properties": {"at": {"type": "string"}}},
        },
    },
)

WORDS = (
    *("", " ", "sea", "two\nlines", "\n", "{{content}}", "ümläut ☃", "<tool_call>x</tool_call>"),
    *("<think>\nno\n</think>\n\n", "</tool_call>", '"quoted" \\ back'),
)
words = st.sampled_from(WORDS)


def chat_of(*messages: Message, tools: Sequence[dict[str, Any]] = TOOLS) -> Chat:
    """A chat; its messages are steps in this order."""
    numbered = (replace(message, step=index) for index, message in enumerate(messages))
    return Chat("d/run", 0, 0, tuple(numbered), tuple(tools))


def user(text: str) -> Message:
    """A message of the user."""
    return Message("user", text, 0)


def agent(text: str = "", *calls: ChatCall, weight: float = 1.0, reasoning: str = "") -> Message:
    """A message of the agent."""
    return Message("assistant", text, 0, reasoning=reasoning or None, calls=calls, weight=weight)


def call(call_id: str, at: str = "sea", name: str = "look") -> ChatCall:
    """A call of the tool."""
    text = json.dumps({"at": at})
    return ChatCall(name, json.loads(text), text, call_id)


def result(call_id: str, text: str) -> Message:
    """The result of a call."""
    return Message("tool", text, 0, call_id=call_id, name="look")


@st.composite
def chats(draw: st.DrawFn, weights: Sequence[float] = (0.0, 1.0)) -> Chat:
    """Any chat: order and weights as they come, words that look like marks of templates."""
    messages: list[Message] = []
    waiting: list[str] = []
    if draw(st.booleans()):
        messages.append(Message("system", draw(words), 0))
    for number in range(draw(st.integers(1, 8))):
        kind = draw(st.sampled_from(("user", "assistant", "calls", "system")))
        if waiting and draw(st.booleans()):
            messages.append(result(waiting.pop(0), draw(words)))
        elif kind == "calls":
            made = [
                _drawn_call(draw, f"c{number}.{index}") for index in range(draw(st.integers(1, 3)))
            ]
            waiting += [item.call_id for item in made]
            weight = draw(st.sampled_from(weights)) if all(e.valid for e in made) else 0.0
            reasoning = draw(words)
            messages.append(agent(draw(words), *made, weight=weight, reasoning=reasoning))
        elif kind == "assistant":
            weight = draw(st.sampled_from(weights))
            messages.append(agent(draw(words), weight=weight, reasoning=draw(words)))
        else:
            role = "system" if kind == "system" else "user"
            messages.append(Message(role, draw(words), 0))
    return chat_of(*messages, tools=draw(st.sampled_from(((), TOOLS))))


def _drawn_call(draw: st.DrawFn, call_id: str) -> ChatCall:
    name = draw(st.sampled_from(("look", "look.at <tool_call>")))
    if draw(st.integers(0, 9)) == 0:
        return ChatCall(name, "not json", "not json", call_id, valid=False)
    made = call(call_id, draw(words), name)
    return replace(made, text=made.text.replace(": ", " :  "))


def pair_of(prompt: Chat, better: Message, worse: Message) -> PairChats:
    """A pair whose sides follow the prompt."""
    prompt = prompt.weigh([])
    sides = [replace(prompt, messages=(*prompt.messages, item)) for item in (better, worse)]
    return PairChats(Pair(pair_id="p"), sides[0], sides[1], len(prompt.messages))


def export(
    exporter: Exporter,
    given: Chat | PairChats,
    options: ExporterOptions | None = None,
    run: Trajectory | None = None,
    rendered: Any = None,
) -> tuple[list[dict[str, Any]], ExportCounts]:
    """The rows of one chat or pair, and the counts."""
    tally = ExportCounts()
    options = options or exporter.options()
    run = run or Trajectory(trajectory_id="d/run", dataset="d")
    items = (
        [ExportItem(None, given, run)]
        if isinstance(given, PairChats)
        else [ExportItem(item, None, run, rendered) for item in _fitted(given, options)]
    )
    rows = [row for item in items for row in exporter.rows(item, options, tally)]
    return rows, tally


def _fitted(chat: Chat, options: ExporterOptions) -> Iterator[Chat]:
    yield from expand(chat) if options.expand else [chat]


def task_run(attempt: int, **columns: Any) -> Trajectory:
    """A run at a task."""
    run = Trajectory(
        trajectory_id=f"d/run{attempt}", task_id="t", dataset="d", attempt=attempt, success=True
    )
    run.task = Task(task_id="t", **columns)
    return run
