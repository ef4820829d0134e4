"""Rules over alternates: the step that was taken against one that was not.

An alternate is a branch of kind ``alternate`` that another actor wrote at the same place. The
context of the pair is the run before that step.

``m3_step`` is the step level of M3's preference data (`AgentTrajectoryPreferenceData`): the step
that was taken may not be judged as exactly ``{REWARD_FINAL_ANSWER_NO_MATCH}``, the two actors
differ, and chosen is the expert's side, whichever of the two was taken.

``alternates`` is the same with a rule of your own: a list of actors, the rewards, or labels.

An alternate that was followed to the end has an outcome of its own: its reward, else 1 or 0 for its
success. With ``prefer: outcome`` it is compared with that of the run, or branch, beside whose step
it stands. Alternates of alternates are paired too; their context is the branch that they are in.
``m3_trajectory`` with ``alternates: true`` pairs all that follows on both sides in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from adp.curation.op import OpResult
from adp.curation.ops.pairs.options import Pairs
from adp.curation.ops.pairs.pair_candidates import (
    NOT_PAIRED,
    PAIRED,
    PairCandidates,
    PairContext,
    PairSide,
    value_of,
)
from adp.curation.pool import Pool

NO_MATCH = "REWARD_FINAL_ANSWER_NO_MATCH"
EXPERT = "expert"


@dataclass
class Taken:
    """One of the two steps.

    Attributes:
        side: where it is.
        actor: who wrote it.
        reward: its reward.
        labels: its labels.
        value: how the run ended that goes on from it; None: that is not known.
        end: the step after the last one of that run.
    """

    side: PairSide
    actor: str | None = None
    reward: float | None = None
    labels: list[str] = field(default_factory=list)
    value: float | None = None
    end: int = 0

    def evidence_of(self) -> dict[str, Any]:
        """What evidence says of it."""
        known = {} if self.value is None else {"outcome": self.value}
        return {"actor": self.actor, "labels": self.labels, "reward": self.reward, **known}


@dataclass
class Candidate:
    """An alternate and the step beside which it stands.

    Attributes:
        seq: key of the run.
        step: the step.
        task_id: task of the run.
        run_id: id of the run.
        branch_id: id of the alternate.
        executed: the step that was taken; None when the run has no such step.
        alternate: the step that was not; None when the branch has none.
    """

    seq: int
    step: int | None
    task_id: str | None
    run_id: str
    branch_id: str
    executed: Taken | None
    alternate: Taken | None


Verdict = tuple[bool | None, str]
"""Whether the alternate is the better one (None: there is no pair), and the reason."""


def m3_step(value: Taken, other: Taken) -> Verdict:
    """M3's rule."""
    if value.labels == [NO_MATCH]:
        return None, "the executed answer does not match"
    if value.actor == other.actor:
        return None, "both sides are by the same actor"
    if EXPERT not in (value.actor, other.actor):
        return None, "no side is by the expert"
    return other.actor == EXPERT, "the expert's side is chosen"


def by_actor(actors: tuple[str, ...]) -> Callable[[Taken, Taken], Verdict]:
    """The actor that is named first."""

    def decide(value: Taken, other: Taken) -> Verdict:
        if value.actor not in actors or other.actor not in actors:
            return None, "an actor is not in the list"
        first, second = actors.index(value.actor), actors.index(other.actor)
        if first == second:
            return None, "both sides are by the same actor"
        return second < first, "the preferred actor is chosen"

    return decide


def by_reward(gap: float) -> Callable[[Taken, Taken], Verdict]:
    """The higher reward."""

    def decide(value: Taken, other: Taken) -> Verdict:
        if value.reward is None or other.reward is None:
            return None, "a side has no reward"
        if value.reward == other.reward or abs(value.reward - other.reward) < gap:
            return None, "the gap of the rewards is too small"
        return other.reward > value.reward, "the higher reward is chosen"

    return decide


def by_label(labels: tuple[str, ...]) -> Callable[[Taken, Taken], Verdict]:
    """The labels, the best one first; the worst label of a step counts."""

    def decide(value: Taken, other: Taken) -> Verdict:
        ranks = [
            max((labels.index(label) for label in side.labels if label in labels), default=None)
            for side in (value, other)
        ]
        if ranks[0] is None or ranks[1] is None:
            return None, "a side has none of the labels"
        if ranks[0] == ranks[1]:
            return None, "both sides have labels of the same rank"
        return ranks[1] < ranks[0], "the better label is chosen"

    return decide


def by_outcome(gap: float) -> Callable[[Taken, Taken], Verdict]:
    """The better end of what goes on from it."""

    def decide(value: Taken, other: Taken) -> Verdict:
        if value.value is None or other.value is None:
            return None, "the outcome of a side is not known"
        if value.value == other.value or abs(value.value - other.value) < gap:
            return None, "both sides have the same outcome"
        return other.value > value.value, "the better outcome is chosen"

    return decide


def run(pool: Pool, options: Pairs) -> OpResult:
    """Decide about each alternate."""
    decide: Callable[[Taken, Taken], Verdict] = m3_step
    if options.rule == "alternates":
        decide = {
            "actor": by_actor(options.actors),
            "reward": by_reward(options.gap),
            "label": by_label(options.labels),
            "outcome": by_outcome(options.gap),
        }[options.prefer]
    pair_candidates = PairCandidates(options.rule)
    return _decided(pool, decide, pair_candidates, by_value=options.prefer == "outcome")


