"""The environment: it judges each call, lets some fail, and knows what to do next."""

from __future__ import annotations

import copy
import json
from collections import Counter
from dataclasses import replace
from typing import Any, Self

from adp.rendering.arguments import object_of
from adp.rollouts.environment import Start, Verdict
from adp.rollouts.environments.toolworld.questions import PlannedAction, Question
from adp.rollouts.environments.toolworld.tasks import ToolworldSettings, make_task
from adp.rollouts.environments.toolworld.toolset import ROLES, tool_for
from adp.rollouts.environments.toolworld.world import World, number_of
from adp.rollouts.tool_environment import ToolEnvironment
from adp.rollouts.tools import ToolError, carry_out, failed, result_text
from adp.rollouts.turns import Call, ErrorType, Outcome, Result, Turn
from adp_schema.errors import UsageError
from adp_schema.model import Task, Trajectory

SYSTEM = "Call tools to find the answer. Then say: answer: VALUE"
PREFIX = "answer:"
MOST_REFUSALS = 2
"""A call is refused at most so often in succession."""

NEEDED, REDUNDANT, WRONG, MALFORMED, BUSY = "needed", "redundant", "wrong", "malformed", "busy"
RIGHT_ANSWER, WRONG_ANSWER = "right_answer", "wrong_answer"


