"""Words beside calls, ids of calls, and --strict: no template drops or rewrites in silence.

The oracle of what is written is transformers' ``apply_chat_template``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from adp.rendering.chat import Chat
from adp.rendering.drops import check_drops, drops
from adp.rendering.options import RenderOptions
from adp.rendering.prepare import (
    REASONING_DROPPED,
    SHORT_IDS,
    WORDS_BEFORE,
    WORDS_CONTEXT,
    WORDS_LEFT_OUT,
    WORDS_REFUSED,
)
from adp.rendering.render import Rendered, Renderer
from adp.rendering.report import NO_END
from adp.rendering.spans import MORE_ROWS
from adp_schema.errors import ConversionLossError
from tests.rendering.families import renderer
from tests.rendering.oracle import fixed_day
from tests.rendering.talks import OSLO, PARIS, TALKS, agent, call, chat, tool, user

DROPPING = ["llama3_1", "llama3_2", "mistral", "hermes_2_pro", "muse_glimmer"]
"""Templates that drop the text of a message that has calls."""

CALL_BESIDE_TEXT = chat(
    *(user("Weather?"), agent("I look.", PARIS), tool("sunny", "call_1")),
    *(agent("", OSLO), tool("rain", "call_2", "search"), agent("Done.")),
    *(user("Thanks"), agent("Bye.")),
    tools=True,
)


def made(name: str, **options: Any) -> Renderer:
    return renderer(name, "bytes", RenderOptions(**options))


def spans(value: Rendered) -> list[str]:
    return [row.text[start:end] for row in value.rows for _, start, end in row.spans]


def written(maker: Renderer, talk: Chat) -> str:
    """The chat by the tokenizer's own method."""
    with fixed_day():
        return str(
            maker.tokenizer.apply_chat_template(
                maker.template.plain(talk), tools=list(talk.tools), tokenize=False
            )
        )


@pytest.mark.parametrize("name", DROPPING)
def test_keep_trains_all_other_steps(name: str) -> None:
    """The step is lost and named; what follows is trained after what the template writes."""
    maker = made(name)
    result = maker.chat(CALL_BESIDE_TEXT)
    assert result.rejected is None
    assert (result.steps, result.trained) == (4, 3)
    assert result.lost == {WORDS_REFUSED: 1}
    assert result.notes[WORDS_CONTEXT] == 1
    texts = spans(result)
    assert any(text.startswith("Bye.") or "Bye." in text for text in texts)
    assert any("Done." in text for text in texts)
    assert not any("Paris" in text or "I look." in text for text in texts)
    assert all("I look." not in row.text for row in result.rows)


def test_the_context_is_what_the_template_writes_of_the_words() -> None:
    """The words stay in the conversation, and the template itself drops them."""
    maker = made("llama3_1")
    (row,) = maker.chat(CALL_BESIDE_TEXT).rows
    assert row.text == written(maker, CALL_BESIDE_TEXT)


@pytest.mark.parametrize("name", DROPPING)
def test_drop_trains_the_calls(name: str) -> None:
    result = made(name, words="drop").chat(CALL_BESIDE_TEXT)
    assert result.trained == 4
    assert not result.lost
    assert result.notes[WORDS_LEFT_OUT] == 1
    assert any("Paris" in text for text in spans(result))
    assert all("I look." not in row.text for row in result.rows)


@pytest.mark.parametrize("name", DROPPING)
def test_before_writes_a_message_or_keeps(name: str) -> None:
    maker = made(name, words="before")
    result = maker.chat(CALL_BESIDE_TEXT)
    if not maker.template.forms.words_before:
        assert name == "mistral"
        assert result.lost == {WORDS_REFUSED: 1}
        return
    assert result.trained == 4
    assert result.notes[WORDS_BEFORE] == 1
    assert not result.notes[NO_END]
    messages = list(CALL_BESIDE_TEXT.messages)
    messages[1:2] = [replace(messages[1], calls=()), replace(messages[1], text="")]
    parted = replace(CALL_BESIDE_TEXT, messages=tuple(messages))
    same = made(name).chat(parted)
    assert spans(result) == spans(same)
    assert [row.text for row in result.rows] == [row.text for row in same.rows]
    words = [text for text in spans(result) if "I look." in text]
    assert len(words) == 1
    assert "Paris" not in words[0]


