"""Alternates that are followed to the end: the tree that a plain recursion finds by hand."""

from __future__ import annotations

import asyncio
import json
from typing import Any, NamedTuple

import pytest

from adp.rollouts.collecting.episode import run_episode
from adp.rollouts.collecting.limits import Limits
from adp.rollouts.collecting.recorder import About
from adp.rollouts.environment import Verdict
from adp.rollouts.experts.modes import Assistance
from adp.rollouts.experts.settings import AssistSettings
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.policy import InfrastructureError
from adp.rollouts.turns import Turn
from adp_schema.branches import after
from adp_schema.errors import UsageError
from adp_schema.model import Trajectory
from tests.rollouts.collecting.worlds import (
    TASK,
    VALUES,
    Chain,
    Knowing,
    acts,
    facts_of,
    look,
    play,
)
from tests.waiting import PATIENCE

A, E = "agent", "expert"
Action = str
"""``look b``, or the answer ``=d``."""
Done = tuple[str, Action, str | None]
"""Who did what, and the value that came back; None for an error."""


class Node(NamedTuple):
    """A branch, or the run itself, as the recursion finds it."""

    name: str
    depth: int
    acts: list[str]
    success: bool


def erring(past: list[Done]) -> Action:
    """An agent that errs behind b and c: it looks at what is not there, and then gives up."""
    errors = sum(value is None for _, _, value in past)
    if not past:
        return "look a"
    last = past[-1][2]
    if last is None:
        return "=lost" if errors > 1 else "look x"
    return {"b": "look x", "c": "look x", "d": "=d"}.get(last, f"look {last}")


def knowing(past: list[Done]) -> Action:
    """The expert."""
    known = [value for _, _, value in past if value is not None]
    letter = known[-1] if known else "a"
    return "=d" if letter == "d" else f"look {letter}"


def tree(limit: int) -> list[Node]:
    """The run and its branches of a depth, found by a recursion over the rules of the modes."""

    def needed(past: list[Done]) -> bool:
        if len(past) < 2 or past[-1][0] == E:
            return False
        last = past[-2:]
        return all(value is None for *_, value in last) or len({act for _, act, _ in last}) == 1

    def walk(name: str, depth: int, past: list[Done], first: tuple[str, Action] | None) -> None:
        begun, helped, children = len(past), False, []
        taken: list[str] = []
        while True:
            before = list(past)
            if first is not None and len(past) == begun:
                actor, act = first
            elif first is not None:
                actor = first[0]
                act = erring(past) if actor == A else knowing(past)
            else:
                expert = helped or erring(past).startswith("=")
                actor, act = (E, knowing(past)) if expert else (A, erring(past))
            taken.append(f"{actor[0]}:{act}")
            if act.startswith("="):
                nodes.append(Node(name, depth, taken, act == "=d"))
                break
            value = VALUES.get(act[5:])
            past.append((actor, act, value))
            helped = needed(past)
            if depth < limit and not (first is not None and len(before) == begun):
                # The first message is a step too, so the n-th turn is step n + 1.
                place = f"{name}/alternate-{len(before) + 1}"
                if actor == E:
                    children.append((place, before, (A, erring(before))))
                elif value is None or helped:
                    children.append((place, before, (E, knowing(before))))
        for place, before, turn in children:
            walk(place, depth + 1, before, turn)

    nodes: list[Node] = []
    walk("", 0, [], None)
    return nodes


def script(request: Any) -> Turn:
    """The erring agent as a policy: it knows what it sees."""
    past: list[Done] = []
    for message in request.messages:
        if message["role"] == "tool":
            text = message["content"]
            value = json.loads(text).get("value") if text.startswith("{") else None
            past.append((A, "", value))
    act = erring(past)
    return Turn(text=act[1:]) if act.startswith("=") else look(act[5:])


def followed(depth: int = 1, **given: Any) -> Trajectory:
    """The run with its alternates followed."""
    given.setdefault("environment", Knowing())
    return play(given.pop("script", script), alternates="end", alternate_depth=depth, **given)


def nodes_of(run: Trajectory) -> list[Node]:
    """The same of an episode."""
    base = run.trajectory_id or ""
    parts = [(run, 0)] + [(branch, facts_of(branch)["depth"]) for branch in run.branches]
    return [
        Node((part.trajectory_id or "").removeprefix(base), depth, acts(part), bool(part.success))
        for part, depth in parts
    ]


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_the_tree_is_the_one_that_a_plain_recursion_finds(depth):
    run = followed(depth)
    assert sorted(nodes_of(run)) == sorted(tree(depth))
    assert len(run.branches) == {1: 5, 2: 7}.get(depth, 8)
    assert {branch.branch_kind for branch in run.branches} == {"alternate"}
    assert {branch.success for branch in run.branches} == {True, False}
    assert all(branch.terminated for branch in run.branches)


