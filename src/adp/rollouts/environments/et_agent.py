r"""The environment ``et_agent``: questions that are answered with a search and with Python.

The tools of ET-Agent (arXiv 2601.06860) with its limits. With ``form=tags``, its own, an agent
writes calls and the answer between tags of its text, one call a turn:

    <think>...</think> <search>query</search>         or <python>program</python>
    <think>...</think> <answer>... \boxed{42} ...</answer>

and what a call brings comes back as ``<result>...</result>``. A stop word that a server took off
the end (``</search>``) may be missing. What stands behind the first call is not carried out: the
agent had seen no result yet. With ``form=calls`` the same tools are called as data.

A result that fails reads as in ET-Agent: ``Execution Timeout``, ``Tool execute failed: ...``, or
an error of the program. The answer is judged by the rule of the task's data set (math: the same
formula or number; qa: F1 of words, and above 0.8 a success), of others as everywhere.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from pydantic import Field

from adp.core.answers.extraction import extract
from adp.core.answers.formulas import math_equal
from adp.core.answers.words import token_f1
from adp.core.tagged_run import ARGUMENTS, first_action
from adp.rollouts.answer_match import judged
from adp.rollouts.environment import EnvironmentKind, Verdict
from adp.rollouts.environments.python import PythonSettings, python_tool
from adp.rollouts.environments.search import ServedSearchSettings, searching_tool
from adp.rollouts.sandbox.command import bubblewrap
from adp.rollouts.searching.searcher import cut_to
from adp.rollouts.task_references import reference_answers
from adp.rollouts.task_sources import answer_rule
from adp.rollouts.tool_environment import ToolEnvironment, unreadable
from adp.rollouts.tools import carry_out
from adp.rollouts.turns import Call, ErrorType, Outcome, Result, Tool, Turn
from adp_schema.model import Trajectory

SUCCESS_F1 = 0.8
"""F1 of words above which an answer is right, as ET-Agent's flywheel has it."""

SYSTEM = r"""You answer questions step by step. You may look things up and you may compute.

Think between <think> and </think>. When you need a fact, write a query between <search> and \
</search>. When you need to compute, write a Python program that prints what you need between \
<python> and </python>. Then stop: what it brings comes back between <result> and </result>. \
Think about it, and go on. Make only calls that you need.

When you know the answer, write it between <answer> and </answer>, and in it the bare answer once \
as \boxed{...}; a number or a formula in LaTeX, else a few words."""


class EtToolSettings(PythonSettings, ServedSearchSettings):
    """Settings of the environment ``et_agent``."""

    form: Literal["tags", "calls"] = "tags"
    """How the agent calls: between tags of its text, or as data."""
    searches: int = Field(default=6, ge=0)
    """Searches of an episode; 0: there is no search."""
    programs: int = Field(default=6, ge=0)
    """Programs of an episode; 0: there is no Python."""
    characters: int = Field(default=1_000, ge=1)
    """Characters of a document that a search shows."""
    search_characters: int = Field(default=20_000, ge=1)
    """Characters of the result of a search."""
    python_characters: int = Field(default=1_000, ge=1)
    """Characters of the result of a program."""
    prompt: str = SYSTEM
    """Message of the system, with form=tags; empty: there is none."""


class EtToolEnvironment(ToolEnvironment):
    """The tools ``search`` and ``python``, called between tags or as data.

    Args:
        settings: its settings.

    Raises:
        UsageError: there is no sandbox for Python, no such server, or no such policy.
        InputError: the corpus or the cache cannot be read.
    """

    blocking = True

    def __init__(self, settings: EtToolSettings) -> None:
        self._settings = settings
        self._most = {"search": settings.searches, "python": settings.programs}
        self._made: Counter[str] = Counter()
        tools = []
        if settings.searches:
            searcher = settings.searcher(settings.characters, settings.search_characters)
            tools.append(searching_tool(searcher, settings.limit))
        if settings.programs:
            if not settings.unsafe:
                bubblewrap()
            tools.append(python_tool(settings))
        super().__init__(tools)

    def system(self) -> str | None:
        """How to call, where calls are texts."""
        return self._settings.prompt or None if self._settings.form == "tags" else None

    def tools(self) -> Sequence[Tool]:
        """The tools on offer as data; none where calls are texts."""
        return [] if self._settings.form == "tags" else super().tools()

    def step(self, turn: Turn) -> Outcome:
        """Carry out the call of a turn, or take its answer."""
        if turn.malformed is not None:
            return Outcome(results=(unreadable(turn),))
        if self._settings.form == "calls":
            if not turn.calls:
                return self.finish(replace(turn, text=extract(turn.text)))
            return Outcome(tuple(self._carried(call) for call in turn.calls))
        action = first_action(turn.text)
        if action is None or action[1] == "answer":
            return self.finish(replace(turn, text=extract(turn.text)))
        name = action[1]
        arguments = json.dumps({ARGUMENTS[name]: action[2].strip()})
        result = self._carried(Call(name, arguments))
        # It answers no call that is data, so the agent reads it as the next message.
        return Outcome((replace(result, call_id="", text=f"<result>\n{result.text}\n</result>"),))

    def _carried(self, call: Call) -> Result:
        """What a call brings, cut, with ET-Agent's words where it fails."""
        most = self._most.get(call.name)
        if most is not None and self._made[call.name] >= most:
            text = f"Tool execute failed: no call of {call.name} is left; answer with what you know"
            return Result(text, call.call_id, call.name, ErrorType.LIMIT)
        self._made[call.name] += 1
        result = carry_out(call, self.functions)
        if result.error is ErrorType.TIMEOUT:
            return replace(result, text="Execution Timeout")
        if result.error is not None and result.exit_code is None:
            text = result.text.removeprefix("Error: ")
            result = replace(result, text=f"Tool execute failed: {text}")
        if call.name == "python":
            result = replace(result, text=cut_to(result.text, self._settings.python_characters))
        return result

    def score(self, trajectory: Trajectory) -> Verdict:
        """Judge the answer by the rule of the task's data set."""
        rule = answer_rule(self.task)
        references = reference_answers(self.task)
        if rule is None or not references:
            return judged(self.task, trajectory.final_answer)
        answer = trajectory.final_answer or ""
        if rule == "math":
            value = float(bool(answer) and any(math_equal(answer, text) for text in references))
        else:
            value = max(token_f1(answer, text) for text in references) if answer else 0.0
        seen = {"rule": rule, "expected": references, "found": trajectory.final_answer}
        least = 1.0 if rule == "math" else SUCCESS_F1
        return Verdict(
            success=value >= least if rule == "math" else value > least, reward=value, judge=seen
        )


KIND = EnvironmentKind(
    name="et_agent",
    about="Questions with a search and Python, called between tags of the text or as data, with a "
    "limit for each (ET-Agent, arXiv 2601.06860).",
    settings=EtToolSettings,
    make=EtToolEnvironment,
)
