"""What an episode leaves behind: a trajectory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from adp.rollouts.collecting.actor import Acted, Alternate, Reflection
from adp.rollouts.collecting.rows import (
    calls_of,
    content_text,
    json_text,
    listed,
    observations_of,
    source_of,
    total,
    unchecked,
)
from adp.rollouts.collecting.storable_values import make_storable, mend_step
from adp.rollouts.environment import Start
from adp.rollouts.turns import USAGE_COLUMNS, Message, Outcome, Result, Tool, Turn
from adp_schema.ids import numbered
from adp_schema.model import Step, Task, Trajectory

ENVIRONMENT = "environment"
INFRASTRUCTURE = "infrastructure"
POLICY = "policy"
"""Values of ``error_type`` of a trajectory: what broke. Each one is no fault of the agent's."""


ROLLOUT = "adp_rollout"
"""The ``source_format`` of trajectories that come out of rollouts."""


@dataclass(frozen=True)
class About:
    """What is known of an episode before it begins.

    Attributes:
        dataset: data set that the trajectory is put in.
        attempt: number of the attempt at the task, from 0.
        task: the task.
        policy: name of the policy.
        environment: name of the environment.
        seed: seed of the episode.
        timed: whether to keep times and durations, which differ from run to run.
        tries: number of this try at the attempt, from 1; the ones before it broke.
    """

    dataset: str
    attempt: int = 0
    task: Task | None = None
    policy: str | None = None
    environment: str | None = None
    seed: int = 0
    timed: bool = True
    tries: int = 1

    @property
    def task_id(self) -> str:
        """Id of the task; the seed names one that the environment chose."""
        known = self.task.task_id if self.task is not None else None
        return known or f"seed-{self.seed}"

    @property
    def source_id(self) -> str:
        """Id of the episode in its data set."""
        return f"{self.task_id}/attempt-{self.attempt}"

    @property
    def trajectory_id(self) -> str:
        """Id of the trajectory: the same for the same task, attempt and try."""
        return numbered(f"{self.dataset}/{self.source_id}", self.tries)

    def columns(self) -> dict[str, Any]:
        """What the trajectory of the episode has in common with its branches."""
        return {
            "source_format": ROLLOUT,
            "dataset": self.dataset,
            "split": self.task.split if self.task else None,
            "task_id": self.task_id,
            "attempt": self.attempt,
            "agent_name": self.policy,
        }


