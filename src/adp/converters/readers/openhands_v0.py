"""Events of OpenHands before its SDK (version 0): actions, and the observations that they cause.

The whole answer of the model is repeated on each event that came of it; it is kept once, as the
step, and each action is one of its calls. A delegate's events stand between the action that
starts it and the observation that ends it; they become a branch. Source: OpenHands' own
serialisation of events, 0.8 to 0.62.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import Raw

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.chat import chat_turn
from adp.converters.kit.drafts import (
    CallDraft,
    ObservationDraft,
    StepDraft,
    TrajectoryDraft,
    merge_extra,
)
from adp.converters.kit.session import LogReader, SessionLog, first_item
from adp.converters.kit.source_object import SourceObject, embedded
from adp.converters.kit.times import take_time
from adp.converters.kit.usage import OPENAI, UsageKeys, set_usage, take_usage
from adp.converters.reading import BRACE, BRACKET, QUOTE
from adp_schema import jsontext
from adp_schema.builder import RowBuilder
from adp_schema.losses import Losses
from adp_schema.model import Columns
from adp_schema.protocols import Match, RawRecord

_EVENTS = frozenset(
    {"recall", "change_agent_state", "null", "condensation_request", "agent_state_changed",
     "start", "init", "load_memory", "add_task", "modify_task", "loop_recovery", "pause", "resume"}
)  # fmt: skip
_CODE = {"run": ("command", "bash"), "run_ipython": ("code", "python")}
_TEXTS = ("thought", "final_thought", "content")
_EVENT_KEYS = frozenset({"id", "source", "timestamp", "message", "action", "args", "timeout",
                         "tool_call_metadata", "llm_metrics"})  # fmt: skip
METRICS = UsageKeys(
    prompt=("accumulated_token_usage.prompt_tokens",),
    written=("accumulated_token_usage.completion_tokens",),
    cached=("accumulated_token_usage.cache_read_tokens",),
    cost=("accumulated_cost",),
)


class OpenHandsLog(SessionLog):
    """One conversation."""

    agent: ClassVar[str | None] = "openhands"
    id_key: ClassVar[str] = "id"

    def __init__(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        super().__init__(record, builder, losses)
        self._responses: dict[str, tuple[StepDraft, str]] = {}
        self._calls: dict[str, str] = {}
        self._outer: list[TrajectoryDraft] = []
        self._spent: Columns = {}

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
        while self._outer:
            self._return()
        for name, value in self._spent.items():
            self.run.columns.setdefault(f"total_{name}", value)

    # ---- actions ---------------------------------------------------------------------------

    def _action(self, event: SourceObject) -> None:
        action = event.word("action")
        if "args" not in event:  # old rows have them beside the action
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
            self.other(event)
        elif action == "message" and self._is_user(event):
            step = self._step(event, "user")
            self._content(args, step, "content")
            self._end(event, step)
        else:
            self._turn(event, args, action)

    def _is_user(self, event: SourceObject) -> bool:
        source = event.word("source")
        return source == "user" or (not source and not self.run.steps)

    def _step(self, event: SourceObject, source: str) -> StepDraft:
        step = self.run.step(source, "llm_turn" if source == "agent" else "message")
        step.columns["native_id"] = event.name("id")
        take_time(event, step.columns, "timestamp")
        return step

    def _content(self, args: SourceObject, step: StepDraft, *keys: str) -> None:
        """Text and images of a message; a key that repeats the text goes."""
        text = args.text(*keys)
        if text:
            step.parts.text(self.builder.text(text))
        for key in ("image_urls", "images_urls"):
            urls = args.items(key)
            words = [jsontext.decode_value(it) for it in urls if jsontext.first_byte(it) == QUOTE]
            whole = len(words) == len(urls) and not any(map(jsontext.has_mark, words))
            if urls and not whole:
                step.extra[key] = urls
            for word in words if whole else ():
                self.blocks.reference(word, step.parts, {}, None)

    def _end(self, event: SourceObject, step: StepDraft) -> None:
        if event.word("message") == step.parts.columns().get("text"):
            event.drop("message")
        if event.word("source") == step.columns["source"]:
            event.drop("source")
        if step.calls or event.word("action") in (step.columns["kind"], step.columns["source"]):
            event.drop("action")
        merge_extra(step.extra, event.rest())

    def _system(self, event: SourceObject, args: SourceObject) -> None:
        step = self._step(event, "system")
        self._content(args, step, "content")
        tools = args.json_list("tools")
        if tools is not None:
            if "tools" in self.run.columns:
                step.extra["tools"] = jsontext.raw(tools)
            else:
                self.run.columns |= {"tools": tools, "tools_origin": "recorded"}
        version = args.text("openhands_version")
        if version is not None:
            self.run.columns["agent_version"] = version
        self._end(event, step)

    def _condensation(self, event: SourceObject, args: SourceObject) -> None:
        """The context lost some events, and may have got a summary."""
        step = self.run.step("system", "context_edit", native_id=event.name("id"))
        take_time(event, step.columns, "timestamp")
        step.columns |= {"edit_boundary": "replace", "edit_summary": args.text("summary")}
        last = args.integer_at("forgotten_events_end_id")
        ids = args.values.get("forgotten_event_ids")
        if ids is not None and jsontext.first_byte(ids) == BRACKET:
            last = max((it for it in json.loads(bytes(ids)) if type(it) is int), default=last)
        kept = [it for it in self.run.steps[:-1] if last is not None and _after(it, last)]
        if last is not None:
            step.columns |= {"edit_from": kept[0] if kept else step, "edit_to": step}
        self._end(event, step)

    def _turn(self, event: SourceObject, args: SourceObject, action: str) -> None:
        """What the model did: a new turn, or one more call of the turn before."""
        meta = event.child("tool_call_metadata")
        response = meta.child("model_response")
        native, source = event.word("id") or _digits(event), event.word("source")
        step, text = self._responses.get(response.word("id"), (None, ""))
        first, answered, final = step is None, bool(response), args.word("final_thought")
        if step is None:
            step = self._step(event, "user" if source == "user" else "agent")
            step.columns["kind"] = "llm_turn" if source != "user" else "message"
            self._spend(event, step)
        if first and response:
            text = jsontext.text_of(response.rest())
            self._responses[response.word("id")] = (step, text)
            self._response(response, step)
        elif response and jsontext.text_of(response.rest()) == text:
            response.values.clear()
        if not answered:
            self._content(args, step, "content" if action == "message" else "thought")
        for key in _TEXTS:
            if args.first(key) == QUOTE and args.word(key) in (
                step.parts.columns().get("text"),
                "",
            ):
                args.drop(key)
        call = None if action == "message" else self._call(meta, args, action, step, native)
        if call is None or first:
            self._end(event, step)
        else:
            event.drop("action")
            call.extra["event"] = event.rest()
        if action == "delegate":
            self._delegate(step, native)
        elif action in ("finish", "reject"):
            self.run.columns["final_answer"] = final or step.parts.columns().get("text")
            self.run.columns["terminated"] = True

    def _response(self, response: SourceObject, step: StepDraft) -> None:
        step.columns["response_id"] = response.text("id")
        step.columns["model"] = response.text("model")
        self.run.columns.setdefault("agent_model", step.columns["model"])
        take_usage(response, "usage", step.columns, OPENAI)
        choices = response.objects("choices")
        for choice in choices[:1]:
            step.columns["stop_reason"] = choice.text("finish_reason")
            chat_turn(choice.child("message"), step, self.blocks)
        if any(left := [choice.rest() for choice in choices]):
            step.extra["choices"] = left

    def _call(
        self, meta: SourceObject, args: SourceObject, action: str, step: StepDraft, native: str
    ) -> CallDraft:
        """The call of an action: that of the model's answer, or one made of the action."""
        call_id = meta.text("tool_call_id")
        call = next((it for it in step.calls if call_id and it.columns["call_id"] == call_id), None)
        key, language = _CODE.get(action, ("", None))
        if call is not None:
            drop_known(args, call)
        elif call_id is None and args.word(key):
            columns = {"kind": "code", "language": language, "arguments_raw": args.text(key)}
            call = step.call({**columns, "arguments_kind": "text", "name": action})
        else:
            arguments = jsontext.raw(jsontext.text_of(args.values))
            args.values = {}
            call = step.call(call_columns(meta.text("function_name") or action, call_id, arguments))
        name = meta.word("function_name")
        if name == call.columns["name"]:
            meta.drop("function_name")
        if call.columns.get("call_id") is None:
            call.columns["call_id"] = call_id or native or None
        if step.columns["source"] == "user":
            call.columns["requestor"] = "user"
        call.extra["action"] = action
        if native:
            self._calls[native] = call.columns["call_id"] or ""
        return call

    def _spend(self, event: SourceObject, step: StepDraft) -> None:
        """Tokens of a turn: what the counts of the whole run grew by."""
        now: Columns = {}
        set_usage(event.child("llm_metrics"), now, METRICS)
        for name, value in now.items():
            grown = value - self._spent.get(name, 0)
            if grown >= 0:
                step.columns[name] = grown
        self._spent |= now

    def _delegate(self, step: StepDraft, native: str) -> None:
        name = f"delegate-{native}"
        self.run.link("subagent", step, call=len(step.calls) - 1, target_id=name)
        branch = TrajectoryDraft(keeps=0, kind="subagent")
        branch.columns |= {"agent_name": self.agent, "source_id": name}
        self.run.branches.append(branch)
        self._outer.append(self.run)
        self.run = self.blocks.run = branch

    def _return(self) -> None:
        self.run = self.blocks.run = self._outer.pop()

    # ---- observations ----------------------------------------------------------------------

    def _observation(self, event: SourceObject) -> None:
        kind = event.word("observation")
        if kind in _EVENTS - {"recall"}:
            self.other(event)
            return
        if kind == "delegate" and self._outer:
            self._return()
        meta = event.child("tool_call_metadata")
        cause = event.word("cause") or _digits(event, "cause")
        answers = meta.text("tool_call_id") or self._calls.get(cause) or None
        columns: Columns = {"name": kind}
        draft = self.run.observe(columns, answers=answers, by_order=not cause and kind != "recall")
        if event.word("source") in ("environment", "user", "agent"):
            columns["source"] = event.text("source")
        take_time(event, columns, "timestamp")
        text = event.text("content")
        if text is not None:
            draft.parts.text(self.builder.text(text))
        self._extras(event, event.child("extras"), draft)
        success = event.flag("success")
        if kind == "error" or success is not None:
            columns["is_error"] = not success
        response = meta.child("model_response")
        _, known = self._responses.get(response.word("id"), (None, ""))
        if response and jsontext.text_of(response.rest()) == known:
            response.values.clear()
        draft.extra = event.rest()

    def _extras(self, event: SourceObject, extras: SourceObject, draft: ObservationDraft) -> None:
        """What an observation says beside its text: images, exit code, page."""
        for key in ("screenshot", "set_of_marks"):
            word = extras.word(key)
            if word.startswith("data:") and not jsontext.has_mark(word):
                self.blocks.reference(extras.text(key) or "", draft.parts, {"key": key}, None)
        metadata = SourceObject(extras.values.get("metadata"), extras.path, self.losses)
        codes = [it.integer_at("exit_code", 32) for it in (event, extras, metadata)]
        draft.columns["exit_code"] = next((it for it in codes if it is not None), None)
        draft.columns["url"] = extras.word("url") or None
        if extras:
            draft.columns["structured"] = jsontext.text_of(extras.values)
            extras.values.clear()


def _digits(event: SourceObject, key: str = "id") -> str:
    value = event.integer_at(key)
    return "" if value is None else str(value)


def _after(step: StepDraft, number: int) -> bool:
    native = str(step.columns.get("native_id"))
    return native.isdigit() and int(native) > number


def drop_known(args: SourceObject, call: CallDraft) -> None:
    """Drop the arguments of an action that its call has with the same value."""
    text = call.columns.get("arguments")
    known = embedded(text, args.path, args.losses).values if text else {}
    for key in [key for key, value in args.values.items() if key in known]:
        if _plain(known[key]) == _plain(args.values[key]):
            args.drop(key)


def _plain(raw: Raw) -> Any:
    return (
        jsontext.decode_value(raw) if jsontext.first_byte(raw) == QUOTE else jsontext.one_line(raw)
    )


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
