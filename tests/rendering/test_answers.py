"""What models write, read in the forms of their templates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("transformers", reason="needs the train extra")

from adp.rendering.answers import AnswerReader, split_thought
from adp.rendering.chat import Chat, ChatCall, Message
from adp.rendering.options import RenderOptions
from adp.rendering.pythonic import PythonicForm
from adp.rendering.render import Renderer
from adp.rendering.tiny import tiny_tokenizer

pytestmark = [
    pytest.mark.train,
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning"),
]

ARGUMENTS = {"query": 'a "b" }</x>, [1]', "limit": 3, "deep": {"x": [None, True, 1.5]}}


def renderer(template=None):
    options = {}
    if template is not None:
        trl = pytest.importorskip("trl", reason="needs the train extra")
        file = Path(trl.__file__).parent / "chat_templates" / f"{template}.jinja"
        options["chat_template"] = file.read_text(encoding="utf-8")
    return Renderer(tiny_tokenizer(), RenderOptions.model_validate(options))


def written(made, text, calls):
    """What the template writes for a turn, without the tokens that end it: the oracle."""
    given = tuple(
        ChatCall(name, arguments, json.dumps(arguments), f"abcdef{n:03d}")
        for n, (name, arguments) in enumerate(calls)
    )
    chat = Chat("", 0, 0, (Message("user", "ask", 0), Message("assistant", text, 1, calls=given)))
    plain = made.template.plain(chat)
    prompt = made.template.render(plain[:1], None, prompt=True)
    whole = made.template.render(plain, None)
    start = next((i for i, (a, b) in enumerate(zip(prompt, whole, strict=False)) if a != b), 0)
    output = whole[start or len(prompt) :]
    for end in ("<|im_end|>", "<|eot_id|>", "<\uff5cend\u2581of\u2581sentence\uff5c>"):
        output = output.split(end)[0]
    if prompt.rstrip().endswith("<think>") and "</think>" not in output:
        output = f"</think>{output}"  # what a model has to write before its answer
    return output, prompt


TEMPLATES = ("tiny", "qwen2_5", "qwen3", "llama3_1", "lfm2_v2", "deepseekv3", "qwen3_5_think")
LLAMA = ("llama3_1",)
"""Templates that write one call a message."""


@pytest.mark.parametrize("name", TEMPLATES)
def test_calls_are_read_as_the_template_writes_them(name):
    made = renderer(None if name == "tiny" else name)
    reader = AnswerReader(made)
    # The parser of transformers takes the values of tags for texts when it knows no schema.
    plain = {"query": "a b"} if name == "qwen3_5_think" else ARGUMENTS
    wanted = [("search", plain), ("read", {"query": "x"})][: 1 if name in LLAMA else 2]
    output, prompt = written(made, "", wanted)
    result = reader.read(output, prompt)
    assert result.malformed is None
    assert [(item.name, json.loads(item.text)) for item in result.calls] == wanted
    if name not in ("lfm2_v2", "deepseekv3"):  # their marks are special in their own tokenizers
        assert result.text == ""
    output, prompt = written(made, "It is sunny.", [])
    assert reader.read(output, prompt).text == "It is sunny."


def test_the_characters_of_the_arguments_are_kept():
    text = (
        'Sure.\n<tool_call>\n{"arguments" : {"a":1.0,  "b": "\\u00e9"}, "name":"f"}\n</tool_call>'
    )
    (call,) = (result := AnswerReader(renderer()).read(text)).calls
    assert call.text == '{"a":1.0,  "b": "\\u00e9"}'
    assert (call.name, result.text) == ("f", "Sure.")


@pytest.mark.parametrize(
    ("form", "text", "calls"),
    [
        ("json", '{"name": "f", "parameters": {"a": 1}}', [("f", '{"a": 1}')]),
        ("json", '{"sunny": true}', []),
        ("json", "It is {sunny}.", []),
        ("json", '{"name": "f", "parameters": {"a": 1', None),
        ("mistral", '[TOOL_CALLS] [{"name": "f", "arguments": {}}]', [("f", "{}")]),
        ("mistral", '[TOOL_CALLS] [{"name": "f"}]', None),
        ("pythonic", 'Ok. [a.f(x=1, y=[True, None]), g(z="]")]',
         [("a.f", '{"x": 1, "y": [true, null]}'), ("g", '{"z": "]"}')]),
        ("pythonic", "[f(x)]", None),
        ("pythonic", "[f(x=1)", None),
        ("pythonic", "[f(x=__import__('os').getcwd())]", None),
        ("pythonic", "See [1] and [2].", []),
        ("none", '<tool_call>{"name": "f", "arguments": {}}</tool_call>', []),
    ],
)  # fmt: skip
def test_named_forms(form, text, calls):
    result = AnswerReader(renderer(), form).read(text)
    if calls is None:
        assert result.malformed
        assert result.text == text
    else:
        assert result.malformed is None
        assert [(call.name, call.text) for call in result.calls] == calls


THINKING = "<|channel|>analysis<|message|>I look.<|end|><|start|>assistant"
CALL = '<|message|>{"q": 1}'


@pytest.mark.parametrize(
    ("text", "message", "calls"),
    [
        (f"{THINKING}<|channel|>commentary to=functions.find <|constrain|>json{CALL}", "", 1),
        (f"{THINKING} to=functions.find<|channel|>commentary json{CALL}<|call|>", "", 1),
        (
            f"{THINKING}<|channel|>commentary<|message|>Wait.<|end|><|start|>assistant"
            f" to=functions.find<|channel|>commentary json{CALL}",
            "Wait.",
            1,
        ),
        (f"{THINKING}<|channel|>final<|message|>It is 4.<|return|>", "It is 4.", 0),
        (f"{THINKING} to=functions.find<|channel|>commentary json{CALL[:-1]}", None, 0),
        (f"{THINKING} to=functions.find<|channel|>comm", None, 0),
    ],
)
def test_gpt_oss(text, message, calls):
    result = AnswerReader(renderer("gptoss")).read(text)
    if message is None:
        assert result.malformed
        return
    assert (result.malformed, result.text, result.reasoning) == (None, message, "I look.")
    assert [(call.name, call.text) for call in result.calls] == [("find", '{"q": 1}')] * calls


@pytest.mark.parametrize(
    ("text", "opened", "thought", "rest"),
    [
        ("<think>\nhm\n</think>\n\nyes", False, "hm", "\n\nyes"),
        ("hm</think>yes", True, "hm", "yes"),
        ("hm</think>yes", False, "hm", "yes"),
        ("hm and hm", True, "hm and hm", ""),
        ("<think>hm", False, "hm", ""),
        ("<think>\n\n</think>yes", False, None, "yes"),
        ("yes", False, None, "yes"),
    ],
)
def test_thoughts_are_split_off(text, opened, thought, rest):
    assert split_thought(text, opened=opened) == (thought, rest)


def test_a_malformed_call_keeps_the_text_and_shows_the_form():
    result = AnswerReader(renderer()).read('<tool_call>{"name": "f", "arg')
    assert result.text == '<tool_call>{"name": "f", "arg'
    assert '<tool_call>{"name": "...", "arguments": {...}}</tool_call>' in result.malformed


def test_a_broken_call_in_tags_is_malformed_though_the_library_takes_it_for_text():
    reader = AnswerReader(renderer("qwen3_5_think"))
    assert reader.read("a</think>\n<tool_call>\n<function=f", "<think>\n").malformed


@pytest.fixture(scope="module")
def readers():
    forms = ("auto", "json", "mistral", "pythonic", "none")
    return [AnswerReader(renderer("gptoss")), *(AnswerReader(renderer(), form) for form in forms)]


pieces = st.lists(
    st.sampled_from(
        ["<tool_call>", "</tool_call>", '{"name": "f", "arguments": {}}', "[f(a=1)", ")]",
         "<think>", "</think>", "[TOOL_CALLS]", "{", "}", '"', "\\", "x", "\ud800", "<|im_end|>",
         "[", "]", "<|message|>", "<|channel|>analysis", "<|start|>", "to=functions.f"]
    ),
    max_size=12,
).map("".join)  # fmt: skip


@given(text=pieces | st.text())
def test_whatever_is_written_is_read_or_malformed(readers, text):
    for reader in readers:
        result = reader.read(text)
        assert result.malformed is None or (result.text == text and not result.calls)
        for call in result.calls:
            assert isinstance(json.loads(call.text), dict)


def test_many_brackets_take_no_long_time():
    assert PythonicForm().read("[f(" + "]" * 15_000) is None
