"""Turns of the model in the events of OpenHands 0.x, and the delegates that they start."""

from __future__ import annotations

from typing import Any, ClassVar

from msgspec import Raw

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.chat import chat_turn
from adp.converters.kit.drafts import CallDraft, StepDraft, TrajectoryDraft, merge_extra
from adp.converters.kit.media_blocks import take_references
from adp.converters.kit.session import SessionLog
from adp.converters.kit.source_object import SourceObject, embedded
from adp.converters.kit.usage import OPENAI, RunningTotals, UsageKeys, set_usage, take_usage
from adp.converters.reading import QUOTE
from adp_schema import jsontext
from adp_schema.model import Columns

_CODE = {"run": ("command", "bash"), "run_ipython": ("code", "python")}
_TEXTS = ("thought", "final_thought", "content")
METRICS = UsageKeys(
    prompt=("accumulated_token_usage.prompt_tokens",),
    written=("accumulated_token_usage.completion_tokens",),
    cached=("accumulated_token_usage.cache_read_tokens",),
    cost=("accumulated_cost",),
)


class OpenHandsTurns(SessionLog):
    """The turns of a conversation.

    Attributes:
        responses: id of an answer of the model -> its step, and what events repeat of it.
        calls: id of an action -> id of its call.
        outer: the trajectories around the delegate that acts.
        spent: tokens of the whole run.
    """

    agent: ClassVar[str | None] = "openhands"
    id_key: ClassVar[str] = "id"

    def set_up(self) -> None:
        """Make what joins events: the model's answers, their calls, delegates, what was spent."""
        self.responses: dict[str, tuple[StepDraft, str]] = {}
        self.calls: dict[str, str] = {}
        self.outer: list[TrajectoryDraft] = []
        self.spent = RunningTotals()

    def add_content(self, args: SourceObject, step: StepDraft, *keys: str) -> None:
        """Text and images of a message; a key that repeats the text goes."""
        if text := args.text(*keys):
            step.parts.text(self.builder.text(text))
        for key in ("image_urls", "images_urls"):
            for url in take_references(args, key):
                self.blocks.reference(url, step.parts, {}, None)

    def end_event(self, event: SourceObject, step: StepDraft) -> None:
        """Keep what is left of an event with its step, but for what the step says already."""
        event.drop_text("message", step.parts.columns().get("text"))
        event.drop_text("source", step.columns["source"])
        if step.calls or event.word("action") in (step.columns["kind"], step.columns["source"]):
            event.drop("action")
        merge_extra(step.extra, event.rest())

    def add_turn(self, event: SourceObject, args: SourceObject, action: str) -> None:
        """What the model did: a new turn, or one more call of the turn before."""
        meta = event.child("tool_call_metadata")
        response = meta.child("model_response")
        native, source = event.word("id") or digits(event), event.word("source")
        step, text = self.responses.get(response.word("id"), (None, ""))
        first, answered, final = step is None, bool(response), args.word("final_thought")
        if step is None:
            step = self.begin_step(event, "user" if source == "user" else "agent")
            step.columns["kind"] = "llm_turn" if source != "user" else "message"
            self._spend(event, step)
        if first and response:
            text = jsontext.text_of(response.rest())
            self.responses[response.word("id")] = (step, text)
            self._response(response, step)
        elif response and jsontext.text_of(response.rest()) == text:
            response.values.clear()
        if not answered:
            self.add_content(args, step, "content" if action == "message" else "thought")
        for key in _TEXTS:
            if args.first(key) == QUOTE and args.word(key) in (
                step.parts.columns().get("text"),
                "",
            ):
                args.drop(key)
        call = None if action == "message" else self._call(meta, args, action, step, native)
        if call is None or first:
            self.end_event(event, step)
        else:
            event.drop("action")
            merge_extra(call.extra, {"event": event.rest()})
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
        merge_extra(call.extra, {"action": action})
        if native:
            self.calls[native] = call.columns["call_id"] or ""
        return call

    def _spend(self, event: SourceObject, step: StepDraft) -> None:
        """Tokens of a turn: what the counts of the whole run grew by."""
        now: Columns = {}
        set_usage(event.child("llm_metrics"), now, METRICS)
        step.columns |= self.spent.grown(now)

    def _delegate(self, step: StepDraft, native: str) -> None:
        name = f"delegate-{native}"
        self.run.link("subagent", step, call=len(step.calls) - 1, target_id=name)
        self.outer.append(self.run)
        self.run = self.run.branch(0, "subagent", agent_name=self.agent, source_id=name)

    def end_delegate(self) -> None:
        """Go back to the trajectory around a delegate."""
        self.run = self.outer.pop()


def digits(event: SourceObject, key: str = "id") -> str:
    """The integer under a key as a text; empty when there is none."""
    value = event.integer_at(key)
    return "" if value is None else str(value)


def drop_known(args: SourceObject, call: CallDraft) -> None:
    """Drop the arguments of an action that its call has with the same value."""
    text = call.columns.get("arguments")
    known = embedded(text, args.path, args.losses).values if text else {}
    for key, value in [*args.values.items()]:
        same = known.get(key)
        if same is not None and (same == value or _plain(same) == _plain(value)):
            del args.values[key]


def _plain(raw: Raw) -> Any:
    return (
        jsontext.decode_value(raw) if jsontext.first_byte(raw) == QUOTE else jsontext.one_line(raw)
    )