@dataclass
class Recorder:
    """Writes down an episode.

    Attributes:
        about: what is known of it.
        messages: the conversation as the policy sees it.
    """

    about: About
    messages: list[Message] = field(default_factory=list)
    _steps: list[Step] = field(default_factory=list)
    _tools: dict[str, Tool] = field(default_factory=dict)
    _offered: tuple[str, ...] = ()
    _ids: set[str] = field(default_factory=set)
    _branches: list[Trajectory] = field(default_factory=list)
    _user_turns: int = -1
    _answer: str | None = None
    _info: dict[str, Any] = field(default_factory=dict)
    _policies: Mapping[str, str] = field(default_factory=dict)
    _began: datetime | None = None
    _parent: str | None = None
    _kept: int = 0
    """Steps that a branch has in common with its parent."""

    def begin(self, start: Start) -> None:
        """Write down the first messages."""
        self._began = self._now()
        self._info.update(start.info)
        self._policies = start.policies
        for message in start.messages:
            self.messages.append(message)
            self._message(message, copied=False)

    def offer(self, tools: Sequence[Tool]) -> None:
        """Note the tools that are on offer for the next turn."""
        names = tuple(str(tool["function"]["name"]) for tool in tools)
        for name, tool in zip(names, tools, strict=True):
            self._tools.setdefault(name, tool)
        self._offered = names

    def numbered(self, turn: Turn) -> Turn:
        """The turn with ids of calls that are unique in the episode."""
        calls = []
        for index, call in enumerate(turn.calls):
            name = call.call_id
            if not name or name in self._ids:
                name = f"call_{len(self._steps)}_{index}"
            while name in self._ids:
                name += "_"
            self._ids.add(name)
            calls.append(replace(call, call_id=name))
        return replace(turn, calls=tuple(calls))

    def turn(self, given: Turn, acted: Acted, outcome: Outcome) -> None:
        """Write down a turn and what it brought.

        Args:
            given: the turn with the ids that the policy gave its calls.
            acted: the turn with ids that are unique.
            outcome: what the environment answered.
        """
        step = self._agent_step(acted, len(self._steps), given, outcome)
        self._steps.append(step)
        self.messages.append(_assistant(acted.turn))
        self.messages += [_result(result) for result in outcome.results]
        if outcome.answer is not None:
            self._answer = outcome.answer
        self._info.update(outcome.info)
        if outcome.context is not None:
            self._rewrite(outcome.context)
        for text in outcome.messages:
            self.hear(text)

    def hear(self, text: str) -> None:
        """Write down what the user says next."""
        message = {"role": "user", "content": text}
        self.messages.append(message)
        self._message(message, copied=False)

    def reflect(self, before: int, reflection: Reflection) -> None:
        """Write down what the actor adds to the turn that was just carried out.

        Args:
            before: number of steps before that turn.
            reflection: labels, and turns that were not taken.
        """
        if reflection.labels:
            step = self._steps[before]
            step.labels = [*(step.labels or ()), *reflection.labels]
        for order, alternate in enumerate(reflection.alternates):
            self._branches.append(self._branch(before, order, alternate))

    def fork(self, about: About) -> Recorder:
        """Write down an episode that goes on from here by itself; a branch of this one.

        Args:
            about: what is known of it.
        """
        branch = Recorder(about, list(self.messages))
        branch._steps = [step.model_copy(deep=True) for step in self._steps]
        branch._tools, branch._offered = dict(self._tools), self._offered
        branch._ids, branch._info = set(self._ids), dict(self._info)
        branch._user_turns, branch._answer = self._user_turns, self._answer
        branch._policies, branch._began = self._policies, branch._now()
        branch._parent, branch._kept = self.about.trajectory_id, len(self._steps)
        return branch

    def note(self, info: Mapping[str, Any]) -> None:
        """Keep further keys in the column ``extra``."""
        self._info.update(info)

    @property
    def steps(self) -> int:
        """Number of steps so far."""
        return len(self._steps)

    def end(self, **columns: Any) -> Trajectory:
        """The trajectory; that of a branch has all steps, but costs what the steps after it cost.

        Args:
            **columns: columns of the trajectory: how it ended.
        """
        about = self.about
        tools = [dict(tool) for tool in self._tools.values()]
        extra = {"environment": about.environment, "seed": about.seed, **self._info}
        branch, paid = self._parent is not None, self._steps[self._kept :]
        for step in self._steps:
            mend_step(step)
        trajectory = unchecked(
            Trajectory,
            trajectory_id=about.trajectory_id,
            source_id=about.source_id,
            **about.columns(),
            agent_model=next((step.model for step in self._steps if step.model), None),
            tools=json_text(tools) if tools else None,
            tools_origin="recorded" if tools else None,
            policy_tool_availability=self._policies.get("policy_tool_availability"),
            policy_tool_usage=self._policies.get("policy_tool_usage"),
            policy_final_answer=self._policies.get("policy_final_answer"),
            final_answer=self._answer,
            started_at=self._began,
            ended_at=self._now(),
            time_zone_known=True if about.timed else None,
            total_tokens_in=total(step.tokens_in for step in paid),
            total_tokens_out=total(step.tokens_out for step in paid),
            total_tokens_cached=total(step.tokens_cached for step in paid),
            total_cost_usd=total(step.cost_usd for step in paid),
            extra=json_text(extra),
            parent_id=self._parent,
            parent_step=self._kept if branch else None,
            branch_kind="attempt" if branch else None,
            steps=self._steps,
            branches=self._branches,
            task=None if branch else about.task,
            **columns,
        )
        return make_storable(trajectory)

    def _now(self) -> datetime | None:
        return datetime.now(UTC) if self.about.timed else None

    def _message(self, message: Message, *, copied: bool) -> None:
        role = str(message.get("role", "user"))
        if role == "user" and not copied:
            self._user_turns += 1
        self._steps.append(
            Step(
                step=len(self._steps),
                turn=max(self._user_turns, 0),
                source=source_of(role),
                kind="llm_turn" if role == "assistant" else "message",
                text=content_text(message.get("content")),
                is_copied_context=True if copied else None,
                synthetic=True if copied and role == "assistant" else None,
                timestamp=self._now(),
            )
        )

    def _rewrite(self, context: Sequence[Message]) -> None:
        """The environment put other messages in the place of the conversation."""
        system = [message for message in self.messages if message.get("role") == "system"]
        self.messages[:] = [*system, *context]
        self._steps.append(
            Step(
                step=len(self._steps),
                turn=max(self._user_turns, 0),
                source="environment",
                kind="context_edit",
                edit_boundary="replace",
            )
        )
        for message in context:
            self._message(message, copied=True)

    def _agent_step(self, acted: Acted, number: int, given: Turn, outcome: Outcome) -> Step:
        turn, usage = acted.turn, acted.turn.usage
        extra = dict(turn.extra)
        if turn.malformed is not None:
            extra["malformed"] = turn.malformed
        if self._offered != tuple(self._tools):
            extra["tools_offered"] = list(self._offered)
        step = unchecked(
            Step,  # what does not fit is dropped when the episode ends
            step=number,
            turn=max(self._user_turns, 0),
            source="agent",
            kind="llm_turn",
            actor=acted.actor,
            text=turn.text if turn.text or not turn.calls else None,
            reasoning=turn.reasoning,
            model=turn.model,
            response_id=turn.response_id,
            stop_reason=turn.stop_reason,
            timestamp=self._now(),
            **{name: getattr(usage, name) for name in USAGE_COLUMNS},
            usage=None if usage.raw is None else json_text(usage.raw),
            prompt_token_ids=listed(turn.prompt_token_ids),
            completion_token_ids=listed(turn.completion_token_ids),
            logprobs=listed(turn.logprobs),
            extra=json_text(extra) if extra else None,
            calls=calls_of(number, turn, given),
            reward=outcome.reward,
            labels=list(outcome.labels) or None,
        )
        step.observations = observations_of(outcome, step, timed=self.about.timed)
        return step

    def _branch(self, before: int, order: int, alternate: Alternate) -> Trajectory:
        about = self.about
        suffix = f"alternate-{before}" + (f"-{order}" if order else "")
        acted = Acted(alternate.turn, alternate.actor)
        step = self._agent_step(acted, before, alternate.turn, alternate.outcome)
        step.turn = self._steps[before].turn
        return Trajectory(
            trajectory_id=f"{about.trajectory_id}/{suffix}",
            source_id=f"{about.source_id}/{suffix}",
            **about.columns(),
            parent_id=about.trajectory_id,
            parent_step=before,
            branch_kind="alternate",
            steps=[step],
        )


def _assistant(turn: Turn) -> Message:
    message: dict[str, Any] = {"role": "assistant", "content": turn.text}
    if turn.reasoning is not None:
        message["reasoning_content"] = turn.reasoning
    if turn.calls:
        message["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in turn.calls
        ]
    return message


def _result(result: Result) -> Message:
    if not result.call_id:
        return {"role": "user", "content": result.text}
    return {
        "role": "tool",
        "tool_call_id": result.call_id,
        "name": result.name or "",
        "content": result.text,
    }
