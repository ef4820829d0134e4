"""What a rendered chat must be, found without the code that is tested.

Marks of private use are put around the own words of each message. The tokenizer's own
``apply_chat_template`` writes the whole chat, and the marks tell where each message came to stand.
A trained step begins where the prompt ends that ``apply_chat_template`` gives for what came before
(``add_generation_prompt=True``), and ends with the first end-of-turn token after its last word.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import Any
from unittest.mock import patch

import numpy as np

from adp.rendering.chat import Chat, ChatCall, Message
from adp.rendering.prepare import prepare
from adp.rendering.render import Renderer, TokenRow
from tests.rendering.families import Ends

Places = dict[int, tuple[int, int]]
"""Message -> first character of its own words, and the character after the last one."""

BASE = 0xF0000
"""First mark. Message number n has the marks 2n and 2n + 1."""


def mark(chat: Chat) -> Chat:
    """The chat with marks around the own words of each message."""
    messages = [_marked(index, message) for index, message in enumerate(chat.messages)]
    return replace(chat, messages=tuple(messages))


def _around(index: int, text: str) -> str:
    """Marks around a text, inside the white space at its edges, which templates may strip."""
    core = text.strip()
    if not core:
        return text
    start = text.index(core)
    first, last = chr(BASE + 2 * index), chr(BASE + 2 * index + 1)
    return text[:start] + first + core + last + text[start + len(core) :]


def _value(index: int, value: Any) -> Any:
    if isinstance(value, str):
        return _around(index, value)
    if isinstance(value, dict):
        return {key: _value(index, inner) for key, inner in value.items()}
    return [_value(index, inner) for inner in value] if isinstance(value, list) else value


def _marked(index: int, message: Message) -> Message:
    calls = []
    for call in message.calls:
        value = _value(index, call.arguments)
        text = json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
        calls.append(ChatCall(call.name, value, text, call.call_id))
    return replace(
        message,
        text=_around(index, message.text),
        reasoning=message.reasoning and _around(index, message.reasoning),
        # Names of calls have no marks: some templates write them again beside the result.
        calls=tuple(calls),
    )


def bare(text: str) -> tuple[str, Places]:
    """A text without marks, and message -> first character and end of its own words in it."""
    letters: list[str] = []
    places: Places = {}
    for letter in text:
        number = ord(letter) - BASE
        if not 0 <= number < 0xFFFF:
            letters.append(letter)
            continue
        index, last = divmod(number, 2)
        first, end = places.get(index, (len(letters), len(letters)))
        places[index] = (first, len(letters)) if last else (first, end)
    return "".join(letters), places


@dataclass(frozen=True)
class Expected:
    """A trained step of a row.

    Attributes:
        index: its message.
        start: first character.
        end: character after its last one; -1 when it has no words that can be marked.
        exact: whether the row up to it is what the model sees at inference.
    """

    index: int
    start: int
    end: int
    exact: bool


class _Fixed(datetime):
    """The day that the options of a renderer say, for templates that ask for today's date."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:
        return datetime(2024, 7, 26, tzinfo=tz)


def fixed_day() -> Any:
    """A context in which transformers tells templates that it is that day."""
    return patch("transformers.utils.chat_template_utils.datetime", _Fixed)


def write(renderer: Renderer, chat: Chat, end: int, *, prompt: bool = False) -> str | None:
    """The first messages of a chat by the tokenizer's own method; None when it refuses them."""
    messages = renderer.template.plain(chat)[:end]
    try:
        with fixed_day():
            return str(
                renderer.tokenizer.apply_chat_template(
                    messages,
                    tools=list(chat.tools) or None,
                    tokenize=False,
                    add_generation_prompt=prompt,
                    **renderer.options.template_options,
                )
            )
    except Exception:  # templates raise what they like
        return None


def ready(renderer: Renderer, chat: Chat) -> Chat:
    """The chat in the form that the template takes."""
    return prepare(chat, renderer.options, renderer.template.forms, Counter())


def expected(
    renderer: Renderer, chat: Chat, row: TokenRow, ends: Ends
) -> tuple[str, list[Expected], Places]:
    """The text of a row, where its trained steps stand, and the own words of all messages.

    Args:
        renderer: renders.
        chat: the chat, ready for the template.
        row: made of it.
        ends: how the template ends a turn.
    """
    steps = {int(step) for step in row.step_index} - {-1}
    messages = [
        i for i, message in enumerate(chat.messages) if message.weight and message.step in steps
    ]
    last = messages[-1]
    text, marked = write(renderer, chat, last + 1), write(renderer, mark(chat), last + 1)
    assert text is not None
    assert marked is not None
    left = ends.left(bool(chat.messages[last].calls))
    text, marked = text + left, marked + left
    assert bare(marked)[0] == text, "marks change what the template writes"
    if row.text != text:
        text, marked = _after_prompt(renderer, chat, row, last, marked)
    stripped, places = bare(marked)
    assert stripped == text
    results = []
    for index in messages:
        first, words_end = places.get(index, (-1, -1))
        prompt = write(renderer, chat, index, prompt=True)
        exact = prompt is not None and text.startswith(prompt)
        start = len(prompt) if exact and prompt is not None else -1
        end = ends.after(text, words_end, bool(chat.messages[index].calls)) if first >= 0 else -1
        assert not exact or first < 0 or start <= first
        results.append(Expected(index, start, end, exact))
    return text, results, places


def _after_prompt(
    renderer: Renderer, chat: Chat, row: TokenRow, last: int, marked: str
) -> tuple[str, str]:
    """The text of a row whose last message stands after its prompt, and the same with marks.

    That is right only for a message that the template does not put after its prompt itself.
    """
    prompt = write(renderer, chat, last, prompt=True)
    with_marks = write(renderer, mark(chat), last, prompt=True)
    assert prompt is not None
    assert with_marks is not None
    assert not bare(marked)[0].startswith(prompt)
    assert row.text.startswith(prompt)
    rest = row.text[len(prompt) :]
    cut = next(i for i in range(len(marked), -1, -1) if bare(marked[i:])[0] == rest)
    return prompt + rest, with_marks + marked[cut:]


def check_row(renderer: Renderer, chat: Chat, row: TokenRow, ends: Ends) -> list[Expected]:
    """Compare a row with what it must be; return its trained steps."""
    text, entry, places = expected(renderer, chat, row, ends)
    assert row.text == text
    encoded = renderer.tokenizer(
        text, add_special_tokens=False, return_offsets_mapping=True, return_attention_mask=False
    )
    ids, offsets = encoded["input_ids"], encoded["offset_mapping"]
    assert row.input_ids.tolist() == ids
    weights = np.zeros(len(ids), np.float32)
    steps = np.full(len(ids), -1, np.int32)
    spans = {step: (start, end) for step, start, end in row.spans}
    for result in entry:
        message = chat.messages[result.index]
        start, end = spans[message.step]
        assert result.end in (end, -1), (text[start:end], text[start : result.end])
        if result.exact and not renderer.template.marks:
            assert start == result.start
        for other, (begin, finish) in places.items():
            if other == result.index:
                # All of its own words are trained.
                assert start <= begin <= finish <= end
            else:
                assert finish <= start or begin >= end, "words of another message are trained"
        for place, (first, stop) in enumerate(offsets):
            if start <= first and stop <= end and first < stop:
                weights[place] = message.weight
                steps[place] = message.step
    np.testing.assert_array_equal(row.loss_weights, weights)
    np.testing.assert_array_equal(row.step_index, steps)
    np.testing.assert_array_equal(row.labels, np.where(weights > 0, np.array(ids), -100))
    return entry
