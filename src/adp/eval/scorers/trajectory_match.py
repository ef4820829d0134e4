"""Whether a run matches a right one: strict, unordered, subset, superset.

The modes are those of agentevals (LangChain, 0.0.9): *strict*: the same messages by role, each
with the same calls, in any order within a message; *unordered*: the same calls; *subset*: no call
that the right run does not have; *superset*: all calls of the right run. Texts do not count.

Two ways of pairing: ``bipartite`` (the default) pairs as many calls as can be paired, and argument
modes always speak of the run against the reference. ``agentevals`` does as that package does:
greedily in order, Python's ``==`` (1 equals true), and under *subset* and in one of the two passes
of *unordered* with the two sides of the argument mode swapped.

Where the task has only expected calls, *strict* compares their order, and messages do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from adp.eval.scorer import Item, Score, ScorerKind
from adp.eval.scorers.base import PerTrajectory, unscored
from adp.eval.scorers.matching import bipartite, greedy
from adp.rollouts.environment import Settings
from adp.rollouts.task_references import Expected, Message, expected_calls, gold_messages
from adp.rollouts.trajectory_reading import agent_calls, agent_steps, cut, is_agent, same
from adp_schema.model import Trajectory

Mode = Literal["strict", "unordered", "subset", "superset"]
Arguments = Literal["exact", "ignore", "subset", "superset"]
Matching = Literal["bipartite", "agentevals"]
Equal = Callable[[Any, Any], bool]

_ROLES = {"agent": "assistant", "system": "system", "developer": "developer"}


class MatchSettings(Settings):
    """Settings of the scorer ``trajectory_match``."""

    mode: Mode = "strict"
    """strict, unordered, subset or superset."""
    arguments: Arguments = "exact"
    """How arguments are compared: exact; ignore; subset: each one given is in the reference;
    superset: each one of the reference is given."""
    overrides: Mapping[str, Arguments | list[str]] = Field(default_factory=dict)
    """Tool -> another mode of arguments, or a list of the arguments that count; dots lead into
    objects, as in user.id."""
    matching: Matching = "bipartite"
    """How calls are paired: bipartite, or agentevals for its verdicts."""
    reference: Literal["auto", "expected_calls", "gold_trajectory"] = "auto"
    """What is right: the task's gold_trajectory, its expected_calls, or the first of both that
    is there."""


class MatchScorer(PerTrajectory):
    """Compares runs with right ones.

    Args:
        settings: its settings.
    """

    name = "trajectory_match"
    metrics = ("trajectory_match",)

    def __init__(self, settings: MatchSettings) -> None:
        self.settings = settings

    def measure(self, item: Item) -> Sequence[Score]:
        """Score a trajectory that ran as it should."""
        wanted = None
        if self.settings.reference != "expected_calls":
            wanted = gold_messages(item.task)
        compared = "messages"
        if wanted is None and self.settings.reference != "gold_trajectory":
            calls = expected_calls(item.task, "expected_calls")
            wanted = None if calls is None else [("assistant", [call]) for call in calls]
            compared = "calls"
        if wanted is None:
            return unscored(self.metrics, "the task has no right run to compare with")
        messages = (
            messages_of(item.trajectory) if compared == "messages" else _calls(item.trajectory)
        )
        result = matches(messages, wanted, self.settings)
        evidence = {
            "mode": self.settings.mode,
            "compared": compared,
            "calls": _names(messages),
            "reference": _names(wanted),
        }
        return [Score("trajectory_match", float(result), evidence=evidence)]


def _names(messages: Sequence[Message]) -> list[str]:
    return [cut(call.name, 60) for _, calls in messages for call in calls][:20]


def messages_of(trajectory: Trajectory) -> list[Message]:
    """The messages of a run in the OpenAI shape: roles, and calls with their arguments."""
    calls_by_step = {step.step: step.calls for step in agent_steps(trajectory)}
    messages: list[Message] = []
    for number, step in enumerate(trajectory.steps):
        if step.kind in ("context_edit", "event") or step.is_copied_context:
            continue
        calls = [
            Expected(call.name, _given(call.arguments, call.text))
            for call in calls_by_step.get(number, ())
        ]
        role = "assistant" if is_agent(step) else _ROLES.get(step.source or "", "user")
        is_result = (
            step.source == "environment" and number > 0 and bool(calls_by_step.get(number - 1))
        )
        messages.append(("tool" if is_result else role, calls))
        messages += [("tool", []) for _ in step.observations]
    return messages


def _calls(trajectory: Trajectory) -> list[Message]:
    return [
        ("assistant", [Expected(call.name, _given(call.arguments, call.text))])
        for call in agent_calls(trajectory)
    ]


def _given(arguments: Mapping[str, Any] | None, text: str) -> Mapping[str, Any]:
    """Arguments; those that are no JSON object are equal only when their text is."""
    return {"$text": text} if arguments is None else arguments


def matches(
    messages: Sequence[Message], wanted: Sequence[Message], settings: MatchSettings
) -> bool:
    """Whether a run matches a right one.

    Args:
        messages: messages of the run.
        wanted: messages of the right run.
        settings: how they are compared.
    """
    fit = _fit(settings)
    if settings.mode == "strict":
        return _strict(messages, wanted, fit, settings.matching)
    first = [call for _, calls in messages for call in calls]
    second = [call for _, calls in wanted for call in calls]
    if settings.matching == "agentevals":
        # A subset is a superset the other way round, so the sides of the arguments swap as well.
        up = _covers(first, second, fit)
        down = _covers(second, first, fit)
        return {"unordered": up and down, "superset": up, "subset": down}[settings.mode]
    pairs = len(bipartite(first, second, fit))
    full = {"subset": [first], "superset": [second], "unordered": [first, second]}
    return all(pairs == len(calls) for calls in full[settings.mode])


def _covers(
    outer: Sequence[Expected],
    expecteds: Sequence[Expected],
    fit: Callable[[Expected, Expected], bool],
) -> bool:
    """Whether each of the inner calls finds one of the outer, greedily."""
    return len(greedy(expecteds, outer, lambda item, other: fit(other, item))) == len(expecteds)


def _strict(
    messages: Sequence[Message],
    wanted: Sequence[Message],
    fit: Callable[[Expected, Expected], bool],
    matching: str,
) -> bool:
    if len(messages) != len(wanted):
        return False
    pair = greedy if matching == "agentevals" else bipartite
    for (role, calls), (other_role, others) in zip(messages, wanted, strict=True):
        if role != other_role or len(calls) != len(others):
            return False
        if len(pair(calls, others, fit)) != len(calls):
            return False
    return True


def _fit(settings: MatchSettings) -> Callable[[Expected, Expected], bool]:
    """Whether a call fits a call of the reference."""
    equal: Equal = _python_equal if settings.matching == "agentevals" else same

    def fit(call: Expected, other: Expected) -> bool:
        if call.name != other.name:
            return False
        mode = settings.overrides.get(call.name) or settings.arguments
        if mode == "ignore":
            return True
        if other.allowed is not None or other.arguments is None:
            return _fits_allowed(call, other, mode)
        given, wanted = call.arguments or {}, other.arguments
        if isinstance(mode, list):
            return all(equal(_inner(given, path), _inner(wanted, path)) for path in mode)
        if mode == "exact":
            return equal(given, wanted)
        result, two = (given, wanted) if mode == "subset" else (wanted, given)
        return all(key in two and equal(value, two[key]) for key, value in result.items())

    return fit


def _fits_allowed(call: Expected, other: Expected, mode: Arguments | list[str]) -> bool:
    """Against arguments with several right values, or unknown ones."""
    if other.allowed is None:
        return True
    given, known = call.arguments or {}, other.argument_names()
    if isinstance(mode, list):
        return all(other.accepts(path, given) for path in mode)
    right = all(key in known and other.accepts(key, given) for key in given)
    there = all(other.accepts(key, given) for key in known)
    return {"exact": right and there, "subset": right}.get(mode, there)


def _python_equal(value: Any, other: Any) -> bool:
    try:
        return bool(value == other)
    except RecursionError:
        return False


def _inner(value: Any, path: str) -> Any:
    """What dots lead to; None when nothing is there."""
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


KIND = ScorerKind(
    name="trajectory_match",
    about="Whether a run has the messages or calls of a right run: strict, unordered, subset, "
    "superset (agentevals 0.0.9).",
    settings=MatchSettings,
    make=MatchScorer,
)
