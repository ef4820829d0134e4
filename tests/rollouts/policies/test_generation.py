"""Writing in batches: the same as `generate` of transformers, row by row."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="needs the train extra")

from adp.rendering.tiny import tiny_model  # noqa: E402
from adp.rollouts.policies.generation import GenerationJob, Generator  # noqa: E402
from adp.rollouts.policies.prefixes import BLOCK, Prefixes  # noqa: E402
from adp.rollouts.policies.settings import SamplingSettings  # noqa: E402

pytestmark = pytest.mark.train

END = 2


@pytest.fixture(scope="module")
def model():
    """Random weights, larger than usual, so that the likeliest token stands out."""
    made = tiny_model({"num_hidden_layers": 2, "hidden_size": 32, "intermediate_size": 64}).eval()
    with torch.no_grad():
        made.lm_head.weight.mul_(20)
    return made


def jobs(count, longest=24, seed=0):
    draw = random.Random(seed)
    shared = [draw.randrange(3, 600) for _ in range(40)]
    return [
        GenerationJob(
            [*shared, *(draw.randrange(3, 600) for _ in range(draw.randrange(1, 60)))], n, longest
        )
        for n in range(count)
    ]


def reference(model, job, ends):
    """Row by row, by transformers."""
    ids = torch.tensor([job.ids])
    with torch.inference_mode():
        result = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=job.longest,
            do_sample=False,
            eos_token_id=sorted(ends),
            pad_token_id=0,
        )
    return result[0, len(job.ids) :].tolist()


@pytest.mark.parametrize("memory", [0, 1 << 24])
def test_batches_write_what_transformers_writes_row_by_row(model, memory):
    # Tokens that come up at different times end rows early, so that the batch gets smaller.
    plain = [reference(model, job, {END}) for job in jobs(12)]
    ends = {END, *(row[index] for index, row in zip((3, 9, 15), plain, strict=False))}
    wanted = [reference(model, job, ends) for job in jobs(12)]
    assert len({len(row) for row in wanted}) > 2
    generator = Generator(model, ends, SamplingSettings(), memory)
    result = generator.generate(jobs(12))
    assert [row.ids for row in result] == wanted
    assert [row.ended for row in result] == [row[-1] in ends for row in wanted]


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_the_entropy_at_each_token_is_that_of_one_pass_over_all_of_them(model, temperature):
    sampling = SamplingSettings(temperature=temperature, top_k=5)
    written = Generator(model, {END}, sampling, 1 << 24, entropies=10).generate(jobs(9))
    for job, row in zip(jobs(9), written, strict=True):
        assert len(row.entropies) == len(row.ids) > 0
        with torch.inference_mode():
            logits = model(torch.tensor([[*job.ids, *row.ids]])).logits[0].double()
        shares = logits.softmax(-1).sort(-1, descending=True).values[:, :10]
        wanted = -(shares * shares.log()).sum(-1)[len(job.ids) - 1 : -1]
        assert row.entropies == pytest.approx(wanted.tolist(), abs=1e-3)
    assert Generator(model, {END}, sampling).generate(jobs(1))[0].entropies == []


def test_a_conversation_that_goes_on_is_read_from_where_it_was(model):
    generator = Generator(model, {END}, SamplingSettings(), 1 << 24)
    # Of all lengths, so that some end where a block ends.
    (job,) = jobs(1)
    first = [GenerationJob([*job.ids, *range(3, 3 + n)], n, 5) for n in range(BLOCK)]
    read = []
    forward = model.forward
    model.forward = lambda **given: read.append(given["input_ids"].numel()) or forward(**given)
    try:
        result = generator.generate(first)
        more = [7, 8, 9, *range(20, 30)]
        second = [
            GenerationJob([*job.ids, *row.ids, *more], 99, 8)
            for job, row in zip(first, result, strict=True)
        ]
        read.clear()
        again = generator.generate(second)
    finally:
        del model.forward
    # The new tokens, the last one written, and what a block does not cover.
    assert read[0] <= len(second) * (len(more) + 1 + BLOCK)
    assert [row.ids for row in again] == [reference(model, job, {END}) for job in second]


def test_log_probabilities_are_those_of_the_model(model):
    (job,) = jobs(1, longest=6)
    (result,) = Generator(model, {END}, SamplingSettings(temperature=0.7)).generate([job])
    ids = torch.tensor([[*job.ids, *result.ids]])
    with torch.inference_mode():
        scores = model(ids).logits.log_softmax(-1)[0]
    wanted = [float(scores[len(job.ids) + n - 1, token]) for n, token in enumerate(result.ids)]
    assert result.logprobs == pytest.approx(wanted, abs=1e-4)


def test_what_is_drawn_depends_on_the_seed_and_not_on_the_batch(model):
    sampling = SamplingSettings(temperature=1.0, top_p=0.9, top_k=50)
    together = Generator(model, {END}, sampling, 1 << 24).generate(jobs(10))
    alone = [Generator(model, {END}, sampling).generate([job])[0] for job in jobs(10)]
    assert [row.ids for row in together] == [row.ids for row in alone]
    others = [GenerationJob(job.ids, job.seed + 100, job.longest) for job in jobs(10)]
    changed = Generator(model, {END}, sampling).generate(others)
    assert [row.ids for row in together] != [row.ids for row in changed]


def test_draws_have_the_probabilities_of_the_model():
    made = tiny_model({"num_hidden_layers": 1, "hidden_size": 16, "intermediate_size": 16}).eval()
    with torch.no_grad():
        made.lm_head.weight.mul_(80)
    ids, count = list(range(3, 20)), 3000
    with torch.inference_mode():
        scores = made(torch.tensor([ids])).logits[0, -1] / 0.5
    sampling = SamplingSettings(temperature=0.5, top_k=3, top_p=0.95)
    generator = Generator(made, {END}, sampling)
    drawn: Counter[int] = Counter()
    for start in range(0, count, 500):
        rows = generator.generate([GenerationJob(ids, start + n, 1) for n in range(500)])
        drawn.update(row.ids[0] for row in rows)
    values, order = scores.topk(3)
    shares = values.softmax(-1)
    kept = shares.cumsum(-1) - shares < 0.95
    shares = shares * kept / (shares * kept).sum()
    for token, share in zip(order.tolist(), shares.tolist(), strict=True):
        spread = 5 * math.sqrt(max(share * (1 - share), 1e-4) / count)
        assert abs(drawn[token] / count - share) <= spread


# ---- beginnings that were read -----------------------------------------------------------------


class Part:
    """Stands for a tensor: the table of beginnings asks for its size alone."""

    def __init__(self, count):
        self._count = count

    def numel(self):
        return self._count

    def element_size(self):
        return 1


prompts = st.lists(
    st.lists(st.integers(0, 1), min_size=1, max_size=5).map(
        lambda blocks: [block for block in blocks for _ in range(BLOCK)] + [9]
    ),
    max_size=12,
)


@settings(deadline=None)
@given(prompts, st.sampled_from([0, 100, 400, 10**6]))
def test_the_longest_known_beginning_is_found(kept, limit):
    table = Prefixes(limit)
    for ids in kept:
        table.keep(ids, [(Part(len(ids)), Part(0))])
        assert table.size <= limit
    for ids in kept:
        length, result = table.find(ids)
        known = [item for item in kept if len(item) <= limit]
        longest = max(
            (
                size
                for size in range(0, len(ids), BLOCK)
                if any(item[:size] == ids[:size] and size <= len(item) for item in known)
            ),
            default=0,
        )
        if limit == 10**6:
            assert length == longest
        assert length <= longest
        assert (result is None) == (length == 0)
        assert result is None or list(result.ids[:length]) == ids[:length]
