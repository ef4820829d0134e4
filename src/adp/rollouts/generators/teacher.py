"""The generator ``teacher``: a model proposes questions with calls, and the calls are carried out.

A call that fails (there is no such tool, its arguments do not fit, its result is an error) is
told to the model, which may try again for the same question. When a call goes well at last, those
that failed are kept as branches beside it (kind ``alternate``): the op ``pairs`` makes of each the
rejected side of a preference pair with the same prompt.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from adp.rollouts.evolving.asking import Asking, GaveUpError
from adp.rollouts.generators.drafts import (
    Candidate,
    CandidateResult,
    Draft,
    NoValueError,
    PlannedCall,
    Runner,
    Stream,
)
from adp.rollouts.generators.make import UNREACHABLE
from adp.rollouts.generators.synthetic import tool_name
from adp.rollouts.generators.values import ArgumentValues
from adp.rollouts.judging.answers import UnreadableError, seed_of
from adp.rollouts.policy import Policy
from adp.rollouts.turns import Tool
from adp_schema.model import Step, Task, Trajectory

TEACHER = "teacher"
_BROKEN = "broken"


def teacher_streams(
    tools: Sequence[Tool],
    values: ArgumentValues,
    policy: Policy,
    seed: int,
    per_tool: int | None,
    tries: int,
) -> list[Stream]:
    """A stream for each tool.

    Args:
        tools: the tools, in the OpenAI shape.
        values: draws the values that are shown to the model.
        policy: the model.
        seed: fixes what is shown, and the seeds of the questions.
        per_tool: samples of each tool, at most; None: as many as are asked for.
        tries: calls that it may propose for a question.
    """
    return [_stream(tool, tools, values, policy, seed, per_tool, tries) for tool in tools]


def _stream(
    tool: Tool,
    tools: Sequence[Tool],
    values: ArgumentValues,
    policy: Policy,
    seed: int,
    most: int | None,
    tries: int,
) -> Stream:
    name = tool_name(tool)

    def candidates() -> Iterator[Candidate]:
        number = 0
        while True:
            number_seed = seed_of("teacher", seed, name, number)
            try:
                shown: Mapping[str, Any] = values.draw(tool, Random(number_seed))
            except NoValueError:
                shown = {}
            yield _Proposal(tool, tools, shown, policy, number_seed, tries)
            number += 1

    return Stream(name, candidates, most)


class _Proposal:
    """A question with its calls, until one of them goes well."""

    def __init__(
        self,
        tool: Tool,
        tools: Sequence[Tool],
        shown: Mapping[str, Any],
        policy: Policy,
        seed: int,
        tries: int,
    ) -> None:
        self._tool, self._tools, self._shown = tool, tools, shown
        self._policy, self._seed, self._tries = policy, seed, tries

    async def __call__(self, runner: Runner, name: str) -> CandidateResult:
        """Ask, carry out, and ask again."""
        task = Task(task_id=name, instruction="Propose a question and a call.")
        asking = Asking({TEACHER: self._policy}, self._tries, self._seed, task=task)
        failed: list[CandidateResult] = []
        try:
            question, call = await asking.ask(TEACHER, "propose_call", self._facts(), _question)
            while True:
                origin = {"teacher": self._policy.name, "tries": len(failed) + 1}
                result = await runner.run(Draft(question, (call,), origin), name)
                if result.reason is None or len(failed) + 1 >= self._tries:
                    break
                if result.reason.startswith(_BROKEN):
                    return result
                failed.append(result)
                facts = self._failed(question, call, result)
                call = await asking.ask(TEACHER, "mend_call", facts, _call)
        except GaveUpError as error:
            reason = UNREACHABLE if error.unreachable else "no usable answer"
            return CandidateResult(
                reason=reason, detail={"said": str(error), "answers": asking.bad}
            )
        if result.reason is not None or result.trajectory is None:
            before = [part.reason for part in failed]
            return replace(result, detail={**result.detail, "failed_before": before})
        _add_branches(result.trajectory, [part.trajectory for part in failed if part.trajectory])
        return result

    def _facts(self) -> str:
        shown = json.dumps(self._shown, ensure_ascii=False)
        return f"Tool:\n{_schema(self._tool)}\n\nValues:\n{shown}"

    def _failed(self, question: str, call: PlannedCall, result: CandidateResult) -> str:
        made = json.dumps({"name": call.tool, "arguments": call.arguments}, ensure_ascii=False)
        listed = "\n".join(_schema(tool) for tool in self._tools)
        message = result.detail.get("said") or result.reason
        return f"Tools:\n{listed}\n\nQuestion: {question}\n\nCall: {made}\n\nIt failed: {message}"


def _schema(tool: Tool) -> str:
    return json.dumps(tool["function"], ensure_ascii=False)


def _object(text: str) -> Mapping[str, Any]:
    """The JSON object in an answer, from its first brace to its last one.

    Raises:
        UnreadableError: there is none.
    """
    begin, end = text.find("{"), text.rfind("}")
    try:
        value = json.loads(text[begin : end + 1]) if 0 <= begin < end else None
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise UnreadableError("no JSON object")
    return value


def _call(text: str) -> PlannedCall:
    value = _object(text)
    name, arguments = value.get("name"), value.get("arguments", {})
    if not isinstance(name, str) or not name.strip():
        raise UnreadableError("no name of a tool")
    if isinstance(arguments, dict):
        return PlannedCall(name, arguments)
    return PlannedCall(name, arguments if isinstance(arguments, str) else json.dumps(arguments))


def _question(text: str) -> tuple[str, PlannedCall]:
    question = _object(text).get("question")
    if not isinstance(question, str) or not question.strip():
        raise UnreadableError("no question")
    return question.strip(), _call(text)


def _add_branches(run: Trajectory, failed: Sequence[Trajectory]) -> None:
    """Put calls that failed beside the one that went well, with rewards 0 and 1."""
    good = _call_step(run)
    good.reward = 1.0
    for number, other in enumerate(failed):
        step = _call_step(other)
        step.reward = 0.0
        branch = Trajectory(
            trajectory_id=f"{run.trajectory_id}/failed-{number}",
            source_id=f"{run.source_id}/failed-{number}",
            source_format=run.source_format,
            dataset=run.dataset,
            split=run.split,
            task_id=run.task_id,
            attempt=run.attempt,
            agent_name=run.agent_name,
            parent_id=run.trajectory_id,
            parent_step=good.step,
            branch_kind="alternate",
            steps=[step],
        )
        run.branches.append(branch)


def _call_step(run: Trajectory) -> Step:
    return next(step for step in run.steps if step.calls)
