"""The entropy over the likeliest tokens, of each policy that knows it."""

from __future__ import annotations

import asyncio
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adp.rollouts.policies.entropy import top_entropy
from adp.rollouts.policies.openai import OpenAIPolicy, OpenAISettings
from adp.rollouts.policies.openai_messages import entropies_of
from adp.rollouts.policy import Request
from tests.rollouts.policies.chat_server import answer, message, serving

LOGITS = st.lists(st.floats(-30, 30), min_size=1, max_size=50)


@given(LOGITS, st.integers(1, 60))
def test_it_is_the_sum_over_the_likeliest(logits, count):
    values = np.array(logits, dtype=np.float64)
    logprobs = values - np.logaddexp.reduce(values)
    kept = np.sort(logprobs)[::-1][:count]
    assert top_entropy(logprobs.tolist(), count) == pytest.approx(
        float(-(np.exp(kept) * kept).sum()), abs=1e-12
    )


def test_over_all_tokens_it_is_the_entropy_of_shannon():
    assert top_entropy([math.log(1 / 8)] * 8, 8) == pytest.approx(math.log(8))
    assert top_entropy([0.0, -math.inf], 2) == 0.0


def test_what_is_no_log_probability_does_no_harm():
    assert top_entropy([math.nan, 1e9, -0.5], 3) == pytest.approx(0.5 * math.exp(-0.5))


def _content(rows):
    return [
        {"token": "a", "logprob": max(row), "top_logprobs": [{"logprob": v} for v in row]}
        for row in rows
    ]


@pytest.mark.parametrize(
    "given",
    [
        None,
        {},
        {"content": []},
        {"content": [{"logprob": -0.5}]},
        {"content": [{"logprob": -0.5, "top_logprobs": []}]},
        {"content": [{"logprob": -0.5, "top_logprobs": [{"logprob": "x"}]}]},
        {"content": [None]},
    ],
)
def test_a_server_that_gives_none_has_none(given):
    assert entropies_of({"choices": [{"logprobs": given}]}, 10) is None


def test_a_server_is_asked_for_the_likeliest_tokens():
    rows = [[-0.1, -3.0, -5.0], [-0.7, -0.7, -9.0]]
    body = message(content="hello")
    body["choices"][0]["logprobs"] = {"content": _content(rows)}
    with serving(answer(body)) as server:
        policy = OpenAIPolicy(OpenAISettings(model="m", base_url=server.url, entropies=2))

        async def run():
            try:
                return await policy.act(Request([{"role": "user", "content": "hi"}], []))
            finally:
                await policy.close()

        turn = asyncio.run(run())
        (seen,) = server.seen
    assert (seen.body["logprobs"], seen.body["top_logprobs"]) == (True, 2)
    assert turn.entropies == pytest.approx([top_entropy(row, 2) for row in rows])
