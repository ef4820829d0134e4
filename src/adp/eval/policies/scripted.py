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

from pydantic import Field

from adp.eval.environment import Settings
from adp.eval.policy import PolicyKind, Request
from adp.eval.turns import Call, Turn
from adp_schema.errors import InputError, UsageError

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

    file: Path = Field(description="File of JSON lines: task_id, and turns of text and calls.")


def _make(settings: ScriptedSettings) -> Scripted:
    scripts = read_scripts(settings.file)

    def script(request: Request) -> Turn:
        task_id = request.task.task_id if request.task else None
        turns = scripts.get(task_id, scripts.get(None, ()))
        return turns[request.turn] if request.turn < len(turns) else DONE

    return Scripted(script, f"scripted:{settings.file.name}")


def read_scripts(path: Path) -> Mapping[str | None, Sequence[Turn]]:
    """Read a file of scripts.

    Raises:
        InputError: it cannot be read, or a line is no script; the message says which.
    """
    found: dict[str | None, Sequence[Turn]] = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                entry = json.loads(line)
                found[entry.get("task_id")] = [_turn(turn) for turn in entry["turns"]]
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise InputError(f"{path}#{number}: this is no script: {error}") from error
    if not found:
        raise UsageError(f"{path} holds no script; write one JSON object a line, with turns")
    return found


def _turn(entry: Mapping[str, Any]) -> Turn:
    calls = []
    for call in entry.get("calls", ()):
        arguments = call.get("arguments", {})
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        calls.append(Call(call["name"], text, call.get("id", "")))
    return Turn(
        text=entry.get("text", ""),
        calls=tuple(calls),
        reasoning=entry.get("reasoning"),
        malformed=entry.get("malformed"),
    )


KIND = PolicyKind(
    name="scripted",
    about="Turns that are written in a file.",
    settings=ScriptedSettings,
    make=_make,
)
