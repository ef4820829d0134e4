"""Whether a trajectory acts in a dialect, or only talks about it.

Words that look like an action are not enough: an answer that explains agents holds them, too. So a
trajectory acts when what surrounds its actions says so:

- the turn after an action begins as the dialect's results do; or
- every action calls a tool that the record offers; or
- what stands before the first turn of the agent teaches the dialect, and names what is called,
  or the turn is nothing but reasoning and acts, or most turns of the agent act.

An action also ends its turn: words behind it are an explanation.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from adp.converters.text_calls.dialect import Dialect, ParsedTurn
from adp.converters.text_calls.offered import tool_names
from adp_schema.model import Columns
from adp_schema.row_changes import TrajectoryRows

_BEGINNING = 200
_MOST_BEHIND = 40
"""Characters that may follow the last action of a turn: closing tags, a full stop."""

_PROMPTS = 4
"""Steps before the first turn of the agent that may teach a dialect."""


@dataclass(slots=True)
class RunEvidence:
    """What the turns of a trajectory look like to a dialect.

    Attributes:
        turns: turns of the agent that have a text and no calls.
        acting: those that act.
        closing: those that end with what they act.
        answered: those of them whose next turn begins as a result does.
        offered: acting turns all of whose calls name tools on offer.
        prompted: acting turns that call what the prompts name, or are reasoning and acts alone.
        is_taught: whether the prompts teach the dialect.
    """

    turns: int = 0
    acting: int = 0
    closing: int = 0
    answered: int = 0
    offered: int = 0
    prompted: int = 0
    is_taught: bool = False

    def acts(self) -> bool:
        """Whether the trajectory acts in the dialect."""
        if self.answered or self.offered:
            return True
        if not self.is_taught or not self.closing:
            return False
        return self.prompted > 0 or (self.closing > 1 and 3 * self.closing >= 2 * self.turns)


def evidence(grammar: Dialect, run: TrajectoryRows) -> RunEvidence:
    """What the turns of a trajectory look like to a dialect.

    Args:
        grammar: the dialect.
        run: the trajectory.
    """
    return _Look(grammar, run).look(lambda _: False)


def acts(grammar: Dialect, run: TrajectoryRows) -> bool:
    """Whether a trajectory acts in a dialect; as soon as that is sure, no more is looked at."""
    return _Look(grammar, run).look(RunEvidence.acts).acts()


class _Look:
    """A walk over the turns of a trajectory."""

    def __init__(self, grammar: Dialect, run: TrajectoryRows) -> None:
        self._grammar = grammar
        self._steps = run.steps
        self._tools = tool_names(run.columns.get("tools"))
        self._calling = {call["step"] for call in run.tool_calls}
        self._arrived: dict[int, str] = {}
        for observation in reversed(run.observations):
            self._arrived[observation["step"]] = observation.get("text") or ""
        self._prompts = _prompts(run.steps)

    def look(self, is_enough: Callable[[RunEvidence], bool]) -> RunEvidence:
        """Look at the turns, until there is enough."""
        grammar = self._grammar
        words = (*grammar.marks, *grammar.prompts)
        result = RunEvidence(is_taught=any(it in text for text in self._prompts for it in words))
        for index, step in enumerate(self._steps):
            text = step.get("text")
            if step["source"] != "agent" or not text or step["step"] in self._calling:
                continue
            result.turns += 1
            if any(mark in text for mark in grammar.marks):
                self._turn(result, text, index)
                if is_enough(result):
                    break
        return result

    def _turn(self, result: RunEvidence, text: str, index: int) -> None:
        """Count a turn with marks."""
        turn = self._grammar.parse(text, self._tools)
        if not turn.calls and turn.answer is None:
            return
        result.acting += 1
        names = {call.name for call in turn.calls}
        result.offered += bool(names) and names <= set(self._tools)
        pieces = self._grammar.pieces(text)
        if len(pieces) < 2 and not _closes(turn, text):
            return
        result.closing += 1
        reply = self._arrived.get(self._steps[index]["step"]) or self._next_text(index)
        begins = reply.lstrip()[:_BEGINNING]
        result.answered += bool(turn.calls) and begins.startswith(self._grammar.results)
        result.prompted += self._is_prompted(turn, names) or _is_full(turn, text)

    def _is_prompted(self, turn: ParsedTurn, names: set[str]) -> bool:
        if any(call.kind != "function" for call in turn.calls):
            return True
        pattern = re.compile("|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in sorted(names)))
        return bool(names) and any(pattern.search(text) for text in self._prompts)

    def _next_text(self, index: int) -> str:
        """The text of the next turn, when it is no turn of the agent."""
        following = self._steps[index + 1 : index + 2]
        if not following or following[0]["source"] == "agent":
            return ""
        return following[0].get("text") or ""


def _prompts(steps: Sequence[Columns]) -> list[str]:
    """The texts before the first turn of the agent."""
    texts: list[str] = []
    for step in steps[:_PROMPTS]:
        if step["source"] == "agent":
            break
        if step.get("text"):
            texts.append(step["text"])
    return texts


def _is_full(turn: ParsedTurn, text: str) -> bool:
    """Whether a turn is nothing but reasoning and what follows from it."""
    items = sorted(it.span for it in (*turn.calls, *turn.thoughts, turn.answer) if it is not None)
    ends = [0, *(end for _, end in items)]
    starts = [*(start for start, _ in items), len(text)]
    gaps = (text[end:start] for end, start in zip(ends, starts, strict=True))
    return bool(turn.thoughts) and not any(gap.strip() for gap in gaps)


def _closes(turn: ParsedTurn, text: str) -> bool:
    """Whether a turn ends with what it acts."""
    ends = [call.span[1] for call in turn.calls]
    if turn.answer is not None:
        ends.append(turn.answer.span[1])
    return len(text.rstrip()) - max(ends) <= _MOST_BEHIND
