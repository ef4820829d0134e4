"""SAGE's `AgentRewardModel`: five parts with weights, less penalties, between 0 and 1.

It judges what the agent wrote, with its calls in tags, and the trace: the calls with a recorded
result. The right tools are the task's ``target_tools``, else its expected calls or the tools that
fit.

- ``task_completion`` (0.40): share of the calls of the trace that succeeded; without a trace half
  for the right tools that are named and half for a word that concludes ("done", "final", ...);
- ``tool_accuracy`` (0.25): F1 of the tools named and the right ones; where there are none, 1, or
  0.7 when tools are named all the same;
- ``efficiency`` (0.15): 1 up to the optimal number of steps, then 0.2 less for each time as many
  more; 0.5 without a trace;
- ``timing_quality`` (0.10): 1, and 0.1 less for each call of the tool that was called just before,
  at least 0.5;
- ``format_compliance`` (0.10): 1, less 0.2 when a tool is named behind a verb and none in tags, 0.3
  for tags that are not closed, and 0.2 for tags without JSON.

Penalties: where the task has right tools, ``wrong_tool`` -0.3, and ``hallucination`` -0.4 for a
name that is no id of SAGE's (``name_001``); ``format_error`` -0.1 for each of the first two faults
of the form. SAGE names ``redundant_call`` -0.2 and ``timeout`` -0.5, too, and never takes them;
``all_penalties=true`` does: for calls that repeat a call, and for a run or a call that a time limit
cut. As a reward of training: ``rewards: [scorer:agent_reward]``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

from pydantic import Field

from adp.eval.scorer import Item, Score, ScorerKind
from adp.eval.scorers.base import PerTrajectory, scored
from adp.eval.scorers.execution import failed, marked
from adp.eval.scorers.sage_text import (
    TOOL_ID,
    format_faults,
    response_text,
    tool_selection_f1,
    tools_in_text,
)
from adp.rollouts.benchmark_tasks import target_tools, truth_of
from adp.rollouts.environment import Settings
from adp.rollouts.trajectory_reading import SHOWN, agent_calls, cut, key_of, number_or_none
from adp.rollouts.turns import ErrorType
from adp_schema.model import Trajectory

WEIGHTS = {
    "task_completion": 0.40,
    "tool_accuracy": 0.25,
    "efficiency": 0.15,
    "timing_quality": 0.10,
    "format_compliance": 0.10,
}
PENALTIES = {
    "wrong_tool": -0.3,
    "redundant_call": -0.2,
    "format_error": -0.1,
    "timeout": -0.5,
    "hallucination": -0.4,
}
VERBS = "call|use|invoke|execute"

_OPTIMAL = 5
_DONE = ("完成", "done", "finished", "结果是", "答案是", "总结", "conclusion", "最终", "final")
_Number = Annotated[float, Field(allow_inf_nan=False)]


class AgentRewardSettings(Settings):
    """Settings of the scorer ``agent_reward``."""

    weights: Mapping[str, _Number] = Field(default_factory=lambda: dict(WEIGHTS))
    """Weight of each part; one that is not named counts for nothing."""
    penalties: Mapping[str, _Number] = Field(default_factory=lambda: dict(PENALTIES))
    """What is added for each fault; one that is not named costs nothing."""
    optimal: int | None = Field(default=None, ge=1)
    """Steps of an optimal run; null: the task's optimal_steps, else 5."""
    all_penalties: bool = False
    """Take redundant_call and timeout, too, which SAGE names and never takes."""


@dataclass(frozen=True)
class AgentReward:
    """A reward and what it is made of.

    Attributes:
        total: the reward, from 0 to 1.
        parts: each part, from 0 to 1.
        penalties: faults that cost something, in order; one may stand there twice.
    """

    total: float
    parts: Mapping[str, float]
    penalties: tuple[str, ...]