@pytest.mark.parametrize("name", DROPPING)
def test_refuse_refuses_the_chat(name: str) -> None:
    result = made(name, words="refuse").chat(CALL_BESIDE_TEXT)
    assert not result.rows
    assert result.steps == result.lost.total() == 4
    assert "words: keep, before or drop" in str(result.rejected)


@pytest.mark.parametrize("words", ["keep", "before", "drop", "refuse"])
def test_a_template_that_writes_words_writes_them(words: str) -> None:
    result = made("qwen2_5", words=words).chat(CALL_BESIDE_TEXT)
    assert result.trained == 4
    assert any("I look." in text and "Paris" in text for text in spans(result))
    assert not {WORDS_BEFORE, WORDS_CONTEXT, WORDS_LEFT_OUT} & set(+result.notes)


@pytest.mark.parametrize("history", ["exact", "one_row"])
def test_nothing_is_left_of_a_chat(history: str) -> None:
    talk = chat(user("a"), agent("I look.", PARIS), tool("sunny", "call_1"), tools=True)
    result = made("llama3_1", history=history).chat(talk)
    assert not result.rows
    assert result.lost == {WORDS_REFUSED: 1}


def ids_of(value: Rendered, talk: Chat) -> list[str]:
    (row,) = value.rows
    return [part.partition("[ARGS]")[0] for part in row.text.split("[CALL_ID]")[1:]]


def test_valid_ids_are_kept() -> None:
    calls = [call("weather", {"city": "Paris"}, name) for name in ("callid002", "Ab3dE6gH9")]
    talk = chat(
        *(user("a"), agent("", *calls), tool("sunny", "callid002"), tool("rain", "Ab3dE6gH9")),
        agent("Both."),
        tools=True,
    )
    result = made("mistral_tekken").chat(talk)
    assert ids_of(result, talk) == ["callid002", "Ab3dE6gH9"]
    assert "[TOOL_RESULTS]Ab3dE6gH9[TOOL_CONTENT]rain" in result.rows[0].text
    assert not result.notes[SHORT_IDS]


def test_other_ids_are_derived() -> None:
    def talk(*names: str) -> Chat:
        calls = [call("weather", {"city": "Paris"}, name) for name in names]
        results = [tool(f"result of {name}", name) for name in names]
        return chat(user("a"), agent("", *calls), *results, agent("Both."), tools=True)

    names = ("toolu_01", "x" * 40, "callid002", "1", "é 1", "")
    result = made("mistral_tekken").chat(talk(*names))
    ids = ids_of(result, talk(*names))
    assert len(set(ids)) == len(names)
    assert all(len(name) == 9 and name.isascii() and name.isalnum() for name in ids)
    assert ids[2] == "callid002"
    assert "000000001" not in ids
    assert result.notes[SHORT_IDS] == 5
    for name, short in zip(names, ids, strict=True):
        assert f"[TOOL_RESULTS]{short}[TOOL_CONTENT]result of {name}[" in result.rows[0].text
    assert ids_of(made("mistral_tekken").chat(talk(*names)), talk(*names)) == ids
    other = ids_of(made("mistral_tekken").chat(talk("1")), talk("1"))
    assert other == [ids[3]]
    assert ids_of(made("mistral_tekken").chat(TALKS["tool"]), TALKS["tool"]) != other


def test_drops() -> None:
    lost = Counter({"not the last step": 3, "the window is too small": 2})
    notes = Counter({MORE_ROWS: 4, REASONING_DROPPED: 5, "steps of a new kind": 1, NO_END: 0})
    assert dict(drops(lost, notes)) == {
        "the window is too small": 2,
        REASONING_DROPPED: 5,
        "steps of a new kind": 1,
    }
    with pytest.raises(ConversionLossError, match=r"--strict: .*reasoning the template drops: 5"):
        check_drops(lost, notes)
    check_drops(Counter({"not the last step": 3}), Counter({MORE_ROWS: 4, REASONING_DROPPED: 0}))


@pytest.mark.parametrize(("name", "dropped"), [("deepseekv3", True), ("qwen3", False)])
def test_reasoning_that_is_dropped_is_a_drop(name: str, dropped: bool) -> None:
    result = made(name).chat(TALKS["reasoning turns"])
    assert (REASONING_DROPPED in dict(drops(result.lost, result.notes))) is dropped
