"""The steps of the loop of Kimi Code: the events of a step have its id, and become one step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from adp.converters.kit.blocks import call_columns
from adp.converters.kit.drafts import StepDraft, append_extra, merge_extra
from adp.converters.kit.key_tables import take_columns
from adp.converters.kit.session import SessionLog
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.kit.usage import UsageKeys, take_usage
from adp.converters.reading import BRACE

USAGE = UsageKeys(
    prompt=("inputOther",),
    written=("output",),
    cached=("inputCacheRead",),
    cache_write=("inputCacheCreation",),
    apart=True,
)
STEP_END = {"stop_reason": "finishReason", "response_id": "messageId",
            "duration_ms": "llmStreamDurationMs"}  # fmt: skip


class LoopSteps:
    """Reads the events of the loop into the trajectory of a session.

    Attributes:
        model: of the turns that begin.
        effort: their reasoning effort.
        latest: the last step that an event was of.
    """

    METHODS: ClassVar[Mapping[str, str]] = {
        "step.begin": "_begin",
        "content.part": "_part",
        "tool.call": "_call",
        "tool.result": "_result",
        "step.end": "_end",
    }

    def __init__(self, log: SessionLog) -> None:
        self.log = log
        self.model: str | None = None
        self.effort: str | None = None
        self.latest: StepDraft | None = None
        self._steps: dict[str, StepDraft] = {}

    def read(self, source: SourceObject) -> bool:
        """Read the event of a record; False for one of a type that is not known."""
        event = source.child("event")
        kind = event.word("type")
        name = self.METHODS.get(kind)
        if name is None:
            self.log.losses.unknown(f"loop event {kind or 'without a type'}")
            return False
        event.drop("type")
        method: Callable[[SourceObject, SourceObject], None] = getattr(self, name)
        method(source, event)
        return True

    def _step(self, source: SourceObject, event: SourceObject, key: str = "stepUuid") -> StepDraft:
        """The step that an event belongs to; one that was not begun begins here."""
        name = event.word(key)
        step = self._steps.get(name)
        if step is None:
            step = self.log.run.step("agent", "llm_turn", model=self.model, native_id=name or None)
            step.columns["reasoning_effort"] = self.effort
            take_time(source.copy(), step.columns, "time")
            self._steps[name] = step
        self.latest = step
        if name:
            event.drop(key)
        for number in ("turnId", "step"):
            raw = event.values.get(number)
            if raw is not None and bytes(raw) == bytes(step.extra.setdefault(number, raw)):
                event.drop(number)
        return step

    def _begin(self, source: SourceObject, event: SourceObject) -> None:
        name = event.word("uuid")
        self._steps.pop(name, None)
        step = self._step(source, event, "uuid")
        source.drop("time") if "timestamp" in step.columns else None
        merge_extra(step.extra, source.rest())

    def _part(self, source: SourceObject, event: SourceObject) -> None:
        step = self._step(source, event)
        if event.first("part") == BRACE:
            self.log.blocks.block(event.child("part"), step)
        else:
            self.log.blocks.content(event.take("part"), step, f"{source.path}.event.part")
        self._events(step, "content.part", source)

    def _events(self, step: StepDraft, kind: str, source: SourceObject) -> None:
        rest = source.rest()
        if isinstance(inner := rest.get("event"), dict) and isinstance(inner.get("part"), dict):
            del inner["part"]
        append_extra(step.extra, "events", {"type": kind, **rest})

    def _call(self, source: SourceObject, event: SourceObject) -> None:
        step = self._step(source, event)
        name, call_id = event.text("name"), event.name("toolCallId")
        event.drop_text("uuid", call_id)
        step.call(call_columns(name, call_id, event.take("args")), source.rest())

    def _result(self, source: SourceObject, event: SourceObject) -> None:
        answers = event.name("toolCallId")
        event.drop_text("parentUuid", answers)
        result = event.child("result")
        draft = self.log.begin_result(source, answers, is_error=result.flag("isError"))
        raw = result.take("output") if result else event.take("result")
        self.log.blocks.result(raw, draft, f"{source.path}.event.result")
        draft.extra = source.rest()

    def _end(self, source: SourceObject, event: SourceObject) -> None:
        step = self._step(source, event, "uuid")
        take_usage(event, "usage", step.columns, USAGE)
        take_columns(event, step.columns, STEP_END)
        self._events(step, "step.end", source)
