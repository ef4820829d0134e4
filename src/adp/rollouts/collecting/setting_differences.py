"""Whether two calls make the same episodes; if not, which option of `adp collect` differs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from adp_schema.errors import OutputExistsError
from adp_schema.manifest import MANIFEST

_TASKS = "tasks"

_OPTIONS = {
    "dataset": "--dataset",
    "seed": "--seed",
    "environment": "--env",
    "policy": "--policy",
    "made_with.assistance": "--expert-mode",
    "made_with.judges": "--expert-mode",
    "made_with.step_rewards": "--step-rewards",
    "timed": "--no-times",
    "branching": "--branching",
    "branching.n": "--n",
    "made_with.environment": "--env",
    "made_with.policy": "--policy",
    **{f"limits.{name}": f"--{name.replace('_', '-')}"
       for name in ("max_turns", "max_calls", "max_tokens", "max_seconds")},
}  # fmt: skip
"""Where a setting stands in the file of a run -> the option that gives it."""

_NAMES = {("name",), ("mode",)}
"""Parts of a setting that stand before the first colon of its option."""

_LONGEST = 80


def check_same(
    root: Path, before: Mapping[str, Any], now: Mapping[str, Any], *, without: Sequence[str] = ()
) -> None:
    """Check that two calls make the same episodes.

    Args:
        root: the store.
        before: the settings that it was begun with.
        now: those of this call.
        without: settings that may differ.

    Raises:
        OutputExistsError: they do not; the sentence names the first difference.
    """
    plain = json.loads(json.dumps(now))
    result, other = ({key: value for key, value in item.items() if key not in without}
                  for item in (before, plain))  # fmt: skip
    difference = _difference(result, other)
    if difference is None:
        return
    path = difference[0]
    advice = "go on with the same settings, or choose another -o"
    if path[0] == _TASKS:
        advice = f"go on with the same tasks, or {since_advice(root)}"
    raise OutputExistsError(f"{root} was begun {_described(*difference)}; {advice}")


def since_advice(root: Path, since: Sequence[str] = ()) -> str:
    """How to collect what a store lacks and cannot take.

    Args:
        root: the store.
        since: stores that it leaves out what they hold of.
    """
    places = [shlex.quote(place) for place in (*since, str(root))]
    more, full = (shlex.quote(f"{root}-{word}") for word in ("more", "whole"))
    first = "" if (root / MANIFEST).exists() else f"adp seal {places[-1]}; "
    return (
        f"collect what is left beside it: {first}the same call with "
        f"{' '.join(f'--since {place}' for place in places)} -o {more}; then "
        f"adp merge {' '.join(places)} {more} -o {full}"
    )


_LAST = ("environment", "policy")
"""Settings that only repeat what `made_with` says more exactly."""


def _difference(
    value: Any, other: Any, path: tuple[str, ...] = ()
) -> tuple[tuple[str, ...], Any, Any] | None:
    """The first place where two values differ, and both values there."""
    if not isinstance(value, Mapping) or not isinstance(other, Mapping):
        return None if value == other else (path, value, other)
    names = [*value, *(key for key in other if key not in value)]
    if not path:
        names.sort(key=lambda name: name in _LAST)
    for name in names:
        difference = _difference(value.get(name), other.get(name), (*path, str(name)))
        if difference is not None:
            return difference
    return None


def _described(path: tuple[str, ...], result: Any, other: Any) -> str:
    """The difference: ``with --seed 0, and this call has --seed 1``."""
    if path == (_TASKS, "count"):
        return f"with {result} tasks (--tasks, --split), and this call has {other}"
    if path[0] == _TASKS:
        return "with other tasks (--tasks, --split) than this call has, or in another order"
    if path == ("since",):
        if result and other:
            return "with other stores in --since than this call has"
        return (
            "with --since, and this call is without it"
            if result
            else "without --since, and this call has it"
        )
    if path == ("timed",):
        result, other = (None if value else "" for value in (result, other))
    option, rest = _option(path)
    if path[-1] == "hash" or "code" in path:
        of = ".".join(part for part in rest if part != "hash")
        files = f"the files of {option} ({of})" if of else f"the files of {option}"
        return f"with other bytes in {files} than this call has"
    if result is None and not rest:
        return f"without {option}, and this call has {_value_text(option, rest, other)}"
    second = f"has {_value_text(option, rest, other)}"
    if other is None and not rest:
        second = f"is without {option}"
    return f"with {_value_text(option, rest, result)}, and this call {second}"


def _option(path: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The option of a setting, and what of it differs."""
    for length in range(len(path), 0, -1):
        option = _OPTIONS.get(".".join(path[:length]))
        if option is not None:
            rest = path[length:]
            return option, () if rest in _NAMES else rest[rest[:1] == ("settings",) :]
    return ".".join(path), ()


def _value_text(option: str, rest: tuple[str, ...], value: Any) -> str:
    """An option with a value: ``--seed 1``, ``--policy model=m``."""
    if isinstance(value, Mapping):
        value = value.get("mode", value.get("name", value))
    plain = isinstance(value, str) and value.isprintable() and " " not in value
    text = value if plain else json.dumps(value, ensure_ascii=False)
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
    name = ".".join(rest)
    if name:
        text = f"{name}={text}" if value != "" else name
    return f"{option} {text}".rstrip()
