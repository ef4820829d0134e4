"""From spans to trajectories: each message once, in the order in which it was first seen.

Each call of a model repeats all that was said before. Its messages are compared with those of the
runs at hand: what is new is added; where they differ, a branch begins, or the context was edited.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from msgspec import Raw

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.drafts import (
    CallDraft,
    ObservationDraft,
    StepDraft,
    TrajectoryDraft,
    merge_extra,
)
from adp.converters.kit.times import number_time
from adp.converters.spans.blocks import word_of
from adp.converters.spans.compare import (
    NOT_CAPTURED,
    Entry,
    Key,
    PromptMessage,
    Track,
    absorb,
    absorb_call,
    arguments_text,
    common,
    fits,
    form,
    holder,
    same_call,
    see,
    spelling,
)
from adp.converters.spans.messages import Group, MessageReader, groups, key_of
from adp.converters.spans.tree import TraceSpan
from adp_schema import jsontext
from adp_schema.builder import RowBuilder
from adp_schema.losses import Losses
from adp_schema.model import Columns

NEW_MESSAGES = "adp.input.messages"
"""The attribute of a call of a model whose input are the messages since the call before it."""
COMPACTED = "gen_ai.conversation.compacted"
"""The attribute of a call of a model before which its context was compacted."""


class AgentRun:
    """One agent: its run, the branches of that, and the calls that wait for results."""

    def __init__(self, run: TrajectoryDraft, builder: RowBuilder, losses: Losses) -> None:
        self.run = run
        self.reader = MessageReader(builder, losses, [], set())
        self.main = Track(run)
        self.tracks = [self.main]
        self.active = self.main
        self.calls: dict[str, tuple[StepDraft, CallDraft]] = {}
        self.results: list[ObservationDraft] = []
        self.shown: set[int] = set()
        self.answered: set[int] = set()
        self.known: dict[bytes, list[Key]] = {}

    # ---- a model's turn --------------------------------------------------------------------

    def turn(self, span: TraceSpan) -> StepDraft:
        """Add a call of a model: what is new in its prompt, and its answer."""
        path = span.source.path
        prompt = [it for group in groups(span.prompt) for it in self._read(group, path)]
        if span.attributes.word(NEW_MESSAGES) == "new":
            span.attributes.drop(NEW_MESSAGES)
            track, new = self.active, prompt
        else:
            track, new = self._track_for(prompt, span)
        self.active = track
        track.agent = track.agent or span.agent
        for message in new:
            self._add(track, message)
        before = track.place()
        entries = list(track.entries)
        step = self._answer(track, span.answers[0] if span.answers else [], span)
        for choice in span.answers[1:]:
            branch = self._branch(track, before, entries)
            self._answer(branch, choice, span, first=False)
        return step

    def _read(self, group: Group, path: str) -> list[PromptMessage]:
        """The messages of a group; one that was there before is not read again."""
        read = partial(self.reader.read, group, path, "user")
        keys = self.known.get(form(group))
        if keys is not None:
            return [PromptMessage(key, group, None, read, n) for n, key in enumerate(keys)]
        messages = [PromptMessage(key_of(item), group, item) for item in read()]
        self.known[form(group)] = [message.key for message in messages]
        return messages

    def _answer(
        self, track: Track, messages: list[Raw], span: TraceSpan, *, first: bool = True
    ) -> StepDraft:
        turn: StepDraft | None = None
        for group in groups(messages):
            for item in self.reader.read(group, span.source.path, "assistant"):
                if isinstance(item, StepDraft) and item.columns["source"] == "agent":
                    item.columns["kind"] = "llm_turn"
                    if turn is None:
                        turn = item
                        item.columns |= _turn_columns(span, first=first)
                        _set_reason(item)
                self._add(track, PromptMessage(key_of(item), group, item))
        if turn is None:
            turn = StepDraft({"source": "agent", **_turn_columns(span, first=first)})
            turn.extra["content"] = NOT_CAPTURED
            track.run.steps.append(turn)
            track.entries.append(Entry(None, turn, track.run, track.place()))
        return turn

    def _add(self, track: Track, message: PromptMessage) -> None:
        item = message.item
        if isinstance(item, ObservationDraft):
            known = self._unsaid(item)
            if known is not None:
                absorb(known, item)
                item = known
            else:
                steps = track.run.steps
                (steps[-1].observations if steps else track.run.early).append(item)
            self.shown.add(id(item))
            self.answered.update(self._call_ids(item))
        else:
            track.run.steps.append(item)
            for call in item.calls:
                self.calls[str(call.columns.get("call_id"))] = (item, call)
        track.entries.append(
            Entry(message.key, item, track.run, track.place(), {form(message.group)})
        )  # fmt: skip

    def _call_ids(self, item: ObservationDraft) -> list[int]:
        known = self.calls.get(item.answers or "")
        return [] if known is None else [id(known[1])]

    def _unsaid(self, item: ObservationDraft) -> ObservationDraft | None:
        """The result that a span of a tool gave before a prompt repeats it."""
        text = item.parts.columns().get("text", "").strip()
        for known in self.results:
            if id(known) in self.shown:
                continue
            if item.answers is not None and known.answers is not None:
                if known.answers == item.answers:
                    return known
            elif (known.parts.columns().get("text", "").strip() == text) or (
                item.columns.get("name") and known.columns.get("name") == item.columns["name"]
            ):
                return known
        return None

    # ---- where a prompt continues ------------------------------------------------------------

    def _track_for(
        self, prompt: list[PromptMessage], span: TraceSpan
    ) -> tuple[Track, list[PromptMessage]]:
        """The run that a prompt continues, and the messages that are new in it."""
        if not prompt or not any(track.entries for track in self.tracks):
            return self.active, prompt
        answer = [(*common(track.entries, prompt), track) for track in self.tracks]
        whole = [it for it in answer if it[1] == len(it[2].entries) and it[1]]
        if whole:
            shared, _, track = max(whole, key=lambda it: it[0])
            self._repeat(track, prompt[:shared])
            return track, prompt[shared:]
        known = {str(name) for name in self.calls}
        if all(it.key[0] == "result" and it.key[1] in known for it in prompt):
            return self.active, prompt
        shared, entries, track = max(answer, key=lambda it: it[0])
        edited = self._edited(prompt, answer[self.tracks.index(self.active)], span)
        if edited is not None:
            return self.active, edited
        self._repeat(track, prompt[:shared])
        kept = track.entries[:entries]
        start = kept[-1].place if kept else 0
        other = not kept and span.agent is not None and span.agent != track.agent
        origin = Track(kept[-1].run if kept else self.run)
        branch = self._branch(origin, start, kept, "subagent" if other else "alternate")
        if other:
            branch.run.columns["agent_name"] = span.agent
        return branch, prompt[shared:]

    def _branch(
        self, track: Track, keeps: int, entries: list[Entry], kind: str = "alternate"
    ) -> Track:
        run = TrajectoryDraft(keeps=keeps, kind=kind)
        names = ("agent_name", "agent_version", "agent_model", "session_id")
        run.columns = {key: track.run.columns[key] for key in names if key in track.run.columns}
        track.run.branches.append(run)
        branch = Track(run, list(entries))
        self.tracks.append(branch)
        return branch

    def _edited(
        self, prompt: list[PromptMessage], answer: tuple[int, int, Track], span: TraceSpan
    ) -> list[PromptMessage] | None:
        """The new messages of a prompt that kept the end of the run and changed what was before.

        None when it does not hold the end of the run, and does not say that it was compacted.
        """
        shared, start, track = answer
        entries = track.entries
        last = entries[-1].key if entries else None
        ends = [n for n in range(shared, len(prompt)) if prompt[n].key == last]
        compacted = bytes(span.attributes.values.get(COMPACTED, b"")) == b"true"
        if not compacted and (not ends or last is None):
            return None
        end = ends[-1] if ends else len(prompt) - 1
        tail = 0
        while (
            tail < min(len(entries) - start, end + 1 - shared)
            and entries[-1 - tail].key == prompt[end - tail].key
        ):
            tail += 1
        kept, replaced = entries[len(entries) - tail :], prompt[shared : end + 1 - tail]
        self._repeat(track, prompt[:shared])
        edit = track.run.step("system", "context_edit", edit_boundary="replace")
        if kept:
            edit.columns["edit_from"] = holder(kept[0])
            edit.columns["edit_to"] = edit
        texts = [it.item.parts.columns().get("text", "") for it in replaced]
        edit.columns["edit_summary"] = "\n\n".join(text for text in texts if text) or None
        edit.extra["messages"] = [raw for it in replaced for raw in it.group]
        edit.extra["kept at the start"] = shared
        _set_time(span, edit.columns)
        hidden = [Entry(it.key, it.item, track.run, track.place(), {form(it.group)}, edit)
                  for it in replaced]  # fmt: skip
        track.entries = [*entries[:start], *hidden, *kept]
        for entry, message in zip(kept, prompt[end + 1 - tail : end + 1], strict=True):
            see(entry, message)
        return prompt[end + 1 :]

    def _repeat(self, track: Track, messages: list[PromptMessage]) -> None:
        """Take what a repeated message says beyond its first form."""
        place = 0
        for message in messages:
            while track.entries[place].key is None and message.key[0] != "agent":
                place += 1
            entry = track.entries[place]
            if not fits(entry, message):
                self._add(track, message)
                track.entries.insert(place, track.entries.pop())
            elif entry.key is None and isinstance(entry.item, StepDraft):
                self._fill(entry, entry.item, message)
            else:
                see(entry, message)
            place += 1

    def _fill(self, entry: Entry, step: StepDraft, message: PromptMessage) -> None:
        """A later prompt holds the answer that its own span does not."""
        answer = message.item
        if not isinstance(answer, StepDraft):
            return
        early, step.parts, step.calls = step.calls, answer.parts, answer.calls
        for call in early:
            same = same_call(step.calls, call)
            if same is None:
                step.call(call.columns, call.extra)
            else:
                absorb_call(same, call)
                self.answered.add(id(same))
        step.extra["content"] = "of a later prompt"
        merge_extra(step.extra, answer.extra)
        for call in step.calls:
            self.calls[str(call.columns.get("call_id"))] = (step, call)
        entry.key = message.key
        entry.seen.add(form(message.group))

    # ---- tools and the rest ------------------------------------------------------------------

    def tool(self, span: TraceSpan) -> tuple[StepDraft, int]:
        """Add a span of a tool, and return the step and the number of its call."""
        use = span.use
        step, call = self._call_for(use)
        text = None
        if step is None or call is None:
            step = self._caller(span)
            call = step.call(call_columns(use.name, use.call_id, use.arguments))
            if use.call_id is not None:
                self.calls[use.call_id] = (step, call)
        elif use.arguments is not None:
            columns = call_columns(use.name, use.call_id, use.arguments)
            for name in ("name", "arguments", "arguments_raw"):
                text = columns.get(name)
                if text is not None and spelling(call.columns.get(name)) != spelling(text):
                    written = text if name == "name" else jsontext.unmark_json(text)
                    merge_extra(call.extra, {f"{name} of the tool's span": written})
        self.answered.add(id(call))
        answers = call.columns.get("call_id")
        draft = ObservationDraft({"name": use.name, **span.columns}, answers, answers is None)
        if use.call_id not in (None, answers):
            draft.extra["call id of the tool's span"] = use.call_id
        if use.error is not None:
            draft.columns["is_error"] = use.error
        _set_time(span, draft.columns)
        if use.result is not None:
            self.reader.result(use.result, draft, span.source.path)
        if use.result is None:
            draft.extra["content"] = NOT_CAPTURED
        draft.extra["span id"] = span.span_id
        merge_extra(draft.extra, span.source.rest())
        steps = self.active.run.steps
        steps[-1].observations.append(draft)
        self.results.append(draft)
        return step, step.calls.index(call)

    def _call_for(self, use: Any) -> tuple[StepDraft | None, CallDraft | None]:
        """The call that a span of a tool carries out: by its id, or else by name and arguments."""
        if use.call_id is not None and use.call_id in self.calls:
            return self.calls[use.call_id]
        wanted = arguments_text(use.arguments)
        waiting = [
            (step, it) for step in self.active.run.steps for it in step.calls
            if id(it) not in self.answered and it.columns.get("name") == use.name
            and (use.call_id is None or it.columns.get("call_id") is None)
        ]  # fmt: skip
        same = [it for it in waiting if spelling(it[1].columns.get("arguments")) == wanted]
        return next(iter(same or waiting), (None, None))

    def _caller(self, span: TraceSpan) -> StepDraft:
        """The step that made a call which no model's turn shows; one is made up if need be."""
        spoken = [it for it in self.active.run.steps if it.columns["kind"] != "event"]
        last = spoken[-1] if spoken else None
        unknown = last is not None and last.extra.get("content") == NOT_CAPTURED
        if last is not None and unknown and not last.columns.get("synthetic"):
            return last
        step = self.active.run.step("agent", "llm_turn", synthetic=True, llm_call_count=0)
        step.extra["content"] = NOT_CAPTURED
        if span.start is not None:
            step.columns["timestamp"] = number_time(str(span.start))
        return step

    def event(self, span: TraceSpan, instruction: str | None = None) -> StepDraft:
        """Add a span that is neither: it is kept with its attributes, as an event or a message."""
        columns: Columns = {"native_id": span.span_id or None}
        _set_time(span, columns)
        if instruction is None:
            return self.active.run.event(span.source, columns)
        step = self.active.run.step("user", **columns)
        step.parts.text(instruction)
        step.extra.update(span.source.rest())
        return step


def _set_reason(turn: StepDraft) -> None:
    """Take the reason to stop from the message, where the span does not say it."""
    for key in ("finish_reason", "stop_reason"):
        if not turn.columns.get("stop_reason") and word_of(turn.extra.get(key)):
            turn.columns["stop_reason"] = word_of(turn.extra.pop(key))


def _turn_columns(span: TraceSpan, *, first: bool) -> Columns:
    columns: Columns = {"kind": "llm_turn", "native_id": span.span_id or None}
    if first:
        columns |= span.columns
    _set_time(span, columns)
    return columns


def _set_time(span: TraceSpan, columns: Columns) -> None:
    """The start of a span; its own spelling of it stays in ``extra`` when it is another."""
    if span.start is None:
        return
    columns["timestamp"] = number_time(str(span.start))
    if span.start_text is not None:
        columns["timestamp_text"] = span.start_text
    columns["timestamp_zone_known"] = span.zoned
    if span.end is not None and columns.get("kind") != "context_edit":
        columns.setdefault("duration_ms", (span.end - span.start) / 1e6)
