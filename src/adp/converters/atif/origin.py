"""What ``extra.adp`` of a trajectory says beside columns: its format before ATIF, and its pairs.

- ``source_format``: the format that it was read from before it was written as ATIF;
- ``made``: columns that were empty, and got what ATIF needs or says of other columns;
- ``pairs``: preference pairs by columns. A trajectory stands there as a number: 0 is the one of
  the record, then follow the embedded ones, each before those that are embedded in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa
from msgspec import Raw

from adp.converters.atif.column_values import read_value, same_json, write_value
from adp.converters.atif.early_observations import returns_early
from adp.converters.atif.keys import TOTAL_COLUMNS
from adp.converters.reading import BRACE, BRACKET
from adp.converters.via_atif import FORM, FORMATS, MADE, MADE_COLUMNS
from adp_schema import jsontext
from adp_schema.extra_column import Extra
from adp_schema.model import Columns, Pair, Trajectory
from adp_schema.tables import ENUMS, columns_of

_PAIRS = "pairs"
_SIDES = ("context_id", "chosen_id", "rejected_id")
_NAMES = ("source_format", MADE, _PAIRS)


def write_origin(run: Trajectory, extra: Extra) -> dict[str, Any]:
    """The format that a trajectory had before ATIF, and which ids were made for the record."""
    name, made = run.source_format, extra.shape.get(MADE)
    if FORM in extra.shape:
        name = extra.shape[FORM]
    elif name in FORMATS:
        calls = [call for step in run.steps for call in step.calls]
        continued = next((link for link in run.links if link.kind == "continuation"), None)
        without = {
            "source_id": run.source_id is None,
            "final_metrics": run.final_metrics is None
            and any(getattr(run, column) is not None for column in TOTAL_COLUMNS.values()),
            "call_id": bool(calls) and all(call.call_id is None for call in calls),
            "target_path": continued is not None and continued.target_path is None,
            "timestamp_text": any(step.timestamp is not None for step in run.steps)
            and all(step.timestamp_text is None for step in run.steps),
        }
        made = [column for column in MADE_COLUMNS if without[column]]
    if name not in FORMATS:
        return {}
    return {"source_format": name, MADE: made} if made else {"source_format": name}


def write_pairs(run: Trajectory) -> list[dict[str, Any]]:
    """The pairs of a trajectory and of those in it, for the record that embeds them."""
    numbers = {name: number for number, name in enumerate(_ids(run))}
    out: dict[str | None, dict[str, Any]] = {}
    for pair in _pairs_within(run):
        values: dict[str, Any] = {}
        for column, field in columns_of(Pair).items():
            value = getattr(pair, column)
            if value is not None:
                number = numbers.get(value) if column in (*_SIDES, "pair_id") else None
                values[column] = write_value(value, field, run.media) if number is None else number
        out.setdefault(pair.pair_id, values)
    return list(out.values())


def pair_columns(run: Trajectory, pair: Pair) -> frozenset[str]:
    """The columns of a pair that the record of a trajectory says: all, or none of them."""
    sides = {getattr(pair, column) for column in _SIDES} - {None}
    full = sides <= set(_ids(run)) and pair.pair_id is not None
    # Early observations that stay a step move the steps that a pair counts.
    if not full or not all(map(returns_early, _runs(run))):
        return frozenset()
    return frozenset(columns_of(Pair))


def _pairs_within(run: Trajectory) -> Iterator[Pair]:
    for item in _runs(run):
        yield from (pair for pair in item.pairs if pair_columns(item, pair))


def _runs(run: Trajectory) -> Iterator[Trajectory]:
    yield run
    for branch in run.branches:
        yield from _runs(branch)


def _ids(run: Trajectory) -> list[str | None]:
    return [item.trajectory_id for item in _runs(run)]


def read_origin(raw: Raw, form: dict[str, Any], embedded: list[Raw] | None) -> Raw | None:
    """Move what is no column out of the ``extra.adp`` of a trajectory.

    Args:
        raw: the object.
        form: takes `FORM`, `MADE`, and the pairs for `take_pairs`.
        embedded: the embedded trajectories of a record; None for one that is embedded itself.

    Returns:
        The object of columns that is left, None when nothing is; or ``raw``, when it is not what
        `write_origin` and `write_pairs` write.
    """
    values = jsontext.decode_object(raw)
    names = [name for name in _NAMES if name in values]
    if not names or list(values)[: len(names)] != names:
        return raw
    try:
        results = {
            name: jsontext.decode_value(values.pop(name)) for name in names if name != _PAIRS
        }
        pairs = _read_pairs(values.pop(_PAIRS), embedded) if _PAIRS in names else []
    except (msgspec.DecodeError, ValueError, OverflowError):
        return raw
    name, made = results.get("source_format"), results.get(MADE)
    if "source_format" in results and (not isinstance(name, str) or name not in FORMATS):
        return raw
    usual = isinstance(made, list) and made and [n for n in MADE_COLUMNS if n in made] == made
    if MADE in results and not (usual and name):
        return raw
    form |= {key: value for key, value in ((FORM, name), (MADE, made), (_PAIRS, pairs)) if value}
    return Raw(jsontext.encode(values)) if values else None


def drop_origin(form: dict[str, Any]) -> None:
    """Forget what `read_origin` found."""
    for name in (FORM, MADE, _PAIRS):
        form.pop(name, None)


def take_pairs(form: dict[str, Any]) -> list[Columns]:
    """The pairs that `read_origin` found, with numbers for trajectories."""
    pairs: list[Columns] = form.pop(_PAIRS, [])
    return pairs


def named_pair(pair: Columns, ids: list[str]) -> Columns:
    """A pair with the ids of trajectories for their numbers."""
    names = (*_SIDES, "pair_id")
    return {
        key: ids[value] if key in names and isinstance(value, int) else value
        for key, value in pair.items()
    }


def _read_pairs(raw: Raw, embedded: list[Raw] | None) -> list[Columns]:
    """The pairs of a list.

    Raises:
        ValueError: it is not what `write_pairs` writes.
    """
    if embedded is None or jsontext.first_byte(raw) != BRACKET:
        raise ValueError("no list of pairs of a record")
    limit = 1 + _count(embedded)
    pairs = [_read_pair(item, limit) for item in jsontext.decode_array(raw)]
    if not pairs:
        raise ValueError("no pairs")
    return pairs


def _read_pair(raw: Raw, limit: int) -> Columns:
    fields = columns_of(Pair)
    values = jsontext.decode_object(raw) if jsontext.first_byte(raw) == BRACE else {}
    if list(values) != [name for name in fields if name in values] or "pair_id" not in values:
        raise ValueError("no pair")
    out: Columns = {}
    for name, value in values.items():
        number = jsontext.decode_value(value) if name in (*_SIDES, "pair_id") else None
        if type(number) is int:
            out[name] = number if 0 <= number < limit else None
        elif name not in _SIDES:
            out[name] = read_value(value, fields[name], ENUMS.get((_PAIRS, name)))
    if len(out) != len(values) or None in out.values():
        raise ValueError("a value that no column has")
    again = {name: _again(value, fields[name]) for name, value in out.items()}
    if not same_json(jsontext.encode(again), bytes(raw)):
        raise ValueError("not as it is written")
    return out


def _again(value: Any, field: pa.Field) -> Any:
    return value if isinstance(value, int) else write_value(value, field, {})


def _count(embedded: list[Raw]) -> int:
    """Number of embedded trajectories, at any depth."""
    total = 0
    for item in embedded:
        subagent_trajectories = jsontext.decode_object(item).get("subagent_trajectories", Raw())
        listed = jsontext.first_byte(subagent_trajectories) == BRACKET
        total += 1 + (_count(jsontext.decode_array(subagent_trajectories)) if listed else 0)
    return total
