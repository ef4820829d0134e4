"""The environment ``calculator``: one tool that works out arithmetic.

`adp.rollouts.environments.arithmetic` says what it understands. Its own tasks are sums to work out;
their answers are exact.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from pydantic import Field

from adp.rollouts.environment import EnvironmentKind, Settings
from adp.rollouts.environments.arithmetic import CONSTANTS, FUNCTIONS, LONGEST, evaluate, written
from adp.rollouts.environments.generated import Question, generated
from adp.rollouts.tool_environment import ToolEnvironment
from adp.rollouts.tools import FunctionTool, arguments_schema
from adp.rollouts.turns import Result
from adp_schema.model import Task

NAME = "calculator"

_EXPRESSION = {
    "type": "string",
    "description": "The expression, such as (2 + 3) * sqrt(16).",
    "maxLength": LONGEST,
}


def calculate(expression: str) -> Result:
    """The value of an expression as a result.

    Raises:
        ToolError: it has none.
    """
    value = evaluate(expression)
    return Result(text=written(value), structured=value)


CALCULATOR = FunctionTool(
    NAME,
    "Works out an arithmetic expression of + - * / // % ** and parentheses; also "
    f"{', '.join(FUNCTIONS)}, {' and '.join(CONSTANTS)}.",
    arguments_schema({"expression": _EXPRESSION}),
    calculate,
    read_only=True,
)


class Calculator(ToolEnvironment):
    """One tool, ``calculator``."""

    def offered(self) -> Sequence[FunctionTool]:
        """The calculator."""
        return (CALCULATOR,)


class CalculatorSettings(Settings):
    """Settings of the environment ``calculator``."""

    steps: int = Field(default=3, ge=1, le=10)
    """Most operations in one of its tasks."""


def _expression(rng: random.Random, steps: int) -> str:
    """A random expression with this many operations; its value is a whole number."""
    if steps == 0:
        return str(rng.randint(2, 99))
    left = rng.randrange(steps)
    result, other = _expression(rng, left), _expression(rng, steps - 1 - left)
    result, other = (f"({part})" if " " in part else part for part in (result, other))
    return f"{result} {rng.choice('+-*')} {other}"


def _tasks(
    settings: CalculatorSettings, split: str, count: int | None, seed: int
) -> Sequence[Task]:
    def make(rng: random.Random) -> Question:
        steps = rng.randint(1, settings.steps)
        expression = _expression(rng, steps)
        question = f"What is {expression}? Answer with the number alone."
        return question, [written(evaluate(expression))], f"{steps} operations"

    return generated(NAME, make, split, count, seed)


KIND = EnvironmentKind(
    name=NAME,
    about="Arithmetic with a calculator; it makes its own tasks.",
    settings=CalculatorSettings,
    make=lambda settings: Calculator(),
    tasks=_tasks,
)
