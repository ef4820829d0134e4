"""Any object as an environment."""

from __future__ import annotations

import asyncio
import enum
import json
import threading
from datetime import date
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from adp.rollouts.collecting.actor import Alone
from adp.rollouts.collecting.episode import run_episode
from adp.rollouts.collecting.recorder import About
from adp.rollouts.environment import AsyncEnvironment, CannotForkError, Environment
from adp.rollouts.environments.from_object import from_object, object_kind
from adp.rollouts.environments.signatures import sections, tool_from_function
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.tools import carry_out
from adp.rollouts.turns import Call, ErrorType, Turn
from adp_schema.errors import UsageError
from adp_schema.model import Task


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    x: int
    y: int = 0


class Shop:
    """A shop with one buyer."""

    def __init__(self, coins: int = 10) -> None:
        self.coins, self.bought, self.done, self.closed = coins, [], False, False

    def reset(self, budget: int = 10, **columns) -> str | None:
        self.coins, self.columns = budget, columns
        return f" You have {budget} coins."

    def buy(self, item: str, price: int = 1) -> str:
        """Buys something.

        It costs coins.

        Args:
            item: what to buy,
                such as bread.
            price: its price.

        Returns:
            What happened.
        """
        if price > self.coins:
            raise ValueError("not enough coins")
        self.coins -= price
        self.bought.append(item)
        return f"{self.coins} coins are left"

    def leave(self) -> str:
        """Leaves the shop."""
        self.done = True
        return "Goodbye."

    def get_reward(self) -> float:
        return len(self.bought) / 2

    def close(self) -> None:
        self.closed = True

    def _secret(self, *args):
        raise AssertionError

    @property
    def state(self):
        raise AssertionError("a property is never looked at")

    @property
    def window(self):
        raise AssertionError("a property is never looked at")


TASK = Task(
    task_id="t1", instruction="Buy bread.", answers='["ok"]', extra='{"budget": 3, "level": 2}'
)


def call(name, **arguments):
    return Turn(calls=(Call(name, json.dumps(arguments)),))


def play(environment, script, task=TASK):
    about = About(dataset="d", task=task, timed=False)
    return asyncio.run(run_episode(about, environment, Alone(Scripted(script))))


def test_the_public_methods_are_the_tools():
    environment = from_object(Shop)
    assert isinstance(environment, Environment)
    buy, leave = (tool["function"] for tool in environment.tools())
    assert buy == {
        "name": "buy",
        "description": "Buys something.\n\nIt costs coins.",
        "parameters": {
            "type": "object",
            "properties": {
                "item": {"type": "string", "description": "what to buy, such as bread."},
                "price": {"type": "integer", "default": 1, "description": "its price."},
            },
            "required": ["item"],
            "additionalProperties": False,
        },
    }
    assert leave["parameters"]["properties"] == {}


def test_an_episode_with_an_object():
    environment = from_object(Shop, solved_at=1.0)
    result = play(
        environment, [call("buy", item="bread"), call("buy", item="milk"), Turn(text="x")]
    )
    assert result.steps[0].text == "Buy bread. You have 3 coins."
    assert [step.observations[0].text for step in result.steps[1:3]] == [
        "2 coins are left",
        "1 coins are left",
    ]
    assert (result.success, result.reward, result.stop_reason) == (True, 1.0, "answer")
    assert environment.subject.closed
    columns = environment.subject.columns
    assert columns["level"] == 2
    assert columns["answers"] == ["ok"]
    assert columns["prompt"] == [{"role": "user", "content": "Buy bread."}]


def test_an_object_that_is_done_ends_the_episode():
    turn = Turn(calls=(Call("leave"), Call("buy", '{"item": "bread"}')))
    result = play(from_object(Shop), [turn])
    assert (result.terminated, result.stop_reason, result.reward) == (True, "done", 0.0)
    assert [observation.error_type for observation in result.steps[1].observations] == [
        None,
        "limit",
    ]
    assert result.success is False  # by the answers of the task


def test_what_the_agent_does_wrong_is_told():
    environment = from_object(Shop)
    environment.reset(TASK)
    wrong = {
        ErrorType.EXECUTION: call("buy", item="car", price=99),
        ErrorType.INVALID_ARGS: call("buy", item="car", price="dear"),
        ErrorType.UNKNOWN_TOOL: call("_secret"),
        ErrorType.PARSING: Turn(calls=(Call("buy", "{"),)),
    }
    for kind, turn in wrong.items():
        (result,) = environment.step(turn).results
        assert result.error is kind
    for name in ("reset", "get_reward", "close", "state", "window", "__init__"):
        (result,) = environment.step(call(name)).results
        assert result.error is ErrorType.UNKNOWN_TOOL


def test_a_fork_is_independent():
    environment = from_object(Shop)
    environment.reset(TASK)
    twin = environment.fork()
    twin.step(call("buy", item="bread"))
    assert (environment.subject.coins, twin.subject.coins) == (3, 2)

    class Locked(Shop):
        def __init__(self) -> None:
            super().__init__()
            self.lock = threading.Lock()

    with pytest.raises(CannotForkError, match="Locked cannot be copied"):
        from_object(Locked).fork()

    class OwnLocked(Locked):
        def fork(self):
            return OwnLocked()

    assert isinstance(from_object(OwnLocked).fork().subject, OwnLocked)


