"""Chats as the turns that LLaMA-Factory reads: human and gpt, observation and function_call.

Its loader wants odd turns (human, observation) and even ones (gpt, function_call) in strict
alternation, drops every record that has another order, and stops the whole run at a call that it
cannot parse. So whatever is written here must be right: what cannot be is refused.

- Several messages before one of the assistant become one turn: results as its OpenAI converter
  joins them, the rest with a blank line.
- Between two messages of the assistant stands an empty turn.
- A call is JSON text, several calls a list; words and reasoning beside them stand before the tag
  of the template, which it looks for in the text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from adp.rendering.chat import Chat, ChatCall, Message
from adp.trainers.export.exporter import UnwritableChatError
from adp.trainers.export.shapes import arguments_text, json_text, plain

RESULT_JOINT = "\n</tool_response>\n<tool_response>\n"
"""Between results of parallel calls, as LLaMA-Factory's own OpenAI converter joins them."""

TEXT_JOINT = "\n\n"

THOUGHT = ("<think>\n", "\n</think>\n\n")
CALL = ("<tool_call>", "</tool_call>")

THOUGHTS: dict[str, tuple[str, str]] = {
    **dict.fromkeys(("glm4_7", "hy3", "mimo_v2", "aeva"), ("<think>", "</think>")),
    **dict.fromkeys(("gemma4", "gemma4n"), ("<|channel>thought\n", "<channel|>")),
    "gpt_oss": (
        "<|channel|>analysis<|message|>",
        "<|end|><|start|>assistant<|channel|>final<|message|>",
    ),
    "kimi_vl": ("◁think▷", "◁/think▷"),
    "seed_oss": ("<seed:think>", "</seed:think>"),
}
"""Templates of LLaMA-Factory 0.9.5 that mark reasoning in another way."""

CALLS: dict[str, tuple[str, str]] = dict.fromkeys(
    ("lfm2", "lfm2_vl"), ("<|tool_call_start|>", "<|tool_call_end|>")
)
"""Templates that mark calls in another way."""

CALLS_ALONE = frozenset(
    (
        "gemma",
        "gemma2",
        "gemma3",
        "gemma3n",
        "llama2",
        "llama2_zh",
        "llava_next_mistral",
        "llava_next_video_mistral",
        "ministral",
        "ministral3",
        "mistral",
        "paligemma",
        "paligemma_chat",
        "pixtral",
    )
)
"""Templates that stop at words or reasoning beside a call."""

WORDS = frozenset(("qwen", "qwen3_nothink"))
"""Templates of models for which reasoning is words like others: a line ends before a call."""

ONE_CALL = frozenset(("glm4", "glm4v", "glm_ocr", "glmz1"))
"""Templates that stop at several calls in one turn."""


@dataclass
class Turns:
    """The turns of one chat.

    Attributes:
        system: text of the system; empty when there is none.
        turns: who and what; odd and even ones in turn.
        trained: for each even turn, the weight of its message.
    """

    system: str = ""
    turns: list[tuple[str, str]] = field(default_factory=list)
    trained: list[float] = field(default_factory=list)

    def written(self) -> list[dict[str, str]]:
        """The turns as a record has them."""
        return [{"from": who, "value": plain(value)} for who, value in self.turns]


def turns_of(chat: Chat, template: str, changed: Counter[str]) -> Turns:
    """The turns of a chat.

    Args:
        chat: a chat; all its messages are written.
        template: LLaMA-Factory's name of the template, which says how reasoning is marked.
        changed: counts what is written differently.

    Raises:
        UnwritableChatError: the template has no place for something in it.
    """
    turns = Turns()
    waiting: list[Message] = []
    systems: list[str] = []
    for message in chat.messages:
        if message.role == "system" and not turns.turns and not waiting:
            systems.append(message.text)
        elif message.role == "assistant":
            turns.turns.append(_odd(waiting, changed, first=not turns.turns))
            turns.turns.append(assistant_turn(message, template))
            turns.trained.append(message.weight)
            waiting = []
        else:
            waiting.append(message)
    if waiting:
        turns.turns.append(_odd(waiting, changed, first=not turns.turns))
    if len(systems) > 1:
        changed["several messages of the system, as one"] += 1
    turns.system = plain(TEXT_JOINT.join(systems))
    return turns


def _odd(messages: list[Message], changed: Counter[str], *, first: bool) -> tuple[str, str]:
    """The one turn for what stands between two messages of the assistant."""
    if not messages:
        words = "at the beginning" if first else "between two steps"
        changed[f"an empty message of the user {words}"] += 1
        return "human", ""
    results = [message.text for message in messages if message.role == "tool"]
    texts = [message.text for message in messages if message.role != "tool"]
    if any(message.role == "system" for message in messages):
        changed["messages of the system in the middle, as the user's"] += 1
    if results and texts:
        changed["messages beside results, joined to them"] += 1
        if any(message.role == "tool" for message in messages[len(results) :]):
            raise UnwritableChatError("a result that comes after a message of the user")
        return "observation", TEXT_JOINT.join([RESULT_JOINT.join(results), *texts])
    if results:
        return "observation", RESULT_JOINT.join(results)
    if len(texts) > 1:
        changed["messages of the user in a row, as one"] += 1
    return "human", TEXT_JOINT.join(texts)


def assistant_turn(message: Message, template: str) -> tuple[str, str]:
    """The turn of a message of the assistant.

    Raises:
        UnwritableChatError: the template has no place for it.
    """
    opened, closed = THOUGHTS.get(template, THOUGHT)
    before = f"{opened}{message.reasoning}{closed}" if message.reasoning else ""
    before += message.text
    if not message.calls:
        return "gpt", before
    begin, end = CALLS.get(template, CALL)
    if len(message.calls) > 1 and template in ONE_CALL:
        raise UnwritableChatError(
            f"several calls in one message, which the template {template} cannot write"
        )
    calls = calls_text(message.calls, (opened.strip(), begin, end))
    if not before:
        return "function_call", calls
    if template in CALLS_ALONE:
        raise UnwritableChatError(
            f"words beside a call, which the template {template} cannot write"
        )
    if begin in before:
        raise UnwritableChatError("words beside a call that look like a call themselves")
    gap = "\n" if message.text or template in WORDS else ""
    return "function_call", f"{before}{gap}{begin}\n{calls}\n{end}"


def calls_text(calls: Sequence[ChatCall], marks: Sequence[str]) -> str:
    """The calls of a message as JSON, in which no mark of the template occurs.

    Arguments keep the characters of the source. Those that are no JSON object stand in one.

    Args:
        calls: one or more.
        marks: texts that the template would take for its own; written as escapes inside JSON.
    """
    results = []
    for call in calls:
        text = arguments_text(call.text) if call.valid else json_text({"input": call.text})
        results.append(f'{{"name": {json_text(call.name)}, "arguments": {text}}}')
    written = results[0] if len(results) == 1 else f"[{', '.join(results)}]"
    for mark in marks:
        written = written.replace(mark, f"\\u{ord(mark[0]):04x}{mark[1:]}")
    return written


def tools_text(chat: Chat) -> str:
    """The tools on offer as JSON text; empty when there are none."""
    return json_text(list(chat.tools)) if chat.tools else ""
