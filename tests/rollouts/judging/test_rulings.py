"""What several verdicts come to: states, ties, agreement; and comparisons in both orders."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.rollouts.judging.judge import Judge, Judgement
from adp.rollouts.judging.pairwise import compare, pairs_of
from adp.rollouts.judging.rulings import combined
from adp.rollouts.policies.scripted import Scripted
from adp.rollouts.turns import Turn

VALUES = {"0": 0.0, "1": 1.0, "2": 2.0, "3": 3.0}


def votes(*labels):
    return [Judgement("j", label, "text") for label in labels]


@pytest.mark.parametrize(
    ("labels", "how", "state", "value"),
    [
        (["3", "3", "1"], "majority", "scored", 3.0),
        (["3", "1"], "majority", "tie", None),
        (["3", "1", "2"], "majority", "tie", None),
        (["3", "1"], "mean", "scored", 2.0),
        (["3", "3", "1"], "unanimity", "tie", None),
        (["3", "3", None], "unanimity", "scored", 3.0),
        (["3", None], "majority", "unscored", None),
        ([None], "mean", "unscored", None),
    ],
)
def test_rulings(labels, how, state, value):
    ruling = combined(votes(*labels), VALUES, how)
    assert (ruling.state, ruling.value) == (state, value)
    assert (ruling.reason is None) == (state == "scored")


@given(st.lists(st.sampled_from([*VALUES, None]), min_size=1, max_size=9))
def test_rulings_against_plain_counting(labels):
    read = [label for label in labels if label is not None]
    most = max((read.count(label) for label in read), default=0)
    best = {label for label in read if read.count(label) == most}
    enough = len(read) > len(labels) / 2
    majority = combined(votes(*labels), VALUES, "majority")
    wanted = "unscored" if not enough else "scored" if len(best) == 1 else "tie"
    assert majority.state == wanted
    if enough:
        assert majority.agreement == most / len(read)
        mean = combined(votes(*labels), VALUES, "mean").value
        assert mean == pytest.approx(sum(map(float, read)) / len(read))
        unanimous = combined(votes(*labels), VALUES, "unanimity")
        assert (unanimous.state == "scored") == (len(set(read)) == 1)


def compared(judge_says, votes=1):
    """What a judge makes of the runs "long good" and "bad"."""

    def script(request):
        prompt = request.messages[0]["content"]
        first_is_good = prompt.index("long good") < prompt.index("bad one")
        return Turn(text=judge_says(first_is_good, request.attempt))

    judge = Judge(Scripted(script), votes)
    return asyncio.run(compare(judge, "long good", "bad one"))


def test_who_is_consistent_wins_and_who_prefers_a_place_does_not():
    better = compared(lambda first_is_good, _: "first" if first_is_good else "second")
    assert better.winner == "first"
    assert better.places == Counter(first=1, second=1)
    worse = compared(lambda first_is_good, _: "second" if first_is_good else "first")
    assert worse.winner == "second"
    biased = compared(lambda *_: "Conclusion: first")
    assert (biased.winner, biased.places) == ("inconsistent", Counter(first=2))
    assert compared(lambda *_: "tie").winner == "tie"
    assert compared(lambda good, _: "tie" if good else "first").winner == "inconsistent"
    lost = compared(lambda good, _: "first" if good else "first and second")
    assert lost.winner is None
    assert lost.reason == "1 of 2 judgements end without a verdict"


def test_votes_of_a_comparison():
    def by_vote(first_is_good, vote):
        return "first" if first_is_good == (vote < 2) else "second"

    assert compared(by_vote, votes=3).winner == "first"
    assert compared(by_vote, votes=4).winner == "tie"


def test_each_run_is_compared_as_often():
    assert pairs_of(3, None) == [(0, 1), (1, 2), (0, 2)]
    assert pairs_of(1, None) == []
    counts = Counter(place for pair in pairs_of(8, 7) for place in pair)
    assert set(counts.values()) == {1, 2}
    assert len(set(pairs_of(6, None))) == 15
