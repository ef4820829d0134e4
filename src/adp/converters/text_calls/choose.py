"""Which dialect a file has: the one in which most turns of its first records act.

A chat that only talks about tools has none. So more is asked for than texts that look like
actions: most turns of the agent must act, and either the prompts must teach the dialect or the
turns after the actions must begin as its results do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from adp.converters.text_calls.dialect import Dialect
from adp.converters.text_calls.offered import tool_names
from adp.converters.text_calls.registry import dialects
from adp_schema.builder import Origin, RowBuilder
from adp_schema.losses import Losses
from adp_schema.model import Columns
from adp_schema.protocols import Converter, RawRecord
from adp_schema.row_changes import TrajectoryRows

RECORDS = 20
"""Records or trajectories that are looked at."""

_AS_WRITTEN = re.compile(r"[ !#-\[\]-~]*")
"""Characters that JSON never writes as escapes."""


@dataclass(slots=True)
class _Votes:
    """How the turns of some trajectories look to a dialect."""

    turns: int = 0
    acting: int = 0
    taught: int = 0
    answered: int = 0
    runs: int = 0

    def convince(self) -> bool:
        """Whether the dialect is that of the trajectories."""
        if not self.acting or 2 * self.acting < self.turns:
            return False
        return 2 * self.taught >= self.runs or 2 * self.answered >= self.acting


def dialect_of_records(converter: Converter, records: Sequence[bytes]) -> str:
    """The dialect of the first records of a file; empty when they have none.

    Args:
        converter: the format of the records.
        records: the records.
    """
    likely = [it for it in dialects() if it.automatic and _may_hold(it, records)]
    if not likely:
        return ""
    runs: list[TrajectoryRows] = []
    builder = RowBuilder()
    for number, data in enumerate(records, 1):
        builder.begin(Origin(number, ""))
        losses = Losses()
        with suppress(Exception):  # the conversion itself says what is wrong
            converter.read(RawRecord(data, "", number, 0, len(data)), builder, losses)
            builder.close_record(losses)
            builder.change(runs.append)
    return dialect_of(runs, likely)


def dialect_of(runs: Sequence[TrajectoryRows], likely: Iterable[Dialect] | None = None) -> str:
    """The dialect of trajectories; empty when they have none.

    Args:
        runs: the rows of some trajectories.
        likely: the dialects that come into question; None: all that may be chosen automatically.
    """
    best, most = "", 0
    for grammar in [it for it in dialects() if it.automatic] if likely is None else likely:
        votes = _Votes()
        for run in runs:
            _vote(grammar, run, votes)
        if votes.acting > most and votes.convince():
            best, most = grammar.name, votes.acting
    return best


def _may_hold(grammar: Dialect, records: Sequence[bytes]) -> bool:
    """Whether a mark of a dialect may stand in some records of JSON."""
    for mark in grammar.marks:
        match = _AS_WRITTEN.match(mark)
        start = match.group().encode() if match else b""
        if any(start in data for data in records):
            return True
    return False


def _vote(grammar: Dialect, run: TrajectoryRows, votes: _Votes) -> None:
    """Count what the turns of a trajectory look like to a dialect."""
    tools = tool_names(run.columns.get("tools"))
    calling = {call["step"] for call in run.tool_calls}
    arrived: dict[int, str] = {}
    for observation in reversed(run.observations):
        arrived[observation["step"]] = observation.get("text") or ""
    votes.runs += 1
    votes.taught += _teaches(grammar, run.steps)
    for index, step in enumerate(run.steps):
        text = step.get("text")
        if step["source"] != "agent" or not text or step["step"] in calling:
            continue
        votes.turns += 1
        if not any(mark in text for mark in grammar.marks):
            continue
        pieces = grammar.pieces(text)
        turn = grammar.parse(text, tools)
        if not (turn.calls or turn.answer or len(pieces) > 1):
            continue
        votes.acting += 1
        reply = arrived.get(step["step"]) or _next_text(run.steps, index)
        begins = reply.lstrip()[:200]
        votes.answered += len(pieces) > 1 or begins.startswith(grammar.results)


def _next_text(steps: list[Columns], index: int) -> str:
    """The text of the next turn, when it is no turn of the agent."""
    if index + 1 == len(steps) or steps[index + 1]["source"] == "agent":
        return ""
    return steps[index + 1].get("text") or ""


def _teaches(grammar: Dialect, steps: list[Columns]) -> bool:
    """Whether what stands before the first turn of the agent teaches a dialect."""
    words = (*grammar.marks, *grammar.prompts)
    for step in steps[:4]:
        if step["source"] == "agent":
            return False
        text = step.get("text") or ""
        if any(word in text for word in words):
            return True
    return False
