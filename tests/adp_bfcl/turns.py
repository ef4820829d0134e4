"""The official multi-turn checker, and right sequences of calls changed at random."""

from __future__ import annotations

import copy
import importlib
import itertools
import random

from adp_bfcl.entries import BfclEntry
from adp_bfcl.multi_turn import Steps

_COUNT = itertools.count()
ODD = [
    "unknown_function(a=1)",
    "ls(",
    "ls(a=True)",
    "pwd()",
    "ls() ",
    "ls",
    "",
    "echo(content='call ls() and (this)', file_name='new.txt')",
    "touch(file_name='x y.txt')",
    "__import__('os').getcwd()",
    "cd(folder=nowhere)",
    "get_current_time()",
    "sum_values(numbers=[1, 2, -3])",
    "add(a=1, a=2)",
    "logarithm(value=8, base=2, precision=5)",
    "power(base=2, exponent=0.5)",
    "post_tweet(content='mean (of) ls()', tags=['#x'], mentions=[])",
    "get_user_id(user=get_user_id(user='Bob'))",
    "ls(a=not True)",
    "_load_scenario({})",
    "logout()",
    "round_number(number=2.5)",
]


def official_turns(row: dict, steps: Steps) -> tuple[bool, str | None]:
    """The verdict of the installed package. Its services live under a name, so each run has one."""
    checker = importlib.import_module("bfcl_eval.eval_checker.multi_turn_eval.multi_turn_checker")
    multi_turn_checker = checker.multi_turn_checker(
        copy.deepcopy(steps), row["ground_truth"], row, "", f"model{next(_COUNT)}"
    )
    return multi_turn_checker["valid"], multi_turn_checker.get("error_type")


def gold_steps(truth: list[list[str]], rng: random.Random) -> list[list[list[str]]]:
    """The expected calls, all of a turn in one step or one in each."""
    if rng.random() < 0.5:
        return [[list(turn)] if turn else [] for turn in truth]
    return [[[call] for call in turn] for turn in truth]


def changed_steps(
    steps: list[list[list[str]]],
    others: list[str],
    rng: random.Random,
    odd: list[str] | None = None,
) -> list[list[list[str]]]:
    """The sequence with one to three changes."""
    others, odd = others or odd or ODD, odd or ODD
    steps = copy.deepcopy(steps)
    for _ in range(rng.choice((1, 1, 2, 3))):
        turn = rng.choice(steps)
        calls = [call for step in turn for call in step]
        kind = rng.random()
        if kind < 0.15 and calls:
            calls.pop(rng.randrange(len(calls)))
        elif kind < 0.3:
            calls.insert(rng.randrange(len(calls) + 1), rng.choice(odd))
        elif kind < 0.45:
            calls.insert(rng.randrange(len(calls) + 1), rng.choice(others))
        elif kind < 0.55:
            calls.reverse()
        elif kind < 0.65 and calls:
            calls.append(rng.choice(calls))
        elif kind < 0.7:
            calls = []
        elif calls:
            index = rng.randrange(len(calls))
            calls[index] = _changed_call(calls[index], rng)
        turn[:] = [[call] for call in calls] if rng.random() < 0.7 else [calls]
    return steps


def _changed_call(call: str, rng: random.Random) -> str:
    swaps = (
        ("1", "2"),
        ("'", '"'),
        ("True", "False"),
        ("e", "E"),
        ("(", " ("),
        (")", ", extra=1)"),
        ("=", " = "),
        (", ", ","),
        ("'", "'ls() "),
        (".", ","),
        ("0", "0.0"),
        (")", ""),
        ("[", "("),
    )
    old, new = rng.choice(swaps)
    return call.replace(old, new, rng.choice((1, 1, -1)))


def row_of(entry: BfclEntry) -> dict:
    """The row of an entry, as the official checker takes it."""
    return {
        "id": entry.entry_id,
        "initial_config": entry.config,
        "involved_classes": entry.classes,
        "ground_truth": entry.answers,
    }
