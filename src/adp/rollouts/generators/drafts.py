"""What a generator proposes: an instruction, and the calls that answer it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from adp.rollouts.turns import Result
from adp_schema.ids import digest
from adp_schema.model import Trajectory


class NoValueError(ValueError):
    """A value cannot be had; the message says why, in a few words."""


@dataclass(frozen=True, slots=True)
class FromResult:
    """An argument that is looked up in the result of an earlier call.

    Attributes:
        call: number of that call, from 0.
        path: keys and indexes into the result; empty: the result itself.
        form: text with ``{value}``, such as ``{value} * 2``; None: the value as it is.
    """

    call: int
    path: tuple[str | int, ...] = ()
    form: str | None = None

    def value(self, results: Sequence[Result]) -> Any:
        """The value.

        Raises:
            NoValueError: the result does not hold it.
        """
        value = looked_up(value_of(results[self.call]), self.path)
        return value if self.form is None else self.form.replace("{value}", spoken(value))


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call to make.

    Attributes:
        tool: name of the tool.
        arguments: arguments by name; a `FromResult` among them is looked up when it is made. A
            text stands for arguments as they are, JSON or not.
    """

    tool: str
    arguments: Mapping[str, Any] | str


@dataclass(frozen=True)
class Draft:
    """A sample before it is carried out.

    Attributes:
        instruction: what the user asks; of several turns, the goal.
        calls: the calls, each in a turn of its own.
        origin: where it comes from, such as the number of its template; JSON.
        answer: text of the answer, with ``{result}`` and names of members of the last result.
        queries: what the user asks for turn by turn, one for each call; none: the instruction.
    """

    instruction: str
    calls: tuple[PlannedCall, ...]
    origin: Mapping[str, Any] = field(default_factory=dict)
    answer: str | None = None
    queries: tuple[str, ...] = ()


@dataclass(frozen=True)
class CandidateResult:
    """What came of a candidate.

    Attributes:
        trajectory: the run, if all its calls went well.
        reason: why it is not kept, in a few words; None when it is.
        detail: what was said; the calls that failed.
    """

    trajectory: Trajectory | None = None
    reason: str | None = None
    detail: Mapping[str, Any] = field(default_factory=dict)


class Runner(Protocol):
    """Carries drafts out."""

    async def run(self, draft: Draft, name: str) -> CandidateResult:
        """Carry a draft out in a fresh environment.

        Args:
            draft: the draft.
            name: id of the candidate.
        """
        ...


Candidate = Draft | Callable[[Runner, str], Awaitable[CandidateResult]]
"""A draft, or a function that makes one with a runner, given the id of the candidate."""


@dataclass(frozen=True)
class Stream:
    """Candidates of one sort: for one tool, or along one path of tools.

    Attributes:
        name: its name; ids are made of it.
        candidates: makes its candidates in order, the same every time.
        most: samples that are kept of it, at most.
    """

    name: str
    candidates: Callable[[], Iterator[Candidate]]
    most: int | None = None


def value_of(result: Result) -> Any:
    """The value of a result: what is behind its text, or the text as JSON, or the text."""
    if result.structured is not None:
        return result.structured
    try:
        return json.loads(result.text)
    except (ValueError, RecursionError):
        return result.text


def looked_up(value: Any, path: Sequence[str | int]) -> Any:
    """A member of a value.

    Raises:
        NoValueError: it has no such member, or that is null.
    """
    for part in path:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            raise NoValueError(f"the result has no '{part}'") from None
    if value is None:
        raise NoValueError("the result is null")
    return value


def spoken(value: Any) -> str:
    """A value as a sentence names it."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(not isinstance(item, list | dict) for item in value):
        return ", ".join(spoken(item) for item in value) or "nothing"
    return json.dumps(value, ensure_ascii=False)


def key_of(instruction: str, calls: Sequence[tuple[str, Any]]) -> str:
    """Equal for samples that are the same: instruction but for case and spaces, and calls.

    Args:
        instruction: the instruction.
        calls: name and arguments of each call.
    """
    text = " ".join(instruction.casefold().split()).rstrip(".!? ")
    parts = [text, *([name, arguments] for name, arguments in calls)]
    return digest(json.dumps(parts, sort_keys=True).encode("utf-8", "surrogatepass"))
