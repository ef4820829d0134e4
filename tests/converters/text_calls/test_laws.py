"""What holds for every dialect and any text: nothing raises, nothing is lost, work is linear."""

from __future__ import annotations

import gc
import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adp.converters.openai_chat import CONVERTER as CHAT
from adp.converters.preference import CONVERTER as PREFERENCE
from adp.converters.sharegpt import CONVERTER as SHAREGPT
from adp.converters.text_calls.dialect import Dialect
from adp.converters.text_calls.registry import DIALECTS, dialect
from adp.converters.text_calls.restore import restore
from adp_schema import jsontext
from adp_schema.losses import Losses
from adp_schema.protocols import Converter
from tests.effort import examples
from tests.fuzz.dialects import TOKENS, read_parsed, text_fault

EVERY = pytest.mark.parametrize("name", DIALECTS)
ACTING = pytest.mark.parametrize("name", [name for name in DIALECTS if name != "think"])


def words(name: str, *, surrogates: bool = True) -> st.SearchStrategy[str]:
    """Texts made of a dialect's own words, of those of others, and of any characters."""
    grammar = dialect(name)
    example = grammar.example
    cuts = [example[start : start + 12] for start in range(0, len(example), 7)]
    tokens = [*TOKENS, *grammar.marks, *grammar.results, *grammar.prompts, *cuts, example]
    tokens = [token for token in tokens if surrogates or "\ud83d" not in token]
    loose = st.text(max_size=6) if surrogates else st.text(
        st.characters(exclude_categories=["Cs"]), max_size=6
    )  # fmt: skip
    return st.lists(st.sampled_from(tokens) | loose, max_size=14).map("".join)


@EVERY
@settings(max_examples=examples(300), deadline=None)
@given(data=st.data())
def test_spans_values_and_writing(name: str, data: st.DataObject) -> None:
    assert text_fault(dialect(name), data.draw(words(name))) is None


def restored(record: dict[str, Any], converter: Converter, grammar: Dialect) -> Any:
    """The record after its trajectory was parsed and put together again."""
    (run,) = read_parsed(record, converter, grammar)
    losses = Losses()
    restore(run, losses)
    written = converter.write(run, losses)
    assert not losses.items
    return jsontext.encode(written)


@EVERY
@settings(max_examples=examples(180), deadline=None)
@given(data=st.data())
def test_chats_come_back(name: str, data: st.DataObject) -> None:
    text = words(name, surrogates=False)
    roles = st.sampled_from(["user", "assistant", "assistant", "tool", "system"])
    turns = data.draw(st.lists(st.tuples(roles, text), min_size=1, max_size=6))
    grammar = dialect(name)
    messages = [{"role": role, "content": words_} for role, words_ in turns]
    chat = {"messages": messages, "note": 1}
    assert json.loads(restored(chat, CHAT, grammar)) == chat
    names = {"user": "human", "assistant": "gpt", "tool": "observation", "system": "system"}
    rows = [{"from": names[role], "value": words_} for role, words_ in turns]
    row = {"conversations": rows, "note": 1}
    assert json.loads(restored(row, SHAREGPT, grammar)) == row
    last = {"role": "assistant", "content": data.draw(text)}
    other = {"role": "assistant", "content": data.draw(text)}
    pair = {"prompt": messages, "chosen": [last], "rejected": [other], "note": 1}
    assert json.loads(restored(pair, PREFERENCE, grammar)) == pair


@ACTING
def test_an_edit_of_an_argument_shows_or_is_reported(name: str) -> None:
    grammar = dialect(name)
    chat = {"messages": [{"role": "user", "content": "go"},
                         {"role": "assistant", "content": grammar.example}]}  # fmt: skip
    (run,) = read_parsed(chat, CHAT, grammar)
    calls = run.steps[-1].calls
    assert calls
    for call in calls:
        if call.arguments_raw is not None:
            call.arguments_raw = "edited words"
        else:
            members = json.loads(call.arguments or "{}")
            key = next((it for it, value in members.items() if isinstance(value, str)), "")
            call.arguments = json.dumps({**members, **({key: "edited words"} if key else {})})
    losses = Losses()
    restore(run, losses)
    text = run.steps[-1].text or ""
    assert "edited words" in text or losses.items or text == grammar.example


@EVERY
def test_a_long_text_of_anything_is_parsed(name: str) -> None:
    grammar = dialect(name)
    for character in ("\x00", "\ud800", "<", "["):
        text = grammar.example + character * 400_000
        grammar.pieces(text)
        grammar.results_in(text, grammar.parse(text).calls)


@EVERY
def test_work_grows_as_the_text(name: str) -> None:
    """Eight times the text takes eight times the time, and 64 times when work is quadratic."""
    grammar = dialect(name)
    example = grammar.example
    cuts = {example[: len(example) // 2], example[len(example) // 3 :], example + "\n"}
    for piece in sorted({*grammar.marks[:4], *grammar.results[:2], *cuts}):
        for words_ in (piece, f"{piece}\n"):
            short, long = (words_ * (size // len(words_)) for size in (10_000, 80_000))
            # On a busy machine a measurement may be wrong; one that is right is enough.
            assert any(
                _seconds(grammar, long) < 32 * max(_seconds(grammar, short), 0.003)
                for _ in range(4)
            ), words_


def _seconds(grammar: Dialect, text: str) -> float:
    """CPU time of taking a text apart, the best of two, without the garbage of other tests."""
    times = []
    gc.disable()
    for _ in range(2):
        started = time.process_time()
        grammar.parse(text)
        grammar.pieces(text)
        grammar.results_in(text, ())
        times.append(time.process_time() - started)
    gc.enable()
    return min(times)
