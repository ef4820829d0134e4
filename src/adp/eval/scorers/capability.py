"""Tool use, planning, reasoning and instruction following, each over the tasks that are about it.

A task is about one capability: what its column ``extra`` names as ``capability``, else as
``task_type`` or ``category``. Known are the four names and those of SAGE's data, such as
``tool_selection`` and ``timing_judgment`` (tool use), ``task_planning`` (planning) and ``general``
(instruction following); ``names`` adds others. A task that says none of them is unassigned, and
counted as such by ``assigned``.

What can be verified is measured:

- ``tool_use``: F1 of the calls against the expected ones; arguments that nobody expected do not
  count. Where a task says which tools fit, F1 of the tools that were called or listed; where it
  says whether one is needed, whether one was called just then;
- ``planning``: `plan_similarity` of the tools called and the expected ones;
- ``reasoning``: whether the answer is a reference answer (exact, or the same formula or number);
  without references, whether the run solved its task;
- ``instruction_following``: share of the checks of the task that its answer passes: ``format``
  (json, json_object, json_list, list, number, one_line, lowercase, uppercase), ``must_contain``,
  ``must_not_contain``, ``starts_with``, ``ends_with``, ``min_words``, ``max_words`` in ``extra``.

With ``compat=sage`` these are the numbers of SAGE's `AgentCapabilityEvaluator`, by substrings and
shared words of the response and what is expected: the best of the answers, else the names of the
expected calls. The response is what the agent wrote, with its calls as ``tool: NAME ARGUMENTS``.

``overall`` is the weighted mean of the capabilities; those without a score are left out, with
``compat=sage`` they count as 0. Its error is that of a stratified mean, clustered by task.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from pydantic import Field, field_validator

from adp.core.answers.extraction import extract
from adp.core.answers.formulas import math_equal
from adp.core.answers.words import exact
from adp.eval.metrics import mean_figures, weighted_mean_figure
from adp.eval.scorer import Figure, Item, Score, Scored, ScorerKind
from adp.eval.scorers.base import PerTrajectory, unscored
from adp.eval.scorers.correctness import prediction, solved
from adp.eval.scorers.instruction_checks import form_of, instruction_checks
from adp.eval.scorers.planning import called_in_words, plan_of, plan_similarity
from adp.eval.scorers.sage_text import (
    expected_texts,
    response_text,
    sage_instruction,
    sage_planning,
    sage_reasoning,
    sage_tool_use,
    tool_selection_f1,
)
from adp.eval.scorers.tool_f1 import ToolF1Scorer, ToolF1Settings
from adp.rollouts.benchmark_tasks import extra_of, tool_truth
from adp.rollouts.environment import Settings
from adp.rollouts.task_references import reference_answers
from adp.rollouts.trajectory_reading import SHOWN, broken, cut
from adp_schema.model import Task

CAPABILITIES = ("tool_use", "planning", "reasoning", "instruction_following")
ASSIGNED = "assigned"
OVERALL = "overall"

_NAMES = {
    **{name: name for name in CAPABILITIES},
    **dict.fromkeys(
        ("tool_selection", "tool_retrieval", "tool_calling", "function_calling", "timing",
         "timing_judgment", "timing_decision"), "tool_use"),
    **dict.fromkeys(("task_planning", "multi_step_planning"), "planning"),
    **dict.fromkeys(("math", "qa", "question_answering"), "reasoning"),
    **dict.fromkeys(("instruction", "general", "format"), "instruction_following"),
}  # fmt: skip
_KEYS = ("capability", "task_type", "category")

Capability = Literal["tool_use", "planning", "reasoning", "instruction_following"]


class CapabilitySettings(Settings):
    """Settings of the scorer ``capability``."""

    compat: Literal["none", "sage"] = "none"
    """How it is measured: none (calls, plans, answers and checks) or sage (its arithmetic)."""
    weights: Mapping[Capability, float] = Field(
        default_factory=lambda: dict.fromkeys(CAPABILITIES, 1.0), validate_default=True
    )
    """Weight of each capability in overall; one that is not named has none. AgentTuning takes
    {tool_use: 0.35, planning: 0.3, reasoning: 0.2, instruction_following: 0.15}."""
    names: Mapping[str, Capability] = Field(default_factory=dict)
    """Further names of types of tasks, and their capability."""
    capability: Capability | None = None
    """Take all tasks for ones about this capability."""

    @field_validator("weights")
    @classmethod
    def _usable(cls, value: Mapping[str, float]) -> Mapping[str, float]:
        if not all(0 <= weight < math.inf for weight in value.values()) or not any(value.values()):
            raise ValueError("weights are numbers from 0 on, and one of them is more than 0")
        return value


def capability_of(task: Task | None, names: Mapping[str, str] | None = None) -> str | None:
    """The capability that a task is about; None where it says none that is known.

    Args:
        task: says it in ``extra``, as ``capability``, ``task_type`` or ``category``.
        names: further names of types of tasks, and their capability.
    """
    extra = extra_of(task)
    known = _NAMES | {_plain(name): capability for name, capability in (names or {}).items()}
    given = (extra.get(key) for key in _KEYS)
    matches = (known.get(_plain(name)) for name in given if isinstance(name, str))
    return next((capability for capability in matches if capability is not None), None)


def _plain(name: str) -> str:
    return name.strip().lower().replace("-", "_").replace(" ", "_")


class CapabilityScorer(PerTrajectory):
    """Scores each run in the capability that its task is about.

    Args:
        settings: its settings.
    """

    name = "capability"
    metrics = (*CAPABILITIES, ASSIGNED)

    def __init__(self, settings: CapabilitySettings | None = None) -> None:
        self.settings = settings or CapabilitySettings()

    def score(self, item: Item) -> Sequence[Score]:
        """Score one trajectory: in one capability, and whether it has one."""
        capability = self.settings.capability or capability_of(item.task, self.settings.names)
        assigned = Score(ASSIGNED, float(capability is not None), evidence=_named_by(item.task))
        reason = broken(item.trajectory)
        if reason is not None:
            metrics = [name for name in (capability, ASSIGNED) if name]
            return unscored(metrics, reason, infrastructure=True)
        if capability is None:
            return [assigned]
        by_sage = self.settings.compat == "sage"
        return [(_by_sage if by_sage else _verified)(capability, item), assigned]

    def figures(self, rows: Sequence[Scored]) -> Sequence[Figure]:
        """Overall, the mean of each capability, and the share of runs that have one."""
        weights: dict[str, float] = {
            str(name): weight for name, weight in self.settings.weights.items()
        }
        whole = self.settings.compat == "sage"
        overall = weighted_mean_figure(rows, weights, OVERALL, self.intervals, whole=whole)
        return [overall, *mean_figures(rows, self.metrics, self.intervals)]


def _named_by(task: Task | None) -> dict[str, str]:
    """What a task says about its capability, as evidence."""
    extra = extra_of(task)
    return {key: cut(extra[key]) for key in _KEYS if isinstance(extra.get(key), str)}


# ---- what can be verified ------------------------------------------------------------------


def _verified(capability: str, item: Item) -> Score:
    return _MEASURES[capability](item)


def _tool_use(item: Item) -> Score:
    truth = tool_truth(item.task)
    if truth.kind is not None and truth.tools is not None:
        named = plan_of(item.trajectory)
        value = tool_selection_f1(named, truth.tools, 0.0)
        return Score("tool_use", value, evidence={"by": "tools", "called": _short(named)})
    if truth.kind is not None and truth.call_due is not None:
        in_words = called_in_words(item.trajectory)
        called = bool(plan_of(item.trajectory)) if in_words is None else in_words
        return Score("tool_use", float(called == truth.call_due), evidence={"by": "timing"})
    scores = _CALLS.measure(item)
    f1 = next(score for score in scores if score.metric == "tool_f1")
    return replace(f1, metric="tool_use", evidence={"by": "calls", **f1.evidence})


def _planning(item: Item) -> Score:
    wanted = tool_truth(item.task).plan
    if wanted is None:
        return Score("planning", None, "the task does not say which calls are expected")
    plan = plan_of(item.trajectory)
    evidence = {"called": _short(plan), "expected": _short(wanted)}
    return Score("planning", plan_similarity(plan, wanted), evidence=evidence)


def _reasoning(item: Item) -> Score:
    answers = reference_answers(item.task)
    if not answers:
        right = solved(item.trajectory)
        return Score("reasoning", right.value, right.reason, {"by": right.source})
    given = extract(prediction(item.trajectory) or "")
    same = any(exact(given, answer, "squad") or math_equal(given, answer) for answer in answers)
    return Score("reasoning", float(same), evidence={"by": "answer", "answer": cut(given)})


def _instruction_following(item: Item) -> Score:
    checks = instruction_checks(item.task, prediction(item.trajectory))
    if not checks:
        return Score("instruction_following", None, "the task names no checks of its answer")
    passed = sum(checks.values()) / len(checks)
    wrong = [cut(name, 60) for name, passes in checks.items() if not passes]
    return Score("instruction_following", passed, evidence={"checks": len(checks), "wrong": wrong})


_CALLS = ToolF1Scorer(ToolF1Settings(arguments="superset"))
_MEASURES: Mapping[str, Callable[[Item], Score]] = {
    "tool_use": _tool_use,
    "planning": _planning,
    "reasoning": _reasoning,
    "instruction_following": _instruction_following,
}


def _short(names: Sequence[str]) -> list[str]:
    return [cut(name, 60) for name in names[:SHOWN]]


# ---- SAGE's numbers ------------------------------------------------------------------------


def _by_sage(capability: str, item: Item) -> Score:
    expected = expected_texts(item.task)
    if not expected:
        return Score(capability, None, "the task has neither answers nor expected calls")
    text, form = response_text(item.trajectory, tagged=False), form_of(item.task)
    measure = _SAGE.get(capability)
    value = max(
        sage_instruction(text, wanted, form) if measure is None else measure(text, wanted)
        for wanted in expected
    )
    return Score(capability, value, evidence={"by": "sage"})


_SAGE: Mapping[str, Callable[[str, str], float]] = {
    "tool_use": sage_tool_use,
    "planning": sage_planning,
    "reasoning": sage_reasoning,
}

KIND = ScorerKind(
    name="capability",
    about="Tool use, planning, reasoning and instruction following, each over the tasks that are "
    "about it, with a weighted mean; by what can be verified, or with SAGE's arithmetic.",
    settings=CapabilitySettings,
    make=CapabilityScorer,
)
