"""The environment ``bfcl``: the questions of BFCL for any policy, without registering a model.

Single-turn: the model answers once; its calls are written down, not carried out. Multi-turn: the
calls are carried out by the simulated services of the user's bfcl-eval; a turn of the user ends
when the model calls nothing that can be read, and after 21 steps the run is cut, as in BFCL.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from pydantic import Field

from adp.rollouts.environment import (
    CONTENT,
    CannotForkError,
    EnvironmentKind,
    Settings,
    Start,
    Verdict,
)
from adp.rollouts.turns import ErrorType, Message, Outcome, Result, Tool, Turn
from adp_bfcl.answers import message_answer
from adp_bfcl.categories import Language, language_of, select
from adp_bfcl.decoding import Mode, sources
from adp_bfcl.entries import BfclEntry
from adp_bfcl.judge import judge_entry
from adp_bfcl.loader import load
from adp_bfcl.multi_turn import services_of
from adp_bfcl.offers import tool_of
from adp_bfcl.prompting import system_prompt, told_in_prompt
from adp_bfcl.python_calls import DecodeError
from adp_bfcl.simulators import Services, clean_numbers
from adp_bfcl.syntax_tree import check_installed
from adp_bfcl.tasks import entry_from, task_of
from adp_bfcl.verdict import Rules
from adp_schema.errors import UsageError
from adp_schema.model import Task, Trajectory

MOST_STEPS = 20
"""Steps in a turn of the user that are followed by another one."""

MORE_FUNCTIONS = "I have updated some more functions you can choose from. What about now?"
"""What the user says when functions were added."""


class BfclSettings(Settings):
    """Settings of the environment ``bfcl``."""

    category: str | tuple[str, ...] = "single_turn"
    """A category or group, or a list of them: simple_python, live, multi_turn, all."""
    data: Path | None = Field(default=None, json_schema_extra=CONTENT)
    """Folder of questions; without it, those of installed bfcl-eval."""
    mode: Mode = "fc"
    """fc: functions are offered as tools. prompt: they stand in the system's message, and the
    model writes calls as text."""
    rules: Rules = "official"
    """official or fixed: whose verdicts."""


class Bfcl:
    """One episode of an entry.

    Args:
        settings: its settings.

    Attributes:
        max_turns: turns of an episode unless the user says others; enough for several turns of the
            user with 21 steps each.
    """

    max_turns = 200

    def __init__(self, settings: BfclSettings | None = None) -> None:
        self._settings = settings or BfclSettings()
        self._entry: BfclEntry | None = None
        self._services: Services | None = None
        self._hidden: set[str] = set()
        self._result: list[list[Any]] = []
        self._malformed = False

    def reset(self, task: Task | None = None, *, seed: int | None = None) -> Start:
        """Begin the entry of a task.

        Raises:
            UsageError: the task is no entry of BFCL.
            BfclMissingError: it has several turns, and bfcl-eval is not installed.
            MissingExtraError: calls are written in Java or JavaScript, and tree-sitter is not
                installed.
        """
        entry = entry_from(task)
        if entry is None:
            raise UsageError("this task is no entry of BFCL; give --tasks bfcl or adp's BFCL tasks")
        self._entry, self._malformed = entry, False
        self._result = [[]]
        self._hidden = {name for names in entry.held_back.values() for name in names}
        self._services = services_of(entry, "model", marked=False) if entry.multi_turn else None
        messages: list[Message] = [dict(message) for message in entry.question[0]]
        if self._settings.mode == "prompt":
            if language_of(entry.category) is not Language.PYTHON:
                check_installed()  # now, not when the answer is there and cannot be judged
            prompt = system_prompt(self._functions(), language_of(entry.category))
            if messages and messages[0]["role"] == "system":
                prompt += f"\n\n{messages.pop(0)['content']}"
            messages.insert(0, {"role": "system", "content": prompt})
        return Start(tuple(messages), self._info())

    def tools(self) -> Sequence[Tool]:
        """The functions on offer now; none in prompt mode."""
        if self._entry is None or self._settings.mode == "prompt":
            return []
        language = language_of(self._entry.category)
        return [tool_of(function, language) for function in self._functions()]

    def step(self, turn: Turn) -> Outcome:
        """Take the model's answer."""
        entry = self._begun()
        answer = message_answer(turn, self._settings.mode)
        self._result[-1].append(answer)
        self._malformed = self._malformed or turn.malformed is not None
        if self._services is None:
            return Outcome(
                terminated=True, stop_reason="answer", answer=turn.text, info=self._info()
            )
        calls, reason = self._calls(answer)
        if not calls:
            return self._next_turn(entry, turn, reason)
        with clean_numbers():
            texts = self._services.run(calls)
        results = self._results(turn, calls, texts)
        if len(self._result[-1]) > MOST_STEPS:
            return Outcome(
                results=results, truncated=True, stop_reason="force_terminated", info=self._info()
            )
        if self._settings.mode == "prompt":
            message = told_in_prompt(calls, texts)
            return Outcome(results=results, messages=(message,), info=self._info())
        return Outcome(results=results, info=self._info())

    def score(self, trajectory: Trajectory) -> Verdict:
        """Judge the answers with BFCL's checkers."""
        result = judge_entry(
            self._begun(),
            self._given(),
            mode=self._settings.mode,
            rules=self._settings.rules,
            malformed=self._malformed,
        )
        judge = {
            "checker": "bfcl",
            "rules": self._settings.rules,
            "category": self._begun().category,
            "error_type": result.error_type,
            "detail": result.detail[:2000],
            "relevance": result.relevance,
        }
        return Verdict(result.valid, float(result.valid), judge=judge)

    def fork(self) -> Bfcl:
        """An independent copy, its services in the same state.

        Raises:
            CannotForkError: a service cannot be copied.
        """
        bfcl = Bfcl(self._settings)
        try:
            bfcl._services = copy.deepcopy(self._services)
        except Exception as error:
            raise CannotForkError(f"a service of BFCL cannot be copied: {error}") from error
        bfcl._entry, bfcl._result = self._entry, [list(turn) for turn in self._result]
        bfcl._hidden, bfcl._malformed = set(self._hidden), self._malformed
        return bfcl

    def close(self) -> None:
        """Nothing to free."""

    def _begun(self) -> BfclEntry:
        if self._entry is None:
            raise UsageError("the environment has no task yet; call reset first")
        return self._entry

    def _functions(self) -> list[Any]:
        functions = self._begun().functions
        return [function for function in functions if function["name"] not in self._hidden]

    def _given(self) -> Any:
        """What was answered, in the form of BFCL's result files."""
        if self._begun().multi_turn:
            return [list(turn) for turn in self._result]
        return self._result[0][0] if self._result[0] else ""

    def _info(self) -> dict[str, Any]:
        entry = self._begun()
        info = {
            "id": entry.entry_id,
            "category": entry.category,
            "mode": self._settings.mode,
            "malformed": self._malformed,
        }
        return {"bfcl": {**info, "result": self._given() if self._result[0] else None}}

    def _calls(self, answer: Any) -> tuple[list[str], str | None]:
        try:
            return sources(answer, self._settings.mode), None
        except DecodeError as error:
            return [], str(error)

    def _results(
        self, turn: Turn, calls: Sequence[str], texts: Sequence[str]
    ) -> tuple[Result, ...]:
        if self._settings.mode == "prompt":
            message = "Error: no tools are offered; write calls as text"
            return tuple(
                Result(message, call.call_id, call.name, ErrorType.UNKNOWN_TOOL)
                for call in turn.calls
            )
        results = []
        for call, source, text in zip(turn.calls, calls, texts, strict=False):
            error = None
            if text.startswith("Error during execution: "):
                known = self._services is not None and self._services.known(call.name)
                error = ErrorType.EXECUTION if known else ErrorType.UNKNOWN_TOOL
            results.append(
                Result(text, call.call_id, call.name, error, structured={"call": source})
            )
        return tuple(results)

    def _next_turn(self, entry: BfclEntry, turn: Turn, reason: str | None) -> Outcome:
        """The model calls nothing that can be read: the turn of the user is over."""
        text = f"Error: the calls cannot be read: {reason}"
        results = tuple(
            Result(text, call.call_id, call.name, ErrorType.PARSING) for call in turn.calls
        )
        number = len(self._result)
        if number >= len(entry.question):
            return Outcome(
                results=results,
                terminated=True,
                stop_reason="answer",
                answer=turn.text,
                info=self._info(),
            )
        self._result.append([])
        texts = [str(message["content"]) for message in entry.question[number]]
        if number in entry.held_back:
            added = entry.held_back[number]
            self._hidden -= set(added)
            texts = [self._announce(added)]
        return Outcome(results=results, messages=tuple(texts), info=self._info())

    def _announce(self, names: Sequence[str]) -> str:
        if self._settings.mode != "prompt":
            return MORE_FUNCTIONS
        functions = [function for function in self._begun().functions if function["name"] in names]
        return f"{functions}\n{MORE_FUNCTIONS}"


def _tasks(settings: BfclSettings, split: str, count: int | None, seed: int) -> list[Task]:
    """The entries of the settings' categories as tasks: the first of each, then the second, ...

    So the first ones of several categories are of all of them. Within a category the order is
    BFCL's. The split does not matter: all of BFCL is for testing.
    """
    result = load(select(settings.category), settings.data)
    return [task_of(entry) for entry in in_turns(result.entries)[:count]]


def in_turns(entries: Sequence[BfclEntry]) -> list[BfclEntry]:
    """Entries of several categories in turns: the first of each, then the second of each, ..."""
    by_category: dict[str, list[BfclEntry]] = {}
    for entry in entries:
        by_category.setdefault(entry.category, []).append(entry)
    rounds = zip_longest(*by_category.values())
    return [entry for item in rounds for entry in item if entry is not None]


KIND = EnvironmentKind(
    name="bfcl",
    about="Questions of the Berkeley Function Calling Leaderboard, single-turn and multi-turn.",
    settings=BfclSettings,
    make=Bfcl,
    tasks=_tasks,
)
