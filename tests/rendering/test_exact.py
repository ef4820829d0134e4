"""Exactly the ids of the trained steps are trained: templates times tokenizers, against an oracle.

`tests.rendering.oracle` finds the trained steps by marks that it puts into the conversations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings

from adp.rendering.chat import Chat
from adp.rendering.options import RenderOptions
from adp.rendering.render import IGNORED, Rendered, Renderer
from tests.effort import examples
from tests.rendering.families import ENDS, KINDS, Ends, ends, more_names, renderer
from tests.rendering.oracle import check_row, ready
from tests.rendering.talks import TALKS, talks

TEXT_ONLY = ["cohere", "cohere2", "gemma", "gemma3", "llama3", "phi3", "phi3_5"]
ALL = [
    *ENDS,
    *["hermes_2_pro", "lfm2", "lfm2_v2", "nemotron_3_5_lightning", "nemotron_3_nano"],
    *["nemotron_3_super", "nemotron_3_ultra", "qwen2_5", "qwen3", "qwen3_5_nothink"],
    *["qwen3_5_think", "qwen3_6", "qwen3_8", "qwen3_instruct_2507"],
]
"""Templates whose form is known here; those with marks of their own have another test."""

SOME = [
    *["qwen2_5", "qwen3", "qwen3_5_think", "llama3_1", "mistral", "mistral_tekken", "gemma"],
    *["gemma4_v5", "granite", "glm4moe", "gptoss", "deepseekv3", "deepseek_r1_distill"],
    *["hermes_2_pro", "phi3", "muse_glimmer"],
]
"""One of each kind, for every run of the tests."""


def pairs() -> Iterator[object]:
    """Templates and kinds of tokenizers; the tests that take long have all of them."""
    for number, name in enumerate(SOME):
        yield name, "bytes"
        yield name, KINDS[1 + number % (len(KINDS) - 1)]
    for name in [*ALL, *more_names()]:
        for kind in KINDS:
            quick = name in SOME and kind in ("bytes", KINDS[1 + SOME.index(name) % 4])
            if not quick:
                yield pytest.param(name, kind, marks=pytest.mark.slow)


def check(made: Renderer, asked: Chat, wanted: Ends) -> Rendered:
    """Render a chat and compare all of it with the oracle."""
    chat = made.chat(asked)
    weighed = {message.step: message.weight for message in asked.messages if message.weight}
    assert chat.steps == len(weighed) == chat.trained + chat.lost.total()
    if chat.rejected is not None:
        assert not chat.rows
        return chat
    prepared = ready(made, asked)
    seen: Counter[int] = Counter()
    inexact = unknown = 0
    for row in chat.rows:
        for item in check_row(made, prepared, row, wanted):
            seen[prepared.messages[item.index].step] += 1
            inexact += not item.exact and item.index > 0
            # Before the first message there is no prompt that transformers would write.
            unknown += item.index == 0
    assert set(seen) | set(weighed) == set(weighed)
    assert len(seen) == chat.trained
    noted = chat.notes["steps whose prompt at inference is another one"]
    noted += chat.notes["steps put after their prompt, which the template rewrites later"]
    assert noted >= inexact
    assert chat.notes["steps whose prompt at inference is another one"] <= inexact + unknown
    return chat


@pytest.mark.parametrize(("name", "kind"), list(pairs()))
def test_conversations(name: str, kind: str) -> None:
    made = renderer(name, kind)
    trained = 0
    for talk in TALKS.values():
        trained += check(made, talk, ends(name)).trained
    assert trained > 10


@pytest.mark.parametrize("name", TEXT_ONLY[:4])
def test_tools_as_text(name: str) -> None:
    """A template without tools takes them as text; every step is trained."""
    made = renderer(name, "bytes", RenderOptions(tools="text"))
    for title in ("tool", "tool with words", "parallel", "masked call"):
        result = check(made, TALKS[title], ends(name))
        assert result.rejected is None
        assert result.trained == result.steps


@pytest.mark.parametrize("name", ["llama3_1", "gptoss"])
def test_calls_one_by_one(name: str) -> None:
    made = renderer(name, "bytes", RenderOptions(parallel_calls="split"))
    assert renderer(name).chat(TALKS["parallel"]).rejected is not None
    chat = made.chat(TALKS["parallel"])
    assert chat.rejected is None
    assert chat.trained == chat.steps == 2
    text = chat.rows[-1].text
    talk = text[text.index("Both?") :]
    places = [talk.index(word) for word in ("Paris", "sunny", "Oslo", "rain", "Sunny")]
    assert places == sorted(places)


@pytest.mark.parametrize("name", ["qwen2_5", "granite", "gemma4_v5", "mistral_tekken"])
def test_words_under_the_loss(name: str) -> None:
    """What the labels say, decoded, is what the trained messages say, and nothing else."""
    made = renderer(name)
    for title, talk in TALKS.items():
        chat = made.chat(talk)
        for row in chat.rows:
            words = "".join(row.text[start:end] for _, start, end in row.spans)
            ids = row.labels[row.labels != IGNORED]
            if not chat.notes["tokens across the edge of a step, not trained"]:
                assert made.tokenizer.decode(ids) == words, title
            for message in talk.messages:
                if message.weight and message.step in row.step_index:
                    assert message.text.strip() in words
                    assert all(item.name in words for item in message.calls)


@pytest.mark.parametrize(("name", "kind"), [(name, KINDS[i % 5]) for i, name in enumerate(SOME)])
def test_generated_conversations(name: str, kind: str) -> None:
    made = renderer(name, kind)
    forms = made.template.forms

    @settings(
        max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), database=None
    )
    @given(
        talks(
            tools=forms.arguments is not None,
            parallel=forms.parallel,
            reasoning=forms.reasoning is not None,
            words=forms.text_with_calls,
        )
    )
    def holds(talk: Chat) -> None:
        check(made, talk, ends(name))

    holds()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*ALL, *more_names()])
def test_many_generated_conversations(name: str, kind: str) -> None:
    made = renderer(name, kind)
    forms = made.template.forms
    ability = {
        "tools": forms.arguments is not None,
        "parallel": forms.parallel,
        "reasoning": forms.reasoning is not None,
        "words": forms.text_with_calls,
    }

    @settings(max_examples=examples(60), suppress_health_check=list(HealthCheck), database=None)
    @given(talks(**ability))
    def holds(talk: Chat) -> None:
        check(made, talk, ends(name))

    holds()
