"""One entry of BFCL, and what is said of a row that is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adp_bfcl.categories import canonical, is_multi_turn, is_relevance, of_id


class BadRowError(ValueError):
    """A row cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class BfclEntry:
    """One entry.

    Attributes:
        entry_id: its id, such as ``live_simple_0-0-0``.
        category: its category, by the name since v4.
        question: messages by turn.
        functions: documentation of the functions on offer, with BFCL's types.
        answers: possible answers: a list of ``{name: {parameter: [allowed, ...]}}``, or for
            several turns a list of lists of calls as source; None: not known, or not needed.
        classes: names of the simulated services.
        config: their initial state.
        held_back: names of functions that come on offer with a later turn, by turn.
    """

    entry_id: str
    category: str
    question: Sequence[Sequence[Mapping[str, Any]]]
    functions: Sequence[Mapping[str, Any]] = ()
    answers: Sequence[Any] | None = None
    classes: Sequence[str] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    held_back: Mapping[int, Sequence[str]] = field(default_factory=dict)

    @property
    def long_context(self) -> bool:
        """Whether the services answer at length."""
        return "long_context" in self.category or "composite" in self.category

    @property
    def multi_turn(self) -> bool:
        """Whether it has several turns and simulated services."""
        return is_multi_turn(self.category)

    @property
    def turns_of_calls(self) -> Sequence[Sequence[str]]:
        """For several turns: the expected calls by turn, as source."""
        return self.answers or ()

    @property
    def scorable(self) -> bool:
        """Whether it is known what is right."""
        return is_relevance(self.category) or self.answers is not None


def entry_of(row: Any, category: str | None = None, answers: Any = None) -> BfclEntry:
    """Read a row of a file of questions.

    Args:
        row: the row.
        category: its category; None: what its id names.
        answers: ``ground_truth`` of the row of the same id in the file of possible answers.

    Raises:
        BadRowError: it is no question.
    """
    if not isinstance(row, Mapping):
        raise BadRowError("it is no object")
    entry_id = row.get("id")
    if not isinstance(entry_id, str) or not entry_id:
        raise BadRowError("it has no id")
    category = canonical(category) if category else of_id(entry_id)
    if answers is None:
        answers = row.get("ground_truth")
    functions = row.get("function")
    entry = BfclEntry(
        entry_id=entry_id,
        category=category,
        question=_question(row.get("question")),
        functions=_functions([functions] if isinstance(functions, Mapping) else functions or []),
        answers=_answers(answers, category),
        classes=_names(row.get("involved_classes"), "involved_classes"),
        config=_mapping(row.get("initial_config"), "initial_config"),
        held_back=_held_back(row.get("missed_function")),
    )
    if entry.multi_turn and not entry.classes:
        raise BadRowError("a multi-turn entry has no involved_classes")
    if not entry.multi_turn and not entry.functions and not is_relevance(category):
        raise BadRowError("it has no function")
    return entry


def _question(value: Any) -> list[list[Mapping[str, Any]]]:
    if not isinstance(value, list) or not value:
        raise BadRowError("its question is no list of turns")
    turns: list[Any] = [value] if all(isinstance(turn, Mapping) for turn in value) else value
    for turn in turns:
        if not isinstance(turn, list):
            raise BadRowError("a turn of its question is no list of messages")
        for message in turn:
            if not isinstance(message, Mapping) or not isinstance(message.get("content"), str):
                raise BadRowError("a message of its question has no text")
            if not isinstance(message.get("role"), str):
                raise BadRowError("a message of its question has no role")
    return turns


def _functions(value: Any) -> list[Mapping[str, Any]]:
    if not isinstance(value, list):
        raise BadRowError("its function is no list")
    for function in value:
        if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
            raise BadRowError("one of its functions has no name")
        parameters = function.get("parameters")
        if not isinstance(parameters, Mapping) or not isinstance(
            parameters.get("properties"), Mapping
        ):
            raise BadRowError(f"the function {function['name']} has no parameters.properties")
    return value


def _answers(value: Any, category: str) -> list[Any] | None:
    if value is None:
        return None
    if not isinstance(value, list):
        raise BadRowError("its ground_truth is no list")
    for answer in value:
        if is_multi_turn(category):
            if not isinstance(answer, list) or not all(isinstance(call, str) for call in answer):
                raise BadRowError("a turn of its ground_truth is no list of calls")
        elif not isinstance(answer, Mapping) or len(answer) != 1:
            raise BadRowError("an answer of its ground_truth is no single call")
        elif not all(isinstance(parameters, Mapping) for parameters in answer.values()):
            raise BadRowError("an answer of its ground_truth has no parameters")
    return value


def _names(value: Any, name: str) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise BadRowError(f"its {name} is no list of names")
    return value


def _mapping(value: Any, name: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise BadRowError(f"its {name} is no object")
    return value


def _held_back(value: Any) -> dict[int, list[str]]:
    held_back = {}
    for turn, names in _mapping(value, "missed_function").items():
        if not str(turn).isdecimal():
            raise BadRowError("a key of its missed_function is no number of a turn")
        held_back[int(turn)] = [
            name["name"] if isinstance(name, Mapping) and "name" in name else name
            for name in (names if isinstance(names, list) else [])
        ]
        _names(held_back[int(turn)], "missed_function")
    return held_back
