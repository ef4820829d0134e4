"""ARPO's loop over one question, written after its description: lists of indices, round by round.

It knows nothing of episodes: a rollout is a number of segments, and a function says of each segment
how unsure the model was, and whether the rollout ends with it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass
class Tree:
    """What came out: for each rollout its parent and at which segment it left it."""

    parents: list[int | None] = field(default_factory=list)
    left_at: list[int] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)

    def new(self, parent, length, kind):
        """Begin a rollout; return its index."""
        self.parents.append(parent)
        self.left_at.append(length)
        self.lengths.append(length)
        self.kinds.append(kind)
        return len(self.parents) - 1


def arpo(n, initial, beam, probability, weight, entropy, ends, draw, own_baseline=False):
    """Roll out.

    Args:
        entropy: of the segment of a rollout: ``entropy(index, segment)``.
        ends: whether a rollout ends with a segment: ``ends(index, segment)``.
        draw: a random number: ``draw(index, segment, try)``.
        own_baseline: a branch is compared with its own first segment.
    """
    tree, first = Tree(), {}

    def sources(still, now, remaining):
        """Where branches come from, in order."""
        chosen = []
        for index in still:
            tries = min(beam - 1, remaining - len(chosen))
            if tries <= 0:
                break
            for number in range(tries):
                drawn = draw(index, tree.lengths[index] - 1, number)
                chance = drawn - weight * (now[index] - first[index])
                if max(0.0, min(1.0, chance)) > probability:
                    continue
                chosen.append(index)
        return chosen

    active = [tree.new(None, 0, "initial") for _ in range(min(initial, n))]
    while active:
        now, still = {}, []
        for index in active:
            segment = tree.lengths[index]
            now[index] = entropy(index, segment)
            first.setdefault(index, now[index])
            tree.lengths[index] += 1
            if not ends(index, segment):
                still.append(index)
        remaining, active = n - len(tree.parents), list(still)
        for index in sources(still, now, remaining):
            active.append(tree.new(index, tree.lengths[index], "branch"))
            if not own_baseline:
                first[active[-1]] = first[index]
        if not still and remaining > 0:
            active.append(tree.new(None, 0, "refill"))
    return tree


def arpo_entropy(top_logprobs, vocabulary):
    """The entropy of a segment, out of the likeliest log probabilities at each of its tokens."""
    flat = [value for token in top_logprobs[:20] for value in token]
    return -sum(math.exp(value) * value for value in flat) / math.log(vocabulary)
