"""Rows that are too long are cut between steps; nothing is trained twice, losses are counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adp.rendering.chat import Chat
from adp.rendering.options import RenderOptions
from adp.rendering.render import Rendered, Renderer
from tests.effort import examples
from tests.rendering.families import ends, renderer
from tests.rendering.oracle import check_row, ready, write
from tests.rendering.talks import TALKS, talks

WINDOWS = ("drop", "keep_start", "keep_ends", "sliding")
NAMES = ("qwen2_5", "qwen3", "mistral_tekken", "gptoss", "granite")


def windowed(name: str, window: Any, limit: int, overlap: float = 0.25) -> Renderer:
    """A renderer with a window."""
    options = RenderOptions(max_length=limit, window=window, overlap=overlap)
    return renderer(name, "bytes", options)


def length(made: Renderer, asked: Chat) -> int:
    """Tokens of a chat."""
    text = write(made, asked, len(asked.messages))
    assert text is not None
    return len(made.tokenizer(text, add_special_tokens=False)["input_ids"])


def head(asked: Chat) -> int:
    """Messages before the first of an assistant."""
    roles = [message.role for message in asked.messages]
    return roles.index("assistant") if "assistant" in roles else len(roles)


def part(asked: Chat, first: int, end: int) -> Chat:
    """The head, and the messages from one to before another."""
    begin = min(head(asked), first)
    return replace(asked, messages=asked.messages[:begin] + asked.messages[first:end])


def window_of(made: Renderer, asked: Chat, text: str) -> Chat:
    """The head and consecutive messages that a row's text holds, found by trying all."""
    count = len(asked.messages)
    for end in range(1, count + 1):
        for first in range(end):
            tried = part(asked, first, end)
            if write(made, tried, len(tried.messages)) == text:
                return tried
    raise AssertionError(f"no window of the chat is written as {text!r}")


def laws(made: Renderer, asked: Chat, value: Rendered, name: str) -> None:
    """What holds for every way of cutting."""
    limit = made.options.max_length
    assert limit is not None
    weighed = {message.step for message in asked.messages if message.weight}
    assert value.steps == len(weighed) == value.trained + value.lost.total()
    prepared = ready(made, asked)
    seen: Counter[int] = Counter()
    for row in value.rows:
        assert len(row.input_ids) <= limit
        steps = set(np.unique(row.step_index)) - {-1}
        assert steps
        seen.update(int(step) for step in steps)
        if not row.context_cut:
            check_row(made, prepared, row, ends(name))
        elif made.options.window != "keep_start":
            check_row(made, window_of(made, prepared, row.text), row, ends(name))
    assert set(seen.values()) <= {1}
    assert set(seen) <= weighed
    assert value.trained == len(seen)


@st.composite
def cases(draw: st.DrawFn, name: str) -> tuple[Chat, float, float]:
    made = renderer(name)
    kinds = {"tools": True, "parallel": made.template.forms.parallel, "reasoning": False}
    talk = draw(talks(**kinds, words=False))
    return talk, draw(st.floats(0.05, 1.1)), draw(st.sampled_from([0.0, 0.25, 0.9]))


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", NAMES)
def test_laws(name: str, window: str) -> None:
    @settings(max_examples=examples(16), suppress_health_check=list(HealthCheck), database=None)
    @given(cases(name))
    def holds(case: tuple[Chat, float, float]) -> None:
        talk, share, overlap = case
        limit = max(8, int(length(renderer(name), ready(renderer(name), talk)) * share))
        made = windowed(name, window, limit, overlap)
        chat = made.chat(talk)
        laws(made, talk, chat, name)
        if window == "sliding":
            sliding_law(made, talk, chat)

    holds()


def sliding_law(made: Renderer, talk: Chat, value: Rendered) -> None:
    """A step is lost only if it is too long for a window with nothing but the head before it."""
    limit = made.options.max_length or 0
    prepared = ready(made, talk)
    seen = {int(step) for row in value.rows for step in row.step_index}
    for index, message in enumerate(prepared.messages):
        if message.weight and message.step not in seen:
            assert length(made, part(prepared, index, index + 1)) > limit


@pytest.mark.parametrize(
    "window", [pytest.param("keep_start", marks=pytest.mark.slow), "keep_ends"]
)
def test_as_much_as_fits_is_kept(window: str) -> None:
    whole = renderer("qwen2_5").chat(TALKS["turns"])
    trained = [index for index, message in enumerate(TALKS["turns"].messages) if message.weight]
    for limit in range(8, len(whole.rows[0].input_ids) + 7, 7):
        made = windowed("qwen2_5", window, limit)
        chat = made.chat(TALKS["turns"])
        kept = sorted({int(step) for row in chat.rows for step in row.step_index} - {-1})
        talk = TALKS["turns"]
        choices: list[list[int]] = [[]]
        for count in range(1, len(trained) + 1):
            steps = trained[:count] if window == "keep_start" else trained[-count:]
            first = head(talk) if window == "keep_start" else steps[0]
            if length(made, part(talk, first, steps[-1] + 1)) <= limit:
                choices.append(steps)
        assert kept == choices[-1]


def test_what_fits_is_not_cut() -> None:
    plain = renderer("qwen3").chat(TALKS["tool with words"])
    limit = max(len(row.input_ids) for row in plain.rows)
    for window in WINDOWS:
        chat = windowed("qwen3", window, limit).chat(TALKS["tool with words"])
        assert [row.text for row in chat.rows] == [row.text for row in plain.rows]
        assert not any(row.context_cut for row in chat.rows)


def test_drop_loses_the_row_and_says_so() -> None:
    chat = windowed("qwen2_5", "drop", 20).chat(TALKS["turns"])
    assert not chat.rows
    assert dict(chat.lost) == {"the window is too small": 3}


@pytest.mark.parametrize("name", ["qwen2_5", "qwen3", "granite"])
@pytest.mark.parametrize("window", WINDOWS)
def test_a_chat_that_an_assistant_begins(name: str, window: str) -> None:
    talk = TALKS["turns"]
    talk = replace(talk, messages=talk.messages[head(talk) :])
    whole = length(renderer(name), ready(renderer(name), talk))
    for share in (0.3, 0.6, 0.9):
        made = windowed(name, window, int(whole * share))
        chat = made.chat(talk)
        assert chat.rejected is None
        laws(made, talk, chat, name)
