"""Which trajectories a card and a report show, and how much of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from adp.stores.composition.lengths import LengthColumns
from adp.stores.composition.model import ExampleTrajectory
from adp.stores.composition.questions import rows, short
from adp.stores.transcript import TranscriptView, transcript
from adp_schema.model import Trajectory
from adp_schema.store import Store

LINES, CHARACTERS, LINE = 60, 4_000, 300
"""How much of a transcript is shown: lines, characters, characters of a line."""

_VIEW = TranscriptView(limit=500, hint="")


def examples(store: Store, lengths: LengthColumns, most: int) -> tuple[ExampleTrajectory, ...]:
    """Trajectories of typical length: of the biggest data sets, one that failed, one that did not.

    Args:
        store: the store.
        lengths: its measures.
        most: how many.
    """
    picks = _picks(lengths, most)
    if not picks:
        return ()
    seqs = [int(lengths.columns["seq"][index]) for index in picks]
    listed = ", ".join(map(str, seqs))
    sql = f"SELECT seq, trajectory_id, dataset FROM trajectories WHERE seq IN ({listed})"
    results = {row["seq"]: row for row in rows(store, sql)}
    return tuple(
        _example(store, results[seq], why) for seq, why in zip(seqs, picks.values(), strict=True)
    )


def _picks(lengths: LengthColumns, most: int) -> dict[int, str]:
    """Place -> why it is chosen: by numbers alone, so that the choice is always the same."""
    success = lengths.columns["success"]
    sizes = np.bincount(lengths.dataset, minlength=len(lengths.names))
    order = sorted(range(len(lengths.names)), key=lambda index: (-sizes[index], index))
    outcomes = [("a run that failed", success == 0), ("a run that succeeded", success == 1)]
    outcomes = [(why, wanted) for why, wanted in outcomes if wanted.any()]
    room = max(most - len(outcomes), min(most, 1))
    wishes = [("a typical run of its data set", lengths.dataset == index) for index in order]
    picks: dict[int, str] = {}
    for why, wanted in [*wishes[:room], *outcomes]:
        left = wanted.copy()
        left[[*picks]] = False
        if left.any() and len(picks) < most:
            picks[_typical(lengths, wanted, left)] = why
    return picks


def _typical(
    lengths: LengthColumns, members: np.ndarray[Any, Any], left: np.ndarray[Any, Any]
) -> int:
    """The trajectory that is nearest to the median in steps, then in characters; the first one."""
    keys = []
    for name in ("steps", "characters"):
        values = lengths.columns[name]
        ordered = np.sort(values[members])
        keys.append(np.abs(values - ordered[(len(ordered) - 1) // 2]))
    candidates = np.flatnonzero(left)
    best = np.lexsort((candidates, keys[1][candidates], keys[0][candidates]))[0]
    return int(candidates[best])


def _example(store: Store, row: dict[str, Any], why: str) -> ExampleTrajectory:
    name = row["trajectory_id"]
    text, cut = clipped(store.get(name))
    return ExampleTrajectory(short(name) or "", short(row["dataset"]), why, text, cut)


def clipped(trajectory: Trajectory) -> tuple[str, bool]:
    """The beginning of a transcript, and whether it goes on."""
    shown: list[str] = []
    size = 0
    for line in transcript(trajectory, _VIEW):
        text = line.plain.rstrip()
        text = text if len(text) <= LINE else text[: LINE - 1] + "…"
        if len(shown) == LINES or size + len(text) > CHARACTERS:
            return "\n".join(shown), True
        shown.append(text)
        size += len(text) + 1
    return "\n".join(shown), False
