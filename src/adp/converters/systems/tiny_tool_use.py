"""Rows of Tiny Tool Use (bagel-RL): a conversation as one text, and the tool that it shows.

``Human:`` and ``Assistant:`` begin the turns; calls stand between ``[TOOL_CALL]`` and
``[/TOOL_CALL]``. A text to which a chat template was applied is cut at the template's marks.
Sources: the data generator of bagel-RL, all versions of ``{text, tool_name}`` and of
``{conversation, tool_name}``; no row of them was published.

``$shape`` of a step: ``marks``: what stands before and after its words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Raw

from adp.converters.format import Format
from adp.converters.json_objects import arrange
from adp.converters.reading import QUOTE, begins
from adp.converters.systems.bracket_text import BracketText
from adp.converters.systems.objects import record_object, report_content
from adp.converters.unwritten_columns import report_columns
from adp.converters.writing import report_beside
from adp_schema import extra_column, jsontext, media
from adp_schema.errors import RecordError
from adp_schema.extra_column import Extra, original, unpack
from adp_schema.losses import Losses
from adp_schema.model import Columns, Trajectory
from adp_schema.protocols import Match, RawRecord

if TYPE_CHECKING:
    from adp_schema.builder import RowBuilder

NAME = "tiny_tool_use"
KEYS = ("text", "conversation")
TOOL = "tool_name"
_TAG = "[TOOL_CALL]"

SOURCES = {
    **{"human": "user", "user": "user", "assistant": "agent", "system": "system"},
    **{"tool": "environment", "ipython": "environment", "function": "environment"},
}
_TEMPLATES = (
    (r"<\|im_start\|>(\w+)\n", r"<\|im_end\|>\n?"),
    (r"(?:<\|begin_of_text\|>)?<\|start_header_id\|>(\w+)<\|end_header_id\|>\n\n", r"<\|eot_id\|>"),
    (r"(?:\A|(?<=\n))(Human|Assistant|System): ?", r"\n?\Z"),
)
"""What begins a turn, with its role, and what may end it."""
_COMPILED = tuple((re.compile(start), re.compile(end)) for start, end in _TEMPLATES)


class TextTurn(NamedTuple):
    """A turn in a text: what stands before it, its role, its words, and what stands after it."""

    before: str
    role: str
    words: str
    after: str


class TinyToolUse(Format):
    """The format ``tiny_tool_use``."""

    name = NAME
    title = "Rows of Tiny Tool Use (bagel-RL): a conversation as text, and its tool"
    given_dialect = "by run"  # which `dialect_for` says
    recognised = "`text` (or `conversation`) beside `tool_name`; or a text with `[TOOL_CALL]` alone"
    versions = "Reads and writes the rows that its data generator makes."

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A text with the name of a tool, or with a call in its tags and nothing beside it."""
        key = text_key(record)
        if key is None:
            return Match.NO
        if begins(record.get(TOOL), QUOTE):
            return Match.STAMP
        alone = set(record) == {key} and _TAG in jsontext.decode_value(record[key])
        return Match.SHAPE if alone else Match.NO

    def dialect_for(self, trajectory: Columns, texts: Sequence[str]) -> str:
        """The dialect of a run: calls in brackets, or an object alone, as in teacher mode."""
        return "tool_call_brackets" if any(_TAG in text for text in texts) else "json_actions"

    def read(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        """Convert a row into one trajectory."""
        top = record_object(record, losses)
        key = text_key(top.values)
        if key is None:
            raise RecordError("there is no text", f"$.{KEYS[0]}")
        text = top.text(key)
        form = top.end(KEYS)
        if key != KEYS[0]:
            form["text"] = key
        builder.trajectory({"extra": extra_column.pack(top.values, shape=form)})
        for turn in turns_of(text or ""):
            source = SOURCES.get(turn.role.lower(), "environment")
            columns: Columns = {"source": source, "kind": "message"}
            if source == "agent":
                columns["kind"] = "llm_turn"
            columns["text"] = builder.text(turn.words)
            shape = {"marks": [turn.before, turn.after]}
            columns["extra"] = extra_column.pack(shape=shape)
            builder.step(columns)

    def write(
        self, trajectory: Trajectory, losses: Losses, flavour: str | None = None
    ) -> dict[str, Any]:
        """Convert a trajectory into a row."""
        native = trajectory.source_format == NAME
        extra = unpack(trajectory.extra) if native else Extra()
        carried = frozenset({"extra"} if native else ())
        report_columns(trajectory, carried, "$", losses)
        known: dict[str, Any] = {}
        if native:
            text = _text_again(trajectory, losses)
        else:
            report_beside(trajectory, losses)
            text = BracketText(trajectory, losses).whole()
            names = (call.name for step in trajectory.steps for call in step.calls if call.name)
            known[TOOL] = jsontext.string(next(names, ""))
        known = {extra.shape.get("text", KEYS[0]): jsontext.string(text), **known}
        return arrange(known, extra.fields, extra.shape, KEYS)


def text_key(record: Mapping[str, Raw]) -> str | None:
    """The key of the text."""
    return next((key for key in KEYS if begins(record.get(key), QUOTE)), None)


def turns_of(text: str) -> list[TextTurn]:
    """The turns of a text; a text without marks is one of the agent. Nothing of it is left out."""
    for start, end in _COMPILED:
        marks = list(start.finditer(text))
        if not marks or marks[0].start() > 0:
            continue
        ends = [mark.start() for mark in marks[1:]] + [len(text)]
        turns = []
        for mark, stop in zip(marks, ends, strict=True):
            words = text[mark.end() : stop]
            after = end.search(words)
            cut = after.start() if after is not None and after.end() == len(words) else len(words)
            turns.append(TextTurn(mark[0], mark[1], words[:cut], words[cut:]))
        return turns
    return [TextTurn("", "assistant", text, "")]


def _text_again(run: Trajectory, losses: Losses) -> str:
    """The text of a row that was read from this format."""
    out = ""
    for number, step in enumerate(run.steps):
        extra, path = unpack(step.extra), f"$.steps[{number}]"
        before, after = extra.shape.get("marks", ("", ""))
        carried = frozenset({"source", "kind", "text", "extra"})
        report_columns(step, carried, path, losses)
        report_content(step, path, losses)
        for name, rows in (("calls", step.calls), ("observations", step.observations)):
            for index, row in enumerate(rows):
                report_columns(row, frozenset(), f"{path}.{name}[{index}]", losses)
        out += before + media.restore(original(step, "text", extra) or "", run.media) + after
    return out


CONVERTER = TinyToolUse()
