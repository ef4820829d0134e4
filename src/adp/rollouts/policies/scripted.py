"""A policy that follows a script: a list of turns, or a function of the request.

For tests, benchmarks and plumbing. In Python: ``Scripted([Turn(text="42")])`` or
``Scripted(lambda request: Turn(...))``. As a setting it reads turns from a file of JSON lines:

    {"task_id": "t1", "turns": [{"calls": [{"name": "add", "arguments": {"a": 1}}]},
                                {"text": "42"}]}

A line without ``task_id`` is for all other tasks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from adp.core.input_files import read_text
from adp.rollouts.environment import Settings
from adp.rollouts.policy import PolicyKind, Request
from adp.rollouts.turns import Call, Turn
from adp_schema.errors import InputError, UsageError
from adp_schema.model import Task

Script = Callable[[Request], Turn] | Sequence[Turn]

DONE = Turn(text="", stop_reason="script_ended")
"""What is answered when a script has no turn left."""


class Scripted:
    """A policy that follows a script.

    Args:
        script: turns in order, for every episode alike; or a function of the request.
        name: what to call it.
    """

    def __init__(self, script: Script, name: str = "scripted") -> None:
        self.name = name
        self._script = script

    async def act(self, request: Request) -> Turn:
        """The turn of the script."""
        if callable(self._script):
            return self._script(request)
        return self._script[request.turn] if request.turn < len(self._script) else DONE

    async def close(self) -> None:
        """Nothing to free."""


class ScriptedSettings(Settings):
    """Settings of the policy ``scripted``."""

    file: Path
    """File of JSON lines: task_id, and turns of text and calls."""


class ScriptedTasks(Scripted):
    """A script for each task.

    Args:
        scripts: turns by task; None is for all other tasks.
        name: what to call it.
    """

    def __init__(self, scripts: Mapping[str | None, Sequence[Turn]], name: str) -> None:
        super().__init__(self._turn, name)
        self._scripts = scripts

    def _turn(self, request: Request) -> Turn:
        task_id = request.task.task_id if request.task else None
        turns = self._scripts.get(task_id, self._scripts.get(None, ()))
        return turns[request.turn] if request.turn < len(turns) else DONE

    def remarks(self, tasks: Sequence[Task]) -> list[str]:
        """Which tasks have no script, and which scripts no task; empty when all fit."""
        names = {task.task_id for task in tasks}
        without = 0 if None in self._scripts else len(names.difference(self._scripts))
        unused = len(set(self._scripts).difference(names, [None]))
        remarks = []
        if without:
            remarks.append(f"{without:,} of {len(names):,} tasks have no script; they are answered "
                         "by an empty text")  # fmt: skip
        if unused:
            remarks.append(
                f"{unused:,} of {len(self._scripts):,} scripts are for none of the tasks"
            )
        return remarks


def _make(settings: ScriptedSettings) -> Scripted:
    return ScriptedTasks(read_scripts(settings.file), f"scripted:{settings.file.name}")


def read_scripts(path: Path) -> Mapping[str | None, Sequence[Turn]]:
    """Read a file of scripts.

    Raises:
        InputError: it cannot be read, or a line is no script; the message says which.
    """
    scripts: dict[str | None, Sequence[Turn]] = {}
    lines_of: dict[str | None, int] = {}
    try:
        lines = read_text(path).split("\n")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            task_id, turns = _script(json.loads(line))
            if task_id in scripts:
                whose = "without a task_id" if task_id is None else f"of '{task_id}'"
                raise ValueError(f"line {lines_of[task_id]} is a script {whose} already")
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}#{number}: this is no script: {error}") from error
        scripts[task_id], lines_of[task_id] = turns, number
    if not scripts:
        raise UsageError(f"{path} holds no script; write one JSON object a line, with turns")
    return scripts


def _script(entry: Any) -> tuple[str | None, list[Turn]]:
    _known(entry, ("task_id", "turns"), "a script")
    task_id, turns = entry.get("task_id"), entry.get("turns")
    if task_id is not None and not isinstance(task_id, str | int):
        raise ValueError("its task_id is no text")
    if not isinstance(turns, list):
        raise ValueError("its turns are no list")
    results = [_turn(turn, f"turn {number}") for number, turn in enumerate(turns)]
    return None if task_id is None else str(task_id), results


def _turn(entry: Any, place: str) -> Turn:
    _known(entry, ("text", "reasoning", "calls", "malformed"), place)
    for name in ("text", "reasoning", "malformed"):
        if not isinstance(entry.get(name), str | None):
            raise ValueError(f"{place}: its {name} is no text")
    listed = entry.get("calls")
    if not isinstance(listed, list | None):
        raise ValueError(f"{place}: its calls are no list")
    calls = []
    for number, call in enumerate(listed or ()):
        where = f"{place}, call {number}"
        _known(call, ("name", "arguments", "id"), where)
        name, call_id = call.get("name"), call.get("id") or ""
        if not isinstance(name, str) or not isinstance(call_id, str):
            raise ValueError(f"{where}: its name or its id is no text")
        arguments = call.get("arguments", {})
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        calls.append(Call(name, text, call_id))
    return Turn(
        text=entry.get("text") or "",
        calls=tuple(calls),
        reasoning=entry.get("reasoning"),
        malformed=entry.get("malformed"),
    )


def _known(entry: Any, names: tuple[str, ...], what: str) -> None:
    """Check that a value is an object with these keys alone."""
    if not isinstance(entry, Mapping):
        raise ValueError(f"{what} is no JSON object")
    other = next((key for key in entry if key not in names), None)
    if other is not None:
        raise ValueError(f"{what}: unknown key '{other}'; known: {', '.join(names)}")


KIND = PolicyKind(
    name="scripted",
    about="Turns that are written in a file.",
    settings=ScriptedSettings,
    make=_make,
)
