"""Entries of BFCL as tasks, and back. A task holds all that is needed to run and to judge it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from adp.rendering.arguments import whole_text
from adp_bfcl.categories import Language, canonical, language_of, wants_no_call
from adp_bfcl.entries import BadRowError, BfclEntry, entry_of
from adp_bfcl.offers import offered_name
from adp_bfcl.python_calls import DecodeError, call_parts
from adp_bfcl.value_source import source_of
from adp_schema.model import Task

NAME = "bfcl"


def task_of(entry: BfclEntry) -> Task:
    """An entry as a task.

    ``environment_config`` has the question and the functions, ``reward_spec`` the possible answers
    as BFCL writes them, and ``expected_calls`` one right run as ``{name, arguments}``.
    """
    config: dict[str, Any] = {
        "id": entry.entry_id,
        "category": entry.category,
        "question": entry.question,
        "function": entry.functions,
    }
    if entry.multi_turn:
        config["involved_classes"] = entry.classes
        config["initial_config"] = entry.config
        config["missed_function"] = {str(key): value for key, value in entry.held_back.items()}
    texts = [[message["content"] for message in turn] for turn in entry.question]
    users = [message["content"] for message in entry.question[0] if message["role"] == "user"]
    calls = expected_calls(entry)
    return Task(
        task_id=entry.entry_id,
        dataset=NAME,
        split="test",
        instruction=whole_text("\n\n".join(users) or "\n\n".join(texts[0])),
        turns=_json([{"query": "\n\n".join(turn)} for turn in texts]) if entry.multi_turn else None,
        expected_calls=None if calls is None else _json(calls),
        environment=NAME,
        environment_config=_json(config),
        reward_spec=_json({"checker": NAME, "ground_truth": entry.answers}),
        difficulty=entry.category,
    )


def entry_from(task: Task | None) -> BfclEntry | None:
    """The entry that a task was made of; None when it is another task."""
    if task is None or not task.environment_config:
        return None
    config = _object(task.environment_config)
    if config is None or "question" not in config or "category" not in config:
        return None
    truth = (_object(task.reward_spec) or {}).get("ground_truth")
    try:
        return entry_of(config, canonical(str(config["category"])), truth)
    except BadRowError:
        return None


def expected_calls(entry: BfclEntry) -> list[dict[str, Any]] | None:
    """One right run: for each expected call the first value that each parameter may have.

    Names are those under which the functions are offered. None: nothing is known of it.
    """
    if entry.answers is None:
        return [] if wants_no_call(entry.category) else None
    documents = {str(function["name"]): function for function in entry.functions}
    if entry.multi_turn:
        return _turn_calls(entry.answers, documents)
    language = language_of(entry.category)
    return [
        {
            "name": offered_name(name),
            "arguments": _first_values(parameters, documents.get(name) or {}, language),
        }
        for answer in entry.answers
        for name, parameters in answer.items()
    ]


def _turn_calls(
    turns: Sequence[Sequence[str]], documents: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, Any]]:
    turn_calls = []
    for number, turn in enumerate(turns):
        for source in turn:
            try:
                name, values, arguments = call_parts(source)
            except DecodeError:
                continue
            known = list((documents.get(name) or {}).get("parameters", {}).get("properties", ()))
            arguments = dict(zip(known, values, strict=False)) | arguments
            turn_calls.append({"name": name, "arguments": arguments, "turn": number})
    return turn_calls


def _first_values(
    parameters: Mapping[str, Any], document: Mapping[str, Any], language: Language
) -> dict[str, Any]:
    described = document.get("parameters") or {}
    properties, required = described.get("properties") or {}, described.get("required") or ()
    first_values = {}
    for name, allowed in parameters.items():
        if not isinstance(allowed, list) or not allowed:
            continue
        value = next((option for option in allowed if option != ""), "")
        if value == "" and name not in required:
            continue
        value = plain_value(value)
        if language is not Language.PYTHON:
            value = source_of(value, properties.get(name) or {}, language)
        first_values[name] = value
    return first_values


def plain_value(value: Any) -> Any:
    """A value of an answer without the lists of what else is allowed inside dictionaries."""
    if isinstance(value, list):
        return [plain_value(item) for item in value]
    if not isinstance(value, Mapping):
        return value
    results = {}
    for key, allowed in value.items():
        options = allowed if isinstance(allowed, list) else [allowed]
        first = next((option for option in options if option != ""), None)
        if first is not None or "" not in options:
            results[key] = plain_value(first) if options else []
    return results


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True)


def _object(text: str | None) -> dict[str, Any] | None:
    try:
        value = json.loads(text or "")
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
