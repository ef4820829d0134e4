"""Token sequences of episodes: joined, forked and masked as the engine saw them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adp.trainers.rollouts.sequence import episode_tokens
from adp_schema.model import Step, Trajectory


def step(number: int, prompt: list[int] | None, written: list[int] | None, **columns) -> Step:
    return Step(
        step=number, source="agent", kind="llm_turn", prompt_token_ids=prompt,
        completion_token_ids=written, **columns,
    )  # fmt: skip


def trajectory(*steps: Step) -> Trajectory:
    return Trajectory(trajectory_id="t", steps=list(steps))


def test_turns_join_and_results_are_out_of_the_loss():
    rows = episode_tokens(
        trajectory(
            step(1, [1, 2], [3, 4], logprobs=[-0.5, -1.0]),
            Step(step=2, source="environment", kind="message", text="result"),
            step(3, [1, 2, 3, 4, 9, 9], [5], logprobs=[-2.0]),
        )
    )
    (row,) = rows.sequences
    assert row.prompt_ids == (1, 2)
    assert row.response_ids == (3, 4, 9, 9, 5)
    assert row.response_mask == (True, True, False, False, True)
    assert row.logprobs == (-0.5, -1.0, 0.0, 0.0, -2.0)
    assert row.steps == (1, 3)
    assert rows.without == ()


def test_a_rewritten_history_begins_another_row():
    rows = episode_tokens(trajectory(step(1, [1, 2], [3, 4]), step(2, [1, 2, 4, 9], [5])))
    assert [row.steps for row in rows.sequences] == [(1,), (2,)]
    assert [row.response_ids for row in rows.sequences] == [(3, 4), (5,)]
    assert [row.logprobs for row in rows.sequences] == [None, None]


def test_steps_without_ids_are_named():
    rows = episode_tokens(trajectory(step(1, None, None), step(2, [1], [2]), step(3, [1, 2], None)))
    assert rows.without == (1, 3)
    assert [row.steps for row in rows.sequences] == [(2,)]


@given(st.lists(st.tuples(st.lists(st.integers(0, 3)), st.lists(st.integers(0, 3))), min_size=1))
def test_each_written_token_stands_in_one_row(turns):
    # Histories that go on and histories that are rewritten, at random.
    seen: list[int] = []
    steps = []
    for number, (between, written) in enumerate(turns):
        prompt = [*seen, *between] if number % 3 else list(between)
        steps.append(step(number, prompt, written, logprobs=[-1.0] * len(written)))
        seen = [*prompt, *written]
    rows = episode_tokens(trajectory(*steps))
    assert [place for row in rows.sequences for place in row.steps] == list(range(len(turns)))
    under = [
        token
        for row in rows.sequences
        for token, mask in zip(row.response_ids, row.response_mask, strict=True)
        if mask
    ]
    assert under == [token for _, written in turns for token in written]
    for row in rows.sequences:
        last = steps[row.steps[-1]]
        assert [*row.prompt_ids, *row.response_ids] == [
            *last.prompt_token_ids, *last.completion_token_ids,
        ]  # fmt: skip
        assert row.logprobs == tuple(-1.0 if mask else 0.0 for mask in row.response_mask)
