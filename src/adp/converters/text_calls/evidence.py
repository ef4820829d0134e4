"""Whether a trajectory acts in a dialect, or only talks about it.

Words that look like an action are not enough: answers that explain agents hold them, too. A turn
*acts* when its calls can be read, stand at its end, and stand at its beginning or in tags: words
behind them, or before lines with labels, are an explanation. A trajectory acts when moreover what
surrounds such turns says so:

- the next turn begins as the dialect's results do, and the prompts teach the dialect, or that
  happens twice, or the turn is nothing but reasoning and calls; or
- the next turn is one of a tool; or
- its calls name tools that the record offers; or
- the prompts teach the dialect, and name what is called, or most turns of the agent act.

Labels behind other words count when the prompts name what is called, and results follow twice.
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
_BEHIND = re.compile(r"(?:\s|<[^<>\n]{0,40}>|[`.\])])*+")
"""What may follow the last call of a turn: tags, tokens of templates, fences, a full stop."""

_MARKUP = "<[{◁("
"""Calls that begin with one of these may follow other words."""

_PROMPTS = 4
"""Steps before the first turn of the agent that may teach a dialect."""


@dataclass(slots=True)
class RunEvidence:
    """What the turns of a trajectory look like to a dialect.

    Attributes:
        turns: turns of the agent that have a text and no calls.
        looking: those that hold a call or an answer.
        acting: those that act, and no more.
        full: those of them that are nothing but reasoning and acts, answers among them.
        answered: acting turns whose next turn begins as a result does.
        returned: acting turns that a turn of a tool follows.
        late: turns with labels behind other words that call what the prompts name, and whose next
            turn begins as a result does.
        offered: acting turns all of whose calls name tools on offer.
        prompted: acting turns that call what the prompts name, and answers as they teach them.
        is_taught: whether the prompts teach the dialect.
    """

    turns: int = 0
    looking: int = 0
    acting: int = 0
    full: int = 0
    answered: int = 0
    returned: int = 0
    late: int = 0
    offered: int = 0
    prompted: int = 0
    is_taught: bool = False

    def is_sure(self) -> bool:
        """Whether the trajectory acts, whatever the turns say that were not looked at yet."""
        if self.offered or self.returned or self.answered > 1 or self.late > 1:
            return True
        if self.answered and (self.full or self.is_taught):
            return True
        return self.is_taught and bool(self.prompted or self.full)

    def acts(self) -> bool:
        """Whether the trajectory acts in the dialect."""
        most = self.acting > 1 and 3 * self.acting >= 2 * self.turns
        return self.is_sure() or (self.is_taught and most)


def evidence(grammar: Dialect, run: TrajectoryRows) -> RunEvidence:
    """What the turns of a trajectory look like to a dialect.

    Args:
        grammar: the dialect.
        run: the trajectory.
    """
    return _Look(grammar, run).look(lambda _: False)


def acts(grammar: Dialect, run: TrajectoryRows) -> bool:
    """Whether a trajectory acts in a dialect; as soon as that is sure, no more is looked at."""
    return _Look(grammar, run).look(RunEvidence.is_sure).acts()


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
        words = (*grammar.marks, *grammar.prompts)
        self._taught = sum(any(word in text for text in self._prompts) for word in words)

    def look(self, is_enough: Callable[[RunEvidence], bool]) -> RunEvidence:
        """Look at the turns, until there is enough."""
        grammar = self._grammar
        result = RunEvidence(is_taught=self._taught > 0)
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
        pieces = self._grammar.pieces(text)
        is_run = len(pieces) > 1
        words = text[slice(*pieces[0].span)] if is_run else text
        turn = self._grammar.parse(words, self._tools)
        if not turn.calls and turn.answer is None:
            return
        result.looking += len(pieces) if is_run else 1
        result.full += _is_full(turn, words)
        names = {call.name for call in turn.calls}
        returned = self._arrived.get(self._steps[index]["step"])
        reply = returned or self._next_text(index)
        answered = is_run or reply.lstrip()[:_BEGINNING].startswith(self._grammar.results)
        if not _ends(turn, words):
            return
        if not turn.calls:
            result.prompted += self._taught > 1
            return
        is_first = _begins(turn, words)
        is_prompted = self._is_prompted(turn, names)
        result.late += not is_first and answered and is_prompted
        if is_first or turn.calls[0].kind == "code":
            result.acting += 1
            result.prompted += is_first and is_prompted
            result.offered += names <= set(self._tools)
            result.answered += answered
            result.returned += returned is not None

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


def _ends(turn: ParsedTurn, text: str) -> bool:
    """Whether a turn ends with calls that can be read, or with an answer."""
    if any(call.written_as == "invalid" for call in turn.calls):
        return False
    ends = [call.span[1] for call in turn.calls[-1:]]
    if turn.answer is not None:
        ends.append(turn.answer.span[1])
    return _BEHIND.fullmatch(text, max(ends)) is not None


def _begins(turn: ParsedTurn, text: str) -> bool:
    """Whether a turn begins with what it thinks or calls; calls in tags may follow other words."""
    first = turn.calls[0]
    start, end = first.span
    fenced = first.kind != "code" and (text[start] == "`" or text[end - 1] in "`>")
    if text[start] in _MARKUP or fenced:
        return True
    starts = [thought.span[0] for thought in turn.thoughts]
    return not text[: min([start, *starts])].strip()


def _is_full(turn: ParsedTurn, text: str) -> bool:
    """Whether a turn is nothing but reasoning and what follows from it."""
    items = [call.span for call in turn.calls] + [thought.span for thought in turn.thoughts]
    if turn.answer is not None:
        items.append(turn.answer.span)
    items.sort()
    ends = [0, *(end for _, end in items)]
    starts = [*(start for start, _ in items), len(text)]
    gaps = (text[end:start] for end, start in zip(ends, starts, strict=True))
    return bool(turn.thoughts) and not any(gap.strip() for gap in gaps)
