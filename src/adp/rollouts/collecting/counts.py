"""Counting episodes, and the report of a run."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from adp.rollouts.turns import is_success
from adp_schema.errors import RolloutError
from adp_schema.model import Trajectory


class Episode(NamedTuple):
    """What is counted of an episode; the columns of a trajectory of these names."""

    trajectory_id: str
    error_type: str | None
    error_message: str | None
    success: bool | None
    reward: float | None
    terminated: bool | None
    truncated: bool | None
    stop_reason: str | None
    total_tokens_in: int | None
    total_tokens_out: int | None
    total_cost_usd: float | None

    @classmethod
    def of(cls, trajectory: Trajectory) -> Episode:
        """What is counted of a trajectory."""
        return cls(*(getattr(trajectory, name) for name in cls._fields))


COLUMNS = Episode._fields
"""Columns of a trajectory that are counted."""


_LONGEST_MESSAGE = 400
_MESSAGES = 100


@dataclass
class EpisodeCounts:
    """Counts of episodes.

    Attributes:
        episodes: all of them.
        broken: those that something else than the agent ended.
        succeeded: those that solved the task.
        scored: those of which it is known whether they did.
        by_reward: those of these of which only a reward is known; 1 is success.
        terminated: those that came to an end of their own.
        truncated: those that a budget cut.
        tokens_in: tokens of prompts, where they are known.
        tokens_out: tokens that were written, where they are known.
        cost_usd: cost in US dollars, where it is known.
        reasons: why the whole ones ended -> how many.
        errors: what broke the others -> how many.
        messages: what broke them -> what was said, shortened -> how many.
        priced: those of which the cost is known.
    """

    episodes: int = 0
    broken: int = 0
    succeeded: int = 0
    scored: int = 0
    by_reward: int = 0
    terminated: int = 0
    truncated: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0
    reasons: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    messages: dict[str, Counter[str]] = field(default_factory=dict)
    priced: int = 0

    def add(self, episode: Episode) -> None:
        """Count an episode."""
        self.episodes += 1
        self.pay(episode)
        if episode.error_type is not None:
            self.broken += 1
            self._broke(reason_of(episode), episode.error_message)
            return
        success = episode.success
        if success is None and episode.reward is not None and not math.isnan(episode.reward):
            success = is_success(episode.reward)
            self.by_reward += 1
        self.scored += success is not None
        self.succeeded += success is True
        self.terminated += episode.terminated is True
        self.truncated += episode.truncated is True
        self.reasons[episode.stop_reason or "unknown"] += 1

    def pay(self, episode: Episode) -> None:
        """Count what an episode cost, or a branch that is none."""
        self.tokens_in += episode.total_tokens_in or 0
        self.tokens_out += episode.total_tokens_out or 0
        self.priced += episode.total_cost_usd is not None
        cost = episode.total_cost_usd or 0.0
        self.cost_usd += cost if math.isfinite(cost) else 0.0

    def _broke(self, reason: str, message: str | None) -> None:
        self.errors[reason] += 1
        text = " ".join((message or "").split())
        counts = self.messages.setdefault(reason, Counter())
        if text and (text[:_LONGEST_MESSAGE] in counts or len(counts) < _MESSAGES):
            counts[text[:_LONGEST_MESSAGE]] += 1

    def commonest(self) -> dict[str, str]:
        """What broke episodes -> what was said most often; of several the first by letters."""
        commonest = {}
        for reason, _ in self.errors.most_common():
            ordered = sorted(self.messages.get(reason, Counter()).items())
            if ordered:
                commonest[reason] = max(ordered, key=lambda pair: pair[1])[0]
        return commonest

    def plain(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "episodes": self.episodes,
            "broken": self.broken,
            "success": {
                "rate": self.succeeded / self.scored if self.scored else None,
                "succeeded": self.succeeded,
                "scored": self.scored,
                "unscored": self.episodes - self.broken - self.scored,
            },
            "terminated": self.terminated,
            "truncated": self.truncated,
            "stop_reasons": dict(self.reasons.most_common()),
            "errors": dict(self.errors.most_common()),
            "error_messages": self.commonest(),
            "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out,
            "cost_usd": round(self.cost_usd, 6),
        }


def reason_of(episode: Episode) -> str:
    """What broke an episode, in a word or two: ``infrastructure: http_500``."""
    kind, stop = episode.error_type or "", episode.stop_reason
    return kind if stop in (None, kind) else f"{kind}: {stop}"


class Streak:
    """Counts episodes in a row that broke for the same reason, and stops a run where none works.

    Args:
        most: how many are too many.
        at_once: how many episodes run at once.
        advice: what to do when it stops.
    """

    def __init__(
        self,
        most: int,
        at_once: int,
        advice: str = "mend the cause, and go on with the same call and --retry-failed",
    ) -> None:
        self._most, self._at_once, self._advice = most, at_once, advice
        self._well = False
        self._reason, self._count = "", 0

    def add(self, episode: Episode) -> None:
        """Count an episode that ended.

        Raises:
            RolloutError: too many broke.
        """
        if episode.error_type is None:
            self._well, self._reason, self._count = True, "", 0
            return
        reason = reason_of(episode)
        self._count = self._count + 1 if reason == self._reason else 1
        self._reason = reason
        most = self._most
        if self._well:  # those that run at once meet a short failure together
            most = max(most, 2 * self._at_once)
        if self._count >= most:
            raise RolloutError(
                f"stopped: {most} episodes in a row broke ({reason}: {episode.error_message}); "
                f"{self._advice}"
            )


_AS_THEY_ARE = (
    *("asked", "done_before", "done_now", "done_elsewhere", "failed", "left", "stopped", "sealed"),
    *("hanging", "beyond", "most_asked"),
)


@dataclass
class CollectReport:
    """What became of a run: ``asked = done_before + done_now + done_elsewhere + failed + left``.

    Attributes:
        asked: tasks times attempts.
        done_before: episodes that the store held whole when the call began.
        done_now: whole episodes of this call.
        done_elsewhere: episodes that another process did meanwhile.
        failed: episodes of which the last try broke.
        left: episodes that were not begun, or not ended.
        whole: counts of the last tries of all episodes that were asked for.
        now: counts of all tries of this call.
        seconds: wall time of the call.
        stopped: the budget of the run that was used up; None.
        sealed: whether the store was ended.
        hanging: calls of tools that have not returned; their threads end with the process.
        beyond: episodes that the store holds, though this call does not ask for them.
        most_asked: attempts at each task that a call for this store asked for, at most; a call for
            fewer does not end it. 0 when that is unknown.
        branching: of attempts that branch, how many began how; None when they do not.
        alternates: what became of alternates that were followed to the end; None: there are none.
        notes: what else to say.
    """

    asked: int = 0
    done_before: int = 0
    done_now: int = 0
    done_elsewhere: int = 0
    failed: int = 0
    left: int = 0
    whole: EpisodeCounts = field(default_factory=EpisodeCounts)
    now: EpisodeCounts = field(default_factory=EpisodeCounts)
    seconds: float = 0.0
    stopped: str | None = None
    sealed: bool = False
    hanging: int = 0
    beyond: int = 0
    most_asked: int = 0
    branching: dict[str, int] | None = None
    alternates: dict[str, Any] | None = None
    notes: list[str] = field(default_factory=list)

    def check(self) -> None:
        """Check that not everything broke.

        Raises:
            RolloutError: episodes broke, and not one is whole.
        """
        done = self.done_before + self.done_now + self.done_elsewhere
        if not self.failed or done:
            return
        commonest_messages = self.whole.commonest()
        reason = next(iter(self.whole.errors), "no reason is known")
        why = f"{reason}: {commonest_messages[reason]}" if reason in commonest_messages else reason
        raise RolloutError(
            f"not one episode is whole, {self.failed:,} broke ({why}); mend the cause, and go on "
            "with the same call and --retry-failed"
        )

    def plain(self) -> dict[str, Any]:
        """As JSON."""
        seconds = max(self.seconds, 1e-9)
        return {
            **{name: getattr(self, name) for name in _AS_THEY_ARE},
            **({"branching": self.branching} if self.branching is not None else {}),
            **({"alternates": self.alternates} if self.alternates is not None else {}),
            "seconds": round(self.seconds, 3),
            "episodes_per_second": round(self.now.episodes / seconds, 3),
            "tokens_per_second": round(self.now.tokens_out / seconds, 3),
            "whole": self.whole.plain(),
            "now": self.now.plain(),
        }
