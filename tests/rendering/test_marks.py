"""Characters that the renderer marks messages with may stand in a chat as well."""

from __future__ import annotations

from dataclasses import replace

import pytest

from adp.rendering.anchors import free_marks
from adp.rendering.chat import Chat
from adp.rendering.options import RenderOptions
from adp.rendering.probe import TemplateRefusalError
from tests.rendering.families import renderer
from tests.rendering.talks import PARIS, agent, chat, tool, user

NAMES = ("deepseekv3", "deepseek_r1_distill", "nemotron_3_nano", "qwen3", "gptoss", "mistral")
PLAIN, PRIVATE = "\u00a7\u00b1\u00b6", "\ue000\ue001\ue002"
WORDS = "icon \u00b10 SECRET \u00a7 words \u00b6 \u00a70\u00b1 more"

TALKS = {
    "user": chat(user(WORDS), agent("Alpha"), user("two"), agent("Beta")),
    "agent begins": chat(agent(f"Alpha {WORDS}"), user(WORDS), agent("Beta")),
    "tool": chat(
        *(user("one"), agent("", PARIS), tool(WORDS, "call_1"), agent("Alpha")),
        *(user(WORDS), agent("Beta")),
        tools=True,
    ),
}


def private(talk: Chat) -> Chat:
    """The chat with characters of private use in place of other ones."""
    table = str.maketrans(PLAIN, PRIVATE)
    messages = [replace(message, text=message.text.translate(table)) for message in talk.messages]
    return replace(talk, messages=tuple(messages))


@pytest.mark.parametrize("history", ["exact", "one_row"])
@pytest.mark.parametrize("check", ["sampled", "all"])
@pytest.mark.parametrize("name", NAMES)
def test_marks_in_the_data_change_nothing(name: str, check: str, history: str) -> None:
    values = {"check": check, "history": history}
    made = renderer(name, "bytes", RenderOptions(**values))  # type: ignore[arg-type]
    for title, talk in TALKS.items():
        if title == "tool" and made.template.forms.arguments is None:
            continue
        right, result = made.chat(talk), made.chat(private(talk))
        assert right.trained == right.steps == result.trained
        assert [row.spans for row in result.rows] == [row.spans for row in right.rows], title
        assert result.notes == right.notes


def test_marks_are_free() -> None:
    value = {"\ue000": ["a", ("\ue002", {"k": "\ue003\ue001"})], "n": [1, None, True]}
    marks = free_marks(value, "\ue005")
    assert (marks.first, marks.last, marks.close) == ("\ue004", "\ue006", "\ue007")
    every = "".join(map(chr, range(0xE000, 0xF900)))
    with pytest.raises(TemplateRefusalError, match="private use"):
        free_marks(every)


def test_a_chat_with_every_private_character_is_refused_or_right() -> None:
    every = "".join(map(chr, range(0xE000, 0xF900)))
    result = renderer("deepseekv3").chat(chat(user(every), agent("A"), user("two"), agent("B")))
    for row in result.rows:
        assert not any(every[0] in row.text[start:end] for _, start, end in row.spans)
    assert result.trained + sum(result.lost.values()) == result.steps
