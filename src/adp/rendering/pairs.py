"""Preference pairs as chats: both sides after what they have in common."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from adp.core.tool_names.runs import ToolNaming, rename_tools
from adp.rendering.chat import Chat, Message, PairChats, chats_of
from adp.stores.step_labels import SUBOPTIMAL
from adp_schema.errors import StoreError
from adp_schema.model import Pair, Trajectory
from adp_schema.reader import to_models
from adp_schema.store import Store


@dataclass(frozen=True)
class BadPair:
    """A pair that cannot be rendered, and why."""

    pair_id: str
    reason: str


def pairs_of(store: Store, naming: ToolNaming | None = None) -> Iterator[PairChats | BadPair]:
    """All pairs of a store, in order of their ids.

    Args:
        store: the store.
        naming: names that tools get; None leaves those of the store.
    """
    for pair in to_models(store.scan("pairs").sort("pair_id").collect().to_arrow(), Pair):
        yield pair_chats(store, pair, naming)


def pair_chats(store: Store, pair: Pair, naming: ToolNaming | None = None) -> PairChats | BadPair:
    """Look up what a pair refers to.

    Args:
        store: holds the trajectories of both sides.
        pair: a row of its table ``pairs``.
        naming: names that tools get; None leaves those of the store.
    """
    name = pair.pair_id or ""
    level = pair.level or ""
    try:
        places = (pair.chosen_id, pair.chosen_from, pair.chosen_to)
        chosen = _side(store, naming, places, pair.chosen_mask, level)
        places = (pair.rejected_id, pair.rejected_from, pair.rejected_to)
        rejected = _side(store, naming, places, pair.rejected_mask, level, worse=True)
    except StoreError as error:
        return BadPair(name, str(error))
    for side, chat in (("chosen", chosen), ("rejected", rejected)):
        if chat is None or not chat.trained():
            return BadPair(name, f"the {side} side has no step that is trained")
    assert chosen is not None
    assert rejected is not None
    shared = _shared(chosen, rejected)
    if shared == 0:
        return BadPair(name, "the two sides have no message in common")
    if chosen.tools != rejected.tools:
        return BadPair(name, "the two sides have other tools on offer")
    return PairChats(pair, chosen, rejected, shared)


def _side(
    store: Store,
    naming: ToolNaming | None,
    places: tuple[str | None, int | None, int | None],
    mask: str | None,
    level: str,
    *,
    worse: bool = False,
) -> Chat | None:
    """The chat of one side, in which only its own steps have a weight.

    Masks of single steps hold here too. But a pair of single steps is about these very steps,
    so they count even where supervised training leaves them out.
    """
    trajectory_id, first, end = places
    if trajectory_id is None:
        raise StoreError("a side names no trajectory")
    trajectory = store.get(trajectory_id, resolve=True, exact=True)
    if naming is not None:
        rename_tools(trajectory, naming)
    begin = first or 0
    if level == "step":
        for step in trajectory.steps:
            if begin <= (step.step or 0) and step.loss_weight == 0:
                step.loss_weight = None
    chats = chats_of(trajectory, first_step=begin, end_step=end)
    if any(chat.trained() for chat in chats.chats[:-1]):
        raise StoreError("the context was edited between the steps of a side")
    chat = chats.chats[-1] if chats.chats else None
    if chat is None or not mask:
        return chat
    bad = _bad_steps(trajectory)
    positions = [i for i in chat.trained() if (chat.messages[i].step in bad) == worse]
    return chat.weigh(positions)


def _bad_steps(trajectory: Trajectory) -> set[int]:
    """Steps with a label that holds one of M3's erroneous categories."""
    return {
        step.step or 0
        for step in trajectory.steps
        if any(name in label for label in step.labels or [] for name in SUBOPTIMAL)
    }


def _shared(chosen: Chat, rejected: Chat) -> int:
    """Messages that both sides begin with; the first message of a side is never one of them."""
    limit = min(chosen.trained()[0], rejected.trained()[0])
    for index in range(limit):
        if _bare(chosen.messages[index]) != _bare(rejected.messages[index]):
            return index
    return limit


def _bare(message: Message) -> Message:
    """A message without what does not reach the prompt."""
    return replace(message, step=0, weight=0.0, page=None)
