"""Reading: a row into a trajectory, and a branch and a pair when it has a worse answer."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import Raw

from adp.converters.openai_chat.read import read_message, take_tools
from adp.converters.preference import keys as k
from adp.converters.preference.places import (
    MessagePlace,
    as_dialogues,
    default_places,
    first_role,
    place_of,
    shared,
    source_of_mark,
)
from adp.converters.reading import (
    BRACE,
    BRACKET,
    NUMBER,
    QUOTE,
    begins,
    drop_nulls,
    json_in_string,
    record_fields,
    report_lost,
    take_text,
    text_at,
)
from adp.converters.scalars import is_null, read_number, take_fields
from adp_schema import extra_column, jsontext
from adp_schema.builder import RowBuilder
from adp_schema.errors import RecordError
from adp_schema.losses import Losses
from adp_schema.model import Columns
from adp_schema.protocols import RawRecord


@dataclass
class _Row:
    """A row taken apart.

    Attributes:
        fields: keys that no place took.
        form: what a writer would not guess.
        context: places before the answer.
        answer: the better answer, or the only one; None when the context is all.
        worse: the worse answer.
    """

    fields: dict[str, Raw]
    form: dict[str, Any] = field(default_factory=dict)
    context: list[MessagePlace] = field(default_factory=list)
    answer: MessagePlace | None = None
    worse: MessagePlace | None = None

    def places(self) -> list[MessagePlace]:
        """All places, in the order of the conversation."""
        return [*self.context, *(p for p in (self.answer, self.worse) if p is not None)]


def read_record(record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
    """Convert a row.

    Raises:
        RecordError: it has no answers, or one of them is wrong.
    """
    fields = record_fields(record, losses)
    names = list(fields)
    null = drop_nulls(fields)
    columns: Columns = {}
    row = _Row(fields)
    child = _take_input(row, columns, losses)
    if "tools" not in columns:
        take_tools(fields, columns, row.form)
    _take_places(row, child)
    common = _share(row)
    if not default_places(row.places()):
        row.form["places"] = [[place.key, place.kind] for place in row.places()]
    if child:
        fields["input"] = Raw(jsontext.encode(child))
    take_fields(k.RECORD_FIELDS, fields, columns, row.form)
    rest = [name for name in fields if name != "input" or "input" not in row.form]
    if null or names != usual_order(names, rest):
        row.form["keys"] = names
    columns["extra"] = extra_column.pack(fields, shape=row.form)
    _Reader(builder, losses).read(row, columns, common)


def usual_order(names: list[str], rest: list[str]) -> list[str]:
    """The order in which `write` writes the keys when it is not told another one."""
    rank = {name: index for index, name in enumerate(k.ORDER)}
    known = [name for name in names if name not in rest]
    return [*sorted(known, key=lambda name: rank.get(name, len(rank))), *rest]


def _take_input(row: _Row, columns: Columns, losses: Losses) -> dict[str, Raw]:
    """The object ``input`` of OpenAI's rows: its keys, without those that are places."""
    raw = row.fields.get("input")
    if not begins(raw, BRACE):
        return {}
    child = jsontext.decode_object(raw)
    if "messages" not in child or is_null(child["messages"]):
        return {}
    report_lost(raw, child, "$.input", losses)
    del row.fields["input"]
    row.form["input"] = list(child)
    messages = child.pop("messages")
    row.context.append(place_of("input", messages, "$.input.messages"))
    take_tools(child, columns, row.form)
    if "tools" in columns:
        row.form["tools_in"] = "input"
    return child


def _take_places(row: _Row, child: dict[str, Raw]) -> None:
    """Find the places and take them out of the row.

    Raises:
        RecordError: there is no answer.
    """
    fields = row.fields
    chosen, rejected = next(
        (names for names in k.PAIRS if names[0] in fields), (k.COMPLETION, None)
    )
    if chosen in fields:
        row.answer = place_of(chosen, fields.pop(chosen), f"$.{chosen}")
    if rejected is not None and rejected in fields:
        row.worse = place_of(rejected, fields[rejected], f"$.{rejected}")
        if row.worse.items:
            del fields[rejected]
        else:
            row.worse = None
    if row.answer is None and not row.context and "messages" in fields:
        row.context.append(place_of("messages", fields.pop("messages"), "$.messages"))
    if row.context:
        return
    if row.answer is None and not any(name in fields for name in k.PROMPTS):
        raise RecordError("there is no answer (no `chosen`, `completion` or `messages`)")
    _take_messages(row)
    _take_prompt(row)


