"""The last trained token of a step is one at which generation stops, whatever the template.

The oracles are transformers' ``apply_chat_template`` and TRL's own masks and check of its training
templates. What each template ends a turn with is written down in `tests.rendering.families`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adp.rendering.chat import Chat
from adp.rendering.model import stop_ids
from adp.rendering.options import RenderOptions
from adp.rendering.render import IGNORED, Renderer, TokenRow
from adp.rendering.report import NO_END, check_ends
from adp_schema.errors import UsageError
from tests.rendering.families import files, renderer, template, tokenizer_of, trl_folder
from tests.rendering.oracle import fixed_day, ready
from tests.rendering.talks import OSLO, PARIS, TALKS, agent, chat, tool, user
from tests.rendering.test_exact import ALL, TEXT_ONLY
from tests.rendering.test_trl_masks import PICTURES, TRAINING

needs_trl = pytest.mark.skipif(trl_folder() is None, reason="TRL is not installed")

IGNORES_THE_PROMPT = """\
{{- '<s>' }}
{%- for m in messages %}
    {%- if m.role == 'user' %}{{ '<|turn|><|of_user|>' + m.content + '<|end_turn|>' }}{% endif %}
    {%- if m.role == 'tool' %}{{ '<|turn|><|of_tool|>' + m.content + '<|end_turn|>' }}{% endif %}
    {%- if m.role == 'assistant' %}
        {{- '<|turn|><|of_bot|>' }}
        {%- if m.tool_calls %}
            {{- '<|begin_action|>' }}
            {%- for c in m.tool_calls %}{{ c.function.name + (c.function.arguments | tojson) }}
            {%- endfor %}
            {{- '<|end_action|>' }}
        {%- else %}{{ '<|begin_words|>' + m.content + '<|end_words|>' }}{% endif %}
        {{- '<|end_turn|>' }}
    {%- endif %}
{%- endfor %}
{{- '<|turn|><|of_bot|>' }}"""
"""In the manner of Command A for tools: it always ends with what the model begins with."""

NO_TOKEN = """\
{%- for m in messages %}
    {{- ('USER: ' if m.role == 'user' else 'ASSISTANT: ') + m.content + ' ' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ 'ASSISTANT:' }}{% endif %}"""
"""In the manner of LLaVA: nothing but words tells where a turn ends."""

OPEN = """\
{%- for m in messages %}
    {{- '<|' + m.role + '|>\\n' }}
    {%- if m.role == 'assistant' %}
        {%- if m.tool_calls %}
            {%- for c in m.tool_calls %}
                {{- '<call>' + c.function.name + (c.function.arguments | tojson) + '</call>' }}
            {%- endfor %}
        {%- else %}{{ m.content }}{% endif %}
    {%- else %}{{ m.content }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}
{#- the tokens that it writes: <|user|> <|assistant|> <|tool|> <|system|> -#}"""
"""In the manner of GLM: the next message begins with the token at which the model stops."""

MARKS_TOO_LITTLE = """\
{%- for m in messages %}
    {{- '<|im_start|>' + m.role + '\\n' }}
    {%- if m.role == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration %}
    {%- else %}{{ m.content }}{% endif %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""
"""Its marks leave out the end of turn."""


def made(text: str, **options: Any) -> Renderer:
    return Renderer(tokenizer_of(text), RenderOptions(**options))


def spans(row: TokenRow) -> list[str]:
    return [row.text[start:end] for _, start, end in row.spans]


def last_words(made: Renderer, row: TokenRow) -> Iterator[str]:
    """The last trained token of each step that is no white space, as text."""
    for step in np.unique(row.step_index[row.step_index >= 0]):
        ids = row.labels[(row.step_index == step) & (row.labels != IGNORED)]
        words = [made.tokenizer.decode([int(number)]) for number in ids]
        yield next((word for word in reversed(words) if word.strip()), "")


@pytest.mark.parametrize("name", ALL)
def test_every_step_ends_with_an_added_token(name: str) -> None:
    result = renderer(name)
    added = {str(token) for token in result.tokenizer.added_tokens_decoder.values()}
    inner = {"</tool_call>", "</function>", "</parameter>", "<tool_call|>"}
    count = 0
    for title, talk in TALKS.items():
        rendered = result.chat(talk)
        assert not rendered.notes[NO_END], title
        for row in rendered.rows:
            for word in last_words(result, row):
                count += 1
                assert word in added - inner, (title, word)
    assert count >= (10 if name in TEXT_ONLY else 12)


def test_the_tokens_of_glm_are_those_of_trl() -> None:
    """TRL's training template puts the begin of the next message into the turn before it."""
    if "glm4moe_training" not in files():
        pytest.skip("TRL is not installed")
    ours = renderer("glm4moe")
    other = tokenizer_of(template("glm4moe_training"))
    compared = 0
    for title, talk in TALKS.items():
        whole = chat(*(m if m.role != "assistant" else _weighed(m) for m in talk.messages))
        whole = Chat("talk", 0, 0, whole.messages, talk.tools)
        result = ours.chat(whole)
        if len(result.rows) != 1:
            continue
        plain = ours.template.plain(ready(ours, whole))
        with fixed_day():
            theirs = other.apply_chat_template(
                plain,
                tools=list(whole.tools) or None,
                tokenize=True,
                return_dict=True,
                return_assistant_tokens_mask=True,
            )
        row = result.rows[0]
        text = other.decode(theirs["input_ids"])
        assert ours.tokenizer.decode(row.input_ids) == text, title
        mask = np.array(theirs["assistant_masks"]) == 1
        np.testing.assert_array_equal(row.labels != IGNORED, mask, title)
        compared += 1
    assert compared >= 8


def _weighed(message: Any) -> Any:
    return agent(message.text, *message.calls, reasoning=message.reasoning)


def test_glm_after_what_does_not_stop_it() -> None:
    """After an answer another message of the agent follows: the answer has a row of its own."""
    result = renderer("glm4moe").chat(TALKS["steps in a row"])
    assert not result.notes[NO_END]
    assert result.trained == result.steps
    for row in result.rows:
        assert all(text.endswith("<|user|>") for text in spans(row))
    assert not any("<|assistant|>" in text for row in result.rows for text in spans(row))


def test_a_window_leaves_room_for_the_end() -> None:
    """The token that ends a row counts as one of its tokens."""
    talk = chat(*(m for n in range(3) for m in (user(f"ask {n}"), agent(f"words {n} " * 3))))
    whole = renderer("glm4moe").chat(talk)
    size = len(whole.rows[0].input_ids)
    for limit in (size - 1, size, size + 1):
        options = RenderOptions(max_length=limit, window="sliding")
        result = renderer("glm4moe", "bytes", options).chat(talk)
        assert len(result.rows) == 1 + (limit < size)
        assert result.trained == result.steps, limit
        assert all(len(row.input_ids) <= limit for row in result.rows)
        assert all(text.endswith("<|user|>") for row in result.rows for text in spans(row))


def test_a_template_that_leaves_turns_open() -> None:
    result = made(OPEN).chat(
        chat(
            *(user("a"), agent("", PARIS, OSLO), tool("sunny", "call_1")),
            *(tool("rain", "call_2", "search"), agent("Both."), user("b"), agent("Beta")),
            tools=True,
        )
    )
    (row,) = result.rows
    assert [text[-8:] for text in spans(row)] == ["<|tool|>", "<|user|>", "<|user|>"]
    assert row.text.endswith("Beta<|user|>")
    assert "</call><call>" in spans(row)[0]


def test_a_template_that_ignores_the_prompt() -> None:
    """The turn ends with the first token that does, and one row holds all steps."""
    maker = made(IGNORES_THE_PROMPT)
    talk = chat(
        *(user("a"), agent("", PARIS), tool("sunny", "call_1"), agent("Sunny.")),
        *(user("b"), agent("Beta"), user("c"), agent("Gamma")),
        tools=True,
    )
    result = maker.chat(talk)
    (row,) = result.rows
    assert result.trained == 4
    assert all(text.endswith("<|end_turn|>") for text in spans(row))
    assert not any("<|turn|>" in text for text in spans(row))
    assert maker.template.stops >= {maker.tokenizer.convert_tokens_to_ids("<|end_turn|>")}


def test_marks_that_leave_out_the_end() -> None:
    """The template writes the end of turn after what it marks, so it is trained."""
    maker = made(MARKS_TOO_LITTLE)
    result = maker.chat(TALKS["turns"])
    texts = [text for row in result.rows for text in spans(row)]
    assert texts == ["One.<|im_end|>", "Two.<|im_end|>", "Three.<|im_end|>"]


@needs_trl
@pytest.mark.slow
def test_what_trl_says_of_training_templates() -> None:
    from trl.chat_template_utils import is_chat_template_stop_token_trained as trained

    assert not trained(made(MARKS_TOO_LITTLE).tokenizer)
    agreed = 0
    for name in TRAINING:
        if name in PICTURES:
            continue
        maker = renderer(name)
        result = maker.chat(TALKS["one answer"])
        if result.rows and trained(maker.tokenizer):
            agreed += 1
            assert not result.notes[NO_END], name
    assert agreed >= 20


def test_no_end_of_turn_is_counted_and_refused() -> None:
    maker = made(NO_TOKEN)
    result = maker.chat(TALKS["same words"])
    assert result.trained == 2
    assert result.notes[NO_END] == 2
    with pytest.raises(UsageError, match=r"2 steps that train no end of turn.*end_of_turn=allow"):
        check_ends(result.notes, maker.options)
    check_ends(result.notes, RenderOptions(end_of_turn="allow"))
    check_ends(renderer("qwen2_5").chat(TALKS["turns"]).notes, RenderOptions())


def test_an_end_inside_a_conversation_that_stops_nothing() -> None:
    """gpt-oss ends an answer in history with a token at which it does not stop."""
    exact = renderer("gptoss").chat(TALKS["turns"])
    assert not exact.notes[NO_END]
    result = renderer("gptoss", "bytes", RenderOptions(history="one_row")).chat(TALKS["turns"])
    assert len(result.rows) == 1
    assert result.notes[NO_END] == 2


def test_stops_of_a_generation_config(tmp_path: Path) -> None:
    maker = made(NO_TOKEN)
    assert stop_ids(str(tmp_path)) == ()
    for messages, wanted in ((7, (7,)), ([9, 7, 7], (7, 9)), (None, ()), ("x", ()), (True, ())):
        (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": messages}))
        assert stop_ids(str(tmp_path)) == wanted
    (tmp_path / "generation_config.json").write_text("[]")
    assert stop_ids(str(tmp_path)) == ()
    assert stop_ids("tiny") == ()
    number = maker.tokenizer.convert_tokens_to_ids("<unk>")
    more = Renderer(maker.tokenizer, RenderOptions(), [number])
    assert more.template.stops == maker.template.stops | {number}
    assert more.template.digest != maker.template.digest
