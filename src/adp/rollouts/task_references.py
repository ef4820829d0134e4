"""What is right, as a task says it: expected calls, reference answers, a right run.

Expected calls are JSON in one of these shapes, also nested in a list for each turn:

- ``{"name": ..., "arguments": {...}}``; ``parameters``, ``args``, ``kwargs``, ``input`` and
  ``action_input`` are read like ``arguments``, which may be JSON text, too;
- ``{"type": "function", "function": {"name": ..., "arguments": "..."}}``;
- BFCL's ``{name: {parameter: [allowed, ...]}}``, where ``""`` among the allowed values says that
  the parameter may be left out;
- a name alone, as in SAGE's ``target_tools``: the arguments are unknown and not compared.

A right run is a list of messages in the OpenAI shape, or M3's list of items (``output`` holds a
call), nested by turns or not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adp.core.json_values import json_or_none
from adp.rendering.arguments import object_of
from adp.rollouts.trajectory_reading import same
from adp_schema.model import Task

_ARGUMENTS = ("arguments", "parameters", "args", "kwargs", "input", "action_input")
_ANSWERS = ("answer", "gold_answer", "value", "text", "aliases")
_DEEPEST = 20


@dataclass(frozen=True)
class Expected:
    """A call that a right run makes.

    Attributes:
        name: name of the tool.
        arguments: arguments; None when they are unknown.
        allowed: parameter -> allowed values, in BFCL's manner; None: ``arguments`` counts.
    """

    name: str
    arguments: Mapping[str, Any] | None = None
    allowed: Mapping[str, Sequence[Any]] | None = None

    def argument_names(self) -> frozenset[str]:
        """Names of the arguments that are known."""
        return frozenset(self.allowed if self.allowed is not None else self.arguments or ())

    def accepts(self, name: str, arguments: Mapping[str, Any]) -> bool:
        """Whether an argument is there with a right value, or is left out where it may be."""
        if self.allowed is not None:
            values = self.allowed.get(name, ())
            if name not in arguments:
                return any(isinstance(value, str) and not value for value in values)
            return any(same(arguments[name], value) for value in values)
        known = self.arguments or {}
        return name in known and name in arguments and same(arguments[name], known[name])


def expected_calls(task: Task | None, source: str = "auto") -> list[Expected] | None:
    """The calls that a right run makes.

    Args:
        task: the task.
        source: ``expected_calls``, ``gold_trajectory``, or ``auto``: the first that is there.

    Returns:
        The calls; None when the task does not say, or says it in no known shape.
    """
    if task is None:
        return None
    if source in ("auto", "expected_calls"):
        value = json_or_none(task.expected_calls)
        if value is not None:
            return _expected(value)
        if source == "expected_calls":
            return None
    messages = gold_messages(task)
    return None if messages is None else [call for _, calls in messages for call in calls]


def _expected(value: Any) -> list[Expected] | None:
    items = list(_flat(value))
    result = [_single_call(item) for item in items]
    return None if any(call is None for call in result) else [call for call in result if call]


def _flat(value: Any, depth: int = 0) -> Iterator[Any]:
    if isinstance(value, list) and depth < _DEEPEST:
        for item in value:
            yield from _flat(item, depth + 1)
    else:
        yield value


def _single_call(item: Any) -> Expected | None:
    """A call in one of the known shapes."""
    if isinstance(item, str):
        return Expected(item) if item else None
    child = item.get("function", item) if isinstance(item, Mapping) else None
    if isinstance(child, str):
        child = {**item, "name": child}
    if not isinstance(child, Mapping):
        return None
    name = child.get("name")
    if isinstance(name, str) and name:
        given: Any = next((child[key] for key in _ARGUMENTS if key in child), {})
        return Expected(name, _object(given))
    if len(child) == 1:
        ((name, values),) = child.items()
        listed = isinstance(values, Mapping) and all(isinstance(v, list) for v in values.values())
        if listed and (values or name not in _ARGUMENTS):
            return Expected(str(name), allowed=values)
    return None


def _object(given: Any) -> Mapping[str, Any] | None:
    if given is None:
        return {}
    if isinstance(given, str):
        value, is_object = object_of(given or "{}")
        return value if is_object else None
    return given if isinstance(given, Mapping) else None


Message = tuple[str, list[Expected]]
"""Role of a message, and its calls."""


def gold_messages(task: Task | None) -> list[Message] | None:
    """The messages of a right run, each with its calls; None when the task has none."""
    value = json_or_none(task.gold_trajectory) if task is not None else None
    if isinstance(value, Mapping):
        value = value.get("messages")
    if not isinstance(value, list):
        return None
    items = [item for item in _flat(value) if isinstance(item, Mapping)]
    messages: list[Message] = []
    for item in items:
        messages += _messages(item)
    return messages if messages else None


def _messages(item: Mapping[str, Any]) -> list[Message]:
    if isinstance(item.get("role"), str):
        calls = item.get("tool_calls")
        listed = calls if isinstance(calls, list) else []
        return [(item["role"], [call for call in map(_single_call, listed) if call])]
    if isinstance(item.get("output"), Mapping):
        call = _single_call(item["output"])
        return [("assistant", [call])] if call else []
    if "response" in item:
        return [("tool", [])]
    if "answer" in item:
        return [("assistant", [])]
    return [("user", [])] if "input" in item else []


def reference_answers(task: Task | None) -> list[str]:
    """The reference answers of a task, as texts; each of them is right.

    Of a task with several turns of the user only the answer of the last turn counts, because the
    final answer of a run answers that one.
    """
    if task is None:
        return []
    value = json_or_none(task.answers)
    turns = json_or_none(task.turns)
    several = isinstance(turns, list) and len(turns) > 1
    if several and isinstance(value, list) and len(value) == len(turns):
        value = value[-1]
    return list(dict.fromkeys(_answers(value)))


def _answers(value: Any) -> Iterator[str]:
    for item in _flat(value):
        if isinstance(item, Mapping):
            known = [item[key] for key in _ANSWERS if key in item]
            yield from (text for child in known for text in _leaves(child))
            if not known:
                yield _text(item)
        elif item is not None:
            yield _text(item)


def _leaves(value: Any) -> Iterator[str]:
    for item in _flat(value):
        if item is not None:
            yield _text(item)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):
        return ""
