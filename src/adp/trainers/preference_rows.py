"""Pairs as exact tokens: one prompt for both sides, and the trained tokens of each.

Each side is rendered as a whole and masked as for supervised training. The prompt is what both
renders begin with, up to the first trained token. What follows in a side may hold results of tools,
messages of the user and masked steps: they are context there and never in the loss.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from adp.rendering.chat import Chat, PairChats
from adp.rendering.options import RenderOptions
from adp.rendering.pairs import BadPair, pairs_of
from adp.rendering.render import Renderer, TokenRow
from adp.trainers.store_parts import Part, StoreParts
from adp_schema.errors import UsageError
from adp_schema.store import Store

Ints = np.ndarray[Any, np.dtype[np.int32]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]

TOO_LONG = "longer than max_length"


@dataclass(frozen=True, slots=True)
class SideTokens:
    """What follows the prompt.

    Attributes:
        ids: token ids.
        mask: True for the tokens in the loss.
    """

    ids: Ints
    mask: Bools


@dataclass(frozen=True, slots=True)
class PairRow:
    """A pair as tokens.

    Attributes:
        pair_id: id of the pair.
        prompt: token ids that both sides begin with.
        chosen: the better side.
        rejected: the worse side.
    """

    pair_id: str
    prompt: Ints
    chosen: SideTokens
    rejected: SideTokens


@dataclass
class PairCounts:
    """What became of the pairs or trajectories.

    Attributes:
        left_out: reason -> number of pairs or trajectories that give no row.
        notes: what was changed, or drifts -> how often.
    """

    left_out: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)


class PairRenderer:
    """Makes rows of pairs.

    Args:
        renderer: of the model; its ``max_length`` and ``window`` say what becomes of long pairs.

    Raises:
        UsageError: the window cannot be used for pairs.
    """

    def __init__(self, renderer: Renderer) -> None:
        options = renderer.options
        if options.window not in ("drop", "keep_ends"):
            raise UsageError(
                f"render.window: {options.window} cuts the answers that a pair compares; use drop, "
                "or keep_ends to cut steps out of the prompt"
            )
        self._limit = options.max_length
        self._cuts = options.window == "keep_ends"
        self._renderer = Renderer(renderer.tokenizer, whole(options), renderer.stops)

    def row(self, pair: PairChats, tally: PairCounts) -> PairRow | None:
        """The row of one pair; None when it gives none, with the reason counted."""
        notes: Counter[str] = Counter()
        sides = self._sides(pair, notes)
        if not isinstance(sides, str) and self._too_long(sides):
            cut = self._cut(pair) if self._cuts else None
            if cut is None:
                sides = TOO_LONG
            else:
                notes = Counter({"pairs whose prompt was cut": 1})
                pair, sides = cut, self._sides(cut, notes)
        if isinstance(sides, str):
            tally.left_out[sides] += 1
            return None
        tally.notes += notes
        row = _join(pair, *sides, tally.notes)
        if not len(row.prompt):
            tally.left_out["the two sides have no token in common"] += 1
            return None
        return row

    def _sides(self, pair: PairChats, notes: Counter[str]) -> tuple[TokenRow, TokenRow] | str:
        """Both sides, or why there is no such row."""
        rows = []
        for name, chat in (("chosen", pair.chosen), ("rejected", pair.rejected)):
            result = self._renderer.chat(chat)
            notes += result.notes
            if result.rejected is not None:
                return f"refused: {result.rejected}"
            if not result.rows:
                return f"no token of the {name} side is trained"
            row = result.rows[-1]
            if ((row.loss_weights > 0) & (row.loss_weights != 1)).any():
                notes[f"{name} sides with weights between 0 and 1, taken as 1"] += 1
            # A template that rewrites history cannot show all steps of a side at once. The last
            # render holds the most of it.
            shown = int(np.unique(row.step_index[row.step_index >= 0]).size)
            if shown < result.steps:
                notes[f"steps of a {name} side that are not trained"] += result.steps - shown
            rows.append(row)
        return rows[0], rows[1]

    def _too_long(self, token_rows: tuple[TokenRow, TokenRow] | str) -> bool:
        if isinstance(token_rows, str) or self._limit is None:
            return False
        return max(len(row.input_ids) for row in token_rows) > self._limit

    def _cut(self, pair: PairChats) -> PairChats | None:
        """The pair without the fewest steps of its prompt that make it fit; None when none do.

        Steps are left out after the task, so both sides still have the same prompt.
        """
        shorter = [_without(pair, first) for first in _cuts(pair)]
        low, high = 0, len(shorter)
        while low < high:
            middle = (low + high) // 2
            sides = self._sides(shorter[middle], Counter())
            if isinstance(sides, str) or self._too_long(sides):
                low = middle + 1
            else:
                high = middle
        return shorter[low] if low < len(shorter) else None


def pair_rows(
    store: Store, renderer: Renderer, parts: StoreParts, tally: PairCounts
) -> Iterator[tuple[Part, PairRow]]:
    """The pairs of a store that can be rendered, each with its part; others are counted."""
    pairs = PairRenderer(renderer)
    for pair in pairs_of(store):
        if isinstance(pair, BadPair):
            tally.left_out[pair.reason] += 1
            continue
        part = parts.of(pair.chosen.trajectory_id, pair.rejected.trajectory_id)
        row = pairs.row(pair, tally) if part is not None else None
        if part is not None and row is not None:
            yield part, row


def whole(options: RenderOptions) -> RenderOptions:
    """The options for chats that are cut by other means: no limit, all weights as they are."""
    return options.model_copy(update={"max_length": None, "window": "drop", "train": "all"})


def _head(pair: PairChats) -> int:
    """Messages of the prompt before the first one of an assistant."""
    for index in range(pair.shared):
        if pair.chosen.messages[index].role == "assistant":
            return index
    return pair.shared


def _cuts(pair: PairChats) -> list[int]:
    """Where the rest of a prompt may begin: at an assistant, and not between call and result."""
    head = _head(pair)
    places = []
    for first in range(head + 1, pair.shared + 1):
        begins = first == pair.shared or pair.chosen.messages[first].role == "assistant"
        if begins and all(_closed(chat, head, first) for chat in (pair.chosen, pair.rejected)):
            places.append(first)
    return places


def _closed(chat: Chat, head: int, first: int) -> bool:
    """Whether every result after a cut has its call there."""
    kept = chat.messages[:head] + chat.messages[first:]
    calls = {call.call_id for message in kept for call in message.calls}
    return all(message.call_id in calls for message in kept if message.role == "tool")


def _without(pair: PairChats, first: int) -> PairChats:
    """The pair without the messages between the task and ``first``."""
    head = _head(pair)

    def cut(chat: Chat) -> Chat:
        return replace(chat, messages=chat.messages[:head] + chat.messages[first:], cut=True)

    shared = head + pair.shared - first
    return PairChats(pair.pair, cut(pair.chosen), cut(pair.rejected), shared)


def _join(pair: PairChats, chosen: TokenRow, rejected: TokenRow, notes: Counter[str]) -> PairRow:
    """Split both renders after what they have in common."""
    first = [int(np.argmax(row.labels >= 0)) for row in (chosen, rejected)]
    length = min(common_prefix(chosen.input_ids, rejected.input_ids), *first)
    own_first = [chat.trained()[0] == pair.shared for chat in (pair.chosen, pair.rejected)]
    if all(own_first) and (first[0] != length or first[1] != length):
        # Both sides begin right after the prompt, so their renders should agree up to there.
        notes["pairs whose prompt is rendered differently on the two sides"] += 1
    sides = [
        SideTokens(row.input_ids[length:].astype(np.int32), row.labels[length:] >= 0)
        for row in (chosen, rejected)
    ]
    prompt = chosen.input_ids[:length].astype(np.int32)
    return PairRow(pair.pair.pair_id or "", prompt, sides[0], sides[1])


def common_prefix(ints: Ints, other: Ints) -> int:
    """Number of ids that two rows begin with in common."""
    limit = min(len(ints), len(other))
    differ = np.flatnonzero(ints[:limit] != other[:limit])
    return int(differ[0]) if len(differ) else limit
