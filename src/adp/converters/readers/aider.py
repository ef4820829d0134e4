"""Histories of Aider: ``.aider.chat.history.md``, a Markdown text with session after session.

A prompt stands behind ``####``, what Aider says behind ``>``, an answer of the model as it is. The
lines of the first two end with two spaces, as Aider writes them; so a heading or a quotation in an
answer is none of them. Where a program took the spaces away, a heading in the midst of an answer
belongs to it. Tokens are as Aider rounds them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from msgspec import Raw

from adp.converters.format import Format
from adp.converters.json_objects import read_time
from adp.converters.kit.drafts import StepDraft, TrajectoryDraft, emit
from adp.converters.kit.session import word
from adp.converters.kit.source_object import SourceObject
from adp_schema.builder import RowBuilder
from adp_schema.errors import RecordError
from adp_schema.losses import Losses
from adp_schema.protocols import Match, RawRecord

_START = re.compile(r"# aider chat started at (.*)")
_PROMPT, _OUTPUT, _BREAK = "####", ">", "  "
_COMMAND = re.compile(r"[/!]([\w-]*)(\s+\S)?")
_ASKS = frozenset({"ask", "code", "architect", "context", "help"})
"""Commands whose words go to the model."""
_EMPTIES = frozenset({"clear", "reset"})
_VERSION = re.compile(r"^Aider v(\S+)", re.MULTILINE)
_MODEL = re.compile(r"^(?:Main model|Models?): (\S+)", re.MULTILINE)
_NUMBER = r"([\d.,]+)(k|M)?"
_TOKENS = re.compile(
    rf"Tokens: {_NUMBER} sent(?:, {_NUMBER} cache write)?(?:, {_NUMBER} cache hit)?"
    rf", {_NUMBER} received\."
)
_COST = re.compile(r"Cost: \$([\d.]+) (?:message|request|send), \$([\d.]+) session")
_COLUMNS = ("tokens_in", "tokens_cache_write", "tokens_cached", "tokens_out")
_UNITS = {"": 1, "k": 1_000, "M": 1_000_000}
_MOST = 1 << 53


@dataclass
class Passage:
    """Lines that belong together: a prompt, an answer, or what Aider says.

    Attributes:
        kind: ``####``, ``>``, or nothing for an answer.
        lines: without these marks and the spaces at their ends.
    """

    kind: str
    lines: list[str] = field(default_factory=list)

    def text(self) -> str:
        """The lines, without empty ones before and after them."""
        return "\n".join(self.lines).strip("\n")


class _Cutter:
    """Cuts the lines of a session into passages."""

    def __init__(self, has_breaks: bool) -> None:
        self._has_breaks = has_breaks
        self._passages: list[Passage] = []
        self._blank = 0
        self._is_open = False

    def passages(self, lines: list[str]) -> list[Passage]:
        """The passages that have words."""
        for line in lines:
            kind = self._kind(line)
            if not self._passages and not line.strip():
                continue
            if not self._passages or self._passages[-1].kind != kind:
                self._passages.append(Passage(kind))
            if kind and line.startswith(kind):
                line = line[len(kind) :].removeprefix(" ")
            self._passages[-1].lines.append(line.removesuffix(_BREAK) if kind else line)
            self._blank = 0 if line.strip() else self._blank + 1
        return [it for it in self._passages if it.text().strip()]

    def _kind(self, line: str) -> str:
        last = self._passages[-1].kind if self._passages else None
        ends = line.endswith(_BREAK) and bool(line.strip())
        if self._is_open:  # a message of several lines, of which the last one ends like this
            self._is_open = not ends and bool(line.strip())
            return _OUTPUT if line.strip() else ""
        if line == _PROMPT or line.startswith(f"{_PROMPT} "):
            return _PROMPT if ends or (not self._has_breaks and self._may_ask(last)) else ""
        if line == _OUTPUT or line.startswith(f"{_OUTPUT} "):
            follows = last in (_PROMPT, _OUTPUT) and not self._blank
            if ends or follows or not self._has_breaks:
                self._is_open = self._has_breaks and not ends
                return _OUTPUT
        return "" if line.strip() or last is None else last

    def _may_ask(self, last: str | None) -> bool:
        """Whether a heading can be a prompt, where no spaces tell: an answer ends before it."""
        return last in (None, _OUTPUT) or (last == _PROMPT and not self._blank) or self._blank > 1


class AiderSession:
    """One session while it is read."""

    def __init__(self, builder: RowBuilder, start: str | None) -> None:
        self.builder = builder
        self.run = TrajectoryDraft()
        self.run.columns["agent_name"] = "aider"
        self._answer: StepDraft | None = None
        if start is not None:
            columns = self.run.columns
            columns["source_id"] = columns["session_id"] = start
            columns["started_at"], zoned = read_time(start)
            if columns["started_at"] is not None:
                columns["started_text"], columns["time_zone_known"] = start, zoned

    def add(self, passage: Passage) -> None:
        """Add the step of a passage."""
        text = passage.text()
        if passage.kind == _PROMPT:
            self._prompt(text)
        elif passage.kind == _OUTPUT:
            self._output(text)
        else:
            step = self._answer = self.run.step("agent", "llm_turn")
            step.columns["model"] = self.run.columns.get("agent_model")
            step.parts.text(self.builder.text(text))

    def _prompt(self, text: str) -> None:
        """What the user typed: words for the model, or a command for Aider."""
        command = _COMMAND.match(text)
        name = command[1] if command else ""
        if command is None or (name in _ASKS and command[2]):
            self.run.step("user").parts.text(self.builder.text(text))
            return
        step = self.run.step("user", "event", visibility="user")
        step.parts.text(self.builder.text(text))
        if name in _EMPTIES:
            self.run.step("system", "context_edit", edit_boundary="truncate", synthetic=True)

    def _output(self, text: str) -> None:
        """What Aider says: the models, files that it changed, tokens and cost of an answer."""
        columns = self.run.columns
        step = self.run.step("environment", "event", visibility="user")
        step.parts.text(self.builder.text(text))
        if version := _VERSION.search(text):
            columns["agent_version"] = version[1]
        if model := _MODEL.search(text):
            columns["agent_model"] = model[1]
        tokens, cost = _TOKENS.search(text), _COST.search(text)
        if tokens and self._answer is not None:
            pairs = zip(tokens.groups()[::2], tokens.groups()[1::2], strict=True)
            for column, (number, unit) in zip(_COLUMNS, pairs, strict=True):
                amount = _amount(number, unit)
                if amount is not None:
                    self._answer.columns[column] = round(amount)
            self._answer.columns["cost_usd"] = _amount(cost[1]) if cost else None
            self._answer = None
        if cost:
            columns["total_cost_usd"] = _amount(cost[2])


def _amount(number: str | None, unit: str | None = None) -> float | None:
    """The number that a text such as ``2.1k`` stands for; None when it is none."""
    try:
        amount = float((number or "").replace(",", "")) * _UNITS[unit or ""]
    except ValueError:
        return None
    return amount if amount < _MOST else None


def sessions(text: str) -> Iterator[tuple[str | None, list[str]]]:
    """The sessions of a history: when each was started, and its lines.

    Args:
        text: the history. What stands before the first start is a session without one.
    """
    start: str | None = None
    lines: list[str] = []
    for line in text.replace("\r\n", "\n").split("\n"):
        match = _START.match(line)
        if match is None:
            lines.append(line)
            continue
        if start is not None or any(it.strip() for it in lines):
            yield start, lines
        start, lines = match[1].strip(), []
    yield start, lines


class AiderReader(Format):
    """The format ``aider``."""

    name = "aider"
    title = "Chat histories of Aider"
    container = "text"
    recognised = "a Markdown text with a line `# aider chat started at`"
    versions = "reads .aider.chat.history.md, a trajectory a session"

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A text with the start of a session among its first lines."""
        lines = word(record, "text").lstrip().splitlines()[:1]
        return Match.STAMP if lines and _START.match(lines[0]) else Match.NO

    def read(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        """Read a history."""
        source = SourceObject(record.data, "$", losses)
        text = source.text("text")
        if text is None:
            raise RecordError("expected a text", "$.text")
        has_breaks = any(
            line.endswith(_BREAK) and line.startswith((f"{_PROMPT} ", f"{_OUTPUT} "))
            for line in text.replace("\r\n", "\n").split("\n")
        )
        runs, empty = [], []
        for start, lines in sessions(text):
            session = AiderSession(builder, start)
            for passage in _Cutter(has_breaks).passages(lines):
                session.add(passage)
            if session.run.steps:
                runs.append(session.run)
            elif start is not None:
                empty.append(start)
        if not runs:
            raise RecordError("the history holds no message", "$.text")
        runs[0].extra.update(source.rest())
        if empty:
            runs[0].extra["empty_sessions"] = empty
        for run in runs:
            emit(run, builder)


CONVERTER = AiderReader()
