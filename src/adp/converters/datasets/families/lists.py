"""Rows with parallel lists: actions, observations, rewards and thoughts, number by number."""

from __future__ import annotations

from msgspec import Raw

from adp.converters.datasets.actions import act, observe
from adp.converters.datasets.families.messages import item_object
from adp.converters.datasets.reader_specs import ActionSpec, ListsSpec, ObservationSpec
from adp.converters.datasets.turns import DatasetRow
from adp.converters.kit.drafts import ObservationDraft, StepDraft
from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import BRACE, NULL, NUMBER
from adp_schema import jsontext
from adp_schema.errors import RecordError

_ACTION, _SEEN, _THOUGHT = "action", "observation", "thought"


def read(row: DatasetRow) -> None:
    """Read the lists of a row.

    Raises:
        RecordError: there are no actions.
    """
    spec = row.recipe.lists
    for path in spec.system:
        if text := row.take_text(path):
            row.say("system", text)
    for path in spec.task:
        if text := row.take_text(path):
            row.say("user", text)
    if spec.steps is not None:
        _objects(row, spec, spec.steps)
    else:
        _zipped(row, spec)


def _objects(row: DatasetRow, spec: ListsSpec, path: str) -> None:
    """A list of objects, each of them an action and what came of it."""
    items = list(row.rows) if path == "$" else [
        item_object(raw, f"$.{path}[{n}]", row) for n, raw in enumerate(row.items(path))
    ]  # fmt: skip
    if path == "$":
        row.rows = []
    if not items:
        raise RecordError("there are no steps", f"$.{path}")
    for item in items:
        before = observe(row, item, spec.observation) if spec.before else None
        step = act(row, item, spec.action)
        after = None if spec.before else observe(row, item, spec.observation)
        _keep(row, item, step or before or after)


def _keep(row: DatasetRow, item: SourceObject, target: StepDraft | ObservationDraft | None) -> None:
    rest = item.rest()
    if rest and target is None:
        target = row.run.step("environment", "event", visibility="none")
    if rest and target is not None:
        target.extra.update(rest)


def _zipped(row: DatasetRow, spec: ListsSpec) -> None:
    """Lists of one length; where one is longer, its items are kept at the end."""
    lists = {
        name: row.items(path)
        for name, path in (
            (_ACTION, spec.actions), (_SEEN, spec.observations), (_THOUGHT, spec.thoughts),
            ("reward", spec.rewards), *((path.rpartition(".")[2], path) for path in spec.others),
        )
        if path is not None
    }  # fmt: skip
    if not lists.get(_ACTION) and not lists.get(_SEEN):
        raise RecordError("there are no actions", f"$.{spec.actions}")
    for number in range(max(map(len, lists.values()))):
        item = SourceObject(None, f"$[{number}]", row.losses)
        item.values = {
            name: values[number]
            for name, values in lists.items()
            if number < len(values) and jsontext.first_byte(values[number]) != NULL
        }
        _step(row, spec, item)


def _step(row: DatasetRow, spec: ListsSpec, item: SourceObject) -> None:
    before = _seen(row, spec, item) if spec.before else None
    reward = item.number("reward") if item.first("reward") in NUMBER else None
    step = act(row, item, _action(spec, item.values.get(_ACTION)))
    after = None if spec.before else _seen(row, spec, item)
    if step is not None and reward is not None:
        step.columns["reward"] = reward
    elif reward is not None:
        item.values["reward"] = Raw(jsontext.encode(reward))
    _keep(row, item, step or before or after)


def _action(spec: ListsSpec, raw: Raw | None) -> ActionSpec:
    """Where the action of a step of parallel lists is: a text, or an object."""
    given = spec.action.model_copy(update={"reasoning": (_THOUGHT,)})
    if raw is not None and jsontext.first_byte(raw) == BRACE:
        return given.model_copy(update={"call": _ACTION, "text": ()})
    return given.model_copy(update={"call": None, "name": None, "text": (_ACTION,)})


def _seen(
    row: DatasetRow, spec: ListsSpec, item: SourceObject
) -> ObservationDraft | StepDraft | None:
    raw = item.values.get(_SEEN)
    if raw is not None and jsontext.first_byte(raw) == BRACE:
        shown = item.take_child(_SEEN)
        draft = observe(row, shown, spec.observation)
        if rest := shown.rest():
            item.values[_SEEN] = jsontext.raw(jsontext.text_of(rest))
        return draft
    return observe(row, item, ObservationSpec(text=(_SEEN,)))
