"""Steps as text: numbered for a model to read, and read from what a model writes.

    Step 2
    <thought>I need the height of Etna.</thought>
    <call>{"name": "search", "arguments": {"query": "height of Etna"}}</call>
    <result>3,403 m</result>

Calls may stand in ET-Agent's tags, too: ``<search>height of Etna</search>`` and ``<python>...``.
A thought is not between ``<think>`` tags: servers and policies take what stands there for the
thought of the model that writes, and leave it out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from adp.rendering.arguments import object_of
from adp.rollouts.judging.answers import UnreadableError
from adp.rollouts.turns import Call, Tool, Turn

_BLOCK = re.compile(r"<(thought|call|search|python|answer)>(.*?)</\1>", re.DOTALL)
_NUMBER = re.compile(r"\W*step\W*:[^\w-]*(-?\w+)\W*", re.IGNORECASE)
_NUMBER_LINE = re.compile(r"\W*step\W*:", re.IGNORECASE)
_CORRECTED = re.compile(r"^\W*corrected step\W*:", re.IGNORECASE | re.MULTILINE)
_REFINED = re.compile(r'<step n="(\d+)">\s*<thought>(.*?)</thought>\s*</step>', re.DOTALL)
_ANY_TAG = re.compile(r"</?(?:think|thought|call|search|python|answer|result|step)\b")
_SHOWN = 1_000
"""Characters of a result that a model reads."""


@dataclass(frozen=True)
class DoneStep:
    """A turn of the agent with what it brought.

    Attributes:
        turn: the turn.
        results: texts of its results.
    """

    turn: Turn
    results: tuple[str, ...] = ()


def thought_of(turn: Turn) -> str:
    """The thought of a turn: its reasoning, or the text beside its calls."""
    return (turn.reasoning or (turn.text if turn.calls else "")).strip()


def written_turn(turn: Turn) -> str:
    """A turn as text."""
    thought = thought_of(turn)
    lines = [f"<thought>{thought}</thought>"] if thought else []
    for call in turn.calls:
        value, valid = object_of(call.arguments)
        arguments = value if valid else call.arguments
        text = json.dumps({"name": call.name, "arguments": arguments}, ensure_ascii=False)
        lines.append(f"<call>{text}</call>")
    if not turn.calls:
        lines.append(f"<answer>{turn.text}</answer>")
    return "\n".join(lines)


def written_steps(steps: Sequence[DoneStep]) -> str:
    """Steps as text, numbered from 1."""
    texts = []
    for number, step in enumerate(steps, 1):
        results = [f"<result>{_shown(text)}</result>" for text in step.results]
        texts.append("\n".join([f"Step {number}", written_turn(step.turn), *results]))
    return "\n\n".join(texts)


def written_tools(tools: Sequence[Tool]) -> str:
    """The tools on offer as text, a line a tool."""
    return "\n".join(
        json.dumps(tool.get("function", tool), ensure_ascii=False, sort_keys=True) for tool in tools
    )


# ---- reading -----------------------------------------------------------------------------------


def read_number(text: str, last: int, *, may_be_none: bool = False) -> int | None:
    """The number of a step, of the only line ``Step: NUMBER``.

    Args:
        text: the answer of a model.
        last: number of the last step.
        may_be_none: whether ``Step: none`` is an answer; it is None then.

    Raises:
        UnreadableError: there is no number, or no such step.
    """
    head = text[: match.start()] if (match := _CORRECTED.search(text)) else text
    lines = [line for line in head.splitlines() if _NUMBER_LINE.match(line)]
    if not lines:
        raise UnreadableError("no step number")
    if len(lines) > 1:
        raise UnreadableError("several step numbers")
    match = _NUMBER.fullmatch(lines[0])
    word = match[1].lower() if match else ""
    if may_be_none and word in ("none", "no"):
        return None
    if not word.isascii() or not word.removeprefix("-").isdigit():
        raise UnreadableError("no step number")
    if len(word) > 9 or not 1 <= int(word) <= last:
        raise UnreadableError("step number out of range")
    return int(word)


def corrected_part(text: str) -> str:
    """What follows the line ``Corrected step:``.

    Raises:
        UnreadableError: there is no such line, or several.
    """
    parts = _CORRECTED.split(text)
    if len(parts) != 2:
        raise UnreadableError("no corrected step" if len(parts) < 2 else "several corrected steps")
    return parts[1]


def read_turn(text: str, tools: Sequence[Tool]) -> Turn:
    """A turn that a model wrote: a thought, then calls or an answer, and nothing else.

    Raises:
        UnreadableError: it is none.
    """
    blocks = [(match[1], match[2].strip()) for match in _BLOCK.finditer(text)]
    if _BLOCK.sub("", text).strip():
        raise UnreadableError("text outside of the tags")
    thoughts = [words for tag, words in blocks if tag == "thought"]
    if len(thoughts) > 1 or (thoughts and blocks[0][0] != "thought"):
        raise UnreadableError("more than one thought, or not at the beginning")
    answers = [words for tag, words in blocks if tag == "answer"]
    calls = tuple(
        _read_call(tag, words, tools) for tag, words in blocks if tag not in ("thought", "answer")
    )
    if len(answers) + bool(calls) != 1:
        raise UnreadableError(_which(calls, answers))
    if answers and not answers[0]:
        raise UnreadableError("empty answer")
    reasoning = (thoughts[0] if thoughts else "") or None
    return Turn(text=answers[0] if answers else "", calls=calls, reasoning=reasoning)


def read_thoughts(text: str, numbers: Sequence[int]) -> Mapping[int, str]:
    """New thoughts by number of the step.

    Args:
        text: what a model wrote.
        numbers: the steps that have a thought; each must be there once, and in order.

    Raises:
        UnreadableError: not so, or a thought is empty or holds tags.
    """
    if _REFINED.sub("", text).strip():
        raise UnreadableError("text outside of the tags")
    pairs = [(match[1], match[2].strip()) for match in _REFINED.finditer(text)]
    if [number for number, _ in pairs] != [str(number) for number in numbers]:
        raise UnreadableError("not the steps that have a thought")
    thoughts = {int(number): thought for number, thought in pairs}
    if not all(thoughts.values()):
        raise UnreadableError("empty thought")
    if any(_ANY_TAG.search(thought) for thought in thoughts.values()):
        raise UnreadableError("tags in a thought")
    return thoughts


def read_words(text: str) -> str:
    """An explanation: any text that is not empty."""
    if not text.strip():
        raise UnreadableError("empty")
    return text.strip()


def tag_call(tag: str, text: str, tools: Sequence[Tool]) -> Call | None:
    """The call that a tag of ET-Agent stands for; None when no tool on offer fits.

    Args:
        tag: ``search`` or ``python``.
        text: the query or the program.
        tools: tools on offer.
    """
    named = {_function(tool).get("name"): tool for tool in tools}
    fitting = [name for name in named if isinstance(name, str) and tag in name.lower()]
    name = tag if tag in named else fitting[0] if len(fitting) == 1 else None
    key = None if name is None else text_parameter(named[name])
    if name is None or key is None:
        return None
    return Call(name, json.dumps({key: text}, ensure_ascii=False))


def text_parameter(tool: Tool) -> str | None:
    """The only parameter that a call of a tool needs, when it is a text."""
    parameters = _function(tool).get("parameters") or {}
    properties = parameters.get("properties") or {}
    needed = parameters.get("required") or list(properties)
    key = needed[0] if len(needed) == 1 else None
    schema = properties.get(key) if key is not None else None
    return key if isinstance(schema, Mapping) and schema.get("type") == "string" else None


def fitted(turn: Turn, tools: Sequence[Tool]) -> Turn:
    """A recorded turn as the tools on offer take it.

    A program or a query that stood in a tag is no JSON; it becomes the argument of the tool.
    """
    calls = []
    for call in turn.calls:
        again = None if object_of(call.arguments)[1] else tag_call(call.name, call.arguments, tools)
        calls.append(call if again is None else replace(again, call_id=call.call_id))
    return replace(turn, calls=tuple(calls))


def _read_call(tag: str, words: str, tools: Sequence[Tool]) -> Call:
    if tag != "call":
        call = tag_call(tag, words, tools) if words else None
        if call is None:
            raise UnreadableError(f"no tool for <{tag}>" if words else "empty call")
        return call
    try:
        value = json.loads(words)
    except (ValueError, RecursionError) as error:
        raise UnreadableError("a call is no JSON") from error
    if not isinstance(value, dict) or set(value) != {"name", "arguments"}:
        raise UnreadableError("a call without name and arguments")
    if value["name"] not in [_function(tool).get("name") for tool in tools]:
        raise UnreadableError("unknown tool")
    if not isinstance(value["arguments"], dict):
        raise UnreadableError("arguments are no object")
    return Call(value["name"], json.dumps(value["arguments"], ensure_ascii=False))


def _function(tool: Tool) -> Mapping[str, Any]:
    function = tool.get("function", tool)
    return function if isinstance(function, Mapping) else {}


def _which(calls: Sequence[Call], answers: Sequence[str]) -> str:
    if calls:
        return "both calls and an answer"
    return "several answers" if answers else "neither calls nor an answer"


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
