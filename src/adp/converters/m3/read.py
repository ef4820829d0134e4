"""Reading: a run of M3 into a trajectory, and one more for each alternate."""

from __future__ import annotations

import msgspec
from msgspec import Raw

from adp.converters.json_objects import JsonObject
from adp.converters.m3 import keys as k
from adp.converters.m3.context import ModelContext, Seen, follow, seen_message
from adp.converters.m3.metadata_file import id_of_file, read_side
from adp.converters.m3.turn import M3Turn, emit, read_turn
from adp.converters.reading import BRACE, BRACKET, begins, tools_text
from adp_schema import extra_column, jsontext
from adp_schema.builder import RowBuilder
from adp_schema.errors import RecordError
from adp_schema.losses import Losses
from adp_schema.model import Columns
from adp_schema.protocols import RawRecord


def read_run(record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
    """Convert a run.

    Raises:
        RecordError: it is no object, or its interactions are none.
    """
    data = record.data
    if b"\n" in data:
        # On one line every object is as long as its keys and values say (see lost_keys).
        data = jsontext.one_line(data).encode("utf-8")
    try:
        top = JsonObject(data, "$", losses)
    except msgspec.ValidationError:
        raise RecordError("expected an object") from None
    if top.first("interactions") != BRACE:
        raise RecordError("expected an object of interactions", "$.interactions")
    listed = top.inner("interactions", losses)
    assert listed is not None
    turns = [
        (key, read_turn(raw, f"$.interactions.{key}", losses)) for key, raw in listed.values.items()
    ]
    columns, system = _head(top, record, [turn for _, turn in turns], losses)
    _Run(builder, losses, columns).emit(turns, system)


def _head(
    top: JsonObject, record: RawRecord, turns: list[M3Turn], losses: Losses
) -> tuple[Columns, str | None]:
    """The columns of the trajectory, and the system prompt."""
    columns: Columns = {"source_id": id_of_file(record.source_file)}
    system = top.text("system")
    _tools(top, columns)
    for key, column in k.POLICIES.items():
        columns[column] = top.text(key)
    last = turns[-1] if turns else None
    columns["final_answer"] = last.answer if last is not None else None
    form = top.end(k.RUN)
    side = read_side(record.side_files, top.values, losses)
    if "side" in side:
        key, kept, form["side"] = side.pop("side")
        top.values[key] = kept
    elif (verdict := verdict_of(last.columns.get("labels") if last else None)) is not None:
        columns["success"] = verdict
    columns |= side
    columns["extra"] = extra_column.pack(top.values, shape=form)
    return columns, system


def _tools(top: JsonObject, columns: Columns) -> None:
    """The tools: a JSON string of a list, or the list."""
    text = tools_text(top.values.get("tools"))
    if text is None:
        return
    if begins(top.take("tools"), BRACKET):
        top.form["tools"] = "json"
    columns |= {"tools": text, "tools_origin": "recorded"}


def verdict_of(labels: list[str] | None) -> bool | None:
    """Whether the judge of the last answer was content; None when there is no verdict."""
    if k.MATCH in (labels or ()):
        return True
    return False if k.NO_MATCH in (labels or ()) else None


class _Run:
    """Adds the steps of one run, then its branches."""

    def __init__(self, builder: RowBuilder, losses: Losses, columns: Columns) -> None:
        self._builder = builder
        self._losses = losses
        self._columns = columns
        self._alternates: list[tuple[int, M3Turn, list[Raw]]] = []

    def emit(self, turns: list[tuple[str, M3Turn]], system: str | None) -> None:
        """Add everything."""
        builder = self._builder
        builder.trajectory(dict(self._columns))
        if system is not None:
            text = builder.text(system)
            builder.step({"source": "system", "kind": "message", "text": text})
        inputs = [_input(turn) for _, turn in turns]
        context = ModelContext()
        for number, (key, turn) in enumerate(turns):
            given = inputs[number]
            if given is None:
                turn.form["input"] = "none"
            else:
                path = f"{turn.source.path}.input"
                follow(context, given, builder, path, self._losses)
            if key != str(number):
                turn.form["key"] = jsontext.mend_text(key)[0] if jsontext.has_mark(key) else key
            following = inputs[number + 1] if number + 1 < len(inputs) else None
            self._turn(turn, context, following)
        parent = builder.finish()
        for step, turn, alternates in self._alternates:
            for order, raw in enumerate(alternates):
                path = f"{turn.source.path}.alternate_trace[{order}]"
                self._alternate(parent, step, turn, raw, path)

    def _turn(self, turn: M3Turn, context: ModelContext, following: list[Raw] | None) -> None:
        """Add an executed turn; the context is then what the next one sees."""
        alternates = turn.source.items("alternate_trace", "alternates")
        if alternates is None:
            turn.form["alternates"] = "none"
        index = len(context.messages)
        spoke = turn.role is not None and turn.pieces is not None
        role = _shown_as(turn, index + spoke, following)
        if role is None:
            turn.form["observation"] = "next"
        at = emit(turn, k.INTERACTION, self._builder, role)
        if turn.role is not None and turn.pieces is not None:
            context.add(at, (turn.role, turn.pieces))
        if turn.seen is not None and role is not None:
            context.add(at, (role, turn.seen))
        if alternates:
            self._alternates.append((at, turn, alternates))

    def _alternate(self, parent: str, step: int, executed: M3Turn, raw: Raw, path: str) -> None:
        """Add an alternate as a branch of one step."""
        turn = read_turn(raw, path, self._losses)
        turn.columns["turn"] = executed.turn
        columns: Columns = {"parent_id": parent, "parent_step": step, "branch_kind": "alternate"}
        if (source_id := self._columns["source_id"]) is not None:
            columns["source_id"] = f"{source_id}/alternate-{step}"
        columns["task_id"] = self._columns.get("task_id")
        columns["final_answer"] = turn.answer
        self._builder.trajectory(columns)
        emit(turn, k.ALTERNATE, self._builder, k.OBSERVATION)
        self._builder.finish()


def _input(turn: M3Turn) -> list[Raw] | None:
    """The messages of an input; None when there is no list."""
    if turn.source.first("input") != BRACKET:
        return None
    return jsontext.decode_array(turn.source.take("input"))


def _shown_as(turn: M3Turn, place: int, following: list[Raw] | None) -> str | None:
    """The role under which the next input shows what came back.

    None when that is the next query of the user, which is a step by itself. A role that no text
    can hold is not the observation's: the input then differs from what the steps give.
    """
    if turn.seen is None or not following:
        return k.OBSERVATION
    there: Seen = seen_message(following[place]) if len(following) > place else ""
    if isinstance(there, tuple) and there[1] == turn.seen:
        asks = there[0] == "user" and not turn.calls and turn.answer is not None
        shown = k.OBSERVATION if jsontext.has_mark(there[0]) else there[0]
        return None if asks else shown
    last = seen_message(following[-1])
    return None if last == ("user", turn.seen) and turn.answer is not None else k.OBSERVATION
