"""Our checkers against those of the installed bfcl-eval, over all its entries."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from adp_bfcl.categories import SINGLE_TURN, Language, is_relevance, language_of
from adp_bfcl.fixed_matcher import match_fixed
from adp_bfcl.loader import by_id
from adp_bfcl.matcher import CRASHES, match
from adp_bfcl.multi_turn import check_multi_turn
from adp_bfcl.simulators import clean_numbers
from adp_bfcl.verdict import CHECKER_ERROR
from tests.adp_bfcl.mutate import changed, right
from tests.adp_bfcl.official import installed, official
from tests.adp_bfcl.turns import changed_steps, gold_steps, official_turns, row_of

pytestmark = installed

NAMES = [name for name in SINGLE_TURN if not is_relevance(name)]


def compare(rounds: int, every: int, seed: int) -> Counter:
    check = official()
    rng = random.Random(seed)
    seen: Counter = Counter()
    entries = [entry for entry in by_id().values() if entry.category in NAMES]
    for entry in entries[rng.randrange(every) :: every]:
        language = language_of(entry.category)
        source = language is not Language.PYTHON
        gold = right(entry.functions, entry.answers, entry.category, rng)
        outputs = [gold] + [changed(gold, rng, source=source) for _ in range(rounds)]
        for calls in outputs:
            result = match(entry.functions, calls, entry.answers, entry.category, language=language)
            try:
                wanted = check(
                    entry.functions, calls, entry.answers, entry.category, language.value
                )
            except (*CRASHES, AssertionError):
                wanted = (False, CHECKER_ERROR)
            assert (result.valid, result.error_type) == wanted, (entry.entry_id, calls, result)
            seen[result.error_type] += 1
    return seen


def test_single_turn_sample():
    seen = compare(rounds=4, every=11, seed=1)
    assert seen[None] > 200
    assert len(seen) > 12


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_single_turn_all(seed):
    seen = compare(rounds=30, every=1, seed=seed)
    assert seen[None] > 2400
    assert len(seen) > 15


def compare_turns(rounds: int, every: int, seed: int) -> Counter:
    rng = random.Random(seed)
    seen: Counter = Counter()
    entries = [entry for entry in by_id().values() if entry.multi_turn]
    others = [call for entry in entries[:200] for turn in entry.answers for call in turn]
    for entry in entries[rng.randrange(every) :: every]:
        gold = gold_steps(entry.answers, rng)
        for steps in [gold, *(changed_steps(gold, others, rng) for _ in range(rounds))]:
            with clean_numbers():
                wanted = official_turns(row_of(entry), steps)
            result = check_multi_turn(entry, steps)
            assert (result.valid, result.error_type) == wanted, (entry.entry_id, steps, result)
            seen[result.error_type] += 1
    return seen


def test_multi_turn_sample():
    seen = compare_turns(rounds=3, every=29, seed=1)
    assert seen[None] > 20
    assert len(seen) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_multi_turn_all(seed):
    seen = compare_turns(rounds=6, every=1, seed=seed)
    assert seen[None] > 800
    assert len(seen) == 4


def test_right_calls_are_right_under_the_fixed_rules():
    rng = random.Random(3)
    wrong = set()
    for entry in by_id().values():
        if entry.category in NAMES:
            gold = right(entry.functions, entry.answers, entry.category, rng)
            language = language_of(entry.category)
            result = match_fixed(
                entry.functions, gold, entry.answers, entry.category, language=language
            )
            if not result.valid:
                wrong.add(entry.entry_id)
    # Arrays of mixed types in Java cannot be written so that they are read back as they are.
    assert wrong <= {"simple_java_36", "simple_java_65"}