def test_a_branch_shares_the_steps_of_its_parent_and_was_really_carried_out():
    run = followed(3)
    known = {run.trajectory_id: run}
    for branch in run.branches:
        parent = known[branch.parent_id]
        known[branch.trajectory_id] = whole = after(parent, branch)
        kept = branch.parent_step
        assert whole.steps[:kept] == parent.steps[:kept]
        assert [step.step for step in whole.steps] == list(range(len(whole.steps)))
        assert branch.steps[0].step == kept
        assert branch.steps[0].actor != parent.steps[kept].actor
        # A new world answers the calls in the same words, how often it was called included.
        world = Chain()
        world.reset(TASK)
        ids = []
        for step in whole.steps:
            ids += [call.call_id for call in step.calls]
            for call, seen in zip(step.calls, step.observations, strict=True):
                (result,) = world.step(look(json.loads(call.arguments)["key"])).results
                assert (result.text, seen.call_id) == (seen.text, call.call_id)
        assert len(ids) == len(set(ids))


def test_the_run_itself_is_the_same_as_without_and_so_are_the_first_turns():
    step, end = play(script, environment=Knowing()), followed()
    assert acts(step) == acts(end)
    firsts = {branch.parent_step: acts(branch)[0] for branch in end.branches}
    assert firsts == {branch.parent_step: acts(branch)[0] for branch in step.branches}
    assert [branch.trajectory_id for branch in step.branches] == [
        branch.trajectory_id for branch in end.branches
    ]


def test_the_same_seed_gives_the_same_bytes():
    def text() -> list[str]:
        run = followed(3)
        parts = [run, *run.branches]
        return [p.model_dump_json() + "".join(s.model_dump_json() for s in p.steps) for p in parts]

    assert text() == text()


def test_a_limit_leaves_out_the_deepest_and_counts_them():
    every = nodes_of(followed(3))
    run = followed(3, alternate_branches=4)
    assert nodes_of(run) == every[:5]
    counts = [facts_of(part)["counts"] for part in (run, *run.branches)]
    # One beside the run, and both of depth 2; what would lie beyond these is not known.
    assert [count.get("alternates_beyond_the_limit", 0) for count in counts] == [1, 1, 1, 0, 0]


def test_a_branch_has_used_what_it_shares_with_its_parent():
    run = followed(limits=Limits(max_turns=4))
    cut = [branch for branch in run.branches if branch.truncated]
    assert {branch.stop_reason for branch in cut} == {"max_turns"}
    for branch in cut:
        assert (branch.parent_step or 0) - 1 + len(acts(branch)) == 4


def test_every_world_is_closed_once_and_none_is_touched_by_another():
    worlds = []

    class Counted(Knowing):
        def fork(self):
            worlds.append(super().fork())
            return worlds[-1]

    world = Counted()
    run = followed(3, environment=world)
    assert len(worlds) > len(run.branches)
    assert [item.closed for item in (world, *worlds)] == [1] * (len(worlds) + 1)


def test_where_one_branch_breaks_the_others_go_on():
    class Breaks(Knowing):
        def score(self, trajectory: Trajectory) -> Verdict:
            if trajectory.final_answer == "lost":
                raise RuntimeError("the judge fell over")
            return super().score(trajectory)

    run = followed(3, environment=Breaks())
    broken = [branch for branch in run.branches if branch.error_type]
    assert broken
    assert {branch.success for branch in broken} == {None}
    whole = [branch for branch in run.branches if not branch.error_type]
    assert whole
    assert all(branch.success for branch in whole)


def test_of_an_episode_that_broke_nothing_is_followed():
    worlds = []

    class Counted(Knowing):
        def fork(self):
            worlds.append(super().fork())
            return worlds[-1]

    def breaks(request):
        if request.turn == 3:
            raise InfrastructureError("gone", "http_500")
        return look("x")

    run = followed(environment=Counted(), script=breaks, init_limit=9)
    assert (run.error_type, run.branches) == ("infrastructure", [])
    assert [item.closed for item in worlds] == [1] * len(worlds)
    assert len(worlds) == 3


def test_a_kill_in_the_middle_of_a_branch_closes_every_world():
    worlds = []

    class Counted(Knowing):
        def fork(self):
            worlds.append(super().fork())
            return worlds[-1]

    class Waits(Scripted):
        async def act(self, request):
            if "alternate_" in str(request.messages):
                reached.set()
                await asyncio.sleep(PATIENCE)
            return script(request)

    async def killed():
        settings = AssistSettings(alternates="end", alternate_depth=3)
        actor = Assistance(settings, Waits([])).actor()
        about = About("chain", 0, TASK, timed=False)
        job = asyncio.create_task(run_episode(about, Counted(), actor))
        await reached.wait()
        job.cancel()
        await job

    reached = asyncio.Event()
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(killed())
    assert len(worlds) > 5
    assert [item.closed for item in worlds] == [1] * len(worlds)


@pytest.mark.parametrize("world", [Chain(forks=False), Chain(forks=False, read_only=True)])
def test_a_world_that_cannot_be_forked_is_refused(world):
    with pytest.raises(UsageError, match="alternates=end needs an environment that can be forked"):
        followed(environment=world)


@pytest.mark.parametrize(
    "settings",
    [
        {"alternate_depth": 2},
        {"alternate_branches": 2},
        {"alternates": "end", "save_alternates": False},
        {"alternates": "end", "mode": "ground_truth"},
        {"alternates": "end", "alternate_depth": 0},
    ],
)
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(ValueError, match="alternate"):
        play(script, environment=Knowing(), **settings)
