"""The tokenizer of the loop: it loses nothing, and a folder gives the same one back."""

from __future__ import annotations

import json
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("transformers", reason="needs the train extra")

from adp.rendering.chat import chats_of
from adp.rendering.options import RenderOptions
from adp.rendering.render import Renderer
from adp.rollouts.environments.toolworld import Toolworld, ToolworldSettings, make_tasks
from examples.loop.teachers import Teacher
from examples.loop.tokenizer import build_tokenizer
from tests.examples.loop.small import played

pytestmark = pytest.mark.train

KINDS = ("c1", "c2", "c3", "sum", "cmp")


@pytest.fixture(scope="module")
def tokenizer():
    return build_tokenizer()


def ids(tokenizer, text):
    return tokenizer(text, add_special_tokens=False)["input_ids"]


@settings(deadline=None, max_examples=60)
@given(st.text(string.printable[:95] + "\n", max_size=80))
def test_ascii_text_comes_back(text):
    tokenizer = build_tokenizer()
    assert tokenizer.decode(ids(tokenizer, text)) == text


def test_equal_words_are_equal_tokens(tokenizer):
    for word in ("owner", "red", "weight"):
        assert word in tokenizer.tokenize(f"the {word} of")
        assert word in tokenizer.tokenize(f'"{word}"')


def test_equal_names_are_equal_tokens(tokenizer):
    name = tokenizer.tokenize("ZaRuKe")
    assert name == ["Za", "Ru", "Ke"]
    for text in ("of ZaRuKe?", '"ZaRuKe"', "answer: ZaRuKe"):
        tokens = tokenizer.tokenize(text)
        at = tokens.index("Za")
        assert tokens[at : at + 3] == name


@pytest.mark.parametrize("split", ["train", "test"])
def test_whole_episodes_have_no_unknown_token(tokenizer, split):
    for name in ("careful", "sloppy"):
        for task in make_tasks(ToolworldSettings(tool_names="random"), split, 20, 5):
            run = played(task, Teacher(name))
            (chat,) = chats_of(run).chats
            text = tokenizer.apply_chat_template(
                [plain(message) for message in chat.messages],
                tools=json.loads(run.tools),
                tokenize=False,
            )
            result = ids(tokenizer, text)
            assert tokenizer.unk_token_id not in result
            assert tokenizer.decode(result) == text


def plain(message):
    results = {"role": message.role, "content": message.text or ""}
    if message.calls:
        results["tool_calls"] = [
            {"function": {"name": call.name, "arguments": call.arguments}} for call in message.calls
        ]
    return results


def test_the_renderer_writes_what_the_template_writes(tokenizer, tmp_path):
    from transformers import AutoTokenizer

    from examples.loop.model import build_model

    build_model(tokenizer, 0).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    back = AutoTokenizer.from_pretrained(tmp_path)
    text = 'what is the age of ZaRuKe? {"name": "lookup"}'
    assert ids(back, text) == ids(tokenizer, text)
    renderer = Renderer.load(str(tmp_path), RenderOptions())
    (task,) = make_tasks(ToolworldSettings(kinds=KINDS, failures=0.0), "train", 1, 0)
    trajectory = renderer.trajectory(played(task, Teacher("careful")))
    assert not trajectory.notes
    (row,) = trajectory.rows
    trained = tokenizer.decode([token for token in row.labels if token >= 0])
    calls = json.loads(task.expected_calls)
    output = "".join(f"<tool_call>{json.dumps(call)}</tool_call><|end|>" for call in calls)
    assert trained == f"{output}answer: {json.loads(task.answers)[0]}<|end|>"


def test_the_world_is_the_one_that_the_tokenizer_knows(tokenizer):
    environment = Toolworld()
    start = environment.reset(seed=3)
    for message in start.messages:
        assert len(ids(tokenizer, message["content"])) < len(message["content"]) / 2