def agent_reward(
    response: str,
    wanted: Sequence[str],
    trace: Sequence[tuple[str, bool]] = (),
    settings: AgentRewardSettings | None = None,
    more: Collection[str] = (),
) -> AgentReward:
    """SAGE's reward of a response.

    Args:
        response: what the agent wrote.
        wanted: the right tools.
        trace: tool of each call that was carried out, and whether it succeeded.
        settings: weights, penalties, and the optimal number of steps.
        more: further faults.
    """
    settings = settings or AgentRewardSettings()
    named, optimal = tools_in_text(response, VERBS), settings.optimal or _OPTIMAL
    faults = dict(format_faults(response))
    parts = {
        "task_completion": _completion(response, named, wanted, trace),
        "tool_accuracy": tool_selection_f1(named, wanted, 0.7),
        "efficiency": _efficiency(len(trace), optimal),
        "timing_quality": _timing(trace),
        "format_compliance": max(0.0, 1.0 - sum(faults.values())),
    }
    penalties = []
    if wanted and set(named) - set(wanted):
        penalties.append("wrong_tool")
    if wanted and not all(TOOL_ID.fullmatch(name) for name in named):
        penalties.append("hallucination")
    penalties += ["format_error"] * sum(name in faults for name in ("verb", "tags"))
    penalties += more
    total = sum(value * settings.weights.get(name, 0.0) for name, value in parts.items())
    total += sum(settings.penalties.get(name, 0.0) for name in penalties)
    return AgentReward(max(0.0, min(1.0, total)), parts, tuple(penalties))


def _completion(
    response: str, named: Sequence[str], wanted: Sequence[str], trace: Sequence[tuple[str, bool]]
) -> float:
    if trace:
        return sum(good for _, good in trace) / len(trace)
    concludes = any(word in response.lower() for word in _DONE)
    idle = 0.5 if named else 1.0
    coverage = len(set(named) & set(wanted)) / len(wanted) if wanted else idle
    return 0.5 * coverage + 0.5 * (1.0 if concludes else 0.5)


def _efficiency(steps: int, optimal: int) -> float:
    if not steps:
        return 0.5
    return 1.0 if steps <= optimal else max(0.0, 1.0 - 0.2 * (steps - optimal) / optimal)


def _timing(trace: Sequence[tuple[str, bool]]) -> float:
    again = sum(first[0] == second[0] for first, second in pairwise(trace))
    return max(0.5, 1.0 - 0.1 * again) if again else 1.0


class AgentRewardScorer(PerTrajectory):
    """Scores a run by SAGE's reward.

    Args:
        settings: its settings.
    """

    name = "agent_reward"
    metrics = ("agent_reward", *WEIGHTS)

    def __init__(self, settings: AgentRewardSettings | None = None) -> None:
        self.settings = settings or AgentRewardSettings()

    def measure(self, item: Item) -> Sequence[Score]:
        """Score a trajectory that ran as it should."""
        run, settings = item.trajectory, self.settings
        if settings.optimal is None:
            optimal = number_or_none(truth_of(item.task).get("optimal_steps"))
            known = int(optimal) if optimal is not None and optimal >= 1 else None
            settings = settings.model_copy(update={"optimal": known})
        trace = [(c.name, not failed(c, marked(c))) for c in agent_calls(run) if c.results]
        more = _never_taken(run) if settings.all_penalties else ()
        reward = agent_reward(response_text(run), target_tools(item.task), trace, settings, more)
        evidence = {"penalties": [cut(name, 60) for name in reward.penalties[:SHOWN]]}
        parts = [scored(name, value) for name, value in reward.parts.items()]
        return [scored("agent_reward", reward.total, evidence), *parts]


def _never_taken(run: Trajectory) -> list[str]:
    """The penalties that SAGE names and never takes."""
    calls = agent_calls(run)
    penalties = ["redundant_call"] if len({key_of(call) for call in calls}) < len(calls) else []
    late = any(row.error_type == ErrorType.TIMEOUT for call in calls for row in call.results)
    return [*penalties, "timeout"] if late or run.stop_reason == "max_seconds" else penalties


KIND = ScorerKind(
    name="agent_reward",
    about="SAGE's reward model: completion, tools, efficiency, timing and form, less penalties, "
    "between 0 and 1 (AgentRewardModel); also for GRPO.",
    settings=AgentRewardSettings,
    make=AgentRewardScorer,
)