class Waits(Shop):
    async def reset(self, **columns):
        return await asyncio.sleep(0, "Hello.")

    async def sum(self, a: int, b: int) -> int:
        """Adds."""
        return await asyncio.sleep(0, a + b)

    async def fails(self) -> int:
        """Fails."""
        raise TimeoutError

    async def get_reward(self):
        return await asyncio.sleep(0, float("nan"))

    async def close(self):
        self.closed = await asyncio.sleep(0, True)


def test_methods_may_be_coroutines():
    environment = from_object(Waits)
    assert isinstance(environment, AsyncEnvironment)
    script = [call("sum", a=2, b=3), call("fails"), call("buy", item="x"), Turn(malformed="no")]
    result = play(environment, [*script, Turn(text="ok")], Task(task_id="t2"))
    seen = [step.observations[0] for step in result.steps[1:5]]
    assert [item.text for item in seen[:3]] == [
        "5",
        "Error: the tool took too long",
        "9 coins are left",
    ]
    assert [item.error_type for item in seen] == [None, "timeout", None, "parsing"]
    assert (result.reward, result.success, environment.subject.closed) == (None, None, True)
    assert environment.fork().subject is not environment.subject


def test_arguments_become_values_of_their_types():
    def give(day: date, colour: Colour, point: Point, schema: dict[str, int]) -> str:
        """Gives."""
        return repr((day, colour, point, schema))

    tool = tool_from_function(give)
    given = {"day": "2026-01-02", "colour": "red", "point": {"x": 1.0}, "schema": {"a": 1}}
    result = carry_out(Call("give", json.dumps(given)), {"give": tool})
    expected = (date(2026, 1, 2), Colour.RED, Point(x=1), {"a": 1})
    assert result.text == repr(expected)
    for change in (
        {"day": "2026-13-02"},
        {"colour": "green"},
        {"point": {"y": 1}},
        {"schema": {"a": "b"}},
        {"more": 1},
    ):
        wrong = carry_out(Call("give", json.dumps(given | change)), {"give": tool})
        assert wrong.error is ErrorType.INVALID_ARGS


TAKEN = []


def take(
    size: Literal["s", "l"] = "s",
    count: Annotated[int, Field(ge=1)] = 1,
    names: list[str] | None = None,
) -> str:
    TAKEN.append((size, count, names))
    return "ok"


TAKE = tool_from_function(take)


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "count": st.integers() | st.text(max_size=3) | st.none() | st.floats(-1e9, 1e9),
            "size": st.sampled_from(["s", "l", "x"]) | st.integers(),
            "names": st.none() | st.lists(st.text(max_size=3) | st.integers(), max_size=2),
            "what": st.none(),
        },
    )
)
def test_schema_and_types_agree(arguments):
    TAKEN.clear()
    result = carry_out(Call("take", json.dumps(arguments)), {"take": TAKE})
    if TAKE.wrong(arguments) is None:
        assert result.text == "ok"
        ((size, count, names),) = TAKEN
        assert size == arguments.get("size", "s")
        assert count == arguments.get("count", 1)
        assert type(count) is int
        assert names == arguments.get("names")
    else:
        assert result.error is ErrorType.INVALID_ARGS
        assert not TAKEN


def untyped(a):
    """No type."""


def many(*values: int):
    """Many."""


def places(a: int, /):
    """By place."""


def unknown(a: threading.Lock):
    """A type that is no JSON."""


def forward(a: Missing):  # noqa: F821
    """A type that is not there."""


@pytest.mark.parametrize("function", [untyped, many, places, unknown, forward])
def test_what_cannot_be_a_tool_is_refused(function):
    with pytest.raises(UsageError, match=function.__name__):
        tool_from_function(function)


def test_what_cannot_be_an_environment_is_refused():
    class Nothing:
        def _hidden(self):
            pass

    with pytest.raises(UsageError, match="no public method"):
        from_object(Nothing)
    with pytest.raises(UsageError, match="not a Shop"):
        from_object(Shop())

    class Number(Shop):
        def reset(self):
            return 5

    with pytest.raises(UsageError, match="text or None"):
        from_object(Number).reset(TASK)

    class Silent(Shop):
        def reset(self):
            return None

    with pytest.raises(UsageError, match="what is to be done"):
        from_object(Silent).reset(None, seed=1)


def test_an_object_can_be_named_on_the_command_line():
    from adp.rollouts.environment import Settings

    class Chosen(Settings):
        coins: int = 4

    kind = object_kind("shop", "A shop.", Shop, Chosen)
    assert kind.make(Chosen(coins=7)).subject.coins == 7


def test_a_docstring_is_read_by_its_sections():
    text = "Does it.\n\nMore: of it.\n\nArgs:\n    a (int): one:\n        two\n\n    *b: three\n"
    text += "Returns:\n    c: four"
    assert sections(text) == ("Does it.\n\nMore: of it.", {"a": "one: two", "b": "three"})
    assert sections("") == ("", {})
