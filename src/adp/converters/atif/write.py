"""From trajectories to ATIF.

`AtifWriter` makes a loose record: what was read from ATIF comes out in the form that it had, and
another format's trajectory becomes one that only `flavours` has to make strict. Columns without
a key of their own go into ``extra`` (see `beside`).
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw

from adp.converters.atif import keys as k
from adp.converters.atif import trial
from adp.converters.atif.calls import Calls
from adp.converters.atif.early_observations import early_step, returns_early
from adp.converters.atif.extra_keys import adp_columns, write_beside
from adp.converters.atif.origin import write_origin, write_pairs
from adp.converters.atif.totals import total_columns
from adp.converters.atif.write_parts import AtifParts, Item
from adp.converters.json_objects import arrange, members, write_floats, write_time
from adp.converters.reading import BRACKET, QUOTE
from adp.converters.scalars import number_text, write_number
from adp.converters.unwritten_columns import report_columns
from adp.converters.writing import add_losses, string
from adp_schema import jsontext, media
from adp_schema.extra_column import Extra, original, unpack
from adp_schema.losses import Losses
from adp_schema.model import Link, Step, Trajectory

VERSION = "ATIF-v1.7"


class AtifWriter:
    """Writes one trajectory with its branches.

    Args:
        run: the trajectory.
        losses: takes what has no place in the record.
        embedded: whether its parent is written around it.
    """

    def __init__(self, run: Trajectory, losses: Losses, *, embedded: bool = False) -> None:
        self._run = run
        self._embedded = embedded
        self._losses = losses
        self._parts_writer = AtifParts(run, losses)
        self._calls = Calls(self._parts_writer)
        self.native = self._parts_writer.native
        self._files = trial.stored(run) if self.native else trial.Trial()
        self._turns: list[dict[str, Any]] = []

    # ---- the trajectory --------------------------------------------------------------------

    def record(self) -> Item:
        """The record."""
        run = self._run
        extra = self._parts_writer.extra(run)
        known: Item = self._head(extra)
        known["agent"] = self._agent(extra)
        if self.native:
            count = sum(_is_turn(step) for step in run.steps)
            self._turns = self._files.turns(count)
        known["steps"] = self._steps()
        known["notes"] = self._parts_writer.text(run, "notes", extra)
        known["final_metrics"] = self._final_metrics(extra)
        known["continued_trajectory_ref"] = self._links()
        branches = [self._branch(index) for index in range(len(run.branches))]
        if branches or extra.shape.get("subagent_trajectories"):
            known["subagent_trajectories"] = branches
        if run.task is not None:
            report_columns(run.task, frozenset(), "$.task", self._losses)
        without = {n for n, value in self._files.columns.items() if getattr(run, n) == value}
        if not self._embedded:
            without |= {"parent_step", "branch_kind"}
        child, adp_extra = self._parts_writer.split(extra)
        if self._files.files:
            del adp_extra[extra.shape["trial"]["key"]]
        usual = {"branch_kind": "subagent"}
        adp = adp_columns(run, extra, usual, run.media, without=frozenset(without))
        adp = {**write_origin(run, extra), **self._pairs(), **adp}
        known["extra"] = write_beside(run, child, extra, adp, run.media)
        return arrange(known, adp_extra, extra.shape, k.TRAJECTORY)

    def _pairs(self) -> Item:
        """The preference pairs, which stand in the record that holds all their sides."""
        pairs = [] if self._embedded else write_pairs(self._run)
        return {"pairs": pairs} if pairs else {}

    def _head(self, extra: Extra) -> Item:
        run = self._run
        known: Item = {"session_id": self._parts_writer.text(run, "session_id", extra)}
        same_id = extra.shape.get("id") == "session_id" and run.source_id == run.session_id
        if not same_id:
            known["trajectory_id"] = self._parts_writer.text(run, "source_id", extra)
        if self.native:
            known["schema_version"] = self._parts_writer.text(run, "source_version", extra)
            return known
        known["schema_version"] = VERSION
        if known["trajectory_id"] is None:
            known["trajectory_id"] = run.trajectory_id
        return known

    def _agent(self, extra: Extra) -> Any:
        run = self._run
        known: Item = {
            key: self._parts_writer.text(run, column, extra)
            for key, column in k.AGENT_COLUMNS.items()
        }
        for key in (extra.shape.get("agent") or {}).get("unknown", ()):
            known[key] = k.UNKNOWN if known[key] is None else known[key]
        if run.tools is not None:
            known["tool_definitions"] = jsontext.raw(original(run, "tools", extra))
        return self._inner("agent", known, extra, k.AGENT)

    def _inner(self, key: str, known: Item, extra: Extra, order: tuple[str, ...]) -> Any:
        """An inner object of columns and what ``extra`` keeps of it; None when there is none."""
        form = extra.shape.get(key)
        kept = self._parts_writer.split(extra)[1].get(key)
        known = {name: value for name, value in known.items() if value is not None}
        if not known and form is None:
            return kept
        return arrange(known, members(kept) or {}, form or {}, order)

    def _final_metrics(self, extra: Extra) -> Any:
        """The final metrics as written, with the columns that were edited since."""
        run = self._run
        text = original(run, "final_metrics", extra)
        full = {} if text is None else members(jsontext.raw(text))
        if full is None:
            self._losses.add("$.final_metrics", "it is no JSON object")
            full = {}
        before = total_columns(full)
        changed = False
        for key, column in k.TOTAL_COLUMNS.items():
            value = getattr(run, column)
            from_trial = column not in before and self._files.columns.get(column) == value
            if value == before.get(column) or from_trial:
                continue
            changed = True
            holder = full
            if key not in full and column in before:
                holder = full["extra"] = dict(members(full["extra"]) or {})
            if value is None:
                holder.pop(key, None)
            else:
                holder[key] = jsontext.raw(number_text(value))
        if changed:
            return full or None
        return None if text is None else jsontext.raw(text)

    def _links(self) -> Any:
        """The continuation; other links are told by the results, or are losses."""
        run, result = self._run, None
        for index, link in enumerate(run.links):
            extra = unpack(link.extra)
            if link.kind == "continuation" and result is None:
                column = "target_path" if link.target_path is not None else "target_id"
                result = original(link, column, extra)
                carried = frozenset({column, "kind"})
                report_columns(link, carried, f"$.links[{index}]", self._losses)
            elif not self._is_told(link):
                report_columns(link, frozenset(), f"$.links[{index}]", self._losses)
        return None if result is None else jsontext.string(result)

    def _is_told(self, link: Link) -> bool:
        """Whether a result refers to the subagent of a link."""
        steps = [step for step in self._run.steps if step.step == link.step]
        names = [link.target_id, link.target_path, link.target_session_id]
        refs = [
            ref for step in steps for row in step.observations for ref in _references(row.subagent)
        ]
        return names in refs

    def _branch(self, index: int) -> Item:
        branch, losses = self._run.branches[index], Losses()
        record = AtifWriter(branch, losses, embedded=True).record()
        if branch.branch_kind is None:
            losses.add("$.branch_kind", "a branch of no known kind is written as a subagent")
        add_losses(self._losses, f"$.branches[{index}]", losses)
        return record

    # ---- steps -----------------------------------------------------------------------------

    def _steps(self) -> list[Item]:
        run, out = self._run, []
        early = [
            (row, f"$.early_observations[{n}]") for n, row in enumerate(run.early_observations)
        ]
        if early:
            results = [self._calls.result(row, path) for row, path in early]
            out.append(early_step(results, marked=returns_early(run)))
        for index, step in enumerate(run.steps):
            out.append(self._step(step, index, len(out) + 1))
        return out

    def _step(self, step: Step, index: int, number: int) -> Item:
        extra, path = self._parts_writer.extra(step), f"$.steps[{index}]"
        extra_keys = self._parts_writer.extra_keys(step, extra)
        full = step
        if extra_keys:
            step = step.model_copy(update=dict.fromkeys(extra_keys - {"text"}))
        context, adp_extra = self._parts_writer.split(extra)
        own_id = extra.shape.get("step_id")
        known: Item = {"step_id": number, "source": step.source}
        if own_id is not None:
            known["step_id"] = jsontext.raw(own_id)
        usual = {"source": known["source"]}
        if step.source == "environment":
            known["source"] = adp_extra.pop("source", None)
            if known["source"] is None:
                usual["source"] = known["source"] = "system"
        known["timestamp"] = string(
            write_time(
                step.timestamp,
                original(step, "timestamp_text", extra),
                zoned=step.timestamp_zone_known is not False,
            )
        )
        if step.timestamp is None and step.timestamp_zone_known is False:
            self._losses.add(f"{path}.timestamp_zone_known", "there is no time that it is about")
        known["model_name"] = self._parts_writer.text(step, "model", extra)
        known["reasoning_effort"] = self._effort(step, extra)
        known["message"], opaque = self._parts_writer.content(step, extra, path)
        known["reasoning_content"] = self._parts_writer.text(step, "reasoning", extra)
        calls = [self._calls.call(call, f"{path}.calls[{n}]") for n, call in enumerate(step.calls)]
        if calls or extra.shape.get("tool_calls"):
            known["tool_calls"] = calls
        known["observation"] = self._observation(step, extra, index)
        known["metrics"] = self._metrics(step, extra)
        known["is_copied_context"] = step.is_copied_context
        known["llm_call_count"] = write_number(step.llm_call_count, "llm_call_count", extra.shape)
        usual["kind"] = k.USUAL_KINDS.get(usual["source"] or "", "message")
        if self.native and (edit := _edit(context)) is not None:
            usual["kind"] = "context_edit"
            self._report_edit(step, edit, path)
        elif step.kind == "context_edit":
            context = self._context(step, context, known)
            usual["kind"] = "context_edit"
        else:
            edits = {"edit_boundary": step.edit_boundary, "edit_summary": step.edit_summary}
            for name in (name for name, value in edits.items() if value is not None):
                self._losses.add(f"{path}.{name}", "only an edit of the context has one")
        if opaque:
            context = {**(context or {}), "opaque": opaque}
        adp = adp_columns(full, extra, usual, self._run.media, extra_keys=extra_keys)
        known["extra"] = write_beside(step, context, extra, adp, self._run.media)
        out = arrange(known, adp_extra, extra.shape, k.STEP)
        names = extra.shape.get("keys")
        if names is not None and "step_id" not in names:
            del out["step_id"]
        return out

    def _context(self, step: Step, child: Any, known: Item) -> Item:
        """Say how the context is edited, in the way that ATIF agreed on."""
        context = {"type": "compaction", "boundary": step.edit_boundary}
        context = {name: value for name, value in context.items() if value is not None}
        if step.edit_summary is not None:
            results = (known["observation"] or {}).get("results", [])
            summary = {
                "content": jsontext.string(media.restore(step.edit_summary, self._run.media))
            }
            known["observation"] = {"results": [summary, *results]}
        return {**(members(child) or {}), "context_management": context}

    def _report_edit(self, step: Step, edit: Item, path: str) -> None:
        """What was read about a context edit is written from ``extra`` and from the results."""
        boundary = bytes(edit.get("boundary", b"null")).decode("utf-8", "replace")
        if step.edit_boundary is not None and boundary != f'"{step.edit_boundary}"':
            self._losses.add(f"{path}.edit_boundary", "extra.context_management says otherwise")
        texts = [row.text for row in step.observations if row.text is not None]
        if step.edit_summary is not None and step.edit_summary != "\n\n".join(texts):
            self._losses.add(f"{path}.edit_summary", "the text of the results says otherwise")

    def _effort(self, step: Step, extra: Extra) -> Any:
        value = original(step, "reasoning_effort", extra)
        if value is not None and extra.shape.get("effort") == "number" and jsontext.is_valid(value):
            return jsontext.raw(value)
        return string(value)

    def _metrics(self, step: Step, extra: Extra) -> Any:
        form = extra.shape.get("metrics") or {}
        known: Item = {
            key: write_number(getattr(step, column), key, form)
            for key, column in k.TOKEN_COLUMNS.items()
        }
        cost = form.get("cost", "cost_usd")
        known[cost] = write_number(step.cost_usd, cost, form)
        turn = self._turns.pop(0) if self._turns and _is_turn(step) else {}
        names = {name for name, value in turn.items() if getattr(step, name) == value}
        if not extra.shape.get("trial"):
            names = set()
        for key in k.ID_COLUMNS:
            known[key] = None if key in names else getattr(step, key)
        if "logprobs" not in names:
            known["logprobs"] = write_floats(step.logprobs, "logprobs", form.get("exact", {}))
        return self._inner("metrics", known, extra, k.METRICS)

    def _observation(self, step: Step, extra: Extra, index: int) -> Any:
        results = self._calls.results(index)
        form = extra.shape.get("observation") or {}
        known: Item = {"results": results if results or form.get("empty") else None}
        return self._inner("observation", known, extra, k.OBSERVATION)


def _references(subagent: str | None) -> list[list[str | None]]:
    """Ids and paths of the trajectories that a result refers to."""
    refs = jsontext.raw(subagent or "null")
    listed = [refs]
    if jsontext.first_byte(refs) == BRACKET:
        listed = jsontext.decode_array(refs)
    results = [ref for ref in map(members, listed) if ref is not None]
    return [[_text(ref.get(key)) for key in k.REF[:3]] for ref in results]


def _text(raw: Raw | None) -> str | None:
    is_text = raw is not None and jsontext.first_byte(raw) == QUOTE
    return jsontext.decode_value(raw) if raw is not None and is_text else None


def _is_turn(step: Step) -> bool:
    made = step.llm_call_count == 0
    return step.source == "agent" and not made and not step.is_copied_context


def _edit(child: Any) -> Item | None:
    """What the ``extra`` of a step says about an edit of the context."""
    result = members(child)
    return None if result is None else members(result.get("context_management"))
