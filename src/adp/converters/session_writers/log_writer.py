"""Session logs that are written: a trajectory as the messages, turns and results of a program.

A writer of a format subclasses `SessionLogWriter` with a method for each kind of row. What a row
says beyond the columns that the format carries is reported here. Rows that were read from the same
format get back the keys that no column holds, from ``extra``.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, ClassVar

from msgspec import Raw

from adp.converters import harbor_trials
from adp.converters.call_ids import CallIds
from adp.converters.reading import BRACE
from adp.converters.session_writers.blocks import Block, blocks_of
from adp.converters.session_writers.names import cwd_of, session_uuid
from adp.converters.session_writers.values import EPOCH, Line
from adp.converters.unwritten_columns import REASON, report_columns
from adp.converters.writing import add_losses, report_beside
from adp_schema import jsontext, media
from adp_schema.extra_column import Extra, original, unpack
from adp_schema.losses import Losses
from adp_schema.model import Observation, Row, Step, ToolCall, Trajectory
from adp_schema.parts import resolve

_TICK = timedelta(milliseconds=1)
_STEP = frozenset({"source", "kind", "text", "content"})
_CALL = frozenset(
    {"call_id", "native_id", "kind", "name", "arguments", "arguments_raw", "language", "requestor"}
)
_RESULT = frozenset({"call_id", "native_call_id", "source", "text", "content"})
_TIME = frozenset({"timestamp", "timestamp_text"})


class SessionLogWriter:
    """Writes one trajectory as the lines of a session.

    Args:
        run: the trajectory.
        losses: takes what the format has no place for.

    Attributes:
        name: the format.
        run_columns: columns of the trajectory that its lines say.
        turn_columns: columns of a turn of the model that they say, beside those that all say.
        message_columns: the same for a message of the user or of the environment.
        call_columns: the same for a call.
        result_columns: the same for a result.
        native_columns: columns of any table that follow from ``extra`` when the format is the
            one that the run was read from.
        model_from: the turn that readers take the model of the run from: the first or the last.
        apart: kinds of branches that may stand anywhere in the session.
        used_extra: keys of the ``extra`` of a trajectory of any format that its lines say.
        native: whether the run was read from the format that is written.
        previous: id of the line before, for formats whose lines name it.
        starts: number of the first line of each step, by the number of the step.
        ends: ``previous`` after each step.
        used: ids of lines, in order.
        now: the time of the line before.
        embedded: whether the run is a branch that stands in the session of its parent.
    """

    name: ClassVar[str]
    run_columns: ClassVar[frozenset[str]] = frozenset()
    turn_columns: ClassVar[frozenset[str]] = frozenset()
    message_columns: ClassVar[frozenset[str]] = frozenset()
    call_columns: ClassVar[frozenset[str]] = frozenset()
    result_columns: ClassVar[frozenset[str]] = frozenset()
    native_columns: ClassVar[frozenset[str]] = frozenset()
    model_from: ClassVar[int] = -1
    apart: ClassVar[frozenset[str]] = frozenset()
    used_extra: ClassVar[frozenset[str]] = frozenset({"cwd", "directory"})

    def __init__(self, run: Trajectory, losses: Losses) -> None:
        self.run = run
        self.losses = losses
        self.native = run.source_format == self.name
        self.kept = unpack(run.extra).fields if self.native else {}
        if self.kept.pop(harbor_trials.KEY, None) is not None:
            losses.add(f"$.extra.{harbor_trials.KEY}", REASON)
        self.cwd = cwd_of(run.extra)
        self.session = self.session_name()
        self._ids = CallIds(run, losses, native=False)
        self._clock: datetime | None = None
        self.now = EPOCH
        self.calls = {(call.step, call.call): call for step in run.steps for call in step.calls}
        self.previous: str | None = None
        self.ends: dict[int, str | None] = {}
        self.starts: dict[int, int] = {}
        self.used: dict[str, None] = {}
        self.embedded = False
        self._written: set[int] = set()

    # ---- what a format says ----------------------------------------------------------------

    def session_name(self) -> str:
        """The id of the session: a UUID, or what the same format had as one."""
        return (self.native and self.run.source_id) or session_uuid(self.run)

    def message(self, step: Step, path: str) -> Iterator[Line]:
        """The lines of a message that no model wrote."""
        raise NotImplementedError

    def turn(self, step: Step, path: str) -> Iterator[Line]:
        """The lines of a turn of the model."""
        raise NotImplementedError

    def result(self, row: Observation, answered: str, path: str) -> Iterator[Line]:
        """The lines of a result of the call with an id."""
        raise NotImplementedError

    def edit(self, step: Step, path: str) -> Iterator[Line]:
        """The lines of an edit of the context; the format has no place for it."""
        yield from self.leave_out(step, path, f"a step of kind {step.kind}")

    def event(self, step: Step, path: str) -> Iterator[Line]:
        """The lines of an event: those of the source, which ``extra`` holds."""
        if not self.native:
            yield from self.leave_out(step, path, "an event, which no model sees,")
        elif list(fields := self.fields(step)) == ["line"]:
            self.losses.add(f"{path}.extra.line", "a line that is no object is not written")
        else:
            yield from self.noted(step, fields, path)

    def noted(self, step: Step, fields: dict[str, Raw], path: str) -> Iterator[Line]:
        """The lines of an event that was read from the same format."""
        yield dict(fields)

    # ---- the rows --------------------------------------------------------------------------

    def body(self) -> Iterator[Line]:
        """The lines of all steps and results, and of branches where they leave the run."""
        steps = self.run.steps
        for index, row in enumerate(self.run.early_observations):
            yield from self.row(row, f"$.early_observations[{index}]")
        for index, step in enumerate(steps):
            path = f"$.steps[{index}]"
            self.starts[step.step or 0] = len(self.used)
            yield from self.row(step, path)
            for number, row in enumerate(step.observations):
                yield from self.row(row, f"{path}.observations[{number}]")
            self.ends[step.step or 0] = self.previous
            if not self.run.branches:
                continue
            goes_on = any(map(_is_message, islice(steps, index + 1, None)))
            for number, branch in enumerate(self.run.branches):
                fits = goes_on or branch.branch_kind in self.apart
                if fits and branch.parent_step == (step.step or 0) + 1:
                    yield from self.branch(branch, number)
        for number, branch in enumerate(self.run.branches):
            if branch.branch_kind in self.apart and id(branch) not in self._written:
                yield from self.branch(branch, number)
            if id(branch) not in self._written:
                reason = "it begins where no message of the run does, and is left out"
                self.losses.add(f"$.branches[{number}]", reason)

    def branch(self, branch: Trajectory, number: int) -> Iterator[Line]:
        """The lines of a branch, which begins after the line before."""
        begins = bool(branch.steps) and _is_message(branch.steps[0])
        if not begins and branch.branch_kind not in self.apart:
            return
        self._written.add(id(branch))
        within = Losses()
        writer = type(self)(branch, within)
        writer.session, writer.previous, writer.used = self.session, self.previous, self.used
        writer.embedded = True
        writer.starts, writer.ends = dict(self.starts), dict(self.ends)
        writer.cwd = self.cwd if writer.cwd == "/" else writer.cwd
        yield from writer.lines()
        if branch.tools not in (None, self.run.tools) and "tools" in self.run_columns:
            within.add("$.tools", "a branch has the tools of its run")
        if branch.branch_kind != self.kind_of(branch):
            within.add("$.branch_kind", "the kind of a branch is not said")
        add_losses(self.losses, f"$.branches[{number}]", within)

    def first_of(self, step: int | None) -> str | None:
        """The id of the first line of a step that was written; None when there is none."""
        start = self.starts.get(-1 if step is None else step)
        return None if start is None else next(islice(self.used, start, None), None)

    def kind_of(self, branch: Trajectory) -> str:
        """The kind that a branch has when it is read again."""
        return "rewind"

    def lines(self) -> list[Line]:
        """All lines, with what comes before the steps."""
        raise NotImplementedError

    def row(self, row: Step | Observation, path: str) -> Iterator[Line]:
        """The lines of a step, without its results, or of a result."""
        if isinstance(row, Observation):
            yield from self._observation(row, path)
        elif row.kind == "event":
            yield from self.event(row, path)
        elif row.kind == "context_edit":
            yield from self.edit(row, path)
        elif row.source == "agent":
            self.report(row, _STEP | {"reasoning", "model"} | self.turn_columns, path)
            self._report_calls(row, path)
            yield from self.turn(row, path)
        else:
            yield from self._message(row, path)

    def _message(self, step: Step, path: str) -> Iterator[Line]:
        more = frozenset() if step.source == "system" else self.message_columns
        self.report(step, _STEP | more, path)
        if step.source == "environment":
            self.losses.add(f"{path}.source", "environment is written as the role user")
        yield from self.message(step, path)
        if step.calls:
            self.losses.add(f"{path}.calls", "calls that no model made are written as the agent's")
            self._report_calls(step, path)
            yield from self.turn(Step(step=step.step, source="agent", calls=step.calls), path)

    def _observation(self, row: Observation, path: str) -> Iterator[Line]:
        name = self._ids.answered(row, unpack(row.extra), path)
        more = self.result_columns if name is not None else frozenset()
        self.report(row, _RESULT | more, path, self._said_elsewhere(row))
        if name is not None:
            if row.call_step is None:
                column = "call_id" if row.call_id is not None else "native_call_id"
                self.losses.add(f"{path}.{column}", "no call before it has this id")
            if row.source not in (None, "environment"):
                self.losses.add(f"{path}.source", f"{row.source} is written as a result of a tool")
            yield from self.result(row, name, path)
            return
        self.losses.add(f"{path}.source", "a result without a call is written as the role user")
        columns = {name: getattr(row, name) for name in ("text", "content", "extra", *_TIME)}
        yield from self.message(Step(source="user", kind="message", **columns), path)

    def _said_elsewhere(self, row: Observation) -> frozenset[str]:
        """Columns that the call of a result says again."""
        call = self.calls.get((row.call_step, row.call))
        repeated = {"name"} if call is not None and call.name == row.name else set()
        tree = row.text is None and row.content is None
        return frozenset(repeated | ({"axtree"} if tree and not self.native else set()))

    def _report_calls(self, step: Step, path: str) -> None:
        for index, call in enumerate(step.calls):
            place = f"{path}.calls[{index}]"
            self.report(call, _CALL | self.call_columns, place)
            if not self.native and call.kind not in (None, "function"):
                self.losses.add(f"{place}.kind", f"a call of kind {call.kind} becomes a function")
            if call.language is not None and (call.name is not None or call.kind != "code"):
                self.losses.add(f"{place}.language", REASON)
            if call.requestor == "user":
                self.losses.add(f"{place}.requestor", "the call of a user becomes the agent's")

    def leave_out(self, step: Step, path: str, what: str) -> Iterator[Line]:
        """Report a step that is not written, with all that it says."""
        self.losses.add(f"{path}.kind", f"{what} has no place in the target format")
        report_columns(step, frozenset({"source", "kind", "content"}), path, self.losses)
        for index, _ in enumerate(resolve(step.content, step.text, step.reasoning)):
            self.losses.add(f"{path}.content[{index}]", REASON)
        for index, call in enumerate(step.calls):
            report_columns(call, frozenset(), f"{path}.calls[{index}]", self.losses)
        yield from ()

    # ---- what rows say ---------------------------------------------------------------------

    def report(
        self, row: Row, carried: frozenset[str], path: str, more: frozenset[str] = frozenset()
    ) -> None:
        """Report the columns of a row that are not written."""
        carried = carried | more
        if getattr(row, "timestamp", None) is not None:
            carried |= _TIME
        if self.native:
            report_columns(row, carried | self.native_columns | {"extra"}, path, self.losses)
            return
        if not isinstance(row, Trajectory):
            report_columns(row, carried, path, self.losses)
            return
        report_columns(row, carried | {"extra"}, path, self.losses)
        for key in unpack(row.extra).fields:
            if key not in self.used_extra:
                self.losses.add(f"{path}.extra.{key}", REASON)

    def report_run(self) -> None:
        """Report what the trajectory says beyond its rows."""
        run = self.run
        carried = self.run_columns | ({"agent_model"} if self._shows_model() else frozenset())
        if _starts_with_time(run) in (None, run.started_at):
            carried |= {"started_at"} | ({"started_text"} if run.started_at else set())
        self.report(run, carried | {"source_id", "session_id"}, "$")
        for column in ("source_id", "session_id"):
            native = self.native and column in self.native_columns
            if getattr(run, column) not in (None, self.session) and not native:
                self.losses.add(f"$.{column}", "the session gets another id")
        if not self.native:
            report_beside(run, self.losses)
        elif run.task is not None:
            report_columns(run.task, frozenset(), "$.task", self.losses)

    def _shows_model(self) -> bool:
        """Whether the turn that readers take the model of the run from names it."""
        turns = [step for step in self.run.steps if step.source == "agent"]
        return bool(turns) and self.model_of(turns[self.model_from]) == self.run.agent_model

    def model_of(self, step: Step) -> str | None:
        """The model of a turn; that of the run where the turn does not name it."""
        model: str | None = original(step, "model", unpack(step.extra))
        return model if model is not None else self.run.agent_model

    def blocks(self, row: Step | Observation, path: str) -> list[Block]:
        """The content of a row, in order; calls only in a turn of the model."""
        blocks = blocks_of(row, self.run.media, path, self.losses, native=self.native)
        calls = isinstance(row, Step) and row.source == "agent"
        return [block for block in blocks if calls or block.kind != "call"]

    def text(self, row: Step | Observation) -> str:
        """The text of a row, with its characters and its data."""
        return media.restore(original(row, "text", unpack(row.extra)) or "", self.run.media)

    def address(self, block: Block) -> str:
        """A blob that the format has no block for, as its address in a text."""
        reason = f"{block.blob.mime or 'a blob'} becomes its address in the text"
        self.losses.add(block.path, reason)
        if block.blob.mime is not None and block.blob.data is None:
            self.losses.add(f"$.media.{block.blob.media_id}.mime", REASON)
        return f"![{block.kind}]({media.reference_of_media(block.blob)})"

    def fields(self, row: Row) -> dict[str, Raw]:
        """The keys of the source that no column of a row holds, where they have a place."""
        extra: Extra = unpack(row.extra)  # type: ignore[attr-defined]
        return extra.fields if self.native else {}

    def call_name(self, call: ToolCall) -> str:
        """The name of the tool of a call; that of its language for code."""
        name = original(call, "name", unpack(call.extra))
        if name is None:
            name = call.language or ("" if call.kind == "function" else call.kind)
        return name or ""

    def call_id(self, call: ToolCall, path: str) -> str:
        """The id of a call, unique in the session.

        Args:
            call: the call.
            path: where its step is.
        """
        return self._ids.of(call, unpack(call.extra), f"{path}.calls[{call.call}]") or ""

    def arguments(self, call: ToolCall) -> tuple[str, bool]:
        """The arguments as text, and whether that is a JSON object."""
        extra = unpack(call.extra)
        text, loose = original(call, "arguments", extra), original(call, "arguments_raw", extra)
        if text is not None:
            return text, jsontext.first_byte(text.encode("utf-8", "surrogatepass")) == BRACE
        if loose is not None:
            return media.restore(loose, self.run.media), False
        return "{}", True

    def arguments_object(self, call: ToolCall, path: str) -> Any:
        """The arguments as a JSON object; what is none becomes the value of one key.

        Args:
            call: the call.
            path: where its step is.
        """
        text, is_object = self.arguments(call)
        if is_object:
            return jsontext.raw(text)
        if call.kind == "code":
            return {"code": jsontext.string(text)}
        column = "arguments" if call.arguments is not None else "arguments_raw"
        if call.arguments_kind != "text":
            reason = "arguments that are no object become the value of the key input"
            self.losses.add(f"{path}.calls[{call.call}].{column}", reason)
        return {"input": jsontext.raw(text) if column == "arguments" else jsontext.string(text)}

    def time(self, row: Step | Observation | None = None) -> datetime:
        """When a row was written; one without a time gets that of the row before, and a bit."""
        known = None if row is None else row.timestamp
        if known is None:
            known = self.run.started_at if self._clock is None else self._clock + _TICK
        known = known or EPOCH
        self._clock = self.now = known if known.tzinfo else known.replace(tzinfo=UTC)
        return self._clock


def _starts_with_time(run: Trajectory) -> datetime | None:
    """The time of the first row."""
    rows: list[Step | Observation] = [*run.early_observations, *run.steps]
    return rows[0].timestamp if rows else None


def _is_message(step: Step) -> bool:
    """Whether a step is what one of the two sides says."""
    return step.kind not in ("event", "context_edit") and step.source in ("user", "agent")
