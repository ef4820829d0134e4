"""What an agent saw and what it did, out of the columns of a step."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Raw

from adp.converters.datasets.paths import holder, look, take, take_object
from adp.converters.datasets.reader_specs import ActionSpec, ObservationSpec
from adp.converters.datasets.turns import DatasetRow, TurnCall, add_call, new_step, take_text
from adp.converters.kit.drafts import ObservationDraft, StepDraft
from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import BRACE, BRACKET, NULL, QUOTE
from adp_schema import jsontext
from adp_schema.parts import JOINT, Parts

_TEXTS = ("axtree", "html", "url")
_JSON = ("annotations", "structured")
_NUMBERS = {"width": "viewport_width", "height": "viewport_height", "reward": "reward"}


def observe(
    row: DatasetRow, source: SourceObject, spec: ObservationSpec
) -> ObservationDraft | StepDraft | None:
    """Add what the agent saw after the step at hand; None when the columns say nothing.

    Words before the first step are one: the prompt.

    Args:
        row: the row, whose run takes it.
        source: what has the columns.
        spec: where they are.
    """
    draft = ObservationDraft({})
    for path in spec.text:
        if (text := take_text(source, path)) is not None:
            draft.parts.text(row.builder.text(text))
    for name in _TEXTS:
        path = getattr(spec, name)
        if path is not None and (text := take_text(source, path)) is not None:
            draft.columns[name] = row.builder.text(text)
    for name in _JSON:
        path = getattr(spec, name)
        raw = None if path is None else take(source, path)
        if raw is not None and jsontext.first_byte(raw) != NULL:
            draft.columns[name] = jsontext.one_line(raw)
    for name, column in _NUMBERS.items():
        path = getattr(spec, name)
        place = None if path is None else holder(source, path)
        if place is not None and (number := place[0].number(place[1])) is not None:
            draft.columns[column] = number
    for path in spec.image:
        add_images(row, source, path, draft.parts)
    if not draft.columns and not draft.parts.columns():
        return None
    if not row.run.steps and not draft.columns:
        # What is shown before anything was said or done is the prompt.
        step = new_step(row.run, "user")
        step.parts = draft.parts
        return step
    draft.by_order = True
    row.run.observations.append(draft)
    return draft


def add_images(row: DatasetRow, source: SourceObject, path: str, parts: Parts) -> None:
    """Add a picture by its path, its address or its bytes; a list has several."""
    place = holder(source, path)
    if place is None:
        return
    node, key = place
    raw = node.values[key]
    items = jsontext.decode_array(raw) if jsontext.first_byte(raw) == BRACKET else [raw]
    texts = [jsontext.decode_value(it) for it in items if jsontext.first_byte(it) == QUOTE]
    if len(texts) < len(items):
        return  # no references: they stay in the row
    if all([row.blocks.reference(text, parts, {}, None) for text in texts if text]):
        node.drop(key)


def act(row: DatasetRow, source: SourceObject, spec: ActionSpec) -> StepDraft | None:
    """Add what the agent did; None when the columns say nothing."""
    thoughts = [text for path in spec.reasoning if (text := take_text(source, path))]
    text = next((it for path in spec.text if (it := take_text(source, path)) is not None), None)
    call = _call(source, spec)
    if text is None and call is None and not thoughts:
        return None
    step = new_step(row.run, "agent")
    if thoughts:  # one part: a step with several parts is not looked through for calls
        step.parts.reasoning(row.builder.text(JOINT.join(thoughts)))
    if text is not None:
        step.parts.text(row.builder.text(text))
        if (worded := _worded_call(text, spec)) is not None:
            add_call(step, worded)
            start, end = worded.span or (0, 0)
            step.columns["prose"] = (text[:start] + text[end:]).strip()
    if call is not None:
        add_call(step, call)
    return step


def _worded_call(text: str, spec: ActionSpec) -> TurnCall | None:
    """The call that words are: one of some forms, or a program."""
    for pattern in spec.patterns:
        match = re.match(pattern.regex, text)
        if match is None:
            continue
        if pattern.code is not None:
            name = pattern.name or pattern.code
            return TurnCall(name, match["code"], kind="code", language=pattern.code,
                            span=match.span())  # fmt: skip
        given = {key: value for key, value in match.groupdict().items() if value is not None}
        return TurnCall(pattern.name, given, kind=spec.kind, span=match.span())
    if spec.code is None or not text:
        return None
    return TurnCall(spec.code, text, kind="code", language=spec.code, span=(0, len(text)))


def _call(source: SourceObject, spec: ActionSpec) -> TurnCall | None:
    """The call that an object or columns are."""
    action = source
    if spec.call is not None:
        raw = look(source, spec.call)
        if raw is None or jsontext.first_byte(raw) == NULL:
            return None
        if jsontext.first_byte(raw) != BRACE:
            text = take_text(source, spec.call)
            return TurnCall(text, None, kind=spec.kind)
        if spec.name is not None and look(source, f"{spec.call}.{spec.name}") is None:
            return None
        action = take_object(source, spec.call)
    if spec.name is None:
        if spec.call is None:
            return None
        name = next(iter(action.values), None)
        return TurnCall(name, action.take(name) if name else None, kind=spec.kind,
                        extra=action.rest())  # fmt: skip
    name = take_text(action, spec.name)
    if name is None:
        return None
    if spec.arguments is not None:
        arguments = take(action, spec.arguments)
        usable = _usable(arguments)
        if spec.kind == "gui" and usable is not None and jsontext.first_byte(usable) != BRACE:
            usable = {spec.arguments.rpartition(".")[2]: usable}  # words to type, and no object
        return TurnCall(name, usable, kind=spec.kind,
                        extra=action.rest() if action is not source else {})  # fmt: skip
    if action is source:
        return TurnCall(name, {}, kind=spec.kind)
    return TurnCall(name, Raw(jsontext.encode(action.values)), kind=spec.kind)


def _usable(raw: Raw | None) -> Any:
    return None if raw is None or jsontext.first_byte(raw) == NULL else raw
