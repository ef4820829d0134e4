"""Environments of gymnasium."""

from __future__ import annotations

import asyncio
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from adp.rollouts.collecting.actor import Alone
from adp.rollouts.collecting.episode import run_episode
from adp.rollouts.collecting.recorder import About
from adp.rollouts.environment import CannotForkError
from adp.rollouts.environments.from_gymnasium import KIND, from_gymnasium
from adp.rollouts.environments.gymnasium_spaces import action_of, observed, schema_of
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.tools import ToolError
from adp.rollouts.turns import Call, ErrorType, Turn
from adp_schema.errors import UsageError
from adp_schema.model import Task

gymnasium = pytest.importorskip("gymnasium")
spaces = gymnasium.spaces

MOVES = ["left", "down", "right", "up"]
WAY = ["down", "down", "right", "right", "down", "right"]
LAKE = {"options": {"is_slippery": False}, "actions": MOVES}


def act(*actions):
    return Turn(calls=tuple(Call("act", json.dumps({"action": action})) for action in actions))


def play(environment, script, **about):
    about = About(dataset="d", timed=False, **about)
    return asyncio.run(run_episode(about, environment, Alone(Scripted(script))))


def test_an_episode_to_the_goal():
    environment = from_gymnasium("FrozenLake-v1", solved_at=1.0, **LAKE)
    result = play(environment, [act("right", "left"), *(act(move) for move in WAY)], seed=1)
    agent = [step for step in result.steps if step.source == "agent"]
    assert [json.loads(observation.text) for observation in agent[0].observations] == [1, 0]
    assert [step.reward for step in agent] == [0.0] * 6 + [1.0]
    assert agent[-1].observations[0].text == "15\nThe episode has ended."
    assert (result.terminated, result.truncated, result.stop_reason) == (True, False, "terminated")
    assert (result.success, result.reward) == (True, 1.0)


def test_a_limit_is_a_truncation_and_an_end_wins_over_it():
    made = {"max_episode_steps": 2, "is_slippery": False}
    environment = from_gymnasium("FrozenLake-v1", options=made, actions=MOVES)
    result = play(environment, [act("left", "left", "left")], seed=1)
    assert (result.terminated, result.truncated, result.stop_reason) == (False, True, "truncated")
    assert [observation.error_type for observation in result.steps[1].observations] == [
        None,
        None,
        "limit",
    ]
    assert (result.success, result.reward) == (None, 0.0)
    environment = from_gymnasium("FrozenLake-v1", options=made, actions=MOVES)
    result = play(environment, [act("right", "down")], seed=1)  # a hole with the last step
    assert (result.terminated, result.truncated) == (True, False)


def test_the_agent_may_stop_and_wrong_actions_cost_no_step():
    environment = from_gymnasium("FrozenLake-v1", **LAKE)
    environment.reset(None, seed=1)
    for turn in (act("jump"), act(3), Turn(calls=(Call("act", "{}"),))):
        outcome = environment.step(turn)
        assert outcome.results[0].error is ErrorType.INVALID_ARGS
        assert outcome.reward is None
    assert environment.step(act("right")).results[0].structured["observation"] == 1
    assert environment.step(Turn(text="enough")).stop_reason == "answer"


def test_the_same_seed_gives_the_same_episode_and_a_task_is_a_seed():
    def seen(task, seed):
        environment = from_gymnasium("CartPole-v1", show_reward=True)
        start = environment.reset(task, seed=seed).messages[0]["content"]
        return start, environment.step(act(0, 1, 1)).results

    assert seen(None, 5)[0] == seen(None, 5)[0]
    assert [item.text for item in seen(None, 5)[1]] == [item.text for item in seen(None, 5)[1]]
    assert seen(None, 5)[0] != seen(None, 6)[0]
    result, other = KIND.tasks(KIND.settings(id="CartPole-v1"), "test", 2, 0)
    assert seen(result, 5)[0] == seen(result, 6)[0]
    assert seen(result, 5)[0] != seen(other, 5)[0]
    assert seen(result, 5)[1][0].text.endswith("Reward: 1")


def test_a_fork_goes_its_own_way():
    environment = from_gymnasium("FrozenLake-v1", **LAKE)
    environment.reset(None, seed=1)
    environment.step(act("down"))
    twin = environment.fork()
    assert twin.step(act("down")).results[0].structured["observation"] == 8
    assert environment.step(act("up")).results[0].structured["observation"] == 0

    class Locked(gymnasium.Env):
        action_space = observation_space = spaces.Discrete(2)

        def __deepcopy__(self, memo):
            raise RuntimeError("no copies")

    with pytest.raises(CannotForkError, match="no copies"):
        from_gymnasium(Locked).fork()


