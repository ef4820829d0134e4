"""Arithmetic: the same values as Python's, within limits."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adp.rollouts.environments.arithmetic import DEEPEST, LONGEST, evaluate, written
from adp.rollouts.environments.calculator import KIND, Calculator
from adp.rollouts.environments.generated import split_of
from adp.rollouts.tools import ToolError
from adp.rollouts.turns import Call, ErrorType, Turn

NAMES = {"sqrt": math.sqrt, "min": min, "max": max, "abs": abs, "round": round, "pi": math.pi}


def expressions():
    """Expressions that Python reads in the same way."""
    numbers = st.integers(0, 10**6).map(str) | st.floats(0, 1e6).map(repr)
    return st.recursive(
        numbers | st.just("pi"),
        lambda inner: (
            st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "//", "%", "**"]), inner).map(
                " ".join
            )
            | inner.map(lambda text: f"({text})")
            | inner.map(lambda text: f"-{text}")
            | inner.map(lambda text: f"sqrt({text})")
            | st.tuples(inner, inner).map(lambda two: f"max({two[0]}, {two[1]})")
        ),
        max_leaves=6,
    )


def attempt(function, *arguments):
    """The value, or the exception."""
    try:
        return function(*arguments)
    except Exception as error:
        return error


@given(expressions())
@example("7 ** 0")
@example("0 ** 0")
def test_the_value_is_the_one_of_python(expression):
    result = attempt(evaluate, expression)
    if isinstance(result, ToolError) and ("large" in str(result) or "deep" in str(result)):
        return
    expected = attempt(eval, expression, {"__builtins__": {}}, NAMES)
    if isinstance(result, ToolError):
        assert isinstance(expected, ValueError | ZeroDivisionError | TypeError | complex)
    else:
        assert type(result) is type(expected)
        assert result == expected


@given(st.text(max_size=60) | st.text("0123456789+-*/().,%e sqrtmaxpi", max_size=60))
def test_any_text_has_a_value_or_a_typed_error(text):
    result = attempt(evaluate, text)
    if isinstance(result, ToolError):
        assert result.kind in (ErrorType.INVALID_ARGS, ErrorType.EXECUTION)
    else:
        assert math.isfinite(result)


@pytest.mark.parametrize(
    ("expression", "part"),
    [
        ("9**9**9**9", "too large"),
        ("2**100000000000", "too large"),
        ("(10**999)**(10**999)", "too large"),
        ("10**999*10**999", "too large"),
        ("1e308*10", "too large"),
        ("exp(1000)", "too large"),
        ("sqrt(10**900)", "too large"),
        ("round(5, 0-10**9)", "400 at most"),
        ("round(5, 0.5)", "whole number"),
        ("(" * 500 + "1" + ")" * 499, "deep"),
        ("-" * 999 + "1", "deep"),
        ("2**" * 300 + "1", "deep"),
        ("1+" * 600 + "1", "characters"),
        ("9" * LONGEST, None),
        ("1/0", "division by zero"),
        ("0**-1", "division by zero"),
        ("5 % 0", "division by zero"),
        ("(-8)**0.5", "real numbers"),
        ("sqrt(-1)", "real numbers"),
        ("log(0)", "real numbers"),
        ("2^3", "write \\*\\* for a power"),
        ("__import__('os')", "not understood"),
        ("__import__(1)", "not known"),
        ("(1).real", "not understood"),
        ("1 2", "not expected"),
        ("", "ends too early"),
        ("sqrt 4", "parentheses"),
        ("sqrt()", "0 arguments"),
        ("(1", "closing"),
        ("\u0661+1", "not understood"),
    ],
)
def test_what_is_too_much_or_wrong_is_refused(expression, part):
    if part is None:
        assert evaluate(expression) == int(expression)
        return
    with pytest.raises(ToolError, match=part):
        evaluate(expression)


def test_nesting_up_to_the_limit_is_fine():
    assert evaluate("(" * (DEEPEST - 1) + "1" + ")" * (DEEPEST - 1)) == 1


@pytest.mark.parametrize(
    ("expression", "text"),
    [("0.1 + 0.2", "0.3"), ("8/2", "4"), ("10**20", "1" + "0" * 20), ("2 \u00d7 3 \u2212 1", "5")],
)
def test_the_agent_reads_plain_numbers(expression, text):
    assert written(evaluate(expression)) == text


def test_its_tasks_are_solved_by_calling_the_tool():
    tasks = KIND.tasks(KIND.settings(), "test", 40, 3)
    assert len({task.instruction for task in tasks}) == 40
    assert tasks[:10] == KIND.tasks(KIND.settings(), "test", 10, 3)
    assert tasks[:10] != KIND.tasks(KIND.settings(), "test", 10, 4)[:10]
    train = {task.instruction for task in KIND.tasks(KIND.settings(), "train", 400, 3)}
    assert not train & {task.instruction for task in tasks}
    environment = Calculator()
    assert {split_of(task.instruction) for task in tasks} == {"test"}
    for task in tasks:
        environment.reset(task)
        expression = task.instruction.removeprefix("What is ").partition("?")[0]
        call = Call("calculator", f'{{"expression": "{expression}"}}')
        (result,) = environment.step(Turn(calls=(call,))).results
        assert f'["{result.text}"]' == task.answers
        assert result.structured == int(result.text)
