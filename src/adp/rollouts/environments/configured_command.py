"""Tools that run a program, from a configuration; only where the user allows them.

    {"name": "count_words", "type": "command", "command": ["wc", "-w", "--", "{path}"],
     "parameters": {...}}

A command is a list of words. There is no shell: ``{path}`` becomes a part of one word, whatever is
in it. A word that begins with ``-`` because of an argument is refused, so that it is not taken for
an option; in a command with a word ``--`` it is allowed. The program runs with the rights of the
user, in an empty folder, without the user's environment variables, and is stopped at its limits.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from adp.core.options import OptionsModel
from adp.rollouts.environments.variables import variable
from adp.rollouts.sandbox.run import SandboxLimits, run_command
from adp.rollouts.tools import ToolError, failed
from adp.rollouts.turns import ErrorType, Result
from adp_schema.errors import UsageError

PLACE = re.compile(r"\{(\w+)\}")
"""The place of an argument in a word or an address."""
_NUMBER = re.compile(r"-\d+(\.\d+)?", re.ASCII)
_STOPPED = {
    "time": (ErrorType.TIMEOUT, "the program took too long"),
    "memory": (ErrorType.LIMIT, "the program took too much memory"),
    "output": (ErrorType.LIMIT, "the program wrote too much"),
}


_NOTHING = {"type": "object", "properties": {}}


class ToolEntry(OptionsModel):
    """What all tools of a configuration have."""

    name: str = Field(min_length=1)
    """Name of the tool."""
    description: str = ""
    """What it does, for the agent."""
    parameters: dict[str, Any] = Field(default_factory=lambda: dict(_NOTHING))
    """JSON Schema of the arguments."""

    @property
    def known(self) -> set[str]:
        """Names of the arguments."""
        return set(self.parameters.get("properties") or {})


class CommandEntry(ToolEntry):
    """A tool that runs a program."""

    type: Literal["command"]
    command: tuple[str, ...] = Field(min_length=1)
    """The program and its arguments; {name} is an argument."""
    env: tuple[str, ...] = ()
    """Environment variables that it gets."""
    folder: Path | None = None
    """Where it runs; else an empty folder."""
    timeout: float = Field(default=30.0, gt=0)
    """Seconds that a call may take."""
    longest: int = Field(default=100_000, ge=1)
    """Bytes that it may write."""
    memory_mb: int = Field(default=1024, ge=64)
    """Memory that it may take."""

    def check(self) -> None:
        """Check the words.

        Raises:
            UsageError: the program is not there, a word names an argument that the tool does not
                have, or an environment variable is not set.
        """
        unknown = sorted(
            {item for word in self.command for item in PLACE.findall(word)} - self.known
        )
        if unknown:
            raise UsageError(f"the command of '{self.name}' names '{unknown[0]}', no parameter")
        program = self.command[0]
        if PLACE.search(program) or shutil.which(program, path=self._environment()["PATH"]) is None:
            raise UsageError(f"the tool '{self.name}' runs '{program}', which is no program")

    def run(self, **arguments: Any) -> Result:
        """Run the program.

        Raises:
            ToolError: the arguments cannot be words of a command.
            OSError: it cannot be started.
        """
        done = run_command(
            self.argv(arguments),
            SandboxLimits(
                seconds=self.timeout, memory_mb=self.memory_mb, output_bytes=self.longest
            ),
            environment=self._environment(),
            folder=None if self.folder is None else str(self.folder),
        )
        text = "\n".join(filter(None, (done.stdout.rstrip("\n"), done.stderr.rstrip("\n"))))
        if done.stopped is not None:
            kind, reason = _STOPPED[done.stopped]
            return _with_code(failed(kind, f"{reason}\n{text}".strip()), done.exit_code)
        if done.exit_code:
            reason = f"exit status {done.exit_code}\n{text}".strip()
            return _with_code(failed(ErrorType.EXECUTION, reason), done.exit_code)
        return Result(text=text, exit_code=0)

    def argv(self, arguments: Mapping[str, Any]) -> list[str]:
        """The words of a call. A word that is an argument alone, which is not given, is left out.

        Raises:
            ToolError: an argument holds a null character, or would be taken for an option.
        """
        words = []
        for word in self.command:
            alone = PLACE.fullmatch(word)
            if alone and arguments.get(alone[1]) is None:
                continue
            filled = PLACE.sub(lambda item: word_of(arguments.get(item[1])), word)
            if "\0" in filled:
                raise ToolError("an argument holds a null character", _WRONG)
            # A number may be negative; a text must not become an option.
            option = (
                filled.startswith("-") and not word.startswith("-") and "--" not in self.command
            )
            if option and not _NUMBER.fullmatch(filled):
                raise ToolError(f"'{filled[:40]}' would be taken for an option", _WRONG)
            words.append(filled)
        return words

    def _environment(self) -> dict[str, str]:
        plain = {"PATH": os.defpath, "LANG": "C.UTF-8"}
        return plain | {name: variable(name, "a command needs it") for name in self.env}


_WRONG = ErrorType.INVALID_ARGS


def _with_code(result: Result, exit_code: int) -> Result:
    return Result(text=result.text, error=result.error, exit_code=exit_code)


def word_of(value: Any) -> str:
    """An argument of a call as a part of a word of a command, or of an address."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
