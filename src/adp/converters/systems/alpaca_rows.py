"""Alpaca rows: an instruction with its input, and the output of a model.

LLaMA-Factory's further columns are read, too: ``system``, and ``history``, the turns before as
pairs of texts. Instruction and input are two parts of the user's turn. Whatever else a row says
stays with it. ET-Agent's rows for fine-tuning and those of SAGE's converter are of this form;
recipes say what their outputs hold.

``$shape`` of the trajectory: ``keys`` as everywhere; ``turns``: how many pairs ``history`` has;
``asked``: keys of the parts of the user's turn, when they are not the first ones of both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from adp.converters.format import Format
from adp.converters.json_objects import arrange
from adp.converters.reading import BRACKET, QUOTE, begins
from adp.converters.systems.objects import (
    listed_texts,
    record_object,
    report_content,
    written_text,
)
from adp.converters.unwritten_columns import report_columns
from adp.converters.writing import is_seen, leave_out, report_beside, spoken_text
from adp_schema import extra_column, jsontext, media
from adp_schema.errors import RecordError
from adp_schema.extra_column import Extra, original, unpack
from adp_schema.losses import Losses
from adp_schema.model import Step, Trajectory
from adp_schema.parts import JOINT, Parts, resolve
from adp_schema.protocols import Match, RawRecord

if TYPE_CHECKING:
    from adp_schema.builder import RowBuilder

NAME = "alpaca_rows"
KEYS = ("instruction", "input", "output", "system", "history")
_OTHERS = ("messages", "conversations", "chosen", "rejected", "trajectory")
_STEP = frozenset({"source", "kind", "text"})


class AlpacaRows(Format):
    """The format ``alpaca_rows``."""

    name = NAME
    title = "Alpaca rows: instruction, input and output"
    container = "json_array"
    holds_text_actions = True
    recognised = "texts `instruction` and `output`, with neither messages nor a second answer"
    versions = "Reads and writes the columns of LLaMA-Factory, with whatever stands beside them."

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """An instruction and what a model wrote."""
        asked = any(begins(record.get(key), QUOTE) for key in KEYS[:2])
        texts = asked and "instruction" in record and begins(record.get("output"), QUOTE)
        return Match.SHAPE if texts and not any(key in record for key in _OTHERS) else Match.NO

    def read(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        """Convert a row into one trajectory."""
        top = record_object(record, losses)
        system, output = top.text("system"), top.text("output")
        texts = {key: text for key in KEYS[:2] if (text := top.text(key)) is not None}
        if output is None:
            raise RecordError("there is no output", "$.output")
        pairs = _pairs(top.values.get("history"))
        if pairs is not None:
            top.take("history")
        form = top.end(KEYS)
        if pairs is not None:
            form["turns"] = len(pairs)
        if tuple(texts) != KEYS[: len(texts)] or not texts:
            form["asked"] = list(texts)
        builder.trajectory({"extra": extra_column.pack(top.values, shape=form)})
        if system is not None:
            _add(builder, "system", [system])
        for query, answer in pairs or ():
            _add(builder, "user", [query])
            _add(builder, "agent", [answer])
        if texts:
            _add(builder, "user", list(texts.values()))
        _add(builder, "agent", [output])

    def write(
        self, trajectory: Trajectory, losses: Losses, flavour: str | None = None
    ) -> dict[str, Any]:
        """Convert a trajectory into a row."""
        if trajectory.source_format == NAME:
            return _row_again(trajectory, losses)
        return _last_answer(trajectory, losses)


def _pairs(raw: Raw | None) -> list[tuple[str, str]] | None:
    """The turns before, when they are pairs of texts."""
    if not begins(raw, BRACKET):
        return None
    pairs = []
    for item in jsontext.decode_array(raw):
        texts = listed_texts(item)
        if texts is None or len(texts) != 2:
            return None
        pairs.append((texts[0], texts[1]))
    return pairs


def _add(builder: RowBuilder, source: str, texts: list[str]) -> None:
    parts = Parts()
    for text in texts:
        parts.text(builder.text(text))
    kind = "llm_turn" if source == "agent" else "message"
    builder.step({"source": source, "kind": kind, **parts.columns()})


def _row_again(run: Trajectory, losses: Losses) -> dict[str, Any]:
    """The row that a run was read from."""
    extra = unpack(run.extra)
    report_columns(run, frozenset({"extra"}), "$", losses)
    report_beside(run, losses)
    steps = list(enumerate(run.steps))
    known: dict[str, Any] = {}
    if steps and steps[0][1].source == "system":
        known["system"] = _whole(run, *steps.pop(0), losses)
    turns = extra.shape.get("turns")
    if turns is not None:
        before, steps = steps[: 2 * turns], steps[2 * turns :]
        texts = [_whole(run, number, step, losses) for number, step in before]
        known["history"] = [texts[n : n + 2] for n in range(0, len(texts), 2)]
    if steps and steps[0][1].source == "user":
        number, step = steps.pop(0)
        report_columns(step, _STEP | {"content", "extra"}, f"$.steps[{number}]", losses)
        known |= dict(zip(extra.shape.get("asked", KEYS[:2]), _asked(run, step), strict=False))
    answers = [_whole(run, number, step, losses) for number, step in steps]
    if len(answers) > 1:
        losses.add("$.steps", "a row has one output; further turns are joined to it")
    known["output"] = answers[0] if len(answers) == 1 else JOINT.join(map(str, answers))
    return arrange(known, extra.fields, extra.shape, KEYS)


def _whole(run: Trajectory, number: int, step: Step, losses: Losses) -> Any:
    """The text of a step."""
    report_columns(step, _STEP | {"extra"}, f"$.steps[{number}]", losses)
    report_content(step, f"$.steps[{number}]", losses)
    return written_text(run, step, "text", unpack(step.extra)) or ""


def _asked(run: Trajectory, step: Step) -> list[Any]:
    """The texts of the user's turn: the instruction, and the input when it has one."""
    text = original(step, "text", unpack(step.extra)) or ""
    parts = [part.text for part in resolve(step.content, text) if part.type == "text"]
    return [jsontext.string(media.restore(it, run.media)) for it in parts or [text]]


