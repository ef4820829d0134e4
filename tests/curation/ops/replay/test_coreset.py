"""What SAGE's selector keeps, against its arithmetic in plain Python."""

from __future__ import annotations

import math
import re
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from adp.curation.ops.replay.coreset import highest


class Selector:
    """CoresetSelector as it is written down, on (name, text, score)."""

    def select(self, samples, size):
        if size >= len(samples):
            return list(samples)
        scored = int(0.6 * size)
        top = sorted(samples, key=lambda sample: sample[2], reverse=True)[: scored or 1]
        names = {sample[0] for sample in top}
        rest = [sample for sample in samples if sample[0] not in names]
        return (top + self.diversity(rest, max(size - scored, 1)))[:size]

    def features(self, text):
        words = [word for word in re.findall(r"[a-zA-Z0-9_]+", text.lower()) if len(word) > 2]
        return {word: count / len(words) for word, count in Counter(words).items()}

    def diversity(self, samples, size):
        if not samples:
            return []
        ours = {sample[0]: self.features(sample[1]) for sample in samples}
        norm = {
            name: math.sqrt(sum(value * value for value in words.values()))
            for name, words in ours.items()
        }
        chosen = [max(samples, key=lambda sample: norm[sample[0]])]
        left = [sample for sample in samples if sample is not chosen[0]]

        def distance(sample):
            result = ours[sample[0]]
            products = [
                sum(value * ours[other[0]].get(word, 0.0) for word, value in result.items())
                for other in chosen
            ]
            return 1.0 - max(products)

        while left and len(chosen) < size:
            chosen.append(max(left, key=distance))
            left = [sample for sample in left if sample is not chosen[-1]]
        return chosen


@given(st.lists(st.sampled_from([0.0, 1.0, -1.0, 2.5]), max_size=9), st.integers(0, 9))
def test_the_highest_come_first_and_ties_in_order(scores, count):
    wanted = sorted(range(len(scores)), key=lambda place: scores[place], reverse=True)[:count]
    assert highest(scores, count) == wanted
