"""Rows with a list of turns: chats of any spelling."""

from __future__ import annotations

import re

from msgspec import Raw

from adp.converters.datasets.families.transcript import MARKS
from adp.converters.datasets.paths import holder, take
from adp.converters.datasets.reader_specs import MessagesSpec
from adp.converters.datasets.turns import (
    DatasetRow,
    TurnCall,
    add_call,
    arguments_of,
    has_call,
    keep_rest,
    last_agent_step,
    new_step,
    take_text,
)
from adp.converters.kit.chat import add_call as add_chat_call
from adp.converters.kit.chat import take_reasoning
from adp.converters.kit.drafts import CallDraft, ObservationDraft, StepDraft, merge_extra
from adp.converters.kit.source_object import SourceObject, embedded
from adp.converters.kit.times import take_time
from adp.converters.reading import BRACE, BRACKET, NULL, QUOTE
from adp_schema import jsontext
from adp_schema.errors import RecordError

ROLES = {
    "system": "system", "developer": "system",
    "user": "user", "human": "user", "User": "user", "USER": "user", "Human": "user",
    "customer": "user", "prompter": "user",
    "assistant": "agent", "gpt": "agent", "ai": "agent", "AI": "agent", "agent": "agent",
    "Agent": "agent", "Assistant": "agent", "ASSISTANT": "agent", "model": "agent",
    "chatgpt": "agent", "bot": "agent", "bing": "agent",
    "tool": "result", "function": "result", "observation": "result", "ipython": "result",
    "tool response": "result", "tool_response": "result", "function_response": "result",
    "tool_result": "result", "tool_output": "result",
    "environment": "result", "env": "result",
    "function_call": "call", "tool_call": "call", "tool call": "call", "tool_calls": "call",
    "API": "merged",
}  # fmt: skip
"""Role -> what a turn of it is."""


def read(row: DatasetRow) -> None:
    """Read the list of turns of a row.

    Raises:
        RecordError: there is none.
    """
    spec = row.recipe.messages
    for path in spec.system:
        if (text := row.take_text(path)) is not None:
            row.say("system", text)
    TurnListReader(row, spec).read(_items(row, spec))


def _items(row: DatasetRow, spec: MessagesSpec) -> list[SourceObject]:
    for path in spec.path:
        if path == "$":
            if row.rows:
                rows, row.rows = row.rows, []
                return rows
            continue
        if items := row.items(path):
            return [item_object(it, f"$.{path}[{n}]", row) for n, it in enumerate(items)]
    raise RecordError(f"there is no list of turns under {' or '.join(spec.path)}")


def item_object(raw: Raw, path: str, row: DatasetRow) -> SourceObject:
    """An item of a list as an object; a text has the key ``content``."""
    source = SourceObject(raw, path, row.losses)
    if jsontext.first_byte(raw) != BRACE:
        source.values = {"content": raw}
    return source


