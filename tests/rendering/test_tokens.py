"""Pieces of a text give the ids and the characters of the whole text."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

from adp.rendering import tokens as under_test
from adp.rendering.bpe_words import ascii_pattern
from adp.rendering.tiny import tiny_tokenizer
from adp.rendering.tokens import Encoder, Tokens
from tests.effort import examples

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
    data = encoder(name)._backend.encode(text, add_special_tokens=False)
    places = np.array(data.offsets, np.int32).reshape(-1, 2)
    return Tokens(np.array(data.ids, np.int32), places[:, 0], places[:, 1])


@pytest.mark.parametrize("name", NAMES)
@given(parts=st.lists(PARTS, max_size=14), data=st.data())
@settings(max_examples=examples(50))
def test_pieces_are_the_whole(name: str, parts: list[str], data: st.DataObject) -> None:
    text = "".join(parts)
    expected = whole(name, text)
    result = encoder(name).encode(text)
    for field in ("ids", "starts", "ends"):
        assert getattr(result, field).tolist() == getattr(expected, field).tolist()
    assert encoder(name).count(text) == len(expected.ids)
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    quick = encoder(name).encode(text, [start, end])
    assert quick.ids.tolist() == expected.ids.tolist()
    assert quick.within(start, end) == expected.within(start, end)


@pytest.mark.parametrize("name", NAMES)
def test_which_tokenizers_are_given_the_whole_text(name: str) -> None:
    assert (encoder(name)._cuts is None) == (name in WHOLE)


_ENGLISH = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_UPPER, _LOWER = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
SPLITS = {
    "Qwen": _ENGLISH + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+",
    "Llama 3": _ENGLISH + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+",
    "gpt-oss": rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]*[{_LOWER}]+{_ENGLISH}?|[^\r\n\p{{L}}\p{{N}}]?"
    rf"[{_UPPER}]+[{_LOWER}]*{_ENGLISH}?|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+",
    "GPT-2": None,
}


@cache
def splitting(name: str) -> Encoder:
    """A byte-level BPE that cuts words as a known family does."""
    pattern = SPLITS[name]
    pre = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if pattern is not None:
        cut = pre_tokenizers.Split(Regex(pattern), "isolated")
        pre = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        pre = pre_tokenizers.Sequence([cut, pre])
    backend = Tokenizer(models.BPE())
    backend.normalizer = normalizers.NFC()
    backend.pre_tokenizer = pre
    trainer = trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    backend.train_from_iterator(_TEXTS, trainer)
    backend.add_tokens([AddedToken(text, normalized=False) for text in _RAW])
    from transformers import PreTrainedTokenizerFast

    return Encoder(PreTrainedTokenizerFast(tokenizer_object=backend))


WRITTEN = st.one_of(
    st.text(st.characters(max_codepoint=127), max_size=40),
    st.lists(st.sampled_from(["the quick", "I'LL", "don't", "  ", "\n", " \n", "\r\n", "12345",
                              "x1", "HelloWorld", "...\n\n", "\x1c", "\x0b", "/\n", *_RAW]),
             max_size=12)
    .map("".join),
    st.text(max_size=12),
)  # fmt: skip


@pytest.mark.parametrize("name", SPLITS)
@given(text=WRITTEN)
@settings(max_examples=examples(100))
def test_words_are_cut_as_the_tokenizer_cuts_them(name: str, text: str) -> None:
    encoder = splitting(name)
    assert encoder._pieces._words is not None
    expected = encoder._backend.encode(text, add_special_tokens=False)
    data = encoder.encode(text)
    assert data.ids.tolist() == expected.ids
    assert list(zip(data.starts.tolist(), data.ends.tolist(), strict=True)) == expected.offsets


ODD: dict[str, dict[str, Any]] = {
    "no unknown token": {},
    "unknown token": {"unk_token": "<unk>"},
    "unknown tokens as one": {"unk_token": "<unk>", "fuse_unk": True},
    "suffix": {"end_of_word_suffix": "</w>"},
    "prefix": {"continuing_subword_prefix": "##"},
}


@cache
def odd(name: str) -> Encoder:
    """A byte-level BPE that lacks characters, or whose tokens have more than they stand for."""
    values = ODD[name]
    backend = Tokenizer(models.BPE(**values))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    texts = {key: text for key, text in values.items() if key.endswith("fix")}
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet()) if texts else []
    trainer = trainers.BpeTrainer(
        **{"vocab_size": 700 if texts else 60, "special_tokens": ["<unk>"], **texts},
        initial_alphabet=alphabet,
        show_progress=False,
    )
    backend.train_from_iterator(["the quick brown fox", "Hello hello"] * 3, trainer)
    backend.add_tokens([AddedToken(text, normalized=False) for text in _RAW])
    from transformers import PreTrainedTokenizerFast

    return Encoder(PreTrainedTokenizerFast(tokenizer_object=backend))


@pytest.mark.parametrize("name", ODD)
@given(text=WRITTEN)
@settings(max_examples=examples(50))
def test_odd_models_are_left_to_the_library(name: str, text: str) -> None:
    encoder = odd(name)
    for item in (text, f"<|a|>{text} the quick {{brown}} fox @ 12# zebra</t>"):
        expected = encoder._backend.encode(item, add_special_tokens=False)
        data = encoder.encode(item)
        assert data.ids.tolist() == expected.ids
        places = zip(data.starts.tolist(), data.ends.tolist(), strict=True)
        assert list(places) == expected.offsets


@pytest.mark.parametrize(
    "pattern",
    [r"\p{P}+", r"\w+", r"(?<=a)b", r"^a", r"[[:alpha:]]+", r"[\S]+", r"\p{Han}", r"[a&&b]"],
)
def test_expressions_that_are_not_understood(pattern: str) -> None:
    assert ascii_pattern(pattern) is None


def test_few_pieces_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(under_test, "CACHED_CHARACTERS", 40)
    small = Encoder(tiny_tokenizer())
    for number in range(30):
        text = f"<|im_start|>user\nword {number}<|im_end|>\n"
        assert small.encode(text, [5]).ids.tolist() == whole("tiny", text).ids.tolist()
        pieces = small._pieces
        assert sum(map(len, [*pieces._known, *pieces._known_places])) == pieces._size <= 40
