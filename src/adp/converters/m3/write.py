"""Writing: a trajectory with its alternates into a run of M3.

What was read from this format comes out in its own form. In a trajectory of another format every
turn of the agent becomes an interaction, one for each of its calls, because M3 makes one call a
step; a turn without calls is a final answer.
"""

from __future__ import annotations

from typing import Any

from adp.converters.json_objects import arrange
from adp.converters.m3 import keys as k
from adp.converters.m3.context import ModelContext
from adp.converters.m3.metadata_file import carried as carried_by_side
from adp.converters.m3.read import verdict_of
from adp.converters.m3.write_native import Rows, WrittenTurn, native_turn
from adp.converters.m3.write_other import foreign_turns
from adp.converters.m3.write_parts import Item, M3Parts
from adp.converters.unwritten_columns import REASON, report_columns
from adp.converters.writing import add_losses, is_seen, leave_out, observations_of, report_beside
from adp_schema import jsontext
from adp_schema.extra_column import Extra, original
from adp_schema.losses import Losses
from adp_schema.model import Observation, Step, Trajectory
from adp_schema.parts import resolve

_RUN = frozenset({"tools", *k.POLICIES.values()})
_MESSAGE = frozenset({"source", "kind", "text", "content"})
_EDIT = frozenset({"source", "kind", "edit_boundary", "edit_from", "edit_to", "edit_summary"})
_ALTERNATE = frozenset({"task_id", "final_answer", "source_id"})


