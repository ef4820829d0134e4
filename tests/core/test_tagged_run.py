"""ET-Agent's validators and repair, against the arithmetic of its own code."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from adp.core.tagged_repair import TextPieces, repair
from adp.core.tagged_run import invalid_v1, invalid_v2

GOOD = (
    "<think>a</think> <search>q</search> <result>r</result> <think>b</think>\n"
    "<python>c</python> <result>d</result>\n<answer> \\boxed{42} </answer>"
)


def plain_valid(text: str, strict: bool) -> bool:
    """The conditions, one after the other, on positions of tags."""
    text = text.strip()
    opened, closed = text.count("<think>"), text.count("</think>")
    if opened != closed or opened == 0 or closed == 0:
        return False
    if text.count("<answer>") != 1 or text.count("</answer>") != 1:
        return False
    if strict and not (text.startswith("<think>") and text.endswith("</answer>")):
        return False
    for tool in ("search", "python"):
        place = 0
        while (start := text.find(f"<{tool}>", place)) != -1:
            end = text.find(f"</{tool}>", start)
            result = text.find("<result>", start if tool == "search" else end)
            done = text.find("</result>", result)
            if -1 in (end, result, done) or not start < end < result < done:
                return False
            place = done
    begin, end = text.find("<answer>"), text.find("</answer>")
    inside = text[begin:end] if begin <= end else ""
    if begin > end or "\\boxed{" not in inside or "}" not in inside:
        return False
    if not strict:
        return True
    inner = text[begin + len("<answer>") : end]
    tags = ("<think>", "</think>", "<python>", "</python>", "<search>", "</search>")
    return inner.count("\\boxed{") == 1 and not any(tag in inner for tag in tags)


def blindly(text: str, tool: str) -> str | None:
    """The repair that inserts tags whether they are there or not, for one kind of tool."""
    if "</answer>" not in text:
        text = text.rstrip() + "</answer>"
    if "<answer>" not in text:
        place = text.rfind("\\boxed")
        if place < 0:
            place = len(text[: text.rfind("</answer>")].rstrip("\n "))
        line = text.rfind("\n", 0, place)
        if line < 0:
            return None
        text = text[: line + 1] + "<answer>" + text[line + 1 :]
    if not text.lstrip().startswith("<think>"):
        text = "<think>" + text
    for tag in ("<answer>", f"<{tool}>"):
        parts = text.split(tag, 1) if tag == "<answer>" else text.split(tag)
        for index in range(len(parts) - 1):
            kept = parts[index].rstrip("\n ")
            parts[index] = kept + "</think>" + parts[index][len(kept) :]
        text = tag.join(parts)
    parts = text.split("</result>")
    for index in range(1, len(parts)):
        kept = parts[index].lstrip("\n ")
        parts[index] = parts[index][: len(parts[index]) - len(kept)] + "<think>" + kept
    text = "</result>".join(parts)
    start = 0
    while (begin := text.find("<think>", start)) != -1:
        end = text.find("</think>", begin)
        if end == -1:
            break
        if not text[begin + len("<think>") : end].strip("\n "):
            text = text[:begin] + text[end + len("</think>") :]
        else:
            start = end + len("</think>")
    return text.replace("<think></think>", "")


tokens = st.sampled_from(
    [
        *("<think>", "</think>", "<search>", "</search>", "<python>", "</python>"),
        *("<result>", "</result>", "<answer>", "</answer>", "\\boxed{", "}", "\n", " ", "word"),
        *("<python>c</python><result>d</result>", "<search>q</search> <result>r</result>"),
        *("<think>x</think>", "\n<answer>\\boxed{1}</answer>"),
    ]
)
texts = st.lists(tokens, max_size=14).map("".join)


@given(texts)
@example(GOOD)
@example(GOOD.replace("</think> <search>", "<search>"))
@example(GOOD.replace("42}", "42} or \\boxed{43}"))
@example(GOOD.replace("42}", "42} <search>"))
@example(GOOD + " more")
@example("so " + GOOD)
@example("<think>a</think><search><result>x</result></search><result>y</result>")
def test_the_validators_ask_what_the_plain_reading_asks(text):
    assert (invalid_v1(text) is None) == plain_valid(text, strict=False)
    assert (invalid_v2(text) is None) == plain_valid(text, strict=True)


CALLS = re.compile(r"<(python|search)>[^<]*</\1>[\n ]*<result>[^<]*</result>")
untagged = st.lists(
    st.sampled_from(
        [
            *("word", "\n", " ", "}", "\\boxed{1}", "<answer>", "\n<answer>\\boxed{1}</answer>"),
            *("<python>c</python><result>d</result>", "<python>c</python> <result>d</result>\n"),
            *("<search>q</search> <result>r</result>", "<search></search>\n<result></result>"),
        ]
    ),
    max_size=9,
).map("".join)
endings = st.sampled_from(
    ["", "\n\\boxed{1}", "\n<answer>\\boxed{1}</answer>", "\n\\boxed{1}</answer>"]
)


@given(st.tuples(untagged, endings).map("".join), st.sampled_from(["python", "search"]))
@example("a\n<python>c</python><result>d</result>b\n\\boxed{1}", "python")
@example(
    "<python>c</python><result>d</result>\n<python>c</python> <result>d</result>x\n<answer>",
    "python",
)
@example("\n}\n\\boxed{1}", "search")
def test_where_the_blind_repair_helps_ours_gives_the_same(text, tool):
    """But for blanks: of texts without thoughts, whose calls are whole and of one tool."""
    assume({item.group(1) for item in CALLS.finditer(text)} <= {tool})
    wanted = blindly(text, tool)
    pieces = TextPieces([text])
    done = repair(pieces)
    if wanted is not None and invalid_v2(wanted) is None and invalid_v2(text):
        assert done
        assert "".join(pieces.text.split()) == "".join(wanted.split())


@given(texts)
def test_a_valid_text_stays_as_it_is(text):
    if invalid_v2(text) is None and "<think></think>" not in text.replace(" ", "").replace(
        "\n", ""
    ):
        pieces = TextPieces([text])
        assert not repair(pieces) or pieces.text == text


@pytest.mark.parametrize(
    ("broken", "result"),
    [
        ("a\n\\boxed{1}", "<think>a</think>\n<answer>\\boxed{1}</answer>"),
        (
            "<think>a <python>c</python> <result>d</result> b </think>\n<answer>\\boxed{1}",
            "<think>a</think> <python>c</python> <result>d</result> "
            "<think>b </think>\n<answer>\\boxed{1}</answer>",
        ),
        (
            "a</think> <search>q</search><result>r</result>\n<answer>\\boxed{1}</answer>",
            "<think>a</think> <search>q</search><result>r</result>\n<answer>\\boxed{1}</answer>",
        ),
        (
            "<think>a</think><python>c</python><result>d</result><think> </think>\n"
            "<answer>\\boxed{1}</answer>",
            "<think>a</think><python>c</python><result>d</result>\n<answer>\\boxed{1}</answer>",
        ),
    ],
)
def test_repair(broken, result):
    pieces = TextPieces([broken])
    assert repair(pieces)
    assert pieces.text == result
    assert invalid_v2(result) is None


@pytest.mark.parametrize("text", ["no line, no answer", "<think>a<python>c</python>\n<answer>"])
def test_what_cannot_be_repaired(text):
    pieces = TextPieces([text])
    assert not (repair(pieces) and invalid_v2(pieces.text) is None)


@given(st.lists(texts, min_size=1, max_size=4), st.data())
def test_pieces_come_apart_where_they_were_put_together(parts, data):
    pieces = TextPieces(parts)
    assert pieces.split() == parts
    for _ in range(3):
        at = data.draw(st.integers(0, len(pieces.text)))
        if data.draw(st.booleans()):
            pieces.insert(at, data.draw(st.sampled_from(["<think>", "</think>"])))
        else:
            pieces.delete(at, data.draw(st.integers(at, len(pieces.text))))
        assert "".join(pieces.split()) == pieces.text
        assert len(pieces.split()) == len(parts)


def test_between_two_pieces_an_end_tag_goes_left_and_a_start_tag_right():
    pieces = TextPieces(["a", "b"])
    pieces.insert(1, "</think>")
    pieces.insert(len("a</think>"), "<think>")
    assert pieces.split() == ["a</think>", "<think>b"]
