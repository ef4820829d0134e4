"""Pieces of a text give the ids and the characters of the whole text."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, trainers

from adp.core.render import tokens as under_test
from adp.core.render.tokens import Encoder, Tokens
from adp.core.tiny import tiny_tokenizer

_TEXTS = ["hello world, this is a text with words", "the quick\n\nbrown fox  jumps"] * 20
_RAW = ("<|a|>", "<|a|>b", "</t>")


def _backend(pre: Any, *added: AddedToken, normalizer: Any = None) -> Tokenizer:
    backend = Tokenizer(models.BPE(unk_token="<unk>"))
    if normalizer is not None:
        backend.normalizer = normalizer
    if pre is not None:
        backend.pre_tokenizer = pre
    trainer = trainers.BpeTrainer(vocab_size=220, special_tokens=["<unk>"], show_progress=False)
    backend.train_from_iterator(_TEXTS, trainer)
    backend.add_tokens([*(AddedToken(text, normalized=False) for text in _RAW), *added])
    return backend


def _llama() -> Any:
    return normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])


@cache
def encoder(name: str) -> Encoder:
    """Tokenizers of several makes."""
    if name == "tiny":
        return Encoder(tiny_tokenizer())
    first = pre_tokenizers.Metaspace(prepend_scheme="first")
    always = pre_tokenizers.Metaspace(prepend_scheme="always")
    made = {
        "metaspace, first": lambda: _backend(first),
        "metaspace, always": lambda: _backend(always, AddedToken("<n>", normalized=True)),
        "normalizer": lambda: _backend(None, normalizer=_llama()),
        "nfc": lambda: _backend(
            pre_tokenizers.ByteLevel(add_prefix_space=True), normalizer=normalizers.NFC()
        ),
        "takes up what follows": lambda: _backend(
            None, AddedToken("<r>", normalized=False, rstrip=True), normalizer=_llama()
        ),
        "takes up what comes before": lambda: _backend(
            first, AddedToken("<l>", normalized=False, lstrip=True)
        ),
        "single word": lambda: _backend(
            first, AddedToken("fox", normalized=False, single_word=True)
        ),
    }
    from transformers import PreTrainedTokenizerFast

    return Encoder(PreTrainedTokenizerFast(tokenizer_object=made[name]()))


WHOLE = ("takes up what comes before", "single word")
NAMES = ("tiny", "metaspace, first", "metaspace, always", "normalizer", "nfc",
         "takes up what follows", *WHOLE)  # fmt: skip
PARTS = st.sampled_from(
    [*_RAW, "<|im_start|>", "<|im_end|>\n", "<think>", "<n>", "<r>", "<l>", "fox", "hello", " ",
     "  ", "\n", "\n\n", "the quick", "<|a|", "é", "e\u0301", "世", "😀", "▁", "x"]
)  # fmt: skip


def whole(name: str, text: str) -> Tokens:
    """The tokens by the tokenizer alone."""
    found = encoder(name)._backend.encode(text, add_special_tokens=False)
    places = np.array(found.offsets, np.int32).reshape(-1, 2)
    return Tokens(np.array(found.ids, np.int32), places[:, 0], places[:, 1])


@pytest.mark.parametrize("name", NAMES)
@given(parts=st.lists(PARTS, max_size=14), data=st.data())
@settings(max_examples=50)
def test_pieces_are_the_whole(name: str, parts: list[str], data: st.DataObject) -> None:
    text = "".join(parts)
    expected = whole(name, text)
    found = encoder(name).encode(text)
    for field in ("ids", "starts", "ends"):
        assert getattr(found, field).tolist() == getattr(expected, field).tolist()
    assert encoder(name).count(text) == len(expected.ids)
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    quick = encoder(name).encode(text, [start, end])
    assert quick.ids.tolist() == expected.ids.tolist()
    assert quick.within(start, end) == expected.within(start, end)


@pytest.mark.parametrize("name", NAMES)
def test_which_tokenizers_are_given_the_whole_text(name: str) -> None:
    assert (encoder(name)._cuts is None) == (name in WHOLE)


def test_few_pieces_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(under_test, "CACHED_CHARACTERS", 40)
    small = Encoder(tiny_tokenizer())
    for number in range(30):
        text = f"<|im_start|>user\nword {number}<|im_end|>\n"
        assert small.encode(text, [5]).ids.tolist() == whole("tiny", text).ids.tolist()
        pieces = small._pieces
        assert sum(map(len, [*pieces._known, *pieces._known_places])) == pieces._size <= 40
