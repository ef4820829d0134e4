"""Where the rows of two readings differ: the places that keep a value, and what they are."""

from __future__ import annotations

import json
from typing import Any

from adp_schema.extra_column import RESERVED

NATIVE = "native"
EXTRA = "extra"
FORM = "form"
STRUCTURE = "structure"
LOST = "lost"

VERDICTS = {
    NATIVE: "a column of its own holds the value; in another format: it comes back in that column",
    EXTRA: "the column `extra` keeps it, and the same format writes it again",
    FORM: "how the source wrote it; kept for the same format, and no other format needs it",
    STRUCTURE: "it says what the object is, and so which rows come out",
    LOST: "not kept; the report of losses says so",
}
"""Verdict -> what it means. Another format may also give ``to TABLE.COLUMN``: kept, elsewhere."""

RANK = (NATIVE, EXTRA, FORM)
_IGNORED = frozenset(
    {
        *("seq", "trajectory_id", "losses", "media_id", "size", "parent_id"),
        *("pair_id", "context_id", "chosen_id", "rejected_id"),
    }
)
_FORM_OF_PART = frozenset({"$keys", "$form", "$source", "$extra"})

Place = tuple[str, int, str]
"""Table, number of the row, column."""
Rows = dict[str, list[dict[str, Any]]]


def differences(first: Rows, second: Rows) -> list[Place] | None:
    """The places where rows differ; None when there are other rows. Blobs are one place."""
    places: list[Place] = []
    for table, rows in first.items():
        if table == "media":
            if _blobs(rows) != _blobs(second[table]):
                places.append(("media", -1, "data"))
            continue
        if len(rows) != len(second[table]):
            return None
        for index, (row, other) in enumerate(zip(rows, second[table], strict=True)):
            places += [
                (table, index, column)
                for column, value in row.items()
                if column not in _IGNORED and value != other[column]
            ]
    return places


def _blobs(rows: list[dict[str, Any]]) -> set[tuple[Any, ...]]:
    return {(row["data"], row["mime"], row["uri"]) for row in rows}


def verdict_of(first: Rows, second: Rows, places: list[Place]) -> str:
    """How rows keep a value that makes them differ in these places."""
    kinds = [_kind_of_place(first, second, place) for place in places]
    return next((verdict for verdict in RANK if verdict in kinds), LOST)


def _kind_of_place(first: Rows, second: Rows, place: Place) -> str:
    table, _, column = place
    if column == "extra":
        return FORM if all(key in RESERVED for key in _keys(first, second, place)) else EXTRA
    if column == "content" and table in ("steps", "observations"):
        keys = _part_keys(first, second, place)
        if keys is not None:
            return FORM if keys <= _FORM_OF_PART else EXTRA
    return NATIVE


def _keys(first: Rows, second: Rows, place: Place) -> list[str]:
    """Keys of ``extra`` that differ."""
    table, index, column = place
    old, new = (json.loads(rows[table][index][column] or "{}") for rows in (first, second))
    return [key for key in {**old, **new} if old.get(key) != new.get(key)]


def _part_keys(first: Rows, second: Rows, place: Place) -> set[str] | None:
    """Keys of the ``extra`` of parts that differ; None when the parts differ in more."""
    table, index, column = place
    old, new = (json.loads(rows[table][index][column] or "[]") for rows in (first, second))
    if len(old) != len(new):
        return None
    keys: set[str] = set()
    for part, other in zip(old, new, strict=True):
        if {**part, "extra": 0} != {**other, "extra": 0}:
            return None
        before, after = part.get("extra", {}), other.get("extra", {})
        keys |= {key for key in {**before, **after} if before.get(key) != after.get(key)}
    return keys


def kept_in(first: Rows, second: Rows, places: list[Place], value: Any, verdict: str) -> list[str]:
    """Names of the columns that keep a value: those that show it, else all that depend on it."""
    chosen = [place for place in places if _kind_of_place(first, second, place) == verdict]
    showing = [place for place in chosen if _shows(first, place, value)]
    names: dict[str, None] = {}
    for place in showing or chosen:
        table, _, column = place
        keys = [""]
        if column == "extra" and verdict == EXTRA:
            result = _keys(first, second, place)
            keys = [f".{key}" for key in result if key not in RESERVED]
        names.update(dict.fromkeys(f"{table}.{column}{key}" for key in keys))
    return list(names)


def _shows(rows: Rows, place: Place, value: Any) -> bool:
    table, index, column = place
    cell = value if table == "media" else rows[table][index][column]
    if isinstance(cell, str):
        return (value if isinstance(value, str) else json.dumps(value)) in cell
    return cell is not None and cell == value


def hub_paths(rows: Rows, place: Place) -> list[str]:
    """Where a place is in a trajectory, as reports of losses may name it.

    A branch has two paths: inside its main line, and as a record of its own.
    """
    table, index, column = place
    if table == "media":
        return ["$.media"]
    row = rows[table][index]
    runs = rows["trajectories"]
    seqs = [run["seq"] for run in runs]
    number = seqs.index(row["seq"]) if row.get("seq") in seqs else 0
    step = row.get("step")
    if step is not None and step >= 0 and table != "links":
        siblings = [other["step"] for other in rows["steps"] if other["seq"] == row["seq"]]
        step = siblings.index(step) if step in siblings else step
    if table == "trajectories":
        text = ""
    elif table == "tasks":
        text = ".task"
    elif table == "steps":
        text = f".steps[{step}]"
    elif table == "tool_calls":
        text = f".steps[{step}].calls[{row['call']}]"
    elif table == "observations":
        early = step is None or step < 0
        holder = f".early_observations[{row['order']}]"
        text = holder if early else f".steps[{step}].observations[{row['order']}]"
    else:
        before = [other for other in rows[table][:index] if other.get("seq") == row.get("seq")]
        text = f".{table}[{len(before)}]"
    return [f"${text}.{column}", f"{_run_path(runs, number)}{text}.{column}"]


def _run_path(runs: list[dict[str, Any]], number: int) -> str:
    """Path of a trajectory: ``$``, or where it is among the branches of its parent."""
    parent_id = runs[number]["parent_id"]
    for parent, run in enumerate(runs[:number]):
        if parent_id is not None and run["trajectory_id"] == parent_id:
            before = [other for other in runs[:number] if other["parent_id"] == parent_id]
            return f"{_run_path(runs, parent)}.branches[{len(before)}]"
    return "$"
