"""Right calls of BFCL's entries, and the same calls changed at random."""

from __future__ import annotations

import copy
import random
from typing import Any

from adp_bfcl.categories import Language, language_of
from adp_bfcl.tasks import plain_value
from adp_bfcl.value_source import source_of

VALUES = [
    None,
    True,
    False,
    0,
    1,
    -1,
    5,
    1.0,
    0.5,
    "",
    "a",
    "5",
    "-5",
    "1/2",
    "true",
    "New York, NY",
]
VALUES += [
    [],
    {},
    [[]],
    [{}],
    [1],
    ["a"],
    [None],
    [True, 1],
    {"k": 1},
    {"k": ["a"]},
    (1, 2),
    ("a",),
]
SOURCES = [
    "",
    "null",
    "true",
    "5",
    "5L",
    "5n",
    "1.5",
    "1.5f",
    "1e5",
    "-3",
    '"x"',
    "'x'",
    "[]",
    "{}",
]
SOURCES += [
    "[1, 2]",
    '["a", "b"]',
    "[[1, 2], [3]]",
    "[ [1], [2] ] x",
    "[[",
    "{a: 1, b: [2]}",
    "{'a': 'x'}",
]
SOURCES += [
    "new int[]{1, 2}",
    'new String[]{"a"}',
    "new ArrayList<>()",
    "new int[3]",
    "new Array(1, 2)",
]
SOURCES += [
    'new ArrayList<>(Arrays.asList("a", "b"))',
    "new ArrayList<Integer>() {{ add(1); add(2); }}",
]
SOURCES += [
    'new HashMap<>() {{ put("k", 1); put("l", "x"); }}',
    "new HashMap<String, Object>()",
    "x.y",
]
SOURCES += [
    "new Array([1], [2])",
    "{a: {b: 1}, c: 2}",
    "[{a: 1}, {b: 2}]",
    "new ArrayList<>() {{ }}",
]


def right(functions: list, truth: list, category: str, rng: random.Random) -> list[dict]:
    """Calls that fit, each value drawn from those that are allowed."""
    language = language_of(category)
    documents = {function["name"]: function for function in functions}
    calls = []
    for answer in truth:
        for name, parameters in answer.items():
            document = documents.get(name) or functions[0]
            properties = document["parameters"]["properties"]
            required = document["parameters"].get("required") or ()
            given: dict[str, Any] = {}
            for parameter, allowed in parameters.items():
                options = [option for option in allowed if option != ""]
                omitted = "" in allowed and parameter not in required
                if omitted and (not options or rng.random() < 0.5):
                    continue
                options = options or ([""] if allowed else [[]])
                value = plain_value(copy.deepcopy(rng.choice(options)))
                if language is not Language.PYTHON:
                    value = source_of(value, properties.get(parameter) or {}, language)
                given[parameter] = value
            calls.append({name: given})
    return calls


def changed(calls: list[dict], rng: random.Random, *, source: bool) -> list[dict]:
    """The calls with one to three small changes."""
    calls = copy.deepcopy(calls)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        kind = rng.random()
        if not calls or kind < 0.04:
            calls.append({"other": {}})
        elif kind < 0.08:
            calls.pop(rng.randrange(len(calls)))
        elif kind < 0.12:
            calls.append(copy.deepcopy(rng.choice(calls)))
        elif kind < 0.2:
            rng.shuffle(calls)
        else:
            _change_call(calls, rng.randrange(len(calls)), rng, source)
    return calls


def _change_call(calls: list[dict], index: int, rng: random.Random, source: bool) -> None:
    name, given = next(iter(calls[index].items()))
    kind = rng.random()
    if kind < 0.06:
        calls[index] = {rng.choice((name + "x", name.replace(".", "_"), name.upper())): given}
    elif kind < 0.12 or not given:
        given["extra"] = rng.choice(SOURCES if source else VALUES)
    elif kind < 0.2:
        given.pop(rng.choice(list(given)))
    elif kind < 0.25:
        calls[index] = {name: dict(reversed(given.items()))}
    else:
        parameter = rng.choice(list(given))
        given[parameter] = _change(given[parameter], rng, source)


def _change(value: Any, rng: random.Random, source: bool) -> Any:
    if rng.random() < 0.3:
        return copy.deepcopy(rng.choice((SOURCES + VALUES[:8]) if source else VALUES))
    if isinstance(value, bool):
        return rng.choice((not value, int(value), str(value), str(value).lower()))
    if isinstance(value, int | float):
        return rng.choice((float(value), int(value), value + 1, value + 1e-12, str(value), -value))
    if isinstance(value, str):
        return _change_text(value, rng)
    if isinstance(value, list | tuple):
        return _change_list(list(value), rng, source)
    if isinstance(value, dict):
        return _change_dict(dict(value), rng, source)
    return rng.choice(VALUES)


def _change_text(value: str, rng: random.Random) -> Any:
    options = (
        value.upper(),
        value.swapcase(),
        value + " ",
        value + rng.choice(".,-_*^/!:\t'\""),
        value.replace(" ", ""),
        value.replace(",", " "),
        value.replace('"', "'"),
        value[:-1],
        value + "x",
        [value],
        {value: value},
        f'"{value}"',
        value.replace("1", "2"),
        value.replace("(", " ("),
        value + rng.choice((")", "]", "}", "L", "f", "n", "\n")),
    )
    return rng.choice(options)


def _change_list(value: list, rng: random.Random, source: bool) -> Any:
    kind = rng.random()
    if kind < 0.15:
        return list(reversed(value))
    if kind < 0.3:
        return value[:-1]
    if kind < 0.45:
        return [*value, rng.choice(VALUES)]
    if kind < 0.55:
        return tuple(value)
    if value and kind < 0.95:
        index = rng.randrange(len(value))
        value[index] = _change(value[index], rng, source)
        return value
    return value[0] if value else [value]


def _change_dict(value: dict, rng: random.Random, source: bool) -> Any:
    kind = rng.random()
    if kind < 0.2:
        value["extra"] = 1
    elif value and kind < 0.4:
        value.pop(rng.choice(list(value)))
    elif value and kind < 0.9:
        key = rng.choice(list(value))
        value[key] = _change(value[key], rng, source)
    else:
        return [value]
    return value
