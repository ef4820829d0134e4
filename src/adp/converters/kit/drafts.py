"""A trajectory while its log is read: later lines may still add to what earlier ones began."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from msgspec import Raw

from adp.converters.kit.source_object import SourceObject
from adp_schema import extra_column
from adp_schema.builder import RowBuilder
from adp_schema.model import Columns
from adp_schema.parts import Parts

_BLOCK = 128
_STEP_COLUMNS = ("edit_from", "edit_to")


@dataclass(slots=True)
class ObservationDraft:
    """What came back.

    Attributes:
        columns: its columns; those of ``parts`` and ``extra`` are added. A step under ``call_step``
            stands for its number, where the source keeps a result inside its call.
        answers: the call id that the source wrote.
        by_order: without an id it answers the oldest open call of the last calling step.
        parts: its content.
        extra: what no column holds.
    """

    columns: Columns = field(default_factory=dict)
    answers: str | None = None
    by_order: bool = False
    parts: Parts = field(default_factory=Parts)
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class CallDraft:
    """A call of a step, with what no column holds."""

    columns: Columns
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class StepDraft:
    """A step, its calls, and the observations that arrived after it.

    Attributes:
        columns: its columns; those of ``parts`` and ``extra`` are added. A step under ``edit_from``
            or ``edit_to`` stands for its number.
        parts: text, reasoning, media and calls in the order of the source.
        extra: what no column holds.
        number: its number in the store, once it was written.
    """

    columns: Columns
    parts: Parts = field(default_factory=Parts)
    calls: list[CallDraft] = field(default_factory=list)
    observations: list[ObservationDraft] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict)
    number: int = -1

    def call(self, columns: Columns, extra: dict[str, Any] | None = None) -> CallDraft:
        """Add a call, which stands in the order of the parts."""
        draft = CallDraft(columns, extra or {})
        self.parts.call(len(self.calls))
        self.calls.append(draft)
        return draft


@dataclass(slots=True)
class LinkDraft:
    """A reference to another trajectory, from a step or from the whole."""

    columns: Columns
    step: StepDraft | None = None


@dataclass(slots=True)
class TrajectoryDraft:
    """A trajectory.

    Attributes:
        columns: its columns; ``extra`` is added.
        extra: what no column holds.
        steps: its steps.
        early: observations before the first step.
        links: references to other trajectories.
        branches: trajectories that start from this one, with how many of its steps they keep
            (None: all) in ``keeps``.
        keeps: see ``branches``.
        kind: ``branch_kind`` of a branch.
    """

    columns: Columns = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)
    steps: list[StepDraft] = field(default_factory=list)
    early: list[ObservationDraft] = field(default_factory=list)
    links: list[LinkDraft] = field(default_factory=list)
    branches: list[TrajectoryDraft] = field(default_factory=list)
    keeps: int | None = None
    kind: str = "alternate"
    _constants: dict[str, Raw] = field(default_factory=dict)

    def step(self, source: str, kind: str = "message", **columns: Any) -> StepDraft:
        """Add a step at the end."""
        draft = StepDraft({"source": source, "kind": kind, **columns})
        self.steps.append(draft)
        return draft

    def event(self, source: SourceObject, columns: Columns | None = None) -> StepDraft:
        """Keep an object of the source that is no message: a step that no model sees."""
        draft = self.step("environment", "event", visibility="none", **(columns or {}))
        draft.extra.update(source.rest())
        return draft

    def observe(
        self, columns: Columns, *, answers: str | None = None, by_order: bool = False
    ) -> ObservationDraft:
        """Add an observation after the last step, or before the first one."""
        draft = ObservationDraft(columns, answers, by_order and answers is None)
        self.observations.append(draft)
        return draft

    @property
    def observations(self) -> list[ObservationDraft]:
        """The list that the next observation goes to: that of the last step, or ``early``."""
        return self.steps[-1].observations if self.steps else self.early

    def branch(self, keeps: int | None, kind: str, **columns: Any) -> TrajectoryDraft:
        """Add a trajectory that starts from this one; ``keeps`` and ``kind`` are its fields."""
        draft = TrajectoryDraft(columns, keeps=keeps, kind=kind)
        self.branches.append(draft)
        return draft

    def summarised(self, step: StepDraft) -> StepDraft:
        """Add the context edit of a message that is the summary of what stands before it."""
        return self.step("system", "context_edit", edit_boundary="replace", synthetic=True,
                         edit_summary=step.parts.columns().get("text"))  # fmt: skip

    def roll_back(self, edit: StepDraft, count: int) -> None:
        """Set the range that a rollback keeps: all before the last ``count`` prompts of a user."""
        prompts = [step for step in self.steps
                   if step.columns["source"] == "user" and step is not edit
                   and not step.columns.get("synthetic")]  # fmt: skip
        if 0 < count <= len(prompts):
            edit.columns["edit_from"], edit.columns["edit_to"] = self.steps[0], prompts[-count]

    def link(self, kind: str, step: StepDraft | None = None, **columns: Any) -> None:
        """Refer to another trajectory: a subagent, a continuation, a fork or a compaction."""
        self.links.append(LinkDraft({"kind": kind, **columns}, step))

    def constant(self, source: SourceObject, *keys: str) -> None:
        """Keep values that most objects of a log repeat once, with the trajectory.

        A value that differs from the one that was kept stays in the object, for its ``extra``.
        """
        values, constants = source.values, self._constants
        for key in keys:
            raw = values.get(key)
            if raw is None:
                continue
            kept = constants.get(key)
            if kept is None:
                constants[key] = raw
                self.extra.setdefault(key, raw)
            elif kept != raw:
                continue
            del values[key]


def emit(
    draft: TrajectoryDraft, builder: RowBuilder, parent: Mapping[str, Any] | None = None
) -> str:
    """Write a trajectory and its branches, and return its id.

    Args:
        draft: the trajectory.
        builder: takes the rows.
        parent: columns that say where it starts from.
    """
    columns = {**draft.columns, **(parent or {})}
    _set_extra(columns, draft.extra)
    builder.trajectory(columns)
    for observation in draft.early:
        _emit_observation(observation, builder)
    for number, step in enumerate(draft.steps, 1):
        _emit_step(step, builder)
        if not number % _BLOCK:  # while the rows are still in the processor's cache
            builder.settle()
    for link in draft.links:
        numbered = {} if link.step is None else {"step": link.step.number}
        builder.link({**numbered, **link.columns})
    kept = builder.next_step
    trajectory_id = builder.finish()
    for branch in draft.branches:
        start = kept if branch.keeps is None else branch.keeps
        origin = {"parent_id": trajectory_id, "parent_step": start, "branch_kind": branch.kind}
        emit(branch, builder, origin)
    return trajectory_id


def _emit_step(step: StepDraft, builder: RowBuilder) -> None:
    step.number = builder.next_step  # an edit may refer to itself
    columns = {**step.columns, **step.parts.columns()}
    for name in _STEP_COLUMNS:
        if isinstance(columns.get(name), StepDraft):
            columns[name] = columns[name].number
    _set_extra(columns, step.extra)
    step.number = builder.step(columns)
    for call in step.calls:
        _set_extra(call.columns, call.extra)
        builder.call(call.columns)
    for observation in step.observations:
        _emit_observation(observation, builder)


def _emit_observation(draft: ObservationDraft, builder: RowBuilder) -> None:
    columns = {"source": "environment", **draft.columns, **draft.parts.columns()}
    caller = columns.get("call_step")
    if caller is not None:
        columns["call_step"] = caller.number
    _set_extra(columns, draft.extra)
    builder.observation(columns, answers=draft.answers, by_order=draft.by_order)


def _set_extra(columns: Columns, extra: dict[str, Any]) -> None:
    if extra:
        columns["extra"] = extra_column.pack(extra)


def merge_extra(target: dict[str, Any], more: dict[str, Any]) -> None:
    """Add to ``extra`` what a later object of the source says; equal values stand once.

    A value that differs from the first one is kept in a list under ``key#2`` and so on.
    """
    if target.keys().isdisjoint(more):
        target.update(more)
        return
    for key, value in more.items():
        name, number = key, 1
        while name in target and not _is_equal(target[name], value):
            number += 1
            name = f"{key}#{number}"
        target[name] = value


def append_extra(target: dict[str, Any], key: str, item: Any) -> None:
    """Add an item to a list in ``extra``; a value of the source with its name stays beside it."""
    name, number = key, 1
    while not isinstance(target.setdefault(name, []), list):
        number += 1
        name = f"{key}#{number}"
    target[name].append(item)


def _is_equal(first: Any, second: Any) -> bool:
    if isinstance(first, Raw) and isinstance(second, Raw) and first == second:
        return True
    return _text(first) == _text(second)


def _text(value: Any) -> str:
    return extra_column.pack({"value": value}) or ""