def _take_messages(row: _Row) -> None:
    """``messages`` beside the answers: a copy of the chosen side, or the prompt."""
    raw = row.fields.get("messages")
    if row.answer is None or not begins(raw, BRACKET) or first_role(raw) is None:
        return
    place = place_of("messages", raw, "$.messages")
    if row.answer.kind == "list" and place.same() == row.answer.same():
        row.form["copies"] = {"messages": "chosen"}
    elif any(name in row.fields for name in k.PROMPTS):
        return
    else:
        row.context.append(place)
    del row.fields["messages"]


def _take_prompt(row: _Row) -> None:
    """The prompt, with the system text before it and Alpaca's input after it."""
    fields = row.fields
    names = [name for name in k.PROMPTS if name in fields][:1]
    if row.context or (not names and "system" not in fields):
        return
    names += ["input"] if names == ["instruction"] else []
    system = fields.get("system")
    if begins(system, QUOTE) and len(system) > 2:
        row.context.append(place_of("system", fields.pop("system"), "$.system"))
    for name in names:
        raw = fields.get(name)
        if raw is None or (name == "input" and len(raw) == 2):
            continue
        row.context.append(place_of(name, fields.pop(name), f"$.{name}"))


def _share(row: _Row) -> int:
    """How many messages of the answer are the prompt, because both sides begin with it."""
    if row.answer is None or row.worse is None:
        return 0
    sides = (row.answer, row.worse)
    prompt = row.context[-1] if row.context else None
    if prompt is None:
        if as_dialogues(sides) or all(side.kind == "list" for side in sides):
            row.form["whole"] = True
            return shared(sides)
        return 0
    if any(side.kind != "list" for side in sides):
        return 0
    if prompt.kind == "list":
        messages = prompt.same()
        size = len(messages)
        if not size or any(
            side.same()[:size] != messages or len(side.items) == size for side in sides
        ):
            return 0
        row.form["whole"] = True
        return size
    return _share_text(row, prompt, sides)


def _share_text(row: _Row, prompt: MessagePlace, sides: tuple[MessagePlace, MessagePlace]) -> int:
    """The same for a prompt that is a text, as in UltraFeedback: it repeats what the user says."""
    count = shared(sides)
    user_texts = [_user_text(item) for item in sides[0].items[:count]]
    if prompt.kind != "text" or len(row.context) > 1 or prompt.items[0] not in user_texts:
        return 0
    row.form.setdefault("copies", {})[prompt.key] = "user"
    row.form["whole"] = True
    row.context.clear()
    if user_texts[-1] != prompt.items[0]:
        row.form["copies"][prompt.key] = user_texts.index(prompt.items[0])
    return count


def _user_text(raw: Raw) -> str | None:
    if not begins(raw, BRACE) or first_role(raw) != "user":
        return None
    return take_text(jsontext.decode_object(raw), "content")