class M3Writer:
    """Writes one run.

    Args:
        run: the trajectory, with its branches.
        losses: takes what has no place in the record.
    """

    def __init__(self, run: Trajectory, losses: Losses) -> None:
        self._run = run
        self._losses = losses
        self._native = run.source_format == k.NAME
        self._parts_writer = M3Parts(run, losses, native=self._native)
        self._context = ModelContext()
        self._turns: dict[str, Any] = {}
        self._waiting: dict[str, Step | Observation] = {}
        self._reported_edits = ""
        self._system: Any = None
        self._last: WrittenTurn | None = None
        self._alternates: dict[int, list[tuple[str, Trajectory]]] = {}
        seen = (n for n, step in enumerate(run.steps) if self._native or is_seen(step))
        self._first = next(seen, 0)

    # ---- the run ---------------------------------------------------------------------------

    def record(self) -> Item:
        """The record."""
        run, extra = self._run, self._parts_writer.extra(self._run)
        for number, branch in enumerate(run.branches):
            place = (f"$.branches[{number}]", branch)
            self._alternates.setdefault(branch.parent_step or 0, []).append(place)
        for early, path in observations_of(run.early_observations, "$.early_observations"):
            self._message(path, early, k.OBSERVATION)
        for index, step in enumerate(run.steps):
            self._step(step, index)
        self._end()
        known: Item = {"system": self._system}
        interactions = extra.shape.get("interactions") or {}
        known["interactions"] = arrange(self._turns, {}, interactions, ())
        if run.tools is not None:
            text = original(run, "tools", extra)
            is_json = extra.shape.get("tools") == "json"
            known["tools"] = jsontext.raw(text) if is_json else jsontext.string(text)
        if not self._native:
            usual = {"system": "", "tools": "[]"}
            known = {**usual, **{key: value for key, value in known.items() if value is not None}}
            known = {**known, **{key: None for key in usual if key in extra.fields}}
        for key, column in k.POLICIES.items():
            policy = self._parts_writer.text(run, column, extra)
            known[key] = None if policy is None else jsontext.string(policy)
        kept = dict(extra.fields)
        if (side := extra.shape.get("side")) is not None:
            kept.pop(side["key"], None)
        self._report()
        return arrange(known, kept, extra.shape, k.RUN)

    def _report(self) -> None:
        """Report what else the trajectory says."""
        run, carried = self._run, _RUN
        if self._native:
            carried |= {"source_id"} | carried_by_side(run)
        labels = self._last.labels if self._last is not None else None
        if run.success is not None and run.success == verdict_of(labels):
            carried |= {"success"}
        if self._last is not None and run.final_answer == self._last.answer:
            carried |= {"final_answer"}
        report_columns(run, self._parts_writer.carried(carried), "$", self._losses)
        report_beside(run, self._losses)

    def _end(self) -> None:
        """Report what no turn of the agent follows, and alternates of no turn."""
        reason = "no turn of the agent follows, whose input could hold it"
        for path, row in self._waiting.items():
            for column in ("source", "text", "content"):
                if getattr(row, column) is not None and path != self._reported_edits:
                    self._losses.add(f"{path}.{column}", reason)
        for branches in self._alternates.values():
            for path, _ in branches:
                self._losses.add(path, "there is no turn of the agent to stand beside")

    # ---- steps that are no turns -----------------------------------------------------------

    def _step(self, step: Step, index: int) -> None:
        extra, path = self._parts_writer.extra(step), f"$.steps[{index}]"
        role = extra.shape.get("message")
        rows = [(f"{path}.observations[{n}]", row) for n, row in enumerate(step.observations)]
        is_context_edit = step.kind == "context_edit" and self._native
        if not self._native and not is_seen(step):
            leave_out(step, path, self._losses)
            for where, row in rows:
                self._message(where, row, k.OBSERVATION)
            return
        if step.source == "agent" and role is None and not is_context_edit:
            self._turn(step, index, extra, rows)
            return
        if is_context_edit:
            self._edit(step, path, extra)
        elif step.source == "system" and role is None and index == self._first:
            self._system = self._system_text(step, path, extra)
        else:
            usual = "system" if step.source == "system" else "user"
            self._message(path, step, usual if role is None else role)
        for n, call in enumerate(step.calls):
            report_columns(call, frozenset(), f"{path}.calls[{n}]", self._losses)
            if call.name is None:  # the call is lost with what it has
                self._losses.add(f"{path}.calls[{n}].name", REASON)
        for where, row in rows:
            self._message(where, row, k.OBSERVATION)

    def _system_text(self, step: Step, path: str, extra: Extra) -> Any:
        report_columns(step, self._parts_writer.carried(_MESSAGE), path, self._losses)
        text = self._parts_writer.words(step, path, extra)
        return None if text is None else jsontext.string(text)

    def _message(self, path: str, row: Step | Observation, role: str) -> None:
        """Add a message to the input of the next turn."""
        extra = self._parts_writer.extra(row)
        report_columns(row, self._parts_writer.carried(_MESSAGE), path, self._losses)
        if isinstance(row, Step):
            if not self._native and row.source in ("environment", "agent"):
                self._losses.add(f"{path}.source", f"{row.source} is written as the role user")
        elif row.source not in (None, "environment"):
            self._losses.add(f"{path}.source", f"{row.source} is written as {k.OBSERVATION}")
        self._waiting[path] = row
        if self._native and row.content is not None:
            parts = resolve(original(row, "content", extra), row.text)
            if len(parts) == 1 and parts[0].type == "opaque":
                self._context.add(_number(row), parts[0].value)
                return
        text = self._parts_writer.words(row, path, extra)
        known = {"role": jsontext.string(role), "content": jsontext.string(text or "")}
        self._context.add(_number(row), arrange(known, extra.fields, extra.shape, k.MESSAGE))

    def _edit(self, step: Step, path: str, extra: Extra) -> None:
        """Leave messages out of the input."""
        report_columns(step, self._parts_writer.carried(_EDIT), path, self._losses)
        if step.edit_to is None:
            self._losses.add(f"{path}.edit_boundary", "it is not said what is kept")
        else:
            self._context.keep(step.edit_from or 0, step.edit_to)
        summary = self._parts_writer.text(step, "edit_summary", extra)
        if summary is not None:
            message = {"role": "assistant", "content": jsontext.string(summary)}
            self._context.add(_number(step), message)

    # ---- turns -----------------------------------------------------------------------------

    def _turn(self, step: Step, index: int, extra: Extra, rows: Rows) -> None:
        """Add the interactions of a turn of the agent."""
        path = f"$.steps[{index}]"
        self._waiting.clear()
        alternates = [
            item
            for where, branch in self._alternates.pop(_number(step), [])
            for item in self._alternate(where, branch)
        ]
        if not self._native:
            for written in foreign_turns(self._parts_writer, step, path, rows):
                known = {"input": list(self._context.messages), "alternate_trace": alternates}
                written.item = arrange({**written.item, **known}, {}, {}, k.INTERACTION)
                self._add(step, written, str(len(self._turns)))
                alternates = []
            return
        known = {}
        if extra.shape.get("input") != "none":
            known["input"] = list(self._context.messages)
        if alternates or extra.shape.get("alternates") != "none":
            known["alternate_trace"] = alternates
        query = None
        if extra.shape.get("observation") == "next":
            later = enumerate(self._run.steps[index + 1 :], index + 1)
            first = next(((n, result) for n, result in later if result.source == "user"), None)
            if first is not None:
                self._reported_edits = f"$.steps[{first[0]}]"
                query = self._parts_writer.text(
                    first[1], "text", self._parts_writer.extra(first[1])
                )
        written = native_turn(self._parts_writer, step, path, rows, known, query)
        key = extra.shape.get("key", str(len(self._turns)))
        self._add(step, written, key)

    def _add(self, step: Step, written: WrittenTurn, key: str) -> None:
        """Add an interaction, and what it adds to the context."""
        while key in self._turns:
            key = f"{key}_"
        self._turns[key] = written.item
        for message in (written.message, written.seen):
            if message is not None:
                self._context.add(_number(step), message)
        self._last = written

    def _alternate(self, path: str, branch: Trajectory) -> list[Item]:
        """A branch of one turn, as an alternate."""
        losses = Losses()
        parts_writer = M3Parts(branch, losses, native=branch.source_format == k.NAME)
        first = branch.steps[0] if branch.steps else None
        if first is None or first.source != "agent":
            self._losses.add(path, "an alternate begins with a turn of the agent")
            return []
        rows = [(f"$.steps[0].observations[{n}]", row) for n, row in enumerate(first.observations)]
        if parts_writer.native:
            results = [native_turn(parts_writer, first, "$.steps[0]", rows)]
        else:
            results = foreign_turns(parts_writer, first, "$.steps[0]", rows)
        if (
            len(branch.steps) > 1
            or len(results) > 1
            or branch.branches
            or branch.early_observations
        ):
            self._losses.add(path, "an alternate holds one turn with one call")
        for number in range(len(branch.branches)):
            deeper = "an alternate of an alternate, with what followed it, has no place"
            self._losses.add(f"{path}.branches[{number}]", deeper)
        carried = _ALTERNATE if parts_writer.native else self._same(branch, results[0].answer)
        report_columns(branch, parts_writer.carried(carried), "$", losses)
        add_losses(self._losses, path, losses)
        return [results[0].item]

    def _same(self, branch: Trajectory, answer: str | None) -> frozenset[str]:
        """Columns of a branch of another format that reading it gives again."""
        run = self._run
        read = {"final_answer": answer, "task_id": run.task_id, "source_id": None}
        if run.source_id is not None:
            read["source_id"] = f"{run.source_id}/alternate-{branch.parent_step}"
        return frozenset(name for name, value in read.items() if getattr(branch, name) == value)


def _number(row: Step | Observation) -> int:
    return row.step if row.step is not None else -1
