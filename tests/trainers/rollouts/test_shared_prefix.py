"""What branches have in common counts as often as is asked for."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.trainers.rollouts.sequence import TokenSequence
from adp.trainers.rollouts.shared_prefix import BranchRow, branch_rows, shared_prefix_masks
from adp_schema.model import Step, Trajectory


def group(draw, attempts, rewrites=False):
    """Attempts that branch at random; each token that a model writes has a number of its own."""
    numbers = itertools.count(1000)
    made = []
    for place in range(attempts):
        parent = draw(st.sampled_from([None, *range(place)])) if place else None
        steps, prompt = [], [1, 2, 3]
        if parent is not None:
            kept = draw(st.integers(1, len(made[parent].steps)))
            steps = [step.model_copy(deep=True) for step in made[parent].steps[:kept]]
            prompt = [*steps[-1].prompt_token_ids, *steps[-1].completion_token_ids, 7]
        for _ in range(draw(st.integers(0 if steps else 1, 3))):
            if rewrites and draw(st.booleans()):
                prompt = [9, len(steps)]
            written = [next(numbers) for _ in range(draw(st.integers(1, 3)))]
            steps.append(
                Step(
                    step=len(steps), source="agent", kind="llm_turn",
                    prompt_token_ids=list(prompt), completion_token_ids=written,
                )
            )  # fmt: skip
            prompt = [*prompt, *written, 7, 8]  # what a tool answers
        made.append(
            Trajectory(
                trajectory_id=f"a{place}", steps=steps,
                parent_id=None if parent is None else f"a{parent}",
                parent_step=None if parent is None else kept,
            )
        )  # fmt: skip
    return made


@given(st.data(), st.integers(1, 6), st.booleans())
def test_weights_are_one_over_the_rows_that_hold_what_was_written_once(data, attempts, rewrites):
    rows = branch_rows(group(data.draw, attempts, rewrites))
    held = Counter(number for row in rows for number in row.sequence.response_ids if number >= 1000)
    weights = shared_prefix_masks(rows, "share")
    once = shared_prefix_masks(rows, "once")
    full = shared_prefix_masks(rows, "full")
    seen = set()
    for place, row in enumerate(rows):
        for index, number in enumerate(row.sequence.response_ids):
            written = number >= 1000
            assert weights[place][index] == (1 / held[number] if written else 0.0)
            assert full[place][index] == float(written)
            assert once[place][index] == float(written and number not in seen)
        seen.update(row.sequence.response_ids)
    total = math.fsum(value for row in weights for value in row)
    assert total == pytest.approx(len(held))
    assert sum(value for row in once for value in row) == len(held)


@given(st.data(), st.integers(1, 6))
def test_what_is_left_out_of_a_row_is_left_to_the_others(data, attempts):
    made = group(data.draw, attempts)
    rows = branch_rows(made)
    left = data.draw(st.integers(0, attempts - 1))
    empty = replace(
        rows[left].sequence, response_mask=(False,) * len(rows[left].sequence.response_ids)
    )
    rows[left] = replace(rows[left], sequence=empty)
    others = {
        number
        for place, row in enumerate(rows)
        for number in row.sequence.response_ids
        if place != left and number >= 1000
    }
    for mode in ("share", "once"):
        weights = shared_prefix_masks(rows, mode)
        assert not any(weights[left])
        assert math.fsum(map(math.fsum, weights)) == pytest.approx(len(others))


def test_the_gradient_of_a_shared_token_is_that_of_the_mean_advantage():
    sequence = TokenSequence((1,), (5, 6), (True, True), None, (0, 1))
    rows = [BranchRow(sequence), BranchRow(sequence, 0, 1), BranchRow(sequence, 0, 1)]
    advantages = [1.0, -0.5, 0.1]
    weights = shared_prefix_masks(rows)
    first = sum(a * row[0] for a, row in zip(advantages, weights, strict=True))
    assert first == pytest.approx(sum(advantages) / 3)
    assert [row[1] for row in weights] == [1.0, 1.0, 1.0]


def test_what_two_attempts_wrote_alike_is_not_shared():
    sequence = TokenSequence((1,), (5, 6), (True, True), None, (0,))
    rows = [BranchRow(sequence), BranchRow(sequence)]
    assert shared_prefix_masks(rows) == [[1.0, 1.0], [1.0, 1.0]]


def test_a_branch_without_its_parent_stands_alone():
    made = [
        Trajectory(
            trajectory_id="b", parent_id="a", parent_step=1,
            steps=[Step(step=0, source="agent", kind="llm_turn", prompt_token_ids=[1],
                        completion_token_ids=[5])],
        )
    ]  # fmt: skip
    assert [(row.parent, row.shared) for row in branch_rows(made)] == [(None, 0)]
