"""Environments and policies of one's own, from the command line to a store."""

from __future__ import annotations

import json
import re
from importlib.metadata import EntryPoint

import pytest

from adp.cli.main import main
from adp.core.registry import Registry
from adp.rollouts.environment import ENVIRONMENTS
from adp.rollouts.policy import POLICIES
from adp.rollouts.spec import load, read_spec
from adp_schema.errors import AdpError, UsageError
from adp_schema.store import Store

CODE = """
from __future__ import annotations

from adp.rollouts.environment import EnvironmentKind, Settings
from adp.rollouts.environments.from_object import object_kind
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.policy import PolicyKind
from adp.rollouts.tool_environment import ToolEnvironment
from adp.rollouts.turns import Call, Turn


class Shop:
    '''A shop.'''

    def __init__(self, coins: int = 10):
        self.coins = coins

    def reset(self, **columns) -> str:
        return f" You have {self.coins} coins."

    def buy(self, price: int) -> str:
        '''Buys something.

        Args:
            price: its price.
        '''
        self.coins -= price
        return str(self.coins)

    def get_reward(self) -> float:
        return float(self.coins == 0)


def shop(coins: int = 10):
    return Shop(coins)


KIND = object_kind("shop", "A shop.", Shop)


class Silent(ToolEnvironment):
    def offered(self):
        return []


class Sized(Settings):
    price: int = 1


class Spender:
    def __init__(self, settings: Sized):
        self.price = settings.price

    def act(self, request):
        if request.turn == 0:
            return Turn(calls=(Call("buy", f'{{"price": {self.price}}}'),))
        return Turn(text="done")


def spend(request):
    return Spender(Sized(price=3)).act(request)


async def wrong(request):
    return "done"


THREE = 3
POLICY = PolicyKind("own", "Own.", Settings, lambda settings: Scripted(spend, "own"))
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(CODE)
    (tmp_path / "tasks.jsonl").write_text(json.dumps({"id": "a", "task": "Spend everything."}))
    return tmp_path


def words(env, policy, out):
    return ["collect", "--env", env, "--policy", policy, "--tasks", "tasks.jsonl", "-o", out]


def collected(env, policy, out):
    code = main(words(env, policy, out))
    rows = Store.open(out).query("SELECT success, reward, agent_name, extra FROM trajectories")
    return code, rows.to_pylist()[0]


@pytest.mark.parametrize("env", ["Shop", "shop"])
@pytest.mark.parametrize(
    ("policy", "name"),
    [("Spender,price=3", "Spender"), ("spend", "spend"), ("POLICY", "own")],
)
def test_code_of_ones_own_is_named_by_its_place(here, env, policy, name):
    code, row = collected(f"mine.py:{env},coins=3", f"mine.py:{policy}", "out")
    assert (code, row["reward"], row["agent_name"]) == (0, 1.0, name)
    assert json.loads(row["extra"])["environment"] == env


def test_the_reward_that_solves_a_task_is_a_setting(here):
    assert collected("mine.py:Shop,coins=3,solved_at=1.0", "mine.py:spend", "a")[1]["success"]
    poor = collected("mine.py:Shop,coins=4,solved_at=1", "mine.py:spend", "b")[1]
    assert poor["success"] is False
    assert collected("mine.py:Shop,coins=4", "mine.py:spend", "c")[1]["success"] is None


@pytest.mark.parametrize("env", ["KIND", "Silent"])
def test_kinds_and_environments(here, env):
    code, row = collected(f"mine.py:{env}", "mine.py:spend", "out")
    assert (code, row["agent_name"]) == (0, "spend")


def test_a_store_knows_the_bytes_of_the_code(here, capsys):
    call = [*words("mine.py:Shop", "mine.py:spend", "out"), "--keep-open"]
    assert main(call) == 0
    (here / "mine.py").write_text(CODE + "# changed\n")
    assert main(call) == 5
    assert (
        "with other bytes in the files of --env (code) than this call has"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("registry", "text", "message"),
    [
        (ENVIRONMENTS, "mine.py:THREE", "'THREE' is no environment but a int"),
        (ENVIRONMENTS, "mine.py:Shop,coin=3", "unknown setting 'coin'; did you mean coins?"),
        (ENVIRONMENTS, "mine.py:Shop,coins=many", "coins must be a whole number, not 'many'"),
        (ENVIRONMENTS, "mine.py:Shops", "did you mean Shop"),
        (POLICIES, "mine.py:THREE", "'THREE' is no policy but a int"),
        (POLICIES, "mine.py:Shop", "'Shop' is no policy but a class without act"),
        (ENVIRONMENTS, "mine:Shop", "'Shop' in 'mine:Shop' is not key=value"),
    ],
)
def test_what_is_wrong_is_one_sentence(here, registry, text, message):
    with pytest.raises(AdpError, match=re.escape(message)):
        load(registry, text)


def test_a_policy_that_gives_no_turn_breaks_the_episode(here):
    main(words("mine.py:Shop", "mine.py:wrong", "out"))
    rows = Store.open("out").query("SELECT error_type, error_message FROM trajectories")
    (row,) = rows.to_pylist()
    assert row["error_type"] == "policy"
    assert "wrong gave a str instead of a Turn" in row["error_message"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a/b.py:Shop", ("a/b.py:Shop", {})),
        ("C:\\x\\b.py:Shop,a=1", ("C:\\x\\b.py:Shop", {"a": 1})),
        ("pack.mod:Shop,a=[1, 2],b=x:y", ("pack.mod:Shop", {"a": [1, 2], "b": "x:y"})),
        ("mcp:command=[python, b.py]", ("mcp", {"command": ["python", "b.py"]})),
        ("mcp:url=http://h.py:Shop", ("mcp", {"url": "http://h.py:Shop"})),
    ],
)
def test_a_place_is_no_setting(text, expected):
    assert read_spec(text) == expected


def test_an_entry_point_may_name_a_class_but_nothing_else(monkeypatch):
    registry = Registry(
        "environment", "adp.e", {}, made_by="adp.rollouts.wrapped_code:environment_kind"
    )
    named = {
        "shop": "tests.rollouts.test_from_python:Counter",
        "bad": "tests.rollouts.test_from_python:TASKS",
    }
    entries = [EntryPoint(name, value, "adp.e") for name, value in named.items()]
    monkeypatch.setattr("adp.core.registry.entry_points", lambda group: entries)
    assert load(registry, "shop")[0].name == "shop"
    with pytest.raises(UsageError, match="'bad' is no environment but a list"):
        load(registry, "bad")
    plain = Registry("scorer", "adp.e", {})
    with pytest.raises(UsageError, match="the scorer 'shop' is a type and not what describes one"):
        load(plain, "shop")
