"""Recorded answers of an API: a folder that one run writes and another one reads without a network.

What is kept is what the agent was told, so a replay tells it the same, byte for byte. The key of a
call is the operation, its arguments, how often the episode has made this call before, and the calls
before it in the episode that may have changed something. The first answer of a key stays: who makes
the same call later, in this run or another one, is told the same.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from adp.core.json_values import json_object, json_or_none
from adp.rollouts.environments.openapi.operations import ApiOperation
from adp.rollouts.searching.cache import TextCache
from adp.rollouts.tools import ToolError, failed
from adp.rollouts.turns import ErrorType, Result
from adp_schema.errors import InputError
from adp_schema.ids import digest

FILE = "answers.sqlite"


class ApiHistory:
    """What an episode has asked so far."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._writes = ""

    def key(self, operation: ApiOperation, arguments: Mapping[str, Any]) -> str:
        """The key of a call, which from now on has been made."""
        call = json.dumps([operation.method, operation.path, arguments], sort_keys=True)
        key = f"{call} {self._counts[call]} {self._writes}".rstrip()
        self._counts[call] += 1
        if operation.method != "GET":
            self._writes = digest(f"{self._writes} {call}".encode())
        return key

    def copy(self) -> ApiHistory:
        """An independent copy."""
        other = ApiHistory()
        other._counts, other._writes = Counter(self._counts), self._writes
        return other


class Recordings:
    """Recorded answers.

    Args:
        folder: where they are.
        is_replay: whether they are only read; else what is new is added.

    Raises:
        InputError: they cannot be read or written.
    """

    def __init__(self, folder: Path, *, is_replay: bool) -> None:
        file = folder / FILE
        if is_replay and not file.is_file():
            raise InputError(f"{folder} holds no recorded answers; record=DIR of a run writes them")
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder} cannot be written: {error.strerror}") from error
        self._cache = TextCache(file)
        self._is_replay = is_replay

    def result(self, key: str, live: Callable[[], Result]) -> Result:
        """The recorded result of a call, or that of asking now.

        Args:
            key: the key of the call.
            live: asks now.

        Raises:
            ToolError: nothing is recorded, and this is a replay.
        """
        text = self._cache.get(key)
        if text is None:
            if self._is_replay:
                raise ToolError("no answer is recorded for this call")
            text = self._cache.put(key, _written(live()))
        return _read(text)


def _written(result: Result) -> str:
    return json.dumps({"text": result.text, "error": result.error}, sort_keys=True)


def _read(text: str) -> Result:
    value = json_object(text)
    if not isinstance(value.get("text"), str):
        raise ToolError("the recorded answer of this call is damaged")
    words = value["text"]
    error = value.get("error")
    if error is not None:
        return Result(words, error=ErrorType(error))
    return Result(words, structured=json_or_none(words))


def as_result(live: Callable[[], Result]) -> Result:
    """The result of asking, with what the agent is to blame for as a result, too."""
    try:
        return live()
    except ToolError as error:
        return failed(error.kind, str(error))
