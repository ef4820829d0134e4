"""What is found out about templates, by a table of what they really take."""

from __future__ import annotations

import pytest

from adp.rendering.options import RenderOptions
from adp.rendering.prepare import SYSTEM_DROPPED
from adp.rendering.render import WORDS_DROPPED, Renderer
from tests.rendering.families import renderer, template, tokenizer
from tests.rendering.talks import OSLO, PARIS, TALKS, agent, chat, system, tool, user

# arguments, and letters for: text beside calls (w), results (r), tools (t), system (s), parallel
# calls (p), roles that take turns (a), short ids (i); then reasoning.
FORMS = {
    "cohere": (None, "sa", "inline"),
    "cohere2": (None, "sa", "inline"),
    # Its tool calls need a null content, which transformers takes away.
    "deepseek_r1_distill": (None, "rs", None),
    "deepseekv3": ("text", "wrsp", None),
    "gemma": (None, "a", "inline"),
    "gemma3": (None, "sa", "inline"),
    "gemma4_v5": ("object", "wrtsp", "field"),
    "glm4moe": ("object", "wrtsp", "field"),
    # It writes the first of several calls alone.
    "gptoss": ("object", "wrts", "field"),
    "granite": ("object", "wrtsp", "inline"),
    "hermes_2_pro": ("object", "rtsp", "inline"),
    "lfm2": (None, "rts", "inline"),
    "lfm2_2_5": ("object", "wrtsp", "field"),
    "llama3": (None, "rs", "inline"),
    "llama3_1": ("object", "rts", "inline"),
    "llama3_2": ("object", "rts", "inline"),
    "mistral": ("object", "rtspi", "inline"),
    "mistral_tekken": ("object", "wrtspi", "inline"),
    "muse_glimmer": ("object", "rtsp", "field"),
    "nemotron_3_nano": ("object", "wrtsp", "field"),
    "phi3": (None, "s", "inline"),
    "qwen2_5": ("object", "wrtsp", "inline"),
    "qwen3": ("object", "wrtsp", "field"),
    "qwen3_5_think": ("object", "wrtsp", "field"),
    "qwen3_8": ("object", "wrtsp", "field"),
    "qwen3_instruct_2507": ("object", "wrtsp", "inline"),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms(name: str) -> None:
    forms = renderer(name).template.forms
    letters = {
        "w": forms.text_with_calls,
        "r": forms.results,
        "t": forms.tools,
        "s": forms.system,
        "p": forms.parallel,
        "a": forms.alternates,
        "i": forms.short_ids,
    }
    text = "".join(letter for letter, true in letters.items() if true)
    arguments, wanted, reasoning = FORMS[name]
    assert (forms.arguments, sorted(text), forms.reasoning) == (
        arguments,
        sorted(wanted),
        reasoning,
    )


@pytest.mark.parametrize(
    ("name", "prompt", "tail"),
    [
        ("qwen3", "<|im_start|>assistant\n", ""),
        ("qwen3_5_think", "<|im_start|>assistant\n<think>\n", ""),
        ("llama3_1", "<|start_header_id|>assistant<|end_header_id|>\n\n", ""),
        ("phi3", "<|assistant|>\n", "</s>"),
        ("gptoss", "<|start|>assistant", ""),
        ("mistral", "", ""),
        ("gemma", "<start_of_turn>model\n", ""),
        ("hermes_2_pro", "<|im_start|>assistant\n", ""),
    ],
)
def test_prompt_and_tail(name: str, prompt: str, tail: str) -> None:
    forms = renderer(name).template.forms
    assert (forms.prompt, forms.answer.tail) == (prompt, tail)


def test_a_message_stands_after_its_prompt() -> None:
    """The template writes the system in the last user's turn: in each row it is there."""
    result = renderer("mistral").chat(TALKS["turns"])
    assert len(result.rows) == 3
    for row in result.rows:
        start = row.spans[-1][1]
        question = row.text.rindex("[INST]", 0, start)
        assert row.text[question:start].startswith("[INST]Be short.\n\n")
    thoughts = renderer("gptoss").chat(TALKS["reasoning and tools"])
    assert not thoughts.notes["steps whose prompt at inference is another one"]
    assert all(
        "I need the weather." in thoughts.rows[0].text[: row[1]]
        for row in thoughts.rows[0].spans[1:]
    )


def test_two_templates_of_one_tokenizer() -> None:
    """A tokenizer may have a template for conversations with tools, beside the usual one."""
    made = tokenizer("hermes_2_pro", "bytes")
    chat_template = {"default": template("qwen2_5_vl"), "tool_use": template("hermes_2_pro")}
    both = type(made)(
        tokenizer_object=made.backend_tokenizer,
        chat_template=chat_template,
        **{"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"},
    )
    result = Renderer(both, RenderOptions())
    for title, name in (("tool", "hermes_2_pro"), ("turns", "qwen2_5_vl")):
        alone = Renderer(made, RenderOptions(chat_template=template(name)))
        assert result.chat(TALKS[title]).rows[0].text == alone.chat(TALKS[title]).rows[0].text


def test_reasoning_that_is_not_written_is_noted() -> None:
    """Gemma 4 wrote reasoning beside calls alone at first."""
    result = renderer("gemma4").chat(TALKS["reasoning"])
    assert result.notes["steps whose reasoning the template drops"] == 1
    result = renderer("qwen3").chat(TALKS["reasoning and tools"])
    assert not result.notes["steps whose reasoning the template drops"]


def test_a_call_after_words_that_nothing_ends() -> None:
    """DeepSeek's prompt and its later calls have nothing in common after the user's words."""
    talk = chat(
        *(user("a"), agent("", PARIS), tool("sunny", "call_1"), agent("Sunny.")),
        *(user("b"), agent("", OSLO), tool("rain", "call_2"), agent("Rain.")),
        tools=True,
    )
    result = renderer("deepseekv3").chat(talk)
    assert result.trained == result.steps == 4
    words = [row.text[start:end] for row in result.rows for _, start, end in row.spans]
    assert any(text.startswith("\n<\uff5ctool▁call▁begin") and "Oslo" in text for text in words)


NO_PROMPT_IN_COMMON = """\
{%- for m in messages %}
    {{- '<|im_start|>' + m.role + '\\n' + m.content }}
    {{- ('<|im_end|>\\n' if not loop.last else '</s>') if m.role == 'assistant' }}
    {{- ('<|im_end|>\\n' if not loop.last else '</s>') if m.role == 'user' }}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{% endif %}"""


def test_what_ends_the_turn_of_a_user_is_not_trained() -> None:
    """Another token ends the last turn, so nothing tells where the model begins."""
    made = renderer("qwen2_5", "bytes", RenderOptions(chat_template=NO_PROMPT_IN_COMMON))
    result = made.chat(chat(user("one"), agent("Alpha"), user("two"), agent("Beta")))
    assert result.trained + sum(result.lost.values()) == result.steps == 2
    for row in result.rows:
        assert not any(row.text[start:end].startswith("<|im_end|>") for _, start, end in row.spans)


LATER = [
    *[("qwen2_5", 0), ("qwen3", 0), ("deepseekv3", 0), ("nemotron_3_nano", 0)],
    *[("gptoss", 1), ("deepseek_r1_distill", 1)],
]


@pytest.mark.parametrize(("name", "dropped"), LATER)
def test_a_later_system_message_that_is_dropped_is_noted(name: str, dropped: int) -> None:
    talk = chat(
        *(system("First rule."), user("a"), agent("Alpha")),
        *(system("Other rule."), user("b"), agent("Beta")),
    )
    result = renderer(name).chat(talk)
    assert result.trained == 2
    assert result.notes[SYSTEM_DROPPED] == dropped
    text = result.rows[-1].text
    assert ("First rule." in text) + ("Other rule." in text) == 2 - dropped
    assert not renderer(name).chat(TALKS["turns"]).notes[SYSTEM_DROPPED]


def test_a_template_in_which_roles_take_turns_drops_a_system_message() -> None:
    talk = chat(system("First."), user("a"), system("Other."), user("b"), agent("Beta"))
    result = renderer("cohere").chat(talk)
    assert result.trained == 1
    assert "Other." not in result.rows[0].text
    assert result.notes[SYSTEM_DROPPED] == 1


@pytest.mark.parametrize(
    ("name", "text", "dropped"),
    [
        ("glm4moe", "X<think>a</think>b", 1),
        ("qwen3", "X<think>a</think>b", 1),
        ("qwen3", "<think>a</think>b", 0),
        ("qwen2_5", "X<think>a</think>b", 0),
        ("qwen3", "  a \n\n b ", 0),
    ],
)
def test_words_that_are_dropped_are_noted(name: str, text: str, dropped: int) -> None:
    result = renderer(name).chat(chat(user("q"), agent(text)))
    assert result.trained == 1
    assert result.notes[WORDS_DROPPED] == dropped


@pytest.mark.parametrize("name", ["deepseekv3", "deepseek_r1_distill"])
def test_words_that_hide_where_they_begin_are_lost_or_noted(name: str) -> None:
    result = renderer(name).chat(chat(user("q"), agent("X</think>y")))
    assert result.trained + sum(result.lost.values()) == result.steps == 1
    assert result.notes[WORDS_DROPPED] == result.trained


@pytest.mark.parametrize("name", ["qwen3", "gptoss", "glm4moe", "mistral", "granite", "gemma4_v5"])
def test_words_that_are_written_are_not_noted(name: str) -> None:
    for talk in TALKS.values():
        assert not renderer(name).chat(talk).notes[WORDS_DROPPED]