class _Reader:
    """Makes rows of the places."""

    def __init__(self, builder: RowBuilder, losses: Losses) -> None:
        self._builder = builder
        self._losses = losses

    def read(self, row: _Row, columns: Columns, common: int) -> None:
        """Add the run, and the branch and the pair when there is a worse answer."""
        builder = self._builder
        builder.trajectory(columns)
        full = row.form.get("whole", False)
        explicit = not full and row.answer is not None
        for index, place in enumerate([] if full else row.context):
            self._place(place, at=place.key if index else None, agent=False, copied=explicit)
        if row.answer is None:
            self._copy_before_last()
            return
        if full:
            shown = MessagePlace(row.answer.key, row.answer.kind, row.answer.items[:common], "")
            self._place(shown, at=None, agent=False, copied=False)
        first = self._steps()
        self._place(row.answer.cut(common), at=row.answer.key, agent=True, copied=False)
        last = self._steps()
        if row.worse is None:
            return
        main = builder.finish()
        branch: Columns = {"parent_id": main, "parent_step": first, "branch_kind": "alternate"}
        extra = extra_column.pack(None, shape={"at": row.worse.key})
        builder.trajectory({**branch, "extra": extra})
        self._place(row.worse.cut(common), at=None, agent=True, copied=False)
        end = self._steps()
        if first < last:
            pair = pair_of(main, builder.finish(), first, last, end)
            builder.pair({**pair, **scores_of(row.fields), **id_of(row.fields)})

    def _steps(self) -> int:
        """Number of the next step."""
        return self._builder.next_step

    def _place(self, place: MessagePlace, *, at: str | None, agent: bool, copied: bool) -> None:
        """Add the messages of a place."""
        for index, item in enumerate(place.items):
            steps = len(self._builder.rows["steps"])
            form: dict[str, Any] = {} if index or at is None else {"at": at}
            if place.kind == "text":
                source = "system" if place.key == "system" else "agent" if agent else "user"
                self._text(source, item)
            elif place.kind == "dialogue":
                source = source_of_mark(item[0])
                if item[0] != k.MARKS[source]:
                    form["mark"] = item[0]
                self._text(source, item[1])
            else:
                path = place.path if place.kind == "object" else f"{place.path}[{index}]"
                self._message(item, path, form)
            is_step = len(self._builder.rows["steps"]) > steps
            added = self._builder.rows["steps" if is_step else "observations"][-1]
            if is_step and copied and added["source"] == "agent":
                added["is_copied_context"] = True
            if form:
                _add_form(added, form)

    def _text(self, source: str, text: str) -> None:
        kind = "llm_turn" if source == "agent" else "message"
        columns: Columns = {"source": source, "kind": kind, "text": self._builder.text(text)}
        self._builder.step(columns)

    def _message(self, item: Raw, path: str, form: dict[str, Any]) -> None:
        if begins(item, QUOTE):
            data, form["line"], _ = json_in_string(item, path, self._builder, self._losses)
            item = Raw(data)
        read_message(item, path, self._builder, self._losses)

    def _copy_before_last(self) -> None:
        """A labelled chat: the label is that of the last answer, what is before it is context."""
        steps = self._builder.rows["steps"]
        count = self._steps()
        tail = steps[len(steps) - count :] if count else []
        agent = [step for step in tail if step["source"] == "agent"]
        for step in agent[:-1]:
            step["is_copied_context"] = True


def _add_form(row: Columns, form: dict[str, Any]) -> None:
    """Add to ``$shape`` of a row that is made already; the rest of its ``extra`` stays."""
    extra = jsontext.decode_object((row.get("extra") or "{}").encode("utf-8"))
    known = msgspec.json.decode(extra["$shape"]) if "$shape" in extra else {}
    row["extra"] = jsontext.text_of({**extra, "$shape": {**known, **form}})


def pair_of(main: str | None, other: str | None, first: int, last: int, end: int) -> Columns:
    """The pair of a row: the answers of its run and of the branch, from one step on."""
    single = last == end == first + 1
    return {
        **{"pair_id": main, "context_id": main, "context_up_to": first},
        **{"chosen_id": main, "chosen_from": first, "chosen_to": last},
        **{"rejected_id": other, "rejected_from": first, "rejected_to": end},
        "level": "step" if single else "turn",
    }


def id_of(fields: dict[str, Raw]) -> Columns:
    """The id that a row gives its pair."""
    name = text_at(fields, "pair_id")
    return {"pair_id": name} if name else {}


def scores_of(fields: dict[str, Raw]) -> Columns:
    """The scores that a row gives, as columns of its pair."""
    columns: Columns = {}
    for column, names in k.SCORES:
        raw = next((fields[name] for name in names if name in fields), None)
        if raw is not None and jsontext.first_byte(raw) in NUMBER:
            value = read_number(raw, "", {})
            if value is not None and math.isfinite(value):
                columns[column] = value
    return columns