def continuations(pool: Pool, mask: str | None) -> OpResult:
    """Pair what a run did from a step on with what its alternate did, by the outcome.

    Args:
        pool: the trajectories.
        mask: mask policy of both sides.
    """
    pair_candidates = PairCandidates("m3_trajectory", mask, mask)
    return _decided(pool, by_outcome(0.0), pair_candidates, by_value=True, whole=True)


def _decided(
    pool: Pool,
    decide: Callable[[Taken, Taken], Verdict],
    pair_candidates: PairCandidates,
    *,
    by_value: bool,
    whole: bool = False,
) -> OpResult:
    """Decide about each alternate; a side is one step, or (whole) all that follows."""
    level = "trajectory" if whole else "step"
    for candidate in candidates(pool):
        pair_candidates.counts["candidates"] += 1
        better: bool | None = None
        reason = (
            "the run has no such step" if candidate.executed is None else "the alternate is empty"
        )
        evidence: dict[str, Any] = {"alternate": candidate.branch_id}
        if candidate.executed is not None and candidate.alternate is not None:
            better, reason = decide(candidate.executed, candidate.alternate)
            evidence |= {
                "executed": candidate.executed.evidence_of(),
                "other": candidate.alternate.evidence_of(),
            }
        if better is None:
            pair_candidates.event(candidate.seq, candidate.step, NOT_PAIRED, reason, evidence)
            continue
        assert candidate.executed is not None
        assert candidate.alternate is not None
        assert candidate.step is not None
        sides = (candidate.executed, candidate.alternate)
        chosen, rejected = reversed(sides) if better else sides
        scores = {"chosen": chosen.evidence_of(), "rejected": rejected.evidence_of()}
        context = PairContext(candidate.run_id, candidate.step)
        better_side, worse_side = (_side(item, by_value, whole) for item in (chosen, rejected))
        name = pair_candidates.pair(
            level, context, better_side, worse_side, task_id=candidate.task_id, scores=scores
        )
        pair_candidates.event(
            candidate.seq, candidate.step, PAIRED, reason, {**evidence, "pair_id": name}
        )
    return pair_candidates.outcome("alternates")


def _side(taken: Taken, by_value: bool, whole: bool) -> PairSide:
    side = taken.side._replace(score=taken.value) if by_value else taken.side
    return side._replace(end=taken.end) if whole else side


_ENDS = """
SELECT t.seq, t.reward, t.success, max(s.step) + 1 FROM all_trajectories t JOIN steps s USING (seq)
WHERE t.branch_kind = 'alternate' OR t.trajectory_id IN
    (SELECT parent_id FROM all_trajectories WHERE branch_kind = 'alternate')
GROUP BY ALL
"""

_STEPS = """
SELECT s.seq, s.step, s.actor, s.reward, s.labels FROM steps s
SEMI JOIN (
    SELECT p.seq, b.parent_step AS step
    FROM all_trajectories b JOIN all_trajectories p ON p.trajectory_id = b.parent_id
    WHERE b.branch_kind = 'alternate'
    UNION ALL
    SELECT seq, parent_step FROM all_trajectories WHERE branch_kind = 'alternate'
) w ON w.seq = s.seq AND w.step = s.step
"""


def candidates(pool: Pool) -> Iterator[Candidate]:
    """The alternates of all runs that are in, by what they stand beside, step and key.

    Alternates of alternates are among them; ``seq`` is that of the run which they begin in.
    """
    branches = pool.branches.filter(pl.col("branch_kind") == "alternate")
    if branches.is_empty():
        return
    parents = dict(branches.select("seq", "parent_seq").iter_rows())
    members = pool.members.select("seq", "trajectory_id", "task_id").rows_by_key("seq", unique=True)
    names = {seq: row[0] for seq, row in members.items()}
    names |= dict(branches.select("seq", "trajectory_id").iter_rows())
    steps = {(row[0], row[1]): row[2:] for row in pool.query(_STEPS).iter_rows()}
    ends = {row[0]: row[1:] for row in pool.query(_ENDS).iter_rows()}
    order = branches.select("parent_seq", "parent_step", "seq", "trajectory_id")
    for parent, step, seq, branch_id in order.sort(order.columns, nulls_last=True).iter_rows():
        root = _root(seq, parents)
        if root is None or root not in members:
            continue
        executed = _taken(steps.get((parent, step)), names[parent], step, ends.get(parent))
        alternate = _taken(steps.get((seq, step)), branch_id, step, ends.get(seq))
        task = members[root][1]
        yield Candidate(root, step, task, names[parent], branch_id, executed, alternate)


def _root(seq: int, parents: dict[int, int | None]) -> int | None:
    """The run that a branch begins in; None when its parents are missing or lead in a circle."""
    place: int | None = seq
    for _ in range(len(parents) + 1):
        if place is None or place not in parents:
            return place
        place = parents[place]
    return None


def _taken(
    row: tuple[Any, ...] | None, name: str, step: int | None, ending: tuple[Any, ...] | None
) -> Taken | None:
    if row is None or step is None:
        return None
    actor, reward, labels = row
    side = PairSide(name, step, step + 1, reward)
    total, success, end = ending or (None, None, step + 1)
    return Taken(side, actor, reward, list(labels or ()), value_of(total, success), end)