def _last_answer(run: Trajectory, losses: Losses) -> dict[str, Any]:
    """A row of a run of another format: its last answer, and what stands before it."""
    report_columns(run, frozenset(), "$", losses)
    report_beside(run, losses)
    spoken: list[tuple[str, str]] = []
    for number, step in enumerate(run.steps):
        path = f"$.steps[{number}]"
        if not is_seen(step):
            leave_out(step, path, losses)
            continue
        report_columns(step, _STEP, path, losses)
        report_content(step, path, losses)
        for name, rows in (("calls", step.calls), ("observations", step.observations)):
            for index, row in enumerate(rows):
                report_columns(row, frozenset(), f"{path}.{name}[{index}]", losses)
        text = spoken_text(step, Extra(escaped=unpack(step.extra).escaped)) or ""
        source = {"agent": "agent", "system": "system"}.get(step.source or "user", "user")
        if step.source == "environment":
            losses.add(f"{path}.source", "environment is written as a turn of the user")
        text = media.restore(text, run.media)
        if spoken and spoken[-1][0] == source:
            pieces = [piece for piece in (spoken[-1][1], text) if piece]
            spoken[-1] = (source, JOINT.join(pieces))
        else:
            spoken.append((source, text))
    return _row(spoken)


def _row(spoken: list[tuple[str, str]]) -> dict[str, Any]:
    """The row of turns; those of one side that follow each other are one."""
    known: dict[str, Any] = {"instruction": "", "input": "", "output": ""}
    if spoken and spoken[0][0] == "system":
        known["system"] = jsontext.string(spoken.pop(0)[1])
    turns = [("user" if source == "system" else source, text) for source, text in spoken]
    if turns and turns[-1][0] == "agent":
        known["output"] = jsontext.string(turns.pop()[1])
    if turns and turns[-1][0] == "user":
        known["instruction"] = jsontext.string(turns.pop()[1])
    pairs: list[list[Any]] = []
    for source, text in turns:
        if source == "user" or not pairs or len(pairs[-1]) == 2:
            pairs.append([] if source == "user" else [""])
        pairs[-1].append(jsontext.string(text))
    if pairs:
        known["history"] = [pair if len(pair) == 2 else [*pair, ""] for pair in pairs]
    return known


CONVERTER = AlpacaRows()
