"""Expected calls of tasks, in one shape: a list of objects with a name and arguments.

Sources write ``{"Action": ..., "Action_Input": ...}``, one object in place of a list, a batch of
calls, ``f(a, b)``, or names alone. What is in no known shape stays in the row and is no expected
call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from adp.converters.datasets.literals import literal
from adp.converters.text_calls.notations import call_words
from adp_schema import jsontext

_NAMES = ("name", "Action", "action", "api_name", "tool", "task")
_ARGUMENTS = ("arguments", "Action_Input", "action_input", "parameters", "param_dict", "kwargs")
_NAME = re.compile(r"[A-Za-z_][\w.&-]*")
_BATCH = "function_call_batch"


def expected_calls(value: Any, names: Mapping[str, Sequence[str]]) -> str | None:
    """The JSON of the expected calls; None when the value says none in a known shape.

    Args:
        value: what the source says.
        names: tool -> names of its arguments in order, for calls whose arguments have none.
    """
    items = value if isinstance(value, list) else [value]
    if len(items) == 1 and isinstance(items[0], dict) and items[0].get("type") == _BATCH:
        items = items[0].get("calls") or []
    if items and all(isinstance(item, str) and _NAME.fullmatch(item) for item in items):
        # Names alone, in the order in which a right run calls them.
        return jsontext.text_of([{"name": name, "arguments": {}} for name in items])
    calls = [_call(item, names) for item in items]
    if not calls or any(call is None for call in calls):
        return None
    return jsontext.text_of(calls)


def _call(item: Any, names: Mapping[str, Sequence[str]]) -> dict[str, Any] | None:
    if isinstance(item, str):
        name = item.partition("(")[0].strip()
        parsed = call_words(item.strip(), tuple(names.get(name, ())))
        return None if parsed is None else {"name": parsed[0], "arguments": _object(parsed[1])}
    if not isinstance(item, dict) or item.get("type", "function_call") == "message":
        return None
    tool = next((item[key] for key in _NAMES if isinstance(item.get(key), str)), None)
    if tool is None:
        return _by_name(item)
    given: Any = next((item[key] for key in _ARGUMENTS if key in item), {})
    return {"name": tool, "arguments": _object(given)}


def _by_name(item: dict[str, Any]) -> dict[str, Any] | None:
    """``{"f": {"a": [1, 2]}}`` of BFCL, with the values that are right, or one value (ACEBench)."""
    if len(item) != 1:
        return None
    [(name, given)] = item.items()
    if not isinstance(given, dict):
        return None
    alternatives = all(isinstance(value, list) for value in given.values())
    return item if alternatives else {"name": name, "arguments": given}


def _object(given: Any) -> Any:
    """The arguments as an object; a text that holds none stays a text."""
    if isinstance(given, list):
        # TaskBench: names with values, or values of tools whose inputs have no names.
        pairs = [it for it in given if isinstance(it, dict) and isinstance(it.get("name"), str)]
        named = bool(given) and len(pairs) == len(given)
        return {it["name"]: it.get("value") for it in pairs} if named else {"arguments": given}
    if not isinstance(given, str):
        return {} if given is None else given
    try:
        value = json.loads(given or "{}")
    except (ValueError, RecursionError):
        value = literal(given)
    return value if isinstance(value, dict) else given