class TurnListReader:
    """Reads turns into the run of a row.

    Args:
        row: the row.
        spec: what the recipe says of turns.
    """

    def __init__(self, row: DatasetRow, spec: MessagesSpec) -> None:
        self._row = row
        self._spec = spec
        self._roles = {**ROLES, **spec.roles}
        self._words: dict[str, str] = {}
        self._has_images = False
        self._is_plain = True

    def read(self, messages: list[SourceObject]) -> None:
        """Read turns in their order."""
        for message in messages:
            self.message(message)
        usual = ("system", "user", "agent", *(("assistant", "tool") if self._is_plain else ()))
        if words := {word: kind for word, kind in self._words.items() if word not in usual}:
            merge_extra(self._row.run.extra, {"roles": words})

    def message(self, message: SourceObject) -> None:
        """Read a turn."""
        key = next((key for key in self._spec.role if message.word(key)), None)
        role = message.word(key) if key else ""
        kind = self._roles.get(role)
        if kind is None:
            self._row.losses.unknown(f"role {role or 'missing'}")
            kind = "environment"
        elif key is not None:
            message.drop(key)
            self._words[role] = kind
            self._is_plain = self._is_plain and key == "role"
        if kind == "result" or (kind == "user" and self._answers(message)):
            self._result(message)
        elif kind == "call":
            self._call_turn(message)
        elif kind == "merged" and self._spec.merged is not None:
            self._merged(message)
        elif kind in ("agent", "merged"):
            self._agent(message)
        else:
            step = new_step(self._row.run, "system" if kind == "system" else
                            "user" if kind == "user" else "environment")  # fmt: skip
            if kind == "user":
                self._images(step)
            self._content(message, step)
            self._end(message, step)

    def _images(self, step: StepDraft) -> None:
        """Add the pictures of the row to its first turn of a user."""
        for path in () if self._has_images else self._spec.images:
            place = holder(self._row.source, path)
            if place is None:
                continue
            texts = place[0].words(place[1]) or [place[0].word(place[1])]
            if all(texts):
                for text in texts:
                    self._row.blocks.reference(text, step.parts, {}, None)
                place[0].drop(place[1])
        self._has_images = True

    def _answers(self, message: SourceObject) -> bool:
        """Whether the words of a user are the result of the calls before them."""
        regex, key = self._spec.result_text, self._key(message)
        if regex is None or key is None or not has_call(self._row.run):
            return False
        return re.search(regex, message.word(key)) is not None

    def _key(self, message: SourceObject) -> str | None:
        return next((key for key in self._spec.text if message.first(key) not in (0, NULL)), None)

    def _content(self, message: SourceObject, step: StepDraft) -> None:
        key = self._key(message)
        if key is None:
            return
        raw = message.values[key]
        if _is_plain_json(raw):
            step.parts.text(self._row.builder.text(jsontext.one_line(raw)))
            message.drop(key)
        else:
            self._row.blocks.content(message.take(key), step, f"{message.path}.{key}")

    def _end(self, message: SourceObject, step: StepDraft) -> None:
        if message.first("name") == QUOTE:
            step.columns["actor"] = message.text("name")
        take_time(message, step.columns, "timestamp", "created_at")
        keys = ("loss", *self._spec.weight)
        weight = next((it for key in keys if (it := message.flag(key)) is not None), None)
        if weight is None and message.integer_at("loss_mask") in (0, 1):
            weight = message.integer("loss_mask") == 1
        if weight is not None:
            step.columns["loss_weight"] = 1.0 if weight else 0.0
        keep_rest(step, message)

    def _agent(self, message: SourceObject) -> None:
        before = last_agent_step(self._row.run) if self._spec.join_calls else None
        calls = self._calls(message)
        key = self._key(message)
        is_silent = key is None or bytes(message.values[key]) == b'""'
        if before is not None and calls and is_silent:
            first = True
            for call in calls:
                draft = self._add(call, before)
                if first:
                    message.drop(key or "")
                    merge_extra(draft.extra, message.rest())
                    first = False
            return
        step = new_step(self._row.run, "agent")
        take_reasoning(message, step, self._row.blocks)
        for key in self._spec.reasoning:
            if (text := message.text(key)) is not None:
                step.parts.reasoning(self._row.builder.text(text))
        self._content(message, step)
        for call in calls:
            self._add(call, step)
        for key in self._spec.calls:
            if message.word(key):  # calls in a language of their own, which a dialect reads
                step.parts.text(self._row.builder.text(message.text(key) or ""))
        self._end(message, step)

    def _calls(self, message: SourceObject) -> list[SourceObject]:
        for key in self._spec.calls:
            if calls := message.parsed_objects(key):
                return calls
        if message.peek("function_call").word("name"):
            return [message.take_child("function_call")]
        return []

    def _add(self, call: SourceObject, step: StepDraft) -> CallDraft:
        for usual, names in (("name", self._spec.call_name),
                             ("arguments", self._spec.call_arguments)):  # fmt: skip
            key = next((it for it in names if it in call), None)
            if key is not None and usual not in call:
                call.values[usual] = call.values.pop(key)
        draft = add_chat_call(call, step)
        columns = draft.columns
        if columns.get("arguments_kind") == "invalid":
            text = columns.pop("arguments_raw")
            more, left = arguments_of(jsontext.raw(jsontext.text_of(text)))
        elif self._spec.drop_nulls and columns.get("arguments"):
            more, left = arguments_of(jsontext.raw(columns["arguments"]), drop_nulls=True)
            more.pop("arguments_kind")
        else:
            return draft
        columns |= more
        merge_extra(draft.extra, left)
        return draft

    def _call_turn(self, message: SourceObject) -> None:
        """A turn that is a call: an object, a list of them, or the JSON text of either."""
        key = self._key(message)
        calls = self._calls(message) or ([] if key is None else self._calls_under(message, key))
        if not calls:
            self._agent(message)  # its words stay a text
            return
        step = last_agent_step(self._row.run) if self._spec.join_calls else None
        step = step or new_step(self._row.run, "agent")
        drafts = [self._add(call, step) for call in calls]
        merge_extra(drafts[-1].extra, message.rest())

    def _calls_under(self, message: SourceObject, key: str) -> list[SourceObject]:
        path, losses = f"{message.path}.{key}", message.losses
        first = message.first(key)
        if first == BRACE and message.peek(key).word("name"):
            return [message.take_child(key)]
        if first == BRACKET:
            return message.objects(key)
        text = message.word(key)
        call = embedded(text, path, losses)
        if call.word("name"):
            message.drop(key)
            return [call]
        return message.parsed_objects(key) if text.lstrip().startswith("[") else []

    def _merged(self, message: SourceObject) -> None:
        """A call with its result in one turn."""
        spec = self._spec.merged
        assert spec is not None
        step = last_agent_step(self._row.run) or new_step(self._row.run, "agent")
        name = take_text(message, spec.name)
        add_call(step, TurnCall(name, take(message, spec.arguments)))
        draft = self._row.run.observe({"name": name}, by_order=True)
        if spec.error is not None:
            error = take_text(message, spec.error)
            draft.columns["is_error"] = bool(error)
            if error:
                draft.columns["error_type"] = error
        if spec.result is not None and (text := take_text(message, spec.result)) is not None:
            draft.parts.text(self._row.builder.text(text))
        draft.extra.update(message.rest())

    def _lines(self, message: SourceObject) -> list[str]:
        """The lines of a result that has one for each call; none of any other."""
        key = self._key(message) if self._spec.result_lines else None
        lines = message.word(key).split("\n") if key is not None else []
        return lines if len(lines) > 1 and all(map(jsontext.is_valid, lines)) else []

    def _result(self, message: SourceObject) -> ObservationDraft:
        """The result of a call, by its id, or by the order."""
        *earlier, last = self._lines(message) or [""]
        for line in earlier:
            part = self._row.run.observe({}, by_order=True)
            part.parts.text(self._row.builder.text(line))
            part.extra[MARKS] = ["", "\n"]
        if last:
            message.values[self._key(message) or ""] = jsontext.raw(jsontext.text_of(last))
        answers = message.name("tool_call_id", "tool_use_id", "call_id")
        draft = self._row.run.observe(
            {"name": message.text("name")}, answers=answers, by_order=True
        )
        take_time(message, draft.columns, "timestamp", "created_at")
        error = message.flag("is_error")
        if error is not None:
            draft.columns["is_error"] = error
        key = self._key(message)
        if key is not None:
            raw = message.values[key]
            if _is_plain_json(raw):
                draft.parts.text(self._row.builder.text(jsontext.one_line(raw)))
                message.drop(key)
            else:
                self._row.blocks.result(message.take(key), draft, f"{message.path}.{key}")
        draft.extra.update(message.rest())
        if last:
            draft.extra[MARKS] = ["", ""]
        return draft


def _is_plain_json(raw: Raw) -> bool:
    """Whether a content is JSON that a tool gave, and no list of content blocks."""
    first = jsontext.first_byte(raw)
    if first == BRACKET:
        items = jsontext.decode_array(raw)
        return not all(_is_block(item) for item in items)
    return first != QUOTE and not _is_block(raw)


def _is_block(raw: Raw) -> bool:
    first = jsontext.first_byte(raw)
    if first == QUOTE:
        return True
    return (
        first == BRACE
        and jsontext.first_byte(jsontext.decode_object(raw).get("type", Raw(b"null"))) == QUOTE
    )
