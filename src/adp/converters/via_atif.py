"""A hop through ATIF: what a trajectory had before, as far as its record says so.

ATIF has free keys at every level, so the keys that a trajectory of another format has in
``extra`` are written there and read back. ``$shape`` of the trajectory says which format that
was, and what was made for the record. The form of the source is not kept: the format writes the
trajectory as a foreign one, with its own keys in it.
"""

from __future__ import annotations

from typing import Any

from adp_schema import jsontext
from adp_schema.extra_column import Extra, unpack
from adp_schema.model import Observation, Step, ToolCall, Trajectory

ATIF = "atif"
FORMATS = frozenset({"adp_rollout", "adp_v1", "m3", "openai_chat", "preference", "sharegpt", "sts"})
"""What a record of ATIF may say that its trajectory was read from; rollouts are recorded."""

FORM = "origin"
"""Key of ``$shape`` for the format that a trajectory had before the hop."""

MADE = "made"
"""Key of ``$shape`` for the columns that were empty, and were made for the record."""

MADE_COLUMNS = ("source_id", "call_id", "final_metrics", "target_path", "timestamp_text")
"""Columns that `MADE` may name."""

EMPTY_AGAIN = ("target_path", "timestamp_text")
"""Those of them that are empty in the store again; the others are where a format is written."""


_FORM_KEYS = ("$shape", "$null", "$absent", "$parsed")


def came_from(run: Trajectory, name: str) -> bool:
    """Whether a trajectory went from a format through ATIF: keys of ``extra`` are that format's."""
    return _form(run).get(FORM) == name


def kept_extra(text: str | None, taken: frozenset[str], *, native: bool) -> Extra:
    """``extra`` of a row that is written as a foreign one: without the form of its source.

    Args:
        text: the column.
        taken: keys that columns are written under; one of ``extra`` gets a ``_`` behind it.
        native: whether the keys of ``extra`` are the format's own; see `came_from`.
    """
    result = unpack(text)
    fields = result.fields if native else {}
    names = {name: f"{name}_" if name in taken else name for name in fields}
    return Extra(
        fields={names[name]: value for name, value in fields.items()}, escaped=result.escaped
    )


def without_form(text: str | None, shape: dict[str, Any] | None = None) -> str | None:
    """``extra`` of a row without the form of its source, and without what was null or absent there.

    Args:
        text: the column.
        shape: the form that it gets.
    """
    values = {} if text is None else jsontext.decode_object(text.encode("utf-8"))
    kept: dict[str, Any] = {name: value for name, value in values.items() if name not in _FORM_KEYS}
    if shape:
        kept["$shape"] = shape
    return jsontext.text_of(kept) if kept else None


def as_foreign(run: Trajectory) -> bool:
    """Make a trajectory that was parsed after it was read one that its format writes as foreign.

    So calls that stood in texts are written as the format's own calls, with the tools that a recipe
    gave it, and not as the texts that they stood in.

    Returns:
        Whether it was parsed; else it stays as it is.
    """
    rows: list[Step | Observation | ToolCall] = [*run.early_observations, *run.steps]
    rows += [observation for step in run.steps for observation in step.observations]
    if not any('"$parsed"' in (row.extra or "") for row in (run, *rows)):
        return False
    rows += [call for step in run.steps for call in step.calls]
    for row in rows:
        row.extra = without_form(row.extra)
    run.extra = without_form(run.extra, {FORM: run.source_format})
    run.source_format = ATIF
    for branch in run.branches:
        as_foreign(branch)
    return True


def without_made(run: Trajectory) -> None:
    """Take away what was made for a record of ATIF only, of a trajectory and its branches."""
    for branch in run.branches:
        without_made(branch)
    made = _form(run).get(MADE, ())
    for column in made:
        if column not in ("call_id", *EMPTY_AGAIN):
            setattr(run, column, None)
    if "call_id" not in made:
        return
    rows = list(run.early_observations)
    for step in run.steps:
        rows += step.observations
        for call in step.calls:
            call.call_id = call.native_id = None
    for row in rows:
        if row.call is not None:
            row.call_id = row.native_call_id = None


def _form(run: Trajectory) -> dict[str, Any]:
    if run.source_format != ATIF or f'"{FORM}"' not in (run.extra or ""):
        return {}
    return unpack(run.extra).shape