def test_a_drawing_is_shown_without_colours():
    options = {"is_slippery": False, "render_mode": "ansi"}
    environment = from_gymnasium("FrozenLake-v1", options=options, instruction="Go.")
    text = environment.reset(None, seed=1).messages[0]["content"]
    assert text == "Go.\n\n0\nSFFF\nFHFH\nFFFH\nHFFG"


def test_what_gymnasium_cannot_make_is_said():
    with pytest.raises(UsageError, match="Nothing-v7"):
        from_gymnasium("Nothing-v7")
    with pytest.raises(UsageError, match="cannot make 'CartPole-v1'"):
        from_gymnasium("CartPole-v1", options={"no_such": 1})
    with pytest.raises(UsageError, match="as many as the actions"):
        from_gymnasium("FrozenLake-v1", actions=["a"])
    with pytest.raises(UsageError, match="no JSON object"):
        from_gymnasium("FrozenLake-v1").reset(Task(environment_config="[1]"))


SPACES = [
    spaces.Discrete(3, start=-1),
    spaces.MultiDiscrete([2, 3], start=[5, -3]),
    spaces.MultiDiscrete([[2, 3], [1, 4]]),
    spaces.MultiBinary(3),
    spaces.MultiBinary([2, 2]),
    spaces.Box(-1.0, 2.0, (2,)),
    spaces.Box(np.float32([-1.0, -np.inf]), np.float32([1.0, np.inf])),
    spaces.Box(0, 255, (2, 2), dtype=np.uint8),
    spaces.Box(0.0, 1.0, ()),
    spaces.Text(5),
    spaces.Tuple((spaces.Discrete(2), spaces.Text(3))),
    spaces.Dict({"a": spaces.Discrete(2), "b": spaces.Box(0.0, 1.0, (1,))}),
    spaces.Sequence(spaces.Discrete(4)),
    spaces.OneOf((spaces.Discrete(2), spaces.Text(3))),
]


def written(space, action):
    """An action as an agent would write it."""
    if isinstance(space, spaces.OneOf):
        number, value = action
        return {"choice": int(number), "value": written(space.spaces[number], value)}
    return observed(action)


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_every_member_of_a_space_fits_its_schema_and_comes_back(space):
    schema = schema_of(space)
    Draft202012Validator.check_schema(schema)
    space.seed(0)
    for _ in range(20):
        action = space.sample()
        text = json.loads(json.dumps(written(space, action)))
        assert Draft202012Validator(schema).is_valid(text)
        back = action_of(space, text)
        assert space.contains(back)
        assert written(space, back) == text


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "choice", "value"]), inner, max_size=3)
    ),
    max_leaves=5,
)


@settings(max_examples=60)
@given(st.sampled_from(SPACES), JSON)
@pytest.mark.filterwarnings("ignore:.*Casting input x:UserWarning")
def test_any_json_is_an_action_or_a_typed_error(space, value):
    try:
        action = action_of(space, value)
    except ToolError as error:
        kind = error.kind
        assert kind is ErrorType.INVALID_ARGS
    else:
        assert space.contains(action)


@pytest.mark.parametrize("value", [[0.0, 3.4028236e38], [0.0, 1e300], [0, 10**400]])
def test_a_number_that_does_not_fit_is_no_action_not_even_an_infinite_one(value):
    with pytest.raises(ToolError, match="the action is not in Box") as result:
        action_of(spaces.Box(np.float32([-1, -np.inf]), np.float32([1, np.inf])), value)
    assert result.value.kind is ErrorType.INVALID_ARGS


def test_a_space_that_is_no_json_is_refused():
    with pytest.raises(UsageError, match="Graph"):
        schema_of(spaces.Graph(spaces.Discrete(2), None))


def test_observations_are_json():
    value = {
        "f": np.float32(0.1),
        "a": np.array([[1, 2]], dtype=np.int64),
        "nan": np.float64("nan"),
        "big": np.zeros((100, 100, 3)),
        "t": (np.bool_(True), "x", None, {1}),
        "o": object,
    }
    result = observed(value)
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert result["f"] == 0.1
    assert result["big"] == "array of shape (100, 100, 3)"
    assert result["t"] == [True, "x", None, [1]]
