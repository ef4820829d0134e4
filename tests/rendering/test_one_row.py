"""One row where the template rewrites history: each step is trained where the row shows it."""

from __future__ import annotations

import importlib.util
import re
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adp.rendering.chat import Chat, ChatCall, Message
from adp.rendering.one_row import DRIFT, MISSING
from adp.rendering.options import RenderOptions
from adp.rendering.render import Renderer
from tests.effort import examples

_TRL = importlib.util.find_spec("trl")
assert _TRL is not None
assert _TRL.origin is not None
TEMPLATES = Path(_TRL.origin).parent / "chat_templates"
NAMES = ("qwen3", "glm4moe", "gptoss", "nemotron_3_nano", "nemotron_3_nano_training", "qwen2_5")
WORD = re.compile(r"(?:said|thought|call|asked|result)[0-9]+x")


@cache
def renderer(name: str, history: str, check: str = "sampled") -> Renderer:
    text = (TEMPLATES / f"{name}.jinja").read_text(encoding="utf-8")
    options = RenderOptions.model_validate(
        {"chat_template": text, "history": history, "check": check, "parallel_calls": "split"}
    )
    return Renderer.load("tiny", options)


@st.composite
def chats(draw: st.DrawFn) -> Chat:
    """Chats in which every text is a word of its own."""
    messages: list[Message] = []
    for _ in range(draw(st.integers(1, 4))):
        messages.append(Message("user", f"asked{len(messages)}x", len(messages)))
        for _ in range(draw(st.integers(0, 3))):
            step = len(messages)
            calls = tuple(
                ChatCall(
                    "look", {"a": f"call{step}x"}, f'{{"a": "call{step}x"}}', f"c{step:04d}{k:04d}"
                )
                for k in range(draw(st.integers(0, 2)))
            )
            text = f"said{step}x" if not calls or draw(st.booleans()) else ""
            reasoning = f"thought{step}x" if draw(st.booleans()) else None
            weight = draw(st.sampled_from([1.0, 1.0, 0.0]))
            messages.append(Message("assistant", text, step, reasoning, calls, weight=weight))
            messages += [
                Message("tool", f"result{step}x", step, call_id=call.call_id, name="look")
                for call in calls
            ]
    return Chat("t", 0, 0, tuple(messages))


@pytest.mark.parametrize("name", NAMES)
@given(chat=chats())
@settings(max_examples=examples(60))
def test_each_step_is_trained_where_the_row_shows_it(name: str, chat: Chat) -> None:
    asked = {message.step for message in chat.messages if message.weight}
    result = renderer(name, "one_row").chat(chat)
    if result.rejected:
        assert result.lost.total() == len(asked)
        return
    assert len(result.rows) == bool(asked)
    assert result.trained == len(asked)
    assert not result.notes[MISSING]
    for row in result.rows:
        spans = {(first, end) for _, first, end in row.spans}
        inside = [row.text[first:end] for first, end in sorted(spans)]
        ours = {f"{kind}{step}x" for kind in ("said", "thought", "call") for step in asked}
        trained = [word for text in inside for word in WORD.findall(text)]
        assert set(trained) <= ours
        # What stands in the row and is to be trained is trained, each time.
        assert sorted(trained) == sorted(word for word in WORD.findall(row.text) if word in ours)
    exact = renderer(name, "exact").chat(chat)
    if len(exact.rows) == 1:
        assert [row.spans for row in result.rows] == [row.spans for row in exact.rows]
        assert not result.notes[DRIFT]
    assert renderer(name, "one_row", "all").chat(chat).notes == result.notes


def test_reasoning_is_trained_where_it_stands() -> None:
    messages = (
        Message("user", "one", 0),
        Message("assistant", "first", 1, reasoning="why", weight=1.0),
        Message("user", "two", 2),
        Message("assistant", "second", 3, reasoning="how", weight=1.0),
    )
    chat = renderer("qwen3", "one_row").chat(Chat("t", 0, 0, messages))
    (row,) = chat.rows
    assert [row.text[first:end] for _, first, end in row.spans] == [
        "first<|im_end|>",
        "<think>\nhow\n</think>\n\nsecond<|im_end|>",
    ]
    assert chat.notes[DRIFT] == 1
    assert len(renderer("qwen3", "exact").chat(Chat("t", 0, 0, messages)).rows) == 2
