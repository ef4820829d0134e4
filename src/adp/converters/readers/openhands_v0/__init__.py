"""Events of OpenHands before its SDK (version 0): actions, and the observations that they cause.

The whole answer of the model is repeated on each event that came of it; it is kept once, as the
step, and each action is one of its calls. A delegate's events stand between the action that
starts it and the observation that ends it; they become a branch. Source: OpenHands' own
serialisation of events, 0.8 to 0.62.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from msgspec import Raw

from adp.converters.kit.drafts import (
    ObservationDraft,
    StepDraft,
)
from adp.converters.kit.key_tables import exit_code, take_tools
from adp.converters.kit.session import LogReader, first_item
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.readers.openhands_v0.turns import (
    OpenHandsTurns,
    digits,
)
from adp.converters.reading import BRACE, BRACKET
from adp_schema import jsontext
from adp_schema.model import Columns
from adp_schema.protocols import Match

_EVENTS = frozenset(
    {"recall", "change_agent_state", "null", "condensation_request", "agent_state_changed",
     "start", "init", "initialize", "load_memory", "add_task", "modify_task", "loop_recovery",
     "pause", "resume"}
)  # fmt: skip
_EVENT_KEYS = frozenset({"id", "source", "timestamp", "message", "action", "args", "timeout",
                         "tool_call_metadata", "llm_metrics"})  # fmt: skip


class OpenHandsLog(OpenHandsTurns):
    """One conversation."""

    def line(self, source: SourceObject) -> None:
        """Take an event, or the document that holds all."""
        if source.first("trajectory") == BRACKET and "action" not in source:
            for event in source.objects("trajectory"):
                self.line(event)
            self.run.extra.update(source.rest())
        elif source.word("observation"):
            self._observation(source)
        elif "action" in source:
            self._action(source)
        else:
            self.losses.unknown("event that is no action and no observation")
            self.other(source)

    def finish(self) -> None:
        """Close delegates that never came back, and give the run the totals of its last event."""
        while self.outer:
            self.end_delegate()
        self.spent.finish(self.run.columns)

    def _action(self, event: SourceObject) -> None:
        action = event.word("action")
        if "args" not in event and action and event.first("extras") == BRACE:
            event.values["args"] = event.values.pop("extras")  # rows of feedback call them so
            event.drop_text("content", event.peek("args").word("content") or None)
        elif "args" not in event:  # old rows have them beside the action
            keys = [key for key in event.values if key not in _EVENT_KEYS]
            args = {key: event.values.pop(key) for key in keys}
            event.values["args"] = jsontext.raw(jsontext.text_of(args))
        self._act(event, event.child("args"), action)

    def _act(self, event: SourceObject, args: SourceObject, action: str) -> None:
        if action == "system":
            self._system(event, args)
        elif action == "condensation":
            self._condensation(event, args)
        elif action in _EVENTS or not action:
            if action == "initialize" and (model := args.word("LLM_MODEL")):
                self.run.columns.setdefault("agent_model", model)
            self.other(event)
        elif action == "message" and self._is_user(event):
            step = self.begin_step(event, "user")
            self.add_content(args, step, "content")
            self.end_event(event, step)
        else:
            self.add_turn(event, args, action)

    def _is_user(self, event: SourceObject) -> bool:
        source = event.word("source")
        return source == "user" or (not source and not self.run.steps)

    def _system(self, event: SourceObject, args: SourceObject) -> None:
        step = self.begin_step(event, "system")
        self.add_content(args, step, "content")
        take_tools(args, self.run.columns)
        version = args.text("openhands_version")
        if version is not None:
            self.run.columns["agent_version"] = version
        self.end_event(event, step)

    def _condensation(self, event: SourceObject, args: SourceObject) -> None:
        """The context lost some events, and may have got a summary."""
        step = self.context_edit(event, "replace")
        step.columns["edit_summary"] = args.text("summary")
        last = args.integer_at("forgotten_events_end_id")
        ids = args.values.get("forgotten_event_ids")
        if ids is not None and jsontext.first_byte(ids) == BRACKET:
            last = max((it for it in json.loads(bytes(ids)) if type(it) is int), default=last)
        kept = [it for it in self.run.steps[:-1] if last is not None and _after(it, last)]
        if last is not None:
            step.columns |= {"edit_from": kept[0] if kept else step, "edit_to": step}
        self.end_event(event, step)

    def _observation(self, event: SourceObject) -> None:
        kind = event.word("observation")
        if kind in _EVENTS - {"recall"}:
            self.other(event)
            return
        if kind == "delegate" and self.outer:
            self.end_delegate()
        meta = event.child("tool_call_metadata")
        cause = event.word("cause") or digits(event, "cause")
        answers = meta.text("tool_call_id") or self.calls.get(cause) or None
        columns: Columns = {"name": kind}
        draft = self.run.observe(columns, answers=answers, by_order=not cause and kind != "recall")
        if event.word("source") in ("environment", "user", "agent"):
            columns["source"] = event.text("source")
        take_time(event, columns, "timestamp")
        self.blocks.take_text(event, draft.parts, "content")
        self._extras(event, event.child("extras"), draft)
        success = event.flag("success")
        if kind == "error" or success is not None:
            columns["is_error"] = not success
        response = meta.child("model_response")
        _, known = self.responses.get(response.word("id"), (None, ""))
        if response and jsontext.text_of(response.rest()) == known:
            response.values.clear()
        draft.extra = event.rest()

    def _extras(self, event: SourceObject, extras: SourceObject, draft: ObservationDraft) -> None:
        """What an observation says beside its text: images, exit code, page."""
        for key in ("screenshot", "set_of_marks"):
            word = extras.word(key)
            if word.startswith("data:") and not jsontext.has_mark(word):
                self.blocks.reference(extras.text(key) or "", draft.parts, {"key": key}, None)
        draft.columns["exit_code"] = exit_code(event, extras, extras.peek("metadata"))
        draft.columns["url"] = extras.word("url") or None
        if extras:
            draft.columns["structured"] = jsontext.text_of(extras.values)
            extras.values.clear()


def _after(step: StepDraft, number: int) -> bool:
    native = str(step.columns.get("native_id"))
    return native.isdigit() and int(native) > number


class OpenHandsReader(LogReader):
    """The format ``openhands_v0``."""

    name = "openhands_v0"
    title = "Events of OpenHands 0.x"
    recognised = "an event with an action and args, or with an observation and extras"
    versions = "reads lists and lines of events, and the object with trajectory of a download"
    log = OpenHandsLog

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """An event, or a document of events."""
        event = first_item(record, "trajectory") if "trajectory" in record else record
        return Match.STAMP if is_event(event) else Match.NO


def is_event(event: Mapping[str, Raw]) -> bool:
    """Whether an object is an event of version 0."""
    keys = set(event)
    action = {"action", "args"} <= keys and bool(keys & {"source", "id", "message"})
    observation = {"observation", "content", "extras"} <= keys
    return (action and jsontext.first_byte(event["args"]) == BRACE) or observation


CONVERTER = OpenHandsReader()
