"""The rule by which attempts branch, against a direct reference."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.rollouts.collecting.branching.rule import (
    ActivePath,
    branch_draw,
    choose_branches,
    is_branch,
    turn_entropy,
)
from adp.rollouts.collecting.branching.settings import (
    BranchingSettings,
    load_policy,
    read_branching,
)
from adp.rollouts.policies.entropy import top_entropy
from adp_schema.errors import UsageError
from tests.rollouts.collecting.branching.arpo import arpo_entropy

LOGPROBS = st.lists(
    st.lists(st.floats(-20, -1e-6), min_size=10, max_size=10), min_size=0, max_size=30
)
SHARES = st.floats(0, 1)
RISES = st.floats(-5, 5)


@given(LOGPROBS, st.integers(2, 200_000))
def test_the_entropy_of_a_turn_is_arpos(rows, vocabulary):
    entropies = [top_entropy(row, 10) for row in rows]
    assert turn_entropy(entropies, vocabulary) == pytest.approx(
        arpo_entropy(rows, vocabulary), abs=1e-9
    )


@given(SHARES, RISES, st.floats(0, 2), SHARES)
def test_a_branch_is_decided_by_the_clipped_draw(drawn, rise, weight, probability):
    clipped = drawn - weight * rise
    clipped = 0.0 if clipped < 0 else 1.0 if clipped > 1 else clipped
    assert is_branch(drawn, rise, weight, probability) == (not clipped > probability)


@given(st.floats(-3, 3), st.floats(0, 1), SHARES)
def test_a_higher_entropy_never_hinders_a_branch(rise, more, drawn):
    if is_branch(drawn, rise, 0.2, 0.5):
        assert is_branch(drawn, rise + more, 0.2, 0.5)


PATHS = st.lists(
    st.tuples(st.one_of(st.none(), st.floats(0, 3)), st.one_of(st.none(), st.floats(0, 3))),
    max_size=10,
)


@given(PATHS, st.integers(0, 12), st.integers(1, 4), SHARES, st.randoms(use_true_random=False))
def test_attempts_branch_in_order_while_slots_remain(values, slots, beam, probability, random):
    drawn = [[random.random() for _ in range(4)] for _ in values]
    settings = BranchingSettings(beam=beam, probability=probability)
    paths = [ActivePath(number, *pair) for number, pair in enumerate(values)]
    chosen = choose_branches(paths, slots, settings, lambda path, number: drawn[path][number])

    wanted = []
    for number, (now, first) in enumerate(values):
        tries = min(beam - 1, slots - len(wanted))
        if now is None or first is None:
            continue
        fits = [
            max(0.0, min(1.0, value - 0.2 * (now - first))) <= probability
            for value in drawn[number][: max(tries, 0)]
        ]
        wanted += [number] * sum(fits)
    assert chosen == wanted
    assert len(chosen) <= slots
    assert all(chosen.count(number) < beam for number in chosen)


def test_draws_are_spread_evenly_and_depend_on_seed_turn_and_number():
    values = [branch_draw(seed, turn, k) for seed in range(40) for turn in range(5) for k in (0, 1)]
    assert len(set(values)) == len(values)
    assert all(0 <= value < 1 for value in values)
    mean = math.fsum(values) / len(values)
    assert abs(mean - 0.5) < 4 * math.sqrt(1 / 12 / len(values))
    assert branch_draw(7, 3, 0) == branch_draw(7, 3, 0)


def test_the_defaults_are_those_of_et_agents_training():
    settings = read_branching("arpo")
    assert settings == BranchingSettings()
    assert (settings.initial, settings.beam, settings.probability) == (8, 2, 0.5)
    assert (settings.entropy_weight, settings.call_limit) == (0.2, 6)
    assert (settings.tokens, settings.top) == (20, 10)
    other = read_branching("initial=4,call_limit=null,vocabulary=100")
    assert (other.initial, other.call_limit, other.vocabulary) == (4, None, 100)
    assert read_branching("arpo:beam=3").beam == 3


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("initial=0", "initial must be a whole number, 1 or more, not 0"),
        ("probability=2", "probability must be a number from 0 to 1, not 2"),
        ("initial=two", "--branching: initial must be a whole number, 1 or more, not 'two'$"),
        ("initial=null", "initial must be a whole number, 1 or more, not null"),
        ("call_limit=x", "call_limit must be null or a whole number, 0 or more, not 'x'"),
        ("probability=nan", "probability must be a number from 0 to 1, not 'nan'"),
        ("entropy_weight=nan", "entropy_weight must be a number, not 'nan'"),
        ("beams=3", "unknown setting 'beams'; did you mean beam"),
        ("4", "--branching: '4' is neither arpo nor key=value"),
        ("without_fork=maybe", "without_fork must be skip or replay, not 'maybe'"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(text, reason):
    with pytest.raises(UsageError, match=reason.replace("(", r"\(")):
        read_branching(text)


@pytest.mark.parametrize("policy", ["transformers:model=tiny", "vllm:model=tiny", "openai:model=m"])
def test_a_policy_that_knows_entropies_is_asked_for_them(policy):
    assert load_policy(policy, None)[1].entropies == 0
    assert load_policy(policy, BranchingSettings(top=7))[1].entropies == 7


def test_another_policy_stays_as_it_is():
    kind, settings = load_policy("scripted:file=x.jsonl", BranchingSettings())
    assert (kind.name, settings) == ("scripted", kind.settings(file="x.jsonl"))
