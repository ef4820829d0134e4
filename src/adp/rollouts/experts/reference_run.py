"""The reference run of a task: what an expert that knows the solution does.

Read from ``gold_trajectory``, else from ``expected_calls`` and the reference answers. A
``gold_trajectory`` has M3's form (items ``input``, ``output`` with a ``plan``, ``response``,
``answer``; one list, or one a turn of the user), or it is a list of messages in the OpenAI shape,
or an object with such ``messages``.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from adp.core.json_values import json_list, json_or_none
from adp.rollouts.turns import Call, Turn
from adp_schema.model import Task


@dataclass(frozen=True, slots=True)
class GoldStep:
    """One action of the reference run.

    Attributes:
        turn: the call, or the answer.
        question: the question that it answers, in words.
        response: what came back, as it was recorded; None when it is not known.
    """

    turn: Turn
    question: str | None = None
    response: str | None = None


@dataclass(frozen=True, slots=True)
class GoldTurn:
    """The reference run of one turn of the user.

    Attributes:
        query: what the user says.
        steps: calls, and the answer at the end where it is known.
        answer: the golden answer.
        raw_answer: the value that the answer rests on.
        truncated: whether the golden answer tells only a part of that value.
    """

    query: str | None
    steps: tuple[GoldStep, ...]
    answer: str | None = None
    raw_answer: str | None = None
    truncated: bool = False

    @property
    def plan(self) -> tuple[str, ...]:
        """The questions of the steps, in order."""
        return tuple(step.question for step in self.steps if step.question)


def gold_of(task: Task | None) -> tuple[GoldTurn, ...]:
    """The reference run of a task; empty when it has none that can be read."""
    if task is None:
        return ()
    gold = _recorded(task)
    if not any(step.turn.calls for turn in gold for step in turn.steps):
        gold = _expected(task) or gold
    return gold


def _recorded(task: Task) -> tuple[GoldTurn, ...]:
    value = json_or_none(task.gold_trajectory)
    if isinstance(value, Mapping):
        value = value.get("messages")
    listed = value if isinstance(value, list) else []
    flat = _items(
        [item for entry in listed for item in (entry if isinstance(entry, list) else [entry])]
    )
    nested = bool(listed) and all(isinstance(item, list) for item in listed)
    read: Callable[[Sequence[Mapping[str, Any]], Mapping[str, Any]], GoldTurn] = _turn
    if any(isinstance(item.get("role"), str) for item in flat):
        parts = _spoken(flat)
        nested = len(parts) > 1
        answers = [_text(item) for item in json_list(task.answers) if item is not None]
        read = functools.partial(
            _message_turn, known=answers[0] if answers and not nested else None
        )
    else:
        parts = [_items(turn) for turn in (listed if nested else [listed])]
        read = _turn
    facts = [turn if isinstance(turn, Mapping) else {} for turn in json_list(task.turns)]
    facts += [{}] * (len(parts) - len(facts))
    turns = [read(part, about) for part, about in zip(parts, facts, strict=False)]
    if nested and not all(turn.steps for turn in turns):
        return ()
    return tuple(turn for turn in turns if turn.steps)


def _spoken(messages: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """The turns of a conversation: each goes on until the user speaks again."""
    parts: list[list[Mapping[str, Any]]] = [[]]
    for message in messages:
        spoken = any(item.get("role") == "assistant" for item in parts[-1])
        if message.get("role") == "user" and spoken:
            parts.append([])
        parts[-1].append(message)
    return parts


def _message_turn(
    messages: Sequence[Mapping[str, Any]], facts: Mapping[str, Any], known: str | None
) -> GoldTurn:
    """One turn of messages. Texts of the assistant before a call are its thoughts."""
    steps: list[GoldStep] = []
    query, last_text = _text(facts.get("query")), None
    results: list[str] = []
    for message in messages:
        text = _content(message.get("content"))
        if message.get("role") == "user" and query is None:
            query = text
        elif message.get("role") == "tool" and steps:
            results.append(text or "")
            last = steps[-1]
            # What one of several calls brought says nothing about the others.
            response = results[0] if len(last.turn.calls) == len(results) == 1 else None
            steps[-1] = GoldStep(last.turn, last.question, response)
        elif message.get("role") == "assistant":
            calls = message.get("tool_calls")
            items = [item.get("function", item) for item in _items(calls)]
            made = [call_of(item) for item in items if isinstance(item, Mapping)]
            turn = Turn(calls=tuple(call for call in made if call is not None))
            thought = _text(message.get("reasoning_content")) or text or last_text
            last_text, results = text, []
            if turn.calls:
                steps.append(GoldStep(replace(turn, reasoning=thought or None)))
                last_text = None
    answer = _text(facts.get("gold_answer"))
    answer = last_text or known if answer is None else answer
    if answer is not None and steps:
        steps.append(GoldStep(Turn(text=answer)))
    elif answer is not None and last_text is not None:
        steps = [GoldStep(Turn(text=answer))]
    raw = _text(facts.get("raw_answer"))
    return GoldTurn(query, tuple(steps), answer, raw, facts.get("was_truncated") is True)


def _content(value: Any) -> str | None:
    """The text of a message: a text, or parts of which some are texts."""
    if isinstance(value, list):
        texts = [part.get("text") for part in _items(value)]
        return "".join(text for text in texts if isinstance(text, str))
    return _text(value)


def _turn(items: Sequence[Mapping[str, Any]], facts: Mapping[str, Any]) -> GoldTurn:
    """One turn, from its items and from what the task says of it."""
    steps: list[GoldStep] = []
    query = _text(facts.get("query"))
    answer = _text(facts.get("gold_answer"))
    raw = _text(facts.get("raw_answer"))
    for item in items:
        plan = _text(item.get("plan"))
        if isinstance(item.get("output"), Mapping):
            call = call_of(item["output"])
            if call is not None:
                turn = Turn(calls=(call,), reasoning=plan)
                steps.append(GoldStep(turn, _text(item.get("question"))))
        elif "response" in item and steps:
            last = steps[-1]
            steps[-1] = GoldStep(last.turn, last.question, _text(item["response"]))
        elif "answer" in item:
            answer = _text(item["answer"]) if answer is None else answer
            raw = _text(item.get("raw_answer")) if raw is None else raw
            if answer is not None:
                steps.append(GoldStep(Turn(text=answer, reasoning=plan)))
        elif "input" in item and query is None:
            query = _text(item["input"])
    if answer is not None and steps and steps[-1].turn.calls:
        steps.append(GoldStep(Turn(text=answer)))
    return GoldTurn(query, tuple(steps), answer, raw, facts.get("was_truncated") is True)


def _expected(task: Task) -> tuple[GoldTurn, ...]:
    """The calls that are expected, and the first reference answer.

    An item may say with ``turn`` in which turn of the user it belongs, from 0; without, all of
    them are the first one's.
    """
    items = _items(json_list(task.expected_calls))
    turns_facts = _items(json_list(task.turns)) if any("turn" in item for item in items) else []
    turns: list[list[GoldStep]] = [[] for _ in range(max(len(turns_facts), 1))]
    for item in items:
        number, call = item.get("turn", 0), call_of(item)
        known = type(number) is int and 0 <= number < len(turns)
        if call is not None:
            turns[number if known else 0].append(GoldStep(Turn(calls=(call,))))
    if not any(turns):
        return ()
    answer = next((_text(entry) for entry in json_list(task.answers) if entry is not None), None)
    if answer is not None:
        turns[-1].append(GoldStep(Turn(text=answer)))
    queries = [_text(facts.get("query")) for facts in turns_facts] or [task.instruction]
    return tuple(
        GoldTurn(query, tuple(steps), answer if number == len(turns) - 1 else None)
        for number, (query, steps) in enumerate(zip(queries, turns, strict=True))
    )


def call_of(item: Mapping[str, Any]) -> Call | None:
    """A call written as ``{"name": ..., "arguments": ...}``; None when it has no name."""
    name, arguments = item.get("name"), item.get("arguments", {})
    if not isinstance(name, str) or not name:
        return None
    if isinstance(arguments, str):
        return Call(name, arguments)
    return Call(name, json.dumps(arguments if arguments is not None else {}))


def _items(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value)