class Toolworld(ToolEnvironment):
    """A world of one task.

    Each turn has labels, one a call: ``needed`` (the plan needs it), ``redundant`` (it was
    answered before), ``wrong`` (it does no harm, and the plan does not need it), ``malformed`` (it
    or its arguments cannot be read), ``busy`` (it was refused for once); an answer has
    ``right_answer`` or ``wrong_answer``.

    Args:
        settings: settings of the tasks that it makes for itself when it is given none.
    """

    def __init__(self, settings: ToolworldSettings | None = None) -> None:
        super().__init__()
        self._settings = settings or ToolworldSettings()
        self._world = World(0, "train")
        self._plan: list[PlannedAction] = []
        self._right = ""
        self._roles: dict[str, str] = {}
        self._arguments: dict[str, dict[str, str]] = {}
        self._failures = 0.0
        self._left = 0
        self._answered: set[str] = set()
        self._tries: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()

    def system(self) -> str:
        """How to answer."""
        return SYSTEM

    def reset(self, task: Task | None = None, *, seed: int | None = None) -> Start:
        """Begin an episode.

        Args:
            task: a task of `make_tasks`; None: one of the split ``train``, drawn by the seed.
            seed: chooses the task when there is none. Nothing else is drawn by chance: what fails
                is decided by the task, so attempts at it meet the same world.

        Raises:
            UsageError: the task is of another environment.
        """
        if task is None:
            kinds = self._settings.kinds_in_reach()
            kind = kinds[number_of("kind", seed) % len(kinds)]
            task = make_task(self._settings, "train", kind, f"seed-{seed or 0}")
        start = super().reset(task, seed=seed)
        self._begin(_config(task))
        return replace(start, info={"kind": task.difficulty, "optimal": len(self._plan) + 1})

    def _begin(self, config: Any) -> None:
        try:
            question = Question.from_json(config["question"])
            self._world = World(int(config["world"]), config["split"])
            self._plan, self._right = question.solve(self._world)
            self._roles = {name: role for role, name in config["tools"]}
            self._arguments = {
                str(name): {str(key): str(known) for key, known in names.items()}
                for name, names in config.get("arguments", {}).items()
            }
            self.functions = {
                name: tool_for(role, name, tuple(self._arguments.get(name, {}).items()))
                for role, name in config["tools"]
            }
            missing = {action.role for action in self._plan} - set(self._roles.values())
            if missing:
                raise ValueError(f"no tool does {', '.join(sorted(missing))}")
            self._failures = float(config["failures"])
            self._left = len(self._plan) + 1 + int(config["budget"])
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise UsageError(
                f"task '{self.task and self.task.task_id}' is none of toolworld: its "
                f"environment_config does not fit ({error}); make tasks with --env toolworld"
            ) from error
        self._answered, self._tries, self._counts = set(), Counter(), Counter()

    def step(self, turn: Turn) -> Outcome:
        """Carry out a turn. Each call, and each turn that cannot be read, takes from the budget."""
        if turn.malformed is not None:
            self._count(MALFORMED)
            outcome = replace(super().step(turn), labels=(MALFORMED,))
        elif turn.calls:
            judged = [self._carry_out(call) for call in turn.calls]
            outcome = Outcome(
                results=tuple(result for result, _ in judged),
                labels=tuple(label for _, label in judged),
            )
        else:
            return self.finish(turn)
        if self._left <= 0:
            return replace(outcome, truncated=True, stop_reason="budget")
        return outcome

    def finish(self, turn: Turn) -> Outcome:
        """The answer, with or without ``answer:`` before it, ends the episode."""
        text = turn.text.strip()
        if text.lower().startswith(PREFIX):
            text = text[len(PREFIX) :].strip()
        self.answer = text
        labels = (RIGHT_ANSWER if self._solved() else WRONG_ANSWER,)
        return Outcome(terminated=True, stop_reason="answer", answer=text, labels=labels)

    def _carry_out(self, call: Call) -> tuple[Result, str]:
        """Result and label of one call."""
        checked = carry_out(call, self.functions)
        if checked.error is not None:
            self._count(MALFORMED)
            return checked, MALFORMED
        names = self._arguments.get(call.name, {})
        arguments = {names.get(key, key): value for key, value in checked.structured.items()}
        action = PlannedAction(self._roles[call.name], arguments)
        if self._busy(action.key):
            self._counts[BUSY] += 1
            refused = failed(ErrorType.LIMIT, "busy, try again")
            return replace(checked, text=refused.text, error=refused.error, structured=None), BUSY
        label = self._label(action)
        self._count(label)
        self._answered.add(action.key)
        try:
            value = ROLES[action.role].value(self._world, action.arguments)
        except ToolError as error:
            result = failed(error.kind, str(error))
            return replace(checked, text=result.text, error=result.error, structured=None), label
        return replace(checked, text=result_text(value), structured=value), label

    def _busy(self, key: str) -> bool:
        """Whether this try of a call is refused; a call that was answered once never is."""
        tries = self._tries[key]
        self._tries[key] += 1
        if key in self._answered or tries >= MOST_REFUSALS:
            return False
        return number_of("busy", self._world.seed, key, tries) % 10_000 < self._failures * 10_000

    def _label(self, action: PlannedAction) -> str:
        if action.key in self._answered:
            return REDUNDANT
        return NEEDED if any(action.key == part.key for part in self._plan) else WRONG

    def _solved(self) -> bool:
        given = self.answer or ""
        return given.casefold().rstrip(".") == self._right.casefold()

    def _count(self, label: str) -> None:
        self._counts[label] += 1
        self._left -= 1

    def expert_turn(self) -> Turn:
        """The next turn of the shortest way from here, in whatever state an agent has got to.

        It is the first call of the plan that was not answered yet, or else the answer.
        """
        for action in self._plan:
            if action.key not in self._answered:
                name = next(name for name, role in self._roles.items() if role == action.role)
                shown = {knshown: key for key, knshown in self._arguments.get(name, {}).items()}
                arguments = {shown.get(key, key): value for key, value in action.arguments.items()}
                return Turn(calls=(Call(name, json.dumps(arguments)),))
        return Turn(text=f"{PREFIX} {self._right}")

    def score(self, trajectory: Trajectory) -> Verdict:
        """Success is the right answer.

        Rewards: ``clean`` (1: success without a redundant, wrong or malformed call), how many
        calls were ``redundant``, ``wrong``, ``malformed`` and ``busy``, how many ``calls`` were
        made (busy ones apart) and are ``optimal``, and, of a success, ``efficiency`` = optimal /
        calls.
        """
        counts = {label: self._counts[label] for label in (REDUNDANT, WRONG, MALFORMED, BUSY)}
        calls = sum(self._counts.values()) - self._counts[BUSY]
        success = self._solved()
        clean = success and not any(counts[label] for label in (REDUNDANT, WRONG, MALFORMED))
        rewards: dict[str, float] = {"clean": float(clean)}
        rewards |= {label: float(number) for label, number in counts.items()}
        rewards |= {"calls": float(calls), "optimal": float(len(self._plan))}
        if success:
            rewards["efficiency"] = min(1.0, len(self._plan) / calls) if calls else 1.0
        judge = {"expected": self._right, "found": self.answer}
        return Verdict(success=success, reward=float(success), rewards=rewards, judge=judge)

    def fork(self) -> Self:
        """An independent copy: what changes is copied, what does not is shared."""
        other = copy.copy(self)
        other._answered = set(self._answered)
        other._tries = Counter(self._tries)
        other._counts = Counter(self._counts)
        return other


def _config(task: Task) -> Any:
    result, valid = object_of(task.environment_config or "{}")
    return result if valid else {}
