"""From texts to structure: what a dialect says of the turns of a trajectory becomes rows.

Nothing is taken out of a text: a step keeps it whole, and its calls say by spans where they stand.
What the rows had before is noted under ``$parsed`` of ``extra``, so that
`adp.converters.text_calls.restore` can give the trajectory back as it was read:

- of a step: ``dialect``; ``calls``, how many it has; ``apart``, when they were not in the text;
  ``thoughts`` and ``answer``, the spans of what is no call and no prose; ``reasoning``, what the
  column held before; ``left``, why something was left in the text; ``joined`` for a step that was
  cut off from the text of the one before; ``behind`` for words behind the results of a turn.
- of an observation: ``before`` and ``after``, the characters around its text; ``step``, the columns
  of the turn that it was; ``row``, those of the observation that it was; ``joined`` for a further
  result of the same turn; ``piece`` for one that was cut out of a text of the agent.
- of a trajectory: ``columns``, those that were empty before; ``replaced``, what others held.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from adp.converters.text_calls.call_rows import (
    WaitingCalls,
    answer_of,
    call_columns,
    shows_something,
)
from adp.converters.text_calls.dialect import (
    HARNESS,
    Dialect,
    Marked,
    ParsedResult,
    ParsedTurn,
    Piece,
)
from adp.converters.text_calls.evidence import acts
from adp.converters.text_calls.numbering import StepNumbers, number_turns, pair_changes
from adp.converters.text_calls.offered import tool_names
from adp.converters.text_calls.thoughts import with_thoughts
from adp.converters.text_calls.turn_words import put_words
from adp_schema.builder import RowBuilder
from adp_schema.extra_column import with_changed_columns, with_parsed
from adp_schema.model import Columns
from adp_schema.row_changes import TrajectoryRows

_OBSERVED = ("timestamp", "timestamp_text", "timestamp_zone_known", "content", "reward")
"""Columns of a step that an observation has, too."""

_FURTHER = ("source", "kind", "actor")
"""Columns that a step cut off from the text of another one has from it."""

_ANSWERING = ("user", "environment")

_BEGINNING = 1000
"""Characters of a turn in which the mark of a result is looked for."""

_WORDS = re.compile(r"\w")

_OF_RESULT = ("name", "is_error", "exit_code")
"""Columns of an observation that the text of a result may fill."""


class TextParser:
    """Makes calls, reasoning and observations of the texts of trajectories.

    Args:
        dialect: the grammar.
        is_found: whether it was found and not named. Then trajectories that only talk about actions
            are left as they are; see `adp.converters.text_calls.evidence`.

    Attributes:
        counts: turns, calls, results and answers that were read; ``left`` where something was not.
        numbers: trajectory id -> new numbers of the steps, of those that were changed.
    """

    def __init__(self, dialect: Dialect, *, is_found: bool = False) -> None:
        self.dialect = dialect
        self._is_found = is_found
        self.counts: Counter[str] = Counter()
        self.numbers: dict[str, StepNumbers] = {}

    def change_record(self, builder: RowBuilder) -> None:
        """Parse the texts of the trajectories that a builder made of the record at hand."""
        self.numbers.clear()
        builder.change(self.change)
        if self.numbers:
            for pair in builder.made("pairs"):
                pair.update(pair_changes(pair, self.numbers))

    def change(self, run: TrajectoryRows) -> None:
        """Parse the texts of a trajectory; its rows are changed in place."""
        parent = self.numbers.get(run.columns.get("parent_id") or "")
        if parent is not None and run.columns.get("parent_step") is not None:
            run.columns["parent_step"] = parent.border(run.columns["parent_step"])
        elif not self._is_to_parse(run):
            return
        changed = _ChangedRun(self.dialect, run, self.counts)
        changed.parse()
        if changed.is_changed or parent is not None:
            changed.put_back()
            self.numbers[run.columns["trajectory_id"]] = changed.numbers

    def _is_to_parse(self, run: TrajectoryRows) -> bool:
        """Whether a trajectory that is no branch of a parsed one has actions."""
        marks = self.dialect.marks
        texts = (step.get("text") or "" for step in run.steps if step["source"] == "agent")
        if not any(mark in text for text in texts for mark in marks):
            return False
        return not self._is_found or acts(self.dialect, run)


class _ChangedRun:
    """One trajectory while its texts are parsed."""

    def __init__(self, dialect: Dialect, run: TrajectoryRows, counts: Counter[str]) -> None:
        self._dialect = dialect
        self._run = run
        self._counts = counts
        self._tools = tool_names(run.columns.get("tools"))
        self._calls: dict[int, list[Columns]] = {}
        for call in run.tool_calls:
            self._calls.setdefault(call["step"], []).append(call)
        self._arrived: dict[int, list[Columns]] = {}
        for observation in run.observations:
            self._arrived.setdefault(observation["step"], []).append(observation)
        self._next = run.columns.get("parent_step") or 0
        self._waiting = WaitingCalls()
        self._steps: list[Columns] = []
        self._new_calls: list[Columns] = []
        self._observations: list[Columns] = list(self._arrived.pop(-1, ()))
        self._answer: str | None = None
        self._is_marked = any(
            step["source"] in _ANSWERING and self._begins_as_result(step) for step in run.steps[1:]
        )
        self._is_followed = False
        self.numbers = StepNumbers()
        self.is_changed = False
        self._following: Columns | None = None

    # ---- the whole -------------------------------------------------------------------------

    def parse(self) -> None:
        """Go through the steps."""
        steps = self._run.steps
        for index, step in enumerate(steps):
            self._before(step["step"])
            number = step["step"]
            self._following = steps[index + 1] if index + 1 < len(steps) else None
            open_turn = self._waiting.calls or self._is_followed
            if open_turn and step["source"] in _ANSWERING and self._answered(step):
                self.numbers.add(number, self._next, kept=False)
            else:
                self.numbers.add(number, self._next, kept=True)
                self._step(step)
            for observation in self._arrived.pop(number, ()):
                self._observation(observation)
        self._before(None)
        self.numbers.end = self._next

    def _before(self, number: int | None) -> None:
        """Observations whose step is gone arrived after the step before it."""
        for old in sorted(self._arrived):
            if number is not None and old >= number:
                break
            for observation in self._arrived.pop(old):
                self._observation(observation)

    def put_back(self) -> None:
        """Give the trajectory its new rows."""
        run, numbers = self._run, self.numbers
        for step in self._steps:
            numbers.change_step(step)
        for link in run.links:
            numbers.change_link(link)
        number_turns(self._steps, removed=not all(numbers.kept))
        order: Counter[int] = Counter()
        for observation in self._observations:
            observation["order"] = order[observation["step"]]
            order[observation["step"]] += 1
        run.steps, run.tool_calls = self._steps, self._new_calls
        run.observations = self._observations
        if self._answer is not None and run.columns.get("final_answer") is None:
            run.columns["final_answer"] = self._answer
            before = {"final_answer": None}
            run.columns["extra"] = with_changed_columns(run.columns.get("extra"), before)

    # ---- steps -----------------------------------------------------------------------------

    def _step(self, step: Columns) -> None:
        """A turn that stays a step, or several."""
        calls = self._calls.get(step["step"], [])
        text = step.get("text")
        unseen = step.get("kind") == "event" or step.get("visibility") == "none"
        if not unseen:
            self._waiting = WaitingCalls()
            self._is_followed = False
        is_plain = step["source"] == "agent" and not _is_parsed(step) and not step.get("content")
        if not is_plain or not text or calls:
            self._emit(step)
            for call in calls:
                call["step"] = step["step"]
                self._new_calls.append(call)
            if is_plain and text and step.get("prose") is None:
                self._thoughts(step, text)
            return
        pieces = self._pieces(text)
        if len(pieces) < 2:
            self._emit(step)
            self._turn(step, text, {})
            return
        self.is_changed = True
        for index, piece in enumerate(pieces):
            words = text[slice(*piece.span)]
            if index == 0:
                step["text"] = words
                self._emit(step)
                self._turn(step, words, {})
            elif piece.source == "agent":
                further: Columns = {name: step[name] for name in _FURTHER if name in step}
                further["text"] = words
                self._emit(further)
                self._turn(further, words, {"joined": True})
            else:
                self._results(words, {"source": "environment"}, {"piece": True})

    def _pieces(self, text: str) -> Sequence[Piece]:
        """The turns in a text, without a result that the agent made up before the true one came."""
        pieces = self._dialect.pieces(text) if self._has_marks(text) else ()
        following = self._following
        if len(pieces) < 2 or pieces[-1].source == "agent" or following is None:
            return pieces
        if following["source"] not in _ANSWERING or not self._begins_as_result(following):
            return pieces
        return [*pieces[:-2], Piece("agent", (pieces[-2].span[0], pieces[-1].span[1]))]

    def _thoughts(self, step: Columns, text: str) -> None:
        """Reasoning in tags beside calls that the source keeps apart from the text."""
        turn = with_thoughts(ParsedTurn(), text)
        if turn:
            self.is_changed = True
            parsed: dict[str, Any] = {"dialect": self._dialect.name, "apart": True}
            put_words(step, text, turn, parsed)
            step["extra"] = with_parsed(step.get("extra"), parsed)

    def _has_marks(self, text: str) -> bool:
        return any(mark in text for mark in self._dialect.marks)

    def _emit(self, step: Columns) -> None:
        step["step"] = self._next
        self._next += 1
        self._steps.append(step)

    def _turn(self, step: Columns, text: str, parsed: dict[str, Any]) -> None:
        """Parse the words of a turn of the agent."""
        has_marks = self._has_marks(text)
        turn = self._dialect.parse(text, self._tools) if has_marks else ParsedTurn()
        turn = with_thoughts(turn, text)
        if turn.left is not None:
            self._counts["left"] += 1
            parsed["left"] = turn.left
        if not turn and not parsed:
            return
        self.is_changed = True
        parsed = {"dialect": self._dialect.name, **parsed}
        put_words(step, text, turn, parsed)
        step["extra"] = with_parsed(step.get("extra"), parsed)
        self._counts["turns"] += bool(turn.calls)
        self._counts["calls"] += len(turn.calls)
        self._waiting = WaitingCalls(step["step"], dict(enumerate(turn.calls)))
        self._is_followed = not turn.calls
        for index, call in enumerate(turn.calls):
            self._new_calls.append({"step": step["step"], "call": index, **call_columns(call)})
            self._answer = answer_of(call) or self._answer
        if turn.answer is not None:
            self._counts["answers"] += 1
            self._answer = text[slice(*turn.answer.words)]

    # ---- results ---------------------------------------------------------------------------

    def _answered(self, step: Columns) -> bool:
        """Make observations of a turn that is the result of the calls before; False: it is none."""
        text = step.get("text")
        if text is None or _is_parsed(step) or step.get("visibility") == "none":
            return False
        if step.get("kind") not in (None, "message"):
            return False
        # Where results are marked, a turn without the mark is a person's; and after a turn
        # without a call nothing else is a result.
        needs_mark = not self._waiting.calls or (self._is_marked and step["source"] == "user")
        begins = self._begins_as_result(step)
        if self._waiting.calls and not begins:
            begins = text[:_BEGINNING].lstrip().startswith(HARNESS)
        if needs_mark and self._dialect.answers_all and not begins:
            return False
        shared = {name: step[name] for name in _OBSERVED if step.get(name) is not None}
        base = {"source": "environment", **shared}
        if step.get("extra") is not None:
            base["extra"] = step["extra"]
        rest = {
            name: value
            for name, value in sorted(step.items())
            if value is not None and name not in ("text", "step", "extra", *shared)
        }
        if not self._results(text, base, {"step": rest}, step["source"]):
            return False
        self._waiting = WaitingCalls()  # what follows is no result, even if calls are left
        return True

    def _begins_as_result(self, step: Columns) -> bool:
        text = (step.get("text") or "")[:_BEGINNING].lstrip()
        return bool(self._dialect.results) and text.startswith(self._dialect.results)

    def _observation(self, observation: Columns) -> None:
        """An observation that was one before; linked or cut when it is a parsed call's result."""
        observation["step"] = max(self._next - 1, -1)
        linked = observation.get("call_step")
        if linked is not None:
            observation["call_step"] = self.numbers.step(linked)
        elif self._waiting.calls and observation.get("text") is not None:
            base = {name: value for name, value in observation.items() if name != "text"}
            rest = {name: base[name] for name in _OF_RESULT if base.get(name) is not None}
            if not _is_parsed(observation) and self._results(
                observation["text"], base, {"row": rest}
            ):
                return
        elif self._waiting.calls and not _is_parsed(observation) and shows_something(observation):
            self.is_changed = True
            rest = {name: observation[name] for name in _OF_RESULT if name in observation}
            empty = ParsedResult(Marked((0, 0), (0, 0)))
            self._result(observation, empty, list(self._waiting.calls))
            observation["extra"] = with_parsed(observation.get("extra"), {"row": rest})
        self._observations.append(observation)

    def _results(self, text: str, base: Columns, parsed: dict[str, Any], speaker: str = "") -> bool:
        """Make an observation of each result in a text; False when there is none.

        Args:
            text: the text.
            base: columns of the first observation.
            parsed: what is noted with it.
            speaker: source of the turn; the words of a user behind the last result stay a turn.
        """
        listed = list(self._waiting.calls)
        results = self._dialect.results_in(text, [self._waiting.calls[it] for it in listed])
        if base.get("content") is not None and len(results) > 1:
            results = ()
        if not results and "piece" not in parsed:
            return False
        self.is_changed = True
        last = results[-1].marked.span[1] if results and speaker == "user" else len(text)
        behind = text[last:] if _WORDS.search(text, last) else ""
        end_of_results = len(text) - len(behind)
        bounds = [0, *(result.marked.span[0] for result in results[1:]), end_of_results]
        for index, (start, end) in enumerate(pairwise(bounds)):
            result = results[index] if results else None
            words = (start, end) if result is None else result.marked.words
            if base.get("content") is not None:
                words = (start, end)
            columns = dict(base) if index == 0 else {"source": base["source"]}
            notes = dict(parsed) if index == 0 else {"joined": True}
            if result is not None:
                self._result(columns, result, listed)
            columns |= {"step": self._next - 1, "text": text[slice(*words)]}
            around = {"before": text[start : words[0]], "after": text[words[1] : end]}
            notes |= {name: value for name, value in around.items() if value}
            columns["extra"] = with_parsed(columns.get("extra"), notes)
            self._observations.append(columns)
        if behind:
            words_behind: Columns = {"source": speaker, "kind": "message", "text": behind}
            words_behind["extra"] = with_parsed(None, {"behind": True})
            self._emit(words_behind)
        return True

    def _result(self, columns: Columns, result: ParsedResult, listed: list[int]) -> None:
        """Fill in what a result says, and which call it answers."""
        self._counts["results"] += 1
        for name in _OF_RESULT:
            if getattr(result, name) is not None:
                columns[name] = getattr(result, name)
        names = {index: call.name for index, call in self._waiting.calls.items()}
        answered = self._waiting.take(result, listed)
        if answered is None:
            self._counts["unlinked"] += 1
            return
        columns["call_step"], columns["call"] = self._waiting.step, answered
        columns.setdefault("name", names[answered])


def _is_parsed(row: Columns) -> bool:
    return '"$parsed"' in (row.get("extra") or "")
