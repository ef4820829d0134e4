"""Values that a store cannot hold are mended one by one, so that an episode is never lost.

Models, servers and environments write what they like: half characters (lone surrogates), JSON of
600 levels, infinite costs. Half characters become replacement characters. Arguments that a column
of JSON cannot hold go to ``arguments_raw``. Any other value that does not fit is dropped, and the
key ``dropped`` of the row's ``extra`` says which one and why.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

from adp.rendering.arguments import whole_text
from adp.rollouts.tools import plain
from adp_schema.appendable import check_readable
from adp_schema.arrow import json_columns
from adp_schema.errors import SchemaError
from adp_schema.model import Row, Step, Trajectory
from adp_schema.tables import ENUMS, TABLES

_NEVER_NEGATIVE = ("tokens_", "total_tokens_", "cost_usd", "total_cost_usd")


class _Unfit(Exception):
    """A value that a column cannot hold; the message says why."""


def make_storable(trajectory: Trajectory) -> Trajectory:
    """Mend what hangs from a trajectory, its steps apart: columns, task, branches.

    Args:
        trajectory: it is changed.
    """
    if trajectory.task is not None:
        trajectory.task = trajectory.task.model_copy()  # other attempts share it
        _make_storable("tasks", trajectory.task)
    for branch in trajectory.branches:
        for step in branch.steps:
            mend_step(step)
        make_storable(branch)
    mend_columns(trajectory)
    return trajectory


def mend_columns(trajectory: Trajectory, dropped: Mapping[str, str] | None = None) -> None:
    """Mend the columns of a trajectory alone.

    Args:
        trajectory: it is changed.
        dropped: what was dropped before, and why.
    """
    _make_storable("trajectories", trajectory, dropped)


def mend_step(step: Step) -> None:
    """Mend a step, its calls and its observations."""
    _make_storable("steps", step)
    for call in step.calls:
        written = call.arguments
        _make_storable("tool_calls", call)
        if written is not None and call.arguments is None:
            call.arguments_raw, call.arguments_kind = whole_text(str(written)), "invalid"
    for observation in step.observations:
        _make_storable("observations", observation)


def _make_storable(table: str, row: Row, before: Mapping[str, str] | None = None) -> None:
    dropped = dict(before or {})
    fits = _fits(table)
    for name, value in list(row.__dict__.items()):
        fit = None if value is None else fits.get(name)
        if fit is None:
            continue
        try:
            kept = fit(value)
        except _Unfit as unfit:
            dropped[name] = whole_text(str(unfit))
            kept = None
        if kept is not value:
            setattr(row, name, kept)
    if dropped and hasattr(row, "extra"):
        extra = _object(row.extra)
        known = extra.get("dropped")
        known = known if isinstance(known, dict) else {}
        row.extra = json.dumps({**extra, "dropped": {**known, **dropped}})


def _object(text: str | None) -> dict[str, Any]:
    value = json.loads(text) if text else {}
    return value if isinstance(value, dict) else {"value": value}


@functools.cache
def _fits(table: str) -> dict[str, Callable[[Any], Any]]:
    """The columns of a table, with what makes a value fit or raises `_Unfit`."""
    fits: dict[str, Callable[[Any], Any]] = {}
    known = TABLES[table].row.model_fields
    for column in TABLES[table].schema:
        name, kind = column.name, str(column.type)
        words = ENUMS.get((table, name))
        fit: Callable[[Any], Any] | None
        if name not in known:
            continue
        if name in json_columns(table):
            fit = functools.partial(_json, table, name)
        elif words is not None:
            fit = functools.partial(_word, words)
        elif kind in ("int32", "int64", "double") and name.startswith(_NEVER_NEGATIVE):
            fit = functools.partial(_counted, _FITS[kind])
        else:
            fit = _FITS.get(kind)
        if fit is not None:
            fits[name] = fit
    return fits


def _text(value: Any) -> str:
    if isinstance(value, str):
        return whole_text(value)
    raise _Unfit(f"{_shown(value)} is no text")


def _json(table: str, name: str, value: Any) -> str:
    """JSON as it is, or written anew when that is enough for readers to take it."""
    if not isinstance(value, str):
        raise _Unfit("it is no JSON")
    fault = _fault(table, name, value)
    if fault is None:
        return value
    if name != "arguments":  # those stay the characters of the model
        try:
            again = whole_text(json.dumps(plain(json.loads(value)), ensure_ascii=False))
        except (ValueError, RecursionError):
            again = ""
        if _fault(table, name, again) is None:
            return again
    raise _Unfit(fault)


def _fault(table: str, name: str, text: str) -> str | None:
    try:
        check_readable(table, [{name: text}])
    except (SchemaError, UnicodeError, RecursionError) as error:
        return str(error)
    return None


def _word(words: frozenset[str], value: Any) -> str:
    if value in words:
        return str(value)
    raise _Unfit(f"{_shown(value)} is none of {', '.join(sorted(words))}")


def _counted(fit: Callable[[Any], Any], value: Any) -> Any:
    result = fit(value)
    if result < 0:
        raise _Unfit(f"{_shown(value)} is less than nothing")
    return result


def _whole(bits: int, value: Any) -> int:
    if type(value) is not int and (not isinstance(value, Integral) or isinstance(value, bool)):
        raise _Unfit(f"{_shown(value)} is no whole number")
    number = int(value)
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise _Unfit(f"it is no number of {bits} bits")
    return value if type(value) is int else number


def _number(value: Any) -> float:
    if type(value) is float and math.isfinite(value):
        return value
    if not isinstance(value, Real) or isinstance(value, bool):
        raise _Unfit(f"{_shown(value)} is no number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise _Unfit(f"{number} is no finite number")
    return number


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise _Unfit(f"{_shown(value)} is neither true nor false")


def _texts(values: Any) -> list[str]:
    if not isinstance(values, list) or any(not isinstance(value, str) for value in values):
        raise _Unfit("it is no list of texts")
    whole_texts = [whole_text(value) for value in values]
    return values if whole_texts == values else whole_texts


def _numbers(fit: Callable[[Any], Any], values: Any) -> Any:
    """A list of which each value belongs to a token: all of it, or none."""
    if not isinstance(values, list):
        raise _Unfit("it is no list")
    for value in values:
        fit(value)
    return values


def _logarithm(value: Any) -> float:
    """A log probability: minus infinity is one."""
    if not isinstance(value, float | int) or isinstance(value, bool) or value != value:
        raise _Unfit(f"{_shown(value)} is no log probability")
    return value


_FITS: dict[str, Callable[[Any], Any]] = {
    "string": _text,
    "bool": _flag,
    "double": _number,
    "int32": functools.partial(_whole, 32),
    "int64": functools.partial(_whole, 64),
    "list<item: string>": _texts,
    "list<item: double>": functools.partial(_numbers, _logarithm),
    "list<item: int32>": functools.partial(_numbers, functools.partial(_whole, 32)),
    "list<item: int64>": functools.partial(_numbers, functools.partial(_whole, 64)),
}


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:  # foreign objects may not even be shown
        text = type(value).__name__
    return text if len(text) <= 60 else f"{text[:57]}..."
