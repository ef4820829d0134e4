"""Reasoning in tags: its spellings, and what only looks like it."""

from __future__ import annotations

import pytest

from adp.converters.text_calls.dialect import Marked, ParsedCall, ParsedTurn
from adp.converters.text_calls.thoughts import Openings, thoughts_in, with_thoughts
from tests.converters.text_calls.work import MOST, growth


def words(text: str) -> list[str]:
    return [text[slice(*thought.words)] for thought in thoughts_in(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>a b</think>c", ["a b"]),
        ("<think>\na\n</think>\n\n<think> b </think>", ["a", "b"]),
        ("  <Thought>a</Thought>c", ["a"]),
        ("<scratch_pad>a</scratch_pad>", ["a"]),
        ("<reasoning>a</reasoning><result>x</result> <think>b</think>", ["a", "b"]),
        ("[THINK]a[/THINK]b", ["a"]),
        ("◁think▷a◁/think▷b", ["a"]),
        ("<think>a", ["a"]),
        ("a first\n</think>\n\nb", ["a first"]),
        ('I call it.</think>{"name": "f"}', ["I call it."]),
        ("<think></think>x", [""]),
        ("<think>```\nx</think>y", ["```\nx"]),
    ],
)
def test_reasoning_is_marked(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Models write <think>a</think> before they answer.",
        "Use `<think>a</think>` and `</think>`.",
        "The </think> tag ends it.",
        "Like this:\n```\n<think>a</think>\n```\nDone.",
        "Like this:\n~~~xml\n<think>a</think>\n</think>",
        "Text first.\n<think>never closed",
        "<b>bold</b> thinking",
    ],
)
def test_words_about_tags_are_no_reasoning(text: str) -> None:
    assert words(text) == []


def test_spans_hold_the_tags() -> None:
    assert thoughts_in("x\n<think> a </think>") == (Marked((2, 20), (10, 11)),)


def test_actions_do_not_begin_in_reasoning_or_code() -> None:
    text = "<think><call></think>`<call>` \n```x\n<call>\n```\n<call>```\n<call>"
    starts = []
    walk, position = Openings(text, "<call>"), 0
    while (match := walk.after(position)) is not None:
        starts.append(match.start())
        position = match.end()
    assert starts == [text.index("\n<call>```") + 1, len(text) - 6]


def test_reasoning_inside_of_a_call_is_none() -> None:
    text = "<think>a</think>\n<call>\n<think>b</think>\n</call>\n<think>c</think>"
    call = ParsedCall((text.index("<call>"), text.index("</call>") + 7), "f")
    turn = with_thoughts(ParsedTurn((call,)), text)
    assert [text[slice(*thought.words)] for thought in turn.thoughts] == ["a", "c"]


@pytest.mark.parametrize(
    "piece",
    [
        "<think>",
        "\n<think>",
        "</think>x",
        "```a\n",
        "\n````\n```",
        "`",
        "``` `` ` ",
        "\n<think>\n``",
    ],
)
def test_work_is_linear(piece: str) -> None:
    assert growth(lambda text: (thoughts_in(text), Openings(text, "<call>").after(0)), piece) < MOST
