"""A policy that says what was said in a recorded run, turn by turn.

    replay:store=runs/first

Each (task, attempt) gets the turns of the trajectory that was recorded for it, exactly: text,
reasoning, calls, usage and tokens. What the environment answers is its own; so a recorded run can
be carried out again, in a mended environment or under another scorer.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import Field

from adp.eval.environment import Settings
from adp.eval.policy import AgentLimitError, InfrastructureError, PolicyKind, Request
from adp.eval.turns import Call, Turn, Usage
from adp_schema.errors import EmptyResultError
from adp_schema.model import Step, ToolCall, Trajectory
from adp_schema.store import Store

_KEPT = 256
"""Trajectories that are held; an episode asks for its own again and again."""

_OWN = ("malformed", "tools_offered")
"""What the recorder itself puts into ``extra``."""


class ReplaySettings(Settings):
    """Settings of the policy ``replay``."""

    store: str = Field(description="The store with the recorded runs.")
    dataset: str | None = Field(None, description="Only the trajectories of this data set.")


class ReplayPolicy:
    """Says what was recorded.

    Args:
        settings: its settings.

    Raises:
        StoreError: there is no store.
        EmptyResultError: it holds no trajectory to replay.
    """

    def __init__(self, settings: ReplaySettings) -> None:
        self._store = Store.open(settings.store)
        self.name = f"replay:{self._store.name}"
        self._ids = _index(self._store, settings.dataset)
        self._turns: OrderedDict[str, Sequence[Turn]] = OrderedDict()
        if not self._ids:
            where = f" of the data set {settings.dataset}" if settings.dataset else ""
            raise EmptyResultError(f"{settings.store} holds no trajectory{where} to replay")

    async def act(self, request: Request) -> Turn:
        """The recorded turn.

        Raises:
            InfrastructureError: nothing was recorded for this task and attempt.
            AgentLimitError: the recorded run has no further turn.
        """
        task_id = (request.task.task_id if request.task else None) or ""
        name = self._ids.get((task_id, request.attempt))
        if name is None:
            raise InfrastructureError(
                "not_recorded",
                f"the store holds no run of the task '{task_id}', attempt {request.attempt}",
            )
        turns = self._recorded(name)
        if request.turn >= len(turns):
            raise AgentLimitError(
                "recording_ended", f"the recorded run {name} has {len(turns)} turns"
            )
        return turns[request.turn]

    async def close(self) -> None:
        """Forget what was read."""
        self._turns.clear()

    def _recorded(self, name: str) -> Sequence[Turn]:
        if name not in self._turns:
            self._turns[name] = recorded_turns(self._store.get(name))
            if len(self._turns) > _KEPT:
                self._turns.popitem(last=False)
        self._turns.move_to_end(name)
        return self._turns[name]


def recorded_turns(trajectory: Trajectory) -> list[Turn]:
    """The turns of the agent in a trajectory, without those that are copied context."""
    return [
        _turn(step)
        for step in trajectory.steps
        if step.source == "agent"
        and step.kind not in ("context_edit", "event")
        and not step.is_copied_context
    ]


def _index(store: Store, dataset: str | None) -> Mapping[tuple[str, int], str]:
    """Main lines by task and attempt, the first one of each."""
    import polars as pl

    wanted = pl.col("parent_id").is_null() & pl.col("task_id").is_not_null()
    if dataset is not None:
        wanted &= pl.col("dataset") == dataset
    names = ("task_id", "attempt", "trajectory_id")
    rows = store.scan("trajectories").filter(wanted).sort("seq").select(names).collect()
    found: dict[tuple[str, int], str] = {}
    for task_id, attempt, trajectory_id in rows.iter_rows():
        found.setdefault((task_id, attempt or 0), trajectory_id)
    return found


def _turn(step: Step) -> Turn:
    extra = _object(step.extra)
    malformed = extra.get("malformed")
    return Turn(
        text=(step.prose if step.prose is not None else step.text) or "",
        calls=tuple(_call(call) for call in step.calls),
        reasoning=step.reasoning,
        malformed=malformed if isinstance(malformed, str) else None,
        model=step.model,
        response_id=step.response_id,
        stop_reason=step.stop_reason,
        usage=Usage(
            tokens_in=step.tokens_in,
            tokens_out=step.tokens_out,
            tokens_cached=step.tokens_cached,
            tokens_reasoning=step.tokens_reasoning,
            cost_usd=step.cost_usd,
            raw=_object(step.usage) if step.usage is not None else None,
        ),
        prompt_token_ids=_several(step.prompt_token_ids),
        completion_token_ids=_several(step.completion_token_ids),
        logprobs=_several(step.logprobs),
        extra={key: value for key, value in extra.items() if key not in _OWN},
    )


def _call(call: ToolCall) -> Call:
    given = call.arguments if call.arguments is not None else call.arguments_raw
    return Call(
        name=call.name or "",
        arguments="{}" if given is None else given,
        call_id=call.native_id or call.call_id or "",
    )


def _several(values: Sequence[Any] | None) -> tuple[Any, ...] | None:
    return None if values is None else tuple(values)


def _object(text: str | None) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


KIND = PolicyKind(
    name="replay",
    about="What was said in a recorded run, turn by turn.",
    settings=ReplaySettings,
    make=ReplayPolicy,
)
