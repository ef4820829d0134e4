"""A trajectory that was of this format before it went through ATIF, as reading it here gives it.

Its columns and its own keys are there; the form of its source is not. The usual form is put in its
place, so that it is written by `adp.converters.sharegpt.write` like one that was read here.
"""

from __future__ import annotations

from typing import Any, TypeVar

from adp.converters.sharegpt import keys as k
from adp.converters.via_atif import came_from, without_form
from adp_schema.extra_column import unpack
from adp_schema.model import Pair, Row, Step, Trajectory

_Row = TypeVar("_Row", bound=Row)


def is_returned(run: Trajectory) -> bool:
    """Whether a trajectory was of this format before it went through ATIF."""
    return came_from(run, k.NAME)


def returned(run: Trajectory) -> Trajectory:
    """A trajectory of ATIF as one of this format, with the answers of a pair where they stand."""
    branch = _rejected(run)
    last = len(run.steps) - 1
    steps = [
        _step(step, _at(run, step, has_pair=branch is not None) if index in (0, last) else None)
        for index, step in enumerate(run.steps)
    ]
    branches = [
        _branch(item, "rejected" if item is branch else None) if is_returned(item) else item
        for item in run.branches
    ]
    shape = _names(run)
    taken = unpack(run.extra).fields
    listed = next((name for name in k.LISTS if name not in taken), k.LISTS[0])
    if listed != k.LISTS[0]:
        shape["list"] = listed
    if run.tools_origin == "parsed":
        shape["tools"] = "text"
    return _made(run, shape, {"steps": steps, "branches": branches})


def _branch(run: Trajectory, at: str | None) -> Trajectory:
    steps = [_step(step, at) for step in run.steps]
    return _made(run, {} if at is None else {"at": at}, {"steps": steps})


def _made(run: Trajectory, shape: dict[str, Any], columns: dict[str, Any]) -> Trajectory:
    rows = {"early_observations": [_row(row) for row in run.early_observations], **columns}
    return _row(run, shape, {"source_format": k.NAME, **rows})


def _row(row: _Row, shape: dict[str, Any] | None = None, columns: Any = None) -> _Row:
    extra = without_form(row.extra, shape)  # type: ignore[attr-defined]
    return row.model_copy(update={"extra": extra, **(columns or {})})


def _step(step: Step, at: str | None) -> Step:
    """A step in the usual form, with its calls as the only ones of its text or behind it."""
    fields = unpack(step.extra).fields
    shape: dict[str, Any] = {} if at is None else {"at": at}
    free = [
        next((name for name in names if name not in fields), names[0])
        for names in (k.ROLE_KEYS, k.VALUE_KEYS)
    ]
    if fields and tuple(free) != k.TURN:
        shape["keys"] = free
    for name, names in (("reasoning", k.REASONING_KEYS), ("weight", ("weight", *k.WEIGHT_KEYS))):
        key = next((item for item in names if item not in fields), names[0])
        if key != names[0]:
            shape[name] = key
    text = step.text if step.prose is None else step.prose
    if step.calls and not text:
        shape["role"] = "function_call"
    columns = {
        "text": text,
        "calls": [_row(call, None, {"span_start": None, "span_end": None}) for call in step.calls],
        "observations": [_row(row) for row in step.observations],
    }
    return _row(step, shape, columns)


def _at(run: Trajectory, step: Step, *, has_pair: bool) -> str | None:
    """The column of the record that the first or the last step is."""
    if has_pair and step is run.steps[-1]:
        return "chosen"
    columns = (step.extra, step.content, step.actor, step.loss_weight, step.reasoning)
    plain = columns == (None,) * len(columns) and not step.calls and not step.observations
    return "system" if step.source == "system" and plain and step.text else None


def _rejected(run: Trajectory) -> Trajectory | None:
    """The branch that is the other answer to what the last step of a run answers."""
    from adp.converters.sharegpt.read import pair_of

    last = run.steps[-1] if run.steps else None
    for branch in run.branches if last is not None and not last.observations else ():
        alone = len(branch.steps) == 1 and not branch.steps[0].observations
        read = pair_of(run.trajectory_id, branch.trajectory_id, last.step or 0) if last else {}
        if alone and is_returned(branch) and any(_says(pair, read) for pair in run.pairs):
            return branch
    return None


def _says(pair: Pair, read: dict[str, Any]) -> bool:
    return all(getattr(pair, name) == value for name, value in read.items() if name != "pair_id")


def _names(run: Trajectory) -> dict[str, Any]:
    """The form that says keys of columns, where the usual ones are the source's own."""
    taken = unpack(run.extra).fields
    names = {
        column: next((name for name in keys if name not in taken), keys[0])
        for column, keys, _ in k.RECORD_FIELDS
    }
    usual = {column: keys[0] for column, keys, _ in k.RECORD_FIELDS}
    other = {column: name for column, name in names.items() if name != usual[column]}
    return {"fields": other} if other else {}
