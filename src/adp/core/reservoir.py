"""A uniform sample of a stream of unknown length, kept at a fixed size."""

from __future__ import annotations

from collections.abc import Sequence

from adp.core.stable_random import draws


def reservoir(
    held: Sequence[tuple[int, str]],
    new: Sequence[tuple[int, str]],
    seen: int,
    size: int,
    seed: int,
) -> list[int]:
    """Offer new items to a reservoir: Vitter's algorithm R (1985, ACM TOMS 11(1), section 2).

    While there is room an item is put in. Then the i-th item of the stream gets a slot drawn from
    0 to i - 1, and replaces what is there when the reservoir has that slot. So after any number of
    items each of them is in with the same chance, size / i. The draw is a hash of the seed and the
    item's name: the same items in the same order give the same reservoir.

    Args:
        held: number and name of the items of the reservoir. More than ``size`` are first cut to a
            uniform sample of them.
        new: number and name of the items that come, in order.
        seen: how many items came before, those held included.
        size: most items that it may hold.
        seed: the seed.

    Returns:
        The numbers of the items that it holds now, by slot.
    """
    slots = [number for number, _ in held]
    if len(held) > size:
        draw = draws(seed, (name for _, name in held), f"cut {seen}").tolist()
        kept = sorted(sorted(range(len(held)), key=lambda place: (draw[place], place))[:size])
        slots = [slots[place] for place in kept]
    chances = draws(seed, (name for _, name in new), "reservoir").tolist()
    for count, ((number, _), chance) in enumerate(zip(new, chances, strict=True), seen + 1):
        if len(slots) < size:
            slots.append(number)
            continue
        slot = chance * count >> 64
        if slot < size:
            slots[slot] = number
    return slots
