"""Where a rollout stops is where training ends a turn, and the token is no part of what is said."""

from __future__ import annotations

import pytest

from adp.rendering.prepare import REASONING_DROPPED, WORDS_CONTEXT
from adp.rollouts.policies.prompts import Generated, Prompter
from adp.rollouts.policies.settings import InProcessSettings
from adp.rollouts.policy import Request
from tests.rendering.families import tokenizer
from tests.rendering.test_endings import IGNORES_THE_PROMPT, OPEN, tokenizer_of

ASKED = [{"role": "user", "content": "Weather?"}]


@pytest.mark.parametrize(
    ("template", "ends"),
    [(OPEN, {"</s>", "<|user|>", "<|tool|>"}), (IGNORES_THE_PROMPT, {"</s>", "<|end_turn|>"})],
)
def test_ends(template: str, ends: set[str]) -> None:
    tokenizer = tokenizer_of(template)
    prompter = Prompter(tokenizer, InProcessSettings(model="tiny", call_form="json"))
    assert {tokenizer.decode([end]) for end in prompter.ends} == ends
    request = Request(ASKED, ())
    for end in sorted(ends):
        ids = tokenizer.encode(f"It rains.{end}", add_special_tokens=False)
        written = Generated(ids, ended=True)
        turn = prompter.turn(request, prompter.prompt(request), written)
        assert turn.text == "It rains."
    more = Prompter(tokenizer, InProcessSettings(model="tiny", call_form="json"), [5])
    assert more.ends == prompter.ends | {5}


CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
CALL_BESIDE_TEXT = [
    *ASKED,
    {"role": "assistant", "content": "I look.", "reasoning_content": "Hm.", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
]


NO_REASONING = """\
{%- for m in messages %}{{ '<|' + m.role + '|>' }}
{%- if m.content %}{{ m.content.split('</think>')[-1] | trim }}{% endif %}
{%- for c in m.tool_calls or [] %}<tool_call>
{{ {'name': c.function.name, 'arguments': c.function.arguments} | tojson }}
</tool_call>{% endfor %}{{ '</s>' }}{% endfor %}
{%- if tools %}{{ tools | tojson }}{% endif %}
{%- if add_generation_prompt %}<|assistant|>{% endif %}"""


def test_reasoning_that_a_template_never_writes_is_counted() -> None:
    prompter = Prompter(tokenizer_of(NO_REASONING), InProcessSettings(model="tiny"))
    assert prompter.renderer.template.forms.reasoning is None
    text = prompter.prompt(Request(CALL_BESIDE_TEXT, (TOOL,))).text
    assert "I look." in text
    assert "Hm." not in text
    assert prompter.remarks() == [f"in 1 of 1 prompts: {REASONING_DROPPED}"]


def test_what_a_template_drops_from_prompts_is_counted_by_prompts() -> None:
    prompter = Prompter(tokenizer("llama3_1", "bytes"), InProcessSettings(model="tiny"))
    for messages in (ASKED, CALL_BESIDE_TEXT, CALL_BESIDE_TEXT):
        text = prompter.prompt(Request(messages, (TOOL,))).text
        assert "I look." not in text
        assert "Hm." not in text
    assert prompter.remarks() == [
        f"in 2 of 3 prompts: {WORDS_CONTEXT}",
        f"in 2 of 3 prompts: {REASONING_DROPPED}",
    ]


def test_what_is_all_there_is_no_remark() -> None:
    prompter = Prompter(tokenizer("qwen3", "bytes"), InProcessSettings(model="tiny"))
    assert "I look." in prompter.prompt(Request(CALL_BESIDE_TEXT, (TOOL,))).text
    assert prompter.remarks() == []
