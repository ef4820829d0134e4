"""A base class for environments whose tools are functions."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Self

from adp.rollouts.answer_match import judged
from adp.rollouts.environment import CannotForkError, Start, Verdict
from adp.rollouts.tools import FunctionTool, carry_out, carry_out_async
from adp.rollouts.turns import Call, ErrorType, Outcome, Result, Tool, Turn
from adp_schema.errors import UsageError
from adp_schema.model import Task, Trajectory


class ToolEnvironment:
    """Tools that are functions, and an answer that ends the episode.

    Calls of one turn are carried out in their order. A turn without calls is the answer. A turn
    that cannot be read brings an error and costs a turn. Subclasses give the tools, or `offered`
    where these change; they may change how an episode begins, what an answer does and how it is
    judged.

    Args:
        tools: the tools, in order.

    Attributes:
        functions: the tools by name.
        blocking: whether tools wait for a disk, a process or a network; then they run in a thread.
        task: task of the episode.
        seed: seed of the episode.
        answer: the answer that was given.
    """

    blocking = False

    def __init__(self, tools: Sequence[FunctionTool] = ()) -> None:
        self.functions = by_name(tools)
        self.task: Task | None = None
        self.seed: int | None = None
        self.answer: str | None = None

    def offered(self) -> Sequence[FunctionTool]:
        """The tools on offer now."""
        return list(self.functions.values())

    def system(self) -> str | None:
        """Text of the system's message; None: there is none."""
        return None

    def tools(self) -> Sequence[Tool]:
        """The tools on offer now, in the OpenAI shape."""
        return [tool.schema for tool in self.offered()]

    def reset(self, task: Task | None = None, *, seed: int | None = None) -> Start:
        """Begin an episode with the instruction of the task.

        Raises:
            UsageError: there is no task, or it has no instruction.
        """
        if task is None or not task.instruction:
            raise UsageError("this environment needs a task with an instruction; give --tasks")
        self.task, self.seed, self.answer = task, seed, None
        system = self.system()
        messages = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": task.instruction})
        return Start(tuple(messages))

    def step(self, turn: Turn) -> Outcome:
        """Carry out a turn: its calls in order, or the answer."""
        if turn.malformed is not None:
            return Outcome(results=(unreadable(turn),))
        if not turn.calls:
            return self.finish(turn)
        tools = {tool.name: tool for tool in self.offered()}
        return self._outcome(
            [over(call) if self.is_over() else carry_out(call, tools) for call in turn.calls]
        )

    def is_over(self) -> bool:
        """Whether a call has ended the episode."""
        return False

    def _outcome(self, results: Sequence[Result]) -> Outcome:
        done = self.is_over()
        return Outcome(tuple(results), terminated=done, stop_reason="done" if done else None)

    def finish(self, turn: Turn) -> Outcome:
        """What an answer does: it ends the episode."""
        self.answer = turn.text
        return Outcome(terminated=True, stop_reason="answer", answer=turn.text)

    def score(self, trajectory: Trajectory) -> Verdict:
        """Judge the answer by the task's ``answers``; without them nothing is scored."""
        return judged(self.task, trajectory.final_answer)

    def fork(self) -> Self:
        """A deep copy.

        Raises:
            CannotForkError: it holds what cannot be copied.
        """
        try:
            return copy.deepcopy(self)
        except (TypeError, ValueError) as error:
            raise CannotForkError(f"{type(self).__name__} cannot be copied: {error}") from error

    def close(self) -> None:
        """Nothing to free."""


class AsyncToolEnvironment:
    """The same for tools of which some are coroutine functions; subclasses begin and end episodes.

    Args:
        inner: the environment whose tools are awaited, one after the other.
    """

    def __init__(self, inner: ToolEnvironment) -> None:
        self._inner = inner

    def tools(self) -> Sequence[Tool]:
        """The tools on offer now, in the OpenAI shape."""
        return self._inner.tools()

    async def step(self, turn: Turn) -> Outcome:
        """Carry out a turn: its calls one after the other, or the answer."""
        inner = self._inner
        if turn.malformed is not None or not turn.calls:
            return inner.step(turn)
        results = []
        for call in turn.calls:
            ended = inner.is_over()
            results.append(over(call) if ended else await carry_out_async(call, inner.functions))
        return inner._outcome(results)

    async def score(self, trajectory: Trajectory) -> Verdict:
        """Judge the finished episode."""
        return self._inner.score(trajectory)


def over(call: Call) -> Result:
    """What is told about a call after the end of the episode."""
    text = "Error: the episode is over"
    return Result(text, call_id=call.call_id, name=call.name, error=ErrorType.LIMIT)


def unreadable(turn: Turn) -> Result:
    """What the agent is told about a turn that could not be read."""
    return Result(text=f"Error: {turn.malformed}", error=ErrorType.PARSING)


def by_name(tools: Sequence[FunctionTool]) -> Mapping[str, FunctionTool]:
    """Tools by name.

    Raises:
        UsageError: two have one name.
    """
    results: dict[str, FunctionTool] = {}
    for tool in tools:
        if tool.name in results:
            raise UsageError(f"two tools are named '{tool.name}'; rename one of them")
        results[tool.name] = tool
    return results
