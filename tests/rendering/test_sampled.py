"""The quick way finds the same spans as the sure one, which compares every prefix."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adp.rendering.chat import Chat, ChatCall, Message
from adp.rendering.options import RenderOptions
from adp.rendering.render import Rendered, Renderer
from tests.effort import examples

_TRL = importlib.util.find_spec("trl")
assert _TRL is not None
assert _TRL.origin is not None
TEMPLATES = Path(_TRL.origin).parent / "chat_templates"

FEW = ("qwen3", "qwen3_training", "qwen2_5", "glm4moe", "gemma4_v5")
NAMES = sorted(path.stem for path in TEMPLATES.glob("*.jinja"))

LAST_TURN = """\
{%- for m in messages %}
    {%- if m.role == 'assistant' %}
        {{- 'Agent: ' + (m.content or '') }}
        {%- if m.reasoning_content and loop.last %}{{- ' ' + m.reasoning_content }}{% endif %}
        {%- for call in m.tool_calls or [] %}{{- ' ' + call.function.name }}{% endfor %}
        {{- '\\n' if not loop.last else '<|im_end|>' }}
    {%- else %}{{- m.role + ': ' + m.content + '\\n' }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- 'Agent: ' }}{% endif %}"""
"""Ends every turn but the last without a token, and writes reasoning in the last one alone."""

WORDS_DECIDE = """\
{%- for m in messages %}
    {{- '<|im_start|>' + m.role + '\\n' }}
    {%- if m.role == 'assistant' and not loop.last and (m.content or '')|length > 12 %}
        {{- 'long' }}
    {%- else %}{{- m.content or '' }}{% endif %}
    {%- for call in m.tool_calls or [] %}{{- call.function.name }}{% endfor %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{% endif %}"""
"""Rewrites history by the length of a text: what no form of a message tells."""

TEXTS = st.sampled_from(
    ["", " ", "ok", "Yes, it is.\n", "  look at <b>this</b>", "<think>\nhm\n</think>\n\nIt is 4.",
     "<tool_response>\nx\n</tool_response>", "user", "a<|im_end|>\nb", "\n\nwhat now?",
     "\ue0000\ue001", "assistant\n", "<|im_end|>", "naïve 世界 " * 3]
)  # fmt: skip
TOOLS = tuple(
    {"type": "function", "function": {"name": name, "description": "d", "parameters": {
        "type": "object", "properties": {"a": {"type": "string"}}}}}
    for name in ("look", "find")
)  # fmt: skip


OTHER = "steps whose prompt at inference is another one"


@st.composite
def chats(draw: st.DrawFn) -> Chat:
    """Chats of one to four turns of the user."""
    messages = [Message("system", draw(TEXTS), -1)] if draw(st.booleans()) else []
    for _ in range(draw(st.integers(1, 4))):
        messages.append(Message("user", draw(TEXTS), len(messages)))
        for _ in range(draw(st.integers(0, 4))):
            messages += draw(turns(len(messages)))
    return Chat("t", 0, 0, tuple(messages), TOOLS if draw(st.booleans()) else ())


@st.composite
def turns(draw: st.DrawFn, number: int) -> list[Message]:
    """A message of the agent, and the results of its calls."""
    calls = tuple(
        ChatCall("look", value, '{"a": "x"}', f"call_{number:03d}{index:02d}")
        for index, value in enumerate(
            draw(
                st.lists(st.sampled_from([{}, {"a": "ok"}, {"a": "x", "n": [1, None]}]), max_size=2)
            )
        )
    )
    text = draw(TEXTS)
    reasoning = draw(st.sampled_from([None, None, "so", " well \n", "<|im_end|>"]))
    weight = draw(st.sampled_from([1.0, 1.0, 0.5, 0.0])) if text or calls or reasoning else 0.0
    message = Message("assistant", text, number, reasoning=reasoning, calls=calls, weight=weight)
    results = [Message("tool", draw(TEXTS), number, call_id=c.call_id, name=c.name) for c in calls]
    return [message, *results]


@cache
def renderer(name: str, check: str) -> Renderer:
    """Kept over all examples: what one chat taught must hold for the next."""
    ours = {"last_turn": LAST_TURN, "words_decide": WORDS_DECIDE, "tiny": None}
    text = ours[name] if name in ours else (TEMPLATES / f"{name}.jinja").read_text(encoding="utf-8")
    options: dict[str, Any] = {"chat_template": text, "check": check, "parallel_calls": "split"}
    return Renderer.load("tiny", RenderOptions(**options))


def plain(chat: Chat, value: Rendered, *, exact: bool = True) -> Any:
    """All that a chat gives, to be compared."""
    rows = [
        (row.input_ids.tolist(), row.labels.tolist(), row.step_index.tolist(), row.spans)
        for row in value.rows
    ]
    notes = {key: count for key, count in value.notes.items() if key != OTHER}
    # A text with a special token hides where the prompt of its step ends.
    words = [message.text + (message.reasoning or "") for message in chat.messages]
    if exact and not any(token in text for text in words for token in ("<|", "<think>")):
        notes[OTHER] = value.notes[OTHER]
    return rows, value.steps, value.trained, value.lost, notes, value.rejected


@pytest.mark.parametrize("name", ["tiny", "last_turn", *FEW])
@given(chat=chats())
@settings(max_examples=examples(50))
def test_sampled_finds_what_all_finds(name: str, chat: Chat) -> None:
    quick, sure = renderer(name, "sampled").chat(chat), renderer(name, "all").chat(chat)
    assert plain(chat, quick) == plain(chat, sure)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@given(chat=chats())
@settings(max_examples=examples(200), deadline=None)
def test_sampled_finds_what_all_finds_in_every_template(name: str, chat: Chat) -> None:
    quick, sure = renderer(name, "sampled").chat(chat), renderer(name, "all").chat(chat)
    # How many prompts are other ones may be told by what came long before, as in DeepSeek's.
    assert plain(chat, quick, exact=False) == plain(chat, sure, exact=False)


def talk(*texts: str) -> Chat:
    """Questions, and answers that are trained."""
    messages: list[Message] = []
    for text in texts:
        messages.append(Message("user", "go on", len(messages)))
        messages.append(Message("assistant", text, len(messages), weight=1.0))
    return Chat("t", 0, 0, tuple(messages))


def test_a_memory_that_is_wrong_is_found_out() -> None:
    options = RenderOptions(chat_template=WORDS_DECIDE)
    quick, sure = Renderer.load("tiny", options), renderer("words_decide", "all")
    for chat in (talk("short", "short"), talk("rather a long answer", "short")):
        assert plain(chat, quick.chat(chat)) == plain(chat, sure.chat(chat))
    assert quick._memory is not None
    assert None in quick._memory.fits.values()
    for _ in range(2):
        chat = talk("short", "rather a long answer", "short", "short")
        assert plain(chat, quick.chat(chat)) == plain(chat, sure.chat(chat))


def test_few_prefixes_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    renders = []
    quick = Renderer.load("tiny", RenderOptions())
    write = quick.template.render
    monkeypatch.setattr(
        quick.template, "render", lambda *a, **k: renders.append(1) or write(*a, **k)
    )
    for _ in range(2):
        renders.clear()
        chat = quick.chat(talk(*["a word"] * 40))
        assert chat.trained == 40
    # The chat, the chat with marks, and one message that is compared all the same.
    assert len(renders) == 3
