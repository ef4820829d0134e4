"""Asking a policy for a judgement: votes, strict reading, what the judge said kept.

A judge is any policy that answers a prompt (``openai:model=...``). Its failures are failures of the
surroundings, so what it leaves open is unscored as infrastructure.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from pydantic import Field

from adp.eval.scorer import Item
from adp.eval.scorers.base import PerTrajectory
from adp.rendering.arguments import whole_text
from adp.rollouts.background import run_in_background
from adp.rollouts.environment import Settings
from adp.rollouts.policy import POLICIES, Policy, Request
from adp.rollouts.spec import load, read_spec
from adp.rollouts.task_references import reference_answers
from adp.rollouts.trajectory_reading import agent_steps, cut
from adp_schema.ids import digest

RAW = 2_000
"""Characters of a judgement that are kept."""

_TEXT, _RESULT, _WHOLE = 4_000, 2_000, 40_000


class JudgeSettings(Settings):
    """Settings of scorers that may ask a judge."""

    policy: str | None = None
    """The judge: a policy, such as openai:model=...; none: no judge is asked."""
    votes: int = Field(default=1, ge=1, le=100)
    """How often the judge is asked."""
    temperature: float = Field(default=0.0, ge=0)
    """Temperature of the judge, where the policy has such a setting."""


@dataclass(frozen=True)
class Vote:
    """One judgement.

    Attributes:
        text: what the judge said; None when it did not answer.
        failure: why it did not answer.
        model: model that answered.
    """

    text: str | None
    failure: str | None = None
    model: str | None = None

    def kept(self) -> dict[str, Any]:
        """The judgement as evidence keeps it."""
        if self.text is None:
            return {"failure": self.failure}
        return {"text": cut(self.text, RAW), "model": self.model}


class Judge:
    """Asks a policy.

    Args:
        policy: the policy.
        votes: how often it is asked about each thing.
    """

    def __init__(self, policy: Policy, votes: int = 1) -> None:
        self.policy = policy
        self.votes = votes

        self._free: asyncio.Semaphore | None = None

    def limit(self, requests: int) -> None:
        """Let no more than so many requests run at once."""
        self._free = asyncio.Semaphore(requests)

    def close(self) -> None:
        """Close the connections; a later question opens them again."""
        run_in_background(self.policy.close())

    def ask(self, prompt: str, key: str) -> list[Vote]:
        """Ask for judgements, all at once; whatever goes wrong is a vote without a text.

        Args:
            prompt: the question.
            key: what is judged; the seed of each vote depends on it and on nothing else.
        """
        return run_in_background(self._ask(whole_text(prompt), key))

    async def _ask(self, prompt: str, key: str) -> list[Vote]:
        numbers = range(self.votes)
        return list(await asyncio.gather(*(self._vote(prompt, key, number) for number in numbers)))

    async def _vote(self, prompt: str, key: str, number: int) -> Vote:
        seed = int(digest(f"{key}\n{number}".encode("utf-8", "replace"))[:8], 16) >> 1
        messages = [{"role": "user", "content": prompt}]
        try:
            async with self._free or nullcontext():
                turn = await self.policy.act(Request(messages, (), attempt=number, seed=seed))
        except Exception as error:
            return Vote(None, cut(f"{type(error).__name__}: {error}"))
        if turn.malformed is not None:
            return Vote(None, cut(f"the answer cannot be read: {turn.malformed}"))
        return Vote(turn.text, None, turn.model or self.policy.name)


class Judging(PerTrajectory):
    """Base of scorers that may ask a judge; they score in several threads at once."""

    _judge: Judge | None = None

    @property
    def asks(self) -> bool:
        """Whether it asks a judge, so that scoring one trajectory after the other is slow."""
        return self._judge is not None

    def limit(self, requests: int) -> None:
        """Let no more than so many requests run at once."""
        if self._judge is not None:
            self._judge.limit(requests)

    def close(self) -> None:
        """Close the connections of the judge."""
        if self._judge is not None:
            self._judge.close()


def judge_of(settings: JudgeSettings) -> Judge | None:
    """The judge of some settings; None without one.

    Raises:
        UsageError: there is no such policy, or a setting of it is wrong.
    """
    if settings.policy is None:
        return None
    name, given = read_spec(settings.policy)
    fields = POLICIES.get(name).settings.model_fields
    more: dict[str, Any] = {}
    if "temperature" in fields and "temperature" not in given:
        more["temperature"] = settings.temperature
    kind, chosen = load(POLICIES, settings.policy, **more)
    return Judge(kind.make(chosen), settings.votes)


def last_line(text: str, pattern: re.Pattern[str]) -> str | None:
    """What a pattern finds in the last line that is not empty; the whole line must fit."""
    lines = [line.strip().strip("*").strip() for line in text.splitlines() if line.strip()]
    match = pattern.fullmatch(lines[-1]) if lines else None
    return None if match is None else match.group(1)


def transcript(item: Item) -> str:
    """A run as text for a judge: task, reference answers, calls, results, answer."""
    task, run = item.task, item.trajectory
    lines = [f"[task] {cut((task.instruction if task else None) or _first_request(item), _TEXT)}"]
    known = reference_answers(task)
    if known:
        lines.append(f"[reference answers] {cut(' | '.join(known), _TEXT)}")
    for number, step in enumerate(agent_steps(run), 1):
        if step.row.text:
            lines.append(f"[turn {number}] {cut(step.row.text, _TEXT)}")
        for call in step.calls:
            lines.append(f"[turn {number}, call] {cut(call.name, 200)} {cut(call.text, _RESULT)}")
            lines += [f"[result] {cut(result.text or '', _RESULT)}" for result in call.results]
    if run.final_answer:
        lines.append(f"[final answer] {cut(run.final_answer, _TEXT)}")
    return _middle("\n".join(lines))


def _first_request(item: Item) -> str:
    steps = item.trajectory.steps
    return next(
        (step.text for step in steps if step.source == "user" and step.text), "not recorded"
    )


def _middle(text: str) -> str:
    """A text without its middle where it is too long."""
    if len(text) <= _WHOLE:
        return text
    half = _WHOLE // 2
    return f"{text[:half]}\n[{len(text) - _WHOLE} characters are left out]\n{text[-half:]}"


def model_of(votes: Sequence[Vote]) -> str | None:
    """The model that judged, as the first vote that has one says."""
    return next((vote.model for vote in votes if vote.model), None)
