"""Rows that are steps: those of one run are put together, and no missing step is made up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from msgspec import Raw

from adp.converters.datasets.actions import act, observe
from adp.converters.datasets.families.messages import TurnListReader, item_object
from adp.converters.datasets.paths import holder, look, text_at
from adp.converters.datasets.reader_specs import StepsSpec
from adp.converters.datasets.spec_types import FieldSpec
from adp.converters.datasets.turns import DatasetRow, list_items_of, take_text
from adp.converters.datasets.values import set_fields, value_of
from adp.converters.kit.drafts import merge_extra
from adp.converters.kit.source_object import SourceObject
from adp_schema import jsontext
from adp_schema.errors import RecordError
from adp_schema.model import Trajectory
from adp_schema.protocols import LIST_LINE

OUTCOMES = ("success", "reward", "final_answer", "stop_reason", "terminated", "truncated")
"""Columns whose value is the last one that a row of the run has."""


@dataclass
class StepGroup:
    """The rows of a run.

    Attributes:
        name: what they have in common; None when the file is the run.
        rows: the rows, in order.
        numbers: their numbers in the run; None of those without.
        prefixes: rows that it begins with, without their turns.
    """

    name: str | None
    rows: list[SourceObject] = field(default_factory=list)
    numbers: list[int | None] = field(default_factory=list)
    prefixes: list[SourceObject] = field(default_factory=list)


def groups(row: DatasetRow) -> list[StepGroup]:
    """The runs that the rows of a file belong to, in the order of their first rows.

    A row that says nothing of its run is one by itself.
    """
    spec = row.recipe.steps
    rows, row.rows = row.rows, []
    results: list[StepGroup] = []
    by_name: dict[tuple[str | None, str | None], StepGroup] = {}
    for source in rows:
        name = _value(spec.group, row, source, "text")
        key = (name, _value(spec.group_also, row, source, "text"))
        group = by_name.get(key)
        alone = spec.group is not None and name is None
        if group is None or alone or (spec.runs and results[-1] is not group):
            group = by_name[key] = StepGroup(name)
            results.append(group)
        group.rows.append(source)
        group.numbers.append(_value(spec.order, row, source, "integer"))
    for group in results:
        _sort(group)
    return results


def _value(spec: FieldSpec | None, row: DatasetRow, source: SourceObject, kind: str) -> Any:
    """The value of a group or an order; the row keeps what it says."""
    if spec is None:
        return None
    view = DatasetRow(source.copy(), [], row.recipe, row.builder, row.losses, row.run, row.file,
                      row.key, row.number, around=row.around)  # fmt: skip
    return value_of(spec, view, kind)


def _sort(group: StepGroup) -> None:
    numbers = [number for number in group.numbers if number is not None]
    if len(numbers) == len(group.rows):
        order = sorted(range(len(numbers)), key=numbers.__getitem__)
        group.rows = [group.rows[it] for it in order]
        group.numbers = [group.numbers[it] for it in order]


def read(row: DatasetRow, group: StepGroup) -> None:
    """Read the rows of a run.

    Args:
        row: takes the run.
        group: its rows.

    Raises:
        RecordError: none of them says anything.
    """
    spec = row.recipe.steps
    _same(row, group, spec.system, "system")
    _same(row, group, spec.task, "user")
    known: list[str] = []
    for number, source in enumerate(group.rows):
        first = len(row.run.steps)
        if spec.messages is not None:
            _chat(row, source, spec, known)
        seen = observe(row, source, spec.observation) if spec.before else None
        step = act(row, source, spec.action)
        if not spec.before:
            seen = observe(row, source, spec.observation)
        target = step or seen or (row.run.steps[first] if len(row.run.steps) > first else None)
        rest = source.rest()
        if rest and target is None:
            target = row.run.step("environment", "event", visibility="none")
        if target is not None:
            merge_extra(target.extra, rest)
            if group.numbers[number] is not None:
                target.extra.setdefault("step_number", group.numbers[number])
    if not row.run.steps:
        raise RecordError("no row says what was seen or done")
    if more := [rest for it in group.prefixes if (rest := it.rest())]:
        row.run.extra["prefix_rows"] = more
    if gaps := missing_numbers(group.numbers):
        row.run.extra["missing_steps"] = gaps


def run_views(row: DatasetRow, rows: list[SourceObject]) -> list[SourceObject]:
    """What columns of a run are looked up in: its rows, and under ``$`` all of them as a list."""
    views = [it.copy() for it in rows]
    if row.recipe.looks_into_lists():
        items = Raw(b"[" + b",".join(jsontext.encode(it.values) for it in views) + b"]")
        for view in views:
            view.values[LIST_LINE] = items
    return views


def set_run_fields(row: DatasetRow, views: list[SourceObject]) -> None:
    """Fill the columns of a run: how it ended is what its last rows say, all else the first ones.

    Args:
        row: the run, of which all steps are there.
        views: its rows, as they were.
    """
    fields = row.recipe.fields
    ends = {name: spec for name, spec in fields.items() if name in OUTCOMES}
    others = {name: spec for name, spec in fields.items() if name not in OUTCOMES}
    for specs, order in ((others, views), (ends, views[::-1])):
        for view in order:
            missing = {it: spec for it, spec in specs.items() if row.run.columns.get(it) is None}
            if not missing:
                break
            row.source = view.copy()
            set_fields(missing, row.run.columns, row, Trajectory, late=False)
        row.source = order[0].copy()
        set_fields(specs, row.run.columns, row, Trajectory, late=True)
    row.source = views[0].copy()


def missing_numbers(numbers: list[int | None]) -> list[int]:
    """The numbers between the first possible and the last one that no row has; at most 100."""
    known = {number for number in numbers if number is not None}
    if not known:
        return []
    start = min(0, *known) if 0 in known or 1 not in known else 1
    return [it for it in range(start, max(known)) if it not in known][:100]


def _same(row: DatasetRow, group: StepGroup, paths: tuple[str, ...], source: str) -> None:
    """A text that all rows repeat: said once; rows that say another keep it."""
    for path in paths:
        text = text_at(look(group.rows[0], path)) if group.rows else None
        if not text:
            continue
        for item in group.rows:
            if text_at(look(item, path)) == text:
                take_text(item, path)
        row.say("system" if source == "system" else "user", text)
        return


def _chat(row: DatasetRow, source: SourceObject, spec: StepsSpec, known: list[str]) -> None:
    """The messages of a row, without those that the row before it begins with, too."""
    assert spec.messages is not None
    place = holder(source, spec.messages)
    raw = look(source, spec.messages)
    items = [] if raw is None else list_items_of(raw)
    if place is not None and items:
        place[0].drop(place[1])
    texts = [jsontext.one_line(raw) for raw in items]
    shared = 0
    while shared < min(len(texts), len(known)) and texts[shared] == known[shared]:
        shared += 1
    known[:] = texts
    path = f"{source.path}.{spec.messages}"
    fresh = [item_object(items[it], f"{path}[{it}]", row) for it in range(shared, len(items))]
    TurnListReader(row, row.recipe.messages).read(fresh)
