"""The events of a Codex log: repeated items, ends of calls, and events that stand alone."""

from __future__ import annotations

from adp.converters.kit.drafts import append_extra, merge_extra
from adp.converters.kit.session import word
from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_time
from adp.converters.kit.usage import OPENAI, set_totals
from adp.converters.readers.codex.event_kinds import PLAIN, REPEATED
from adp.converters.readers.codex.executions import KINDS
from adp.converters.readers.codex.items import Items
from adp.converters.readers.codex.repeated_items import block_texts
from adp.converters.readers.codex.subagents import link_subagent, spawned_thread
from adp.converters.readers.codex.turns import rest_of
from adp.converters.reading import BRACE, NULL
from adp_schema import jsontext
from adp_schema.losses import Losses

_TEXTS = frozenset({"", "text", "Text", "input_text", "output_text"})
_SUBAGENT = frozenset({"sub_agent_activity", "SubAgentActivity"})


class Events:
    """Takes the events of a log."""

    def __init__(self, items: Items) -> None:
        self._items = items
        self._run = items.run
        self._turns = items.turns
        self._calls = items.executions

    def read(self, line: SourceObject, payload: SourceObject, place: int) -> None:
        """Take one event; one of a completed item is taken by the item."""
        kind = payload.word("type")
        if kind == "token_count":
            self._turns.token_count(line, payload)
        elif kind == "item_completed" and payload.first("item") == BRACE:
            self._completed(line, payload, place)
        elif kind in REPEATED:
            payload.drop("type")
            self._read_repeated(kind, line, payload, place)
        elif kind in KINDS:
            payload.drop("type")
            self._execution(kind, line, payload)
        else:
            self._plain(kind, line, payload)

    def _completed(self, line: SourceObject, payload: SourceObject, place: int) -> None:
        item = payload.child("item")
        kind = item.word("type")
        payload.drop("type")
        if kind in REPEATED:
            self._read_repeated(kind, line, item, place)
        elif kind in KINDS:
            item.drop("type")
            self._execution(kind, line, item)
        else:
            self._plain(kind, line, item, "item_completed")

    def _read_repeated(self, kind: str, line: SourceObject, item: SourceObject, place: int) -> None:
        """An event that repeats an item adds to it; one without an item becomes a step."""
        role, keys = REPEATED[kind]
        texts = [text for key in keys for text in block_texts(item.values.get(key))]
        repeated = self._items.repeated
        item_place = repeated.find(kind, role, texts, item.word("id"), place)
        if item_place is not None:
            if role == "user":
                self._items.confirmed.add(item_place)
            if repeated.has_texts(item_place, texts):
                for key in keys:
                    if _is_words(item, key, texts):
                        item.drop(key)
            repeated.keep(item_place, kind, rest_of(line))
        elif texts or (role == "user" and item.first("images") == 0x5B):
            self._alone(kind, role, keys, line, item)
        else:
            self._keep(kind, line)

    def _alone(
        self, kind: str, role: str, keys: tuple[str, ...], line: SourceObject, item: SourceObject
    ) -> None:
        blocks, builder = self._items.blocks, self._items.blocks.builder
        if role == "user":
            self._turns.end()
        step = self._run.step("user") if role == "user" else self._turns.item()
        new = not step.columns.get("timestamp")
        if new:
            take_time(line, step.columns, "timestamp")
        if role == "reasoning":
            for key in keys:
                for text in block_texts(item.values.get(key)):
                    step.parts.reasoning(builder.text(text))
                if _is_words(item, key, None):
                    item.drop(key)
        else:
            blocks.content(item.take(keys[0]), step, item.path)
        rest = {"type": kind, **rest_of(line)}
        if role == "user":
            step.extra = rest
        else:
            append_extra(step.extra, "items", rest)

    def _execution(self, kind: str, line: SourceObject, item: SourceObject) -> None:
        """The end of a call, or an event inside one."""
        call = self._calls.take(kind, line, item)
        around = self._calls.running() if call is None else None
        if around is not None:
            self._calls.add_event(kind, line, item, around)
        elif call is None:
            step = self._turns.item()
            if "timestamp" not in step.columns:
                take_time(line, step.columns, "timestamp")
            call = self._calls.add_from_event(kind, line, item, step)
        if call is None:
            return
        thread = spawned_thread(item)
        if thread:
            link_subagent(self._run, thread, call.step, call.index)

    def _plain(self, kind: str, line: SourceObject, item: SourceObject, outer: str = "") -> None:
        """An event that only stands for itself."""
        if kind not in PLAIN:
            self._items.blocks.losses.unknown(f"event {kind or 'without a type'}")
        columns = self._run.columns
        if kind in ("task_started", "turn_started"):
            self._turns.end()
            self._items.turn_id = item.word("turn_id") or self._items.turn_id
            columns.pop("terminated", None)
        elif kind in ("task_complete", "turn_complete", "turn_aborted"):
            self._end(kind, item)
        elif kind == "error":
            columns["error_message"] = item.word("message") or None
            columns["error_type"] = item.word("codex_error_info") or None
        elif kind == "thread_settings_applied":
            settings = item.child("thread_settings")
            self._turns.model = settings.word("model") or self._turns.model
            self._turns.effort = settings.word("reasoning_effort") or self._turns.effort
        elif kind == "thread_rolled_back":
            self._roll_back(line, item)
            return
        elif kind == "session_configured":
            for column, key in (("source_id", "session_id"), ("session_id", "session_id"),
                                ("agent_model", "model")):  # fmt: skip
                if text := item.word(key):
                    columns.setdefault(column, text)
        elif kind in _SUBAGENT and item.word("agent_thread_id"):
            call = self._calls.running()
            link_subagent(self._run, item.word("agent_thread_id"),
                          call.step if call else self._run.steps[-1] if self._run.steps else None,
                          call.index if call else None)  # fmt: skip
        self._keep(kind, line, item if kind in ("task_complete", "turn_complete") else None)

    def _end(self, kind: str, item: SourceObject) -> None:
        """The end of a turn of the user."""
        columns = self._run.columns
        self._turns.end()
        self._calls.end_turn()
        error = item.child("error")
        for name in ("error_message", "error_type"):
            columns.pop(name, None)
        columns["terminated"] = kind != "turn_aborted" and not error
        columns["stop_reason"] = item.word("reason") or kind
        if error:
            columns["error_message"] = error.word("message") or None
            columns["error_type"] = error.word("codex_error_info") or None
        if answer := item.word("last_agent_message"):
            columns["final_answer"] = answer

    def _roll_back(self, line: SourceObject, item: SourceObject) -> None:
        """A rollback: the context ends before the last turns of the user."""
        self._turns.end()
        count = item.integer_at("num_turns") or 0
        step = self._run.step("user", "context_edit", edit_boundary="truncate")
        take_time(line, step.columns, "timestamp")
        self._run.roll_back(step, count)
        step.extra = {"type": "thread_rolled_back", **rest_of(line)}

    def _keep(self, kind: str, line: SourceObject, item: SourceObject | None = None) -> None:
        step = self._run.step("environment", "event", visibility="none")
        take_time(line, step.columns, "timestamp")
        if item is not None:
            step.columns["duration_ms"] = item.number("duration_ms")
            item.drop_text("last_agent_message", self._last_text())
        merge_extra(step.extra, {"type": kind})
        merge_extra(step.extra, rest_of(line))

    def _last_text(self) -> str | None:
        """The last text of the model."""
        latest = self._turns.latest
        text: str | None = latest.parts.columns().get("text") if latest is not None else None
        return text

    def finish(self) -> None:
        """Give the run the totals that the log has."""
        if self._turns.total:
            text = self._turns.total.decode("utf-8")
            self._run.columns["final_metrics"] = text
            record = SourceObject(self._turns.total, "$", Losses())
            set_totals(record, self._run.columns, OPENAI)


def _is_words(item: SourceObject, key: str, texts: list[str] | None) -> bool:
    """Whether a value is only words: a text, or blocks of a type and a text."""
    raw = item.values.get(key)
    first = 0 if raw is None else jsontext.first_byte(raw)
    if raw is None or first in (0, NULL):
        return False
    if first != 0x5B:
        return True
    for block in jsontext.decode_array(raw):
        if jsontext.first_byte(block) != BRACE:
            continue
        values = jsontext.decode_object(block)
        if bytes(values.get("text_elements", b"")) == b"[]":
            del values["text_elements"]
        if set(values) - {"type", "text"} or word(values, "type") not in _TEXTS:
            return False
    return True
