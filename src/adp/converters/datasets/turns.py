"""Turns of a run in the engine's own form, and the row that they are made of.

Families and hooks say turns; this module makes steps, calls and observations of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from msgspec import Raw

from adp.converters.datasets.literals import literal
from adp.converters.datasets.paths import holder, look, text_at
from adp.converters.datasets.recipe import DatasetRecipe
from adp.converters.kit.blocks import BlockReader
from adp.converters.kit.drafts import ObservationDraft, StepDraft, TrajectoryDraft
from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import BRACE, QUOTE, argument_columns
from adp_schema import jsontext
from adp_schema.builder import RowBuilder
from adp_schema.losses import Losses
from adp_schema.model import Columns
from adp_schema.parts import Parts

AROUND = "$record."
"""Begins a path in the record that a row stands in."""

Source = Literal["system", "user", "agent", "result", "environment"]


@dataclass
class TurnCall:
    """A call of a turn.

    Attributes:
        name: the tool.
        arguments: an object, JSON text of it (as `Raw`), or the program of a call of code.
        call_id: its id.
        kind: function, code, gui or mcp.
        language: of code.
        span: its characters in the text of the turn, where it stands in it.
        extra: what no column holds.
    """

    name: str | None
    arguments: Any = None
    call_id: str | None = None
    kind: str = "function"
    language: str | None = None
    span: tuple[int, int] | None = None
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass
class DatasetTurn:
    """A turn of a run.

    Attributes:
        source: who speaks; ``result`` is what came back from a call.
        text: the words.
        calls: the calls of the agent.
        reasoning: what the agent thought before.
        name: of the tool, or of who speaks.
        answers: id of the call that a result answers; without it the oldest open one.
        images: addresses, paths or data URIs of pictures.
        columns: further columns of the step or the observation.
        extra: what no column holds.
    """

    source: Source
    text: str | None = None
    calls: Sequence[TurnCall] = ()
    reasoning: str | None = None
    name: str | None = None
    answers: str | None = None
    images: Sequence[str] = ()
    columns: Columns = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass
class DatasetRow:
    """A row while it is read.

    Attributes:
        source: its object; of a file that is a run it has no keys.
        rows: the objects of a list: of a record that is one, or of a file that is a run.
        recipe: what it is read by.
        builder: takes media and tasks.
        losses: takes what is not kept.
        run: the run that it becomes.
        file: path of its file.
        key: its key in the record, or its number there; empty for a record that is the row.
        number: number of the record, from 1.
        pair_from: first step that its preference pair compares; None when it has none.
        around: the record that it stands in, for paths that begin with ``$record``.
    """

    source: SourceObject
    rows: list[SourceObject]
    recipe: DatasetRecipe
    builder: RowBuilder
    losses: Losses
    run: TrajectoryDraft
    file: str = ""
    key: str = ""
    number: int = 1
    pair_from: int | None = None
    around: SourceObject | None = None

    def __post_init__(self) -> None:
        self.blocks = BlockReader(self.builder, self.losses, self.run)

    def place(self, path: str) -> tuple[SourceObject, str]:
        """The object that a path begins at, and its path there."""
        if self.around is not None and path.startswith(AROUND):
            return self.around, path.removeprefix(AROUND)
        return self.source, path

    def look(self, path: str) -> Raw | None:
        """The value at a path, which stays in the row."""
        return look(*self.place(path))

    def take_text(self, path: str) -> str | None:
        """Take the text at a path; of another value than a string, its JSON."""
        return take_text(*self.place(path))

    def first_text(self, paths: Iterable[str]) -> str | None:
        """Take the text at the first of some paths that has one."""
        return next((text for it in paths if (text := self.take_text(it)) is not None), None)

    def items(self, path: str) -> list[Raw]:
        """Take the items of the list at a path, or of the JSON text of one."""
        place = holder(self.source, path)
        if place is None:
            raw = self.look(path)
            return list_items_of(raw) if raw is not None else []
        node, key = place
        items = list_items_of(node.values[key])
        if items:
            node.drop(key)
        return items

    def add(self, turns: Iterable[DatasetTurn]) -> None:
        """Add turns to the run."""
        for turn in turns:
            add_turn(turn, self.run, self.blocks)

    def say(self, source: Source, text: str | None, **columns: Any) -> StepDraft:
        """Add a step with a text."""
        step = new_step(self.run, source)
        step.columns |= columns
        if text is not None:
            step.parts.text(self.builder.text(text))
        return step


def list_items_of(raw: Raw) -> list[Raw]:
    """The items of a list, of the JSON text of one, or of a Python literal of one."""
    from adp.converters.datasets.paths import opened

    value = opened(raw)
    if jsontext.first_byte(value) == QUOTE:
        parsed = literal(jsontext.decode_value(value))
        return [Raw(jsontext.encode(item)) for item in parsed] if isinstance(parsed, list) else []
    items: list[Raw] = jsontext.decode_array(value) if jsontext.first_byte(value) == 0x5B else []
    return items


def take_text(source: SourceObject, path: str) -> str | None:
    """Take the text at a path of an object; of another value than a string, its JSON."""
    place = holder(source, path)
    if place is None:
        return text_at(look(source, path))
    node, key = place
    text = node.text(key)
    return node.json(key) if text is None else text


def new_step(run: TrajectoryDraft, source: Source) -> StepDraft:
    """Add a step."""
    if source == "agent":
        return run.step("agent", "llm_turn")
    return run.step("environment" if source == "result" else source)


def add_turn(turn: DatasetTurn, run: TrajectoryDraft, blocks: BlockReader) -> None:
    """Add a turn to a run: a step with its calls, or an observation."""
    if turn.source == "result":
        columns = {**turn.columns, **({"name": turn.name} if turn.name else {})}
        result = run.observe(columns, answers=turn.answers, by_order=True)
        _words(turn, result.parts, blocks)
        result.extra.update(turn.extra)
        return
    step = new_step(run, turn.source)
    step.columns |= turn.columns
    if turn.name:
        step.columns["actor"] = turn.name
    if turn.reasoning:
        step.parts.reasoning(blocks.builder.text(turn.reasoning))
    _words(turn, step.parts, blocks)
    for call in turn.calls:
        add_call(step, call)
    step.extra.update(turn.extra)


def _words(turn: DatasetTurn, parts: Parts, blocks: BlockReader) -> None:
    for image in turn.images:
        blocks.reference(image, parts, {}, None)
    if turn.text is not None:
        parts.text(blocks.builder.text(turn.text))


def add_call(step: StepDraft, call: TurnCall) -> None:
    """Add a call to a step."""
    columns: Columns = {"kind": call.kind, "name": call.name, "call_id": call.call_id}
    extra = dict(call.extra)
    if call.kind == "code" and isinstance(call.arguments, str):
        columns |= {"arguments_raw": call.arguments, "arguments_kind": "text"}
        columns["language"] = call.language
    elif call.arguments is not None:
        raw = call.arguments
        raw = raw if isinstance(raw, Raw) else Raw(jsontext.encode(raw))
        more, left = arguments_of(raw)
        columns |= more
        extra |= left
    if call.span is not None:
        columns |= {"origin": "parsed_from_text", "span_start": call.span[0]}
        columns["span_end"] = call.span[1]
    step.call(columns, extra)


def arguments_of(raw: Raw, *, drop_nulls: bool = False) -> tuple[Columns, dict[str, Any]]:
    """The columns of the arguments of a call, and what its ``extra`` keeps of them.

    Args:
        raw: an object, or a string of JSON, of a Python literal, or of anything else.
        drop_nulls: whether keys that are null belong to other tools, and are left out.
    """
    columns = argument_columns(raw)
    if columns.get("arguments_kind") == "invalid":
        text = columns["arguments_raw"]
        value = literal(text)
        if isinstance(value, dict) and not jsontext.has_mark(text):
            made = {"arguments": jsontext.text_of(value), "arguments_kind": "python_literal"}
            return made, {"arguments": text}
        return columns, {}
    if drop_nulls and jsontext.first_byte(raw) == BRACE:
        fields = jsontext.decode_object(raw)
        kept = {key: value for key, value in fields.items() if bytes(value) != b"null"}
        if len(kept) < len(fields):
            nulls = [key for key in fields if key not in kept]
            return {**columns, "arguments": jsontext.text_of(kept)}, {"null_arguments": nulls}
    return columns, {}


def last_agent_step(run: TrajectoryDraft) -> StepDraft | None:
    """The last step, when it is the agent's and nothing came back after it."""
    step = run.steps[-1] if run.steps else None
    if step is None or step.columns["source"] != "agent" or step.observations:
        return None
    return step


def has_call(run: TrajectoryDraft) -> bool:
    """Whether the run has a call whose result is not there yet, so that one may be told."""
    for step in reversed(run.steps):
        if step.columns["source"] == "agent":
            return len(step.calls) > len(step.observations)
    return False


def keep_rest(target: StepDraft | ObservationDraft, source: SourceObject) -> None:
    """Keep what is left of an object with the step or observation that it became."""
    target.extra.update(source.rest())
