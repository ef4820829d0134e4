"""Parts that a template marks train a message only where they lie in that very message."""

from __future__ import annotations

from typing import Any

import pytest

from adp.rendering.chat import Chat
from adp.rendering.options import RenderOptions
from adp.rendering.render import Renderer
from tests.rendering.families import renderer
from tests.rendering.talks import agent, chat, system, user

PROMPT = "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}"

APART = """\
{%- for m in messages %}
    {{- '<|im_start|>' + m.role + '\\n' }}
    {%- if m.role == 'assistant' and 'plain' not in m.content %}
        {%- generation %}{{- m.reasoning_content or '' }}{% endgeneration %}
        {{- '\\n--\\n' }}
        {%- generation %}{{- m.content + '<|im_end|>' }}{% endgeneration %}
    {%- else %}{{- m.content + '<|im_end|>' }}{% endif %}
    {{- '\\n' }}
{%- endfor %}"""
"""Marks one turn in two parts, and another one not at all."""

USERS = """\
{%- for m in messages %}
    {{- '<|im_start|>' + m.role + '\\n' }}
    {%- if m.role == 'user' %}
        {%- generation %}{{- m.content }}{% endgeneration %}
    {%- else %}{{- m.content }}{% endif %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}"""

RIGHT = """\
{%- for m in messages %}
    {{- '<|im_start|>' + m.role + '\\n' }}
    {%- if m.role == 'assistant' %}
        {%- generation %}{{- m.content + '<|im_end|>' }}{% endgeneration %}
    {%- else %}{{- m.content + '<|im_end|>' }}{% endif %}
    {{- '\\n' }}
{%- endfor %}"""


def words(text: str, talk: Chat, **values: Any) -> list[tuple[int, str]]:
    """Step and trained text of each span."""
    made: Renderer = renderer(
        "qwen2_5", "bytes", RenderOptions(chat_template=text + PROMPT, **values)
    )
    result = made.chat(talk)
    assert result.trained == result.steps
    return [(step, row.text[a:b]) for row in result.rows for step, a, b in row.spans]


@pytest.mark.parametrize("history", ["exact", "one_row"])
@pytest.mark.parametrize("check", ["sampled", "all"])
def test_a_masked_step_marked_twice_is_not_trained(check: str, history: str) -> None:
    talk = chat(
        *(user("one"), agent("Alpha", reasoning="Thought", weight=0.0)),
        *(user("two"), agent("plain Beta"), user("three"), agent("plain Gamma")),
    )
    for size in (4, 6):
        part = Chat("t", 0, 0, talk.messages[:size])
        result = words(APART, part, check=check, history=history)
        output = [(3, "plain Beta<|im_end|>"), (5, "plain Gamma<|im_end|>")]
        assert result == output[: size // 2 - 1]


@pytest.mark.parametrize("check", ["sampled", "all"])
def test_marks_around_users_are_not_trained(check: str) -> None:
    talk = chat(system("S"), user("one"), agent("Alpha"), user("two"), agent("Beta"))
    assert words(USERS, talk, check=check) == [(2, "Alpha<|im_end|>"), (4, "Beta<|im_end|>")]


@pytest.mark.parametrize("check", ["sampled", "all"])
def test_right_marks_are_taken_at_their_word(check: str) -> None:
    # The same words twice, and an agent that begins.
    talk = chat(agent("yes"), user("yes"), agent("yes"), agent("yes", weight=0.0), agent(" no "))
    result = words(RIGHT, talk, check=check)
    assert result == [(0, "yes<|im_end|>"), (2, "yes<|im_end|>"), (4, " no <|im_end|>")]
