"""ASCII text into token ids, word by word, for byte-level BPE.

A byte-level BPE first cuts a text into words by a regular expression, and then splits every word
on its own. Words repeat far more often than the cache of the tokenizers library can hold, so it
spends its time on cutting, and on splitting the same words again. Here the words are cut by
Python's ``re``, and each is split once, by the tokenizer's own model.

Only ASCII text is done so: there, what a class of characters holds is beyond doubt, whatever
version of Unicode a library follows. And only tokenizers of a plain make: one expression, no
normalizer that could change ASCII. All else is left to the tokenizers library.
"""

from __future__ import annotations

import re
from array import array
from itertools import filterfalse
from typing import Any

import numpy as np

Ints = np.ndarray[Any, np.dtype[np.int32]]

KNOWN_WORDS, KNOWN_CHARACTERS = 100_000, 2_000_000
"""Words that are remembered, and their characters."""

_ODD = ("unk_token", "end_of_word_suffix", "continuing_subword_prefix")
_HARMLESS = ("NFC", "NFD", "NFKC", "NFKD")
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_CLASSES = {
    "L": "A-Za-z", "Lu": "A-Z", "Ll": "a-z", "Lt": "", "Lm": "", "Lo": "", "M": "", "N": "0-9",
}  # fmt: skip
_SPACE = r" \t\n\r\f\v"
_PIECE = re.compile(
    r"\\p\{(?P<class>[A-Z][a-z]?)\}|(?P<space>\\s)|(?P<word>\\S)|(?P<open>\[\^?)|(?P<close>\])"
    r"|(?P<plain>\\[rnt/]|\\[^A-Za-z0-9])|(?P<group>\(\?i?[:!]|\((?!\?))|(?P<bad>[\\^$&.])|.",
    re.DOTALL,
)


def ascii_pattern(pattern: str) -> re.Pattern[str] | None:
    """An expression of a tokenizer as Python has it, for ASCII text.

    Args:
        pattern: in the syntax of Oniguruma, as ``tokenizer.json`` holds it.

    Returns:
        The expression; None when it holds anything of which it is not sure what it means.
    """
    made: list[str] = []
    inside = False
    for match in _PIECE.finditer(pattern):
        text = _translated(match, inside)
        if text is None:
            return None
        made.append(text)
        if match.lastgroup in ("open", "close"):
            inside = match.lastgroup == "open"
    text = "".join(made)
    try:
        return None if "[]" in text or "[^]" in text else re.compile(text)
    except re.error:
        return None


def _translated(match: re.Match[str], inside: bool) -> str | None:
    """A piece of an expression in Python's syntax; None when it is not sure what it means."""
    text, kind = match.group(), match.lastgroup
    if kind == "class":
        held = _CLASSES.get(match.group("class"))
        return held if inside or not held else f"[{held}]"
    if kind == "space":
        return _SPACE if inside else f"[{_SPACE}]"
    if kind == "word":
        return None if inside else f"[^{_SPACE}]"
    if kind == "bad" or (kind == "open" and inside):
        return None
    return "(?:" if text == "(" and not inside else text


def _expression(tokenizer: dict[str, Any]) -> str | None:
    """The one expression by which a tokenizer cuts words; None when it does more than that."""
    normalizer, pre = tokenizer.get("normalizer"), tokenizer.get("pre_tokenizer")
    if normalizer is not None and normalizer["type"] not in _HARMLESS:
        return None
    model = tokenizer.get("model") or {}
    if model.get("type") != "BPE" or model.get("dropout") or pre is None:
        return None
    # With these, a token may stand for fewer or more characters than it has.
    if any(model.get(key) for key in _ODD):
        return None
    parts = pre["pretokenizers"] if pre["type"] == "Sequence" else [pre]
    last = parts[-1] if parts else {}
    if last.get("type") != "ByteLevel" or last.get("add_prefix_space"):
        return None
    if len(parts) == 1:
        return _GPT2 if last.get("use_regex", True) else None
    split = parts[0]
    if len(parts) != 2 or last.get("use_regex", True) or split["type"] != "Split":
        return None
    manner = (split["behavior"], split["invert"])
    plain = manner in (("Isolated", False), ("Removed", True))
    value = split["pattern"].get("Regex")
    return value if plain and isinstance(value, str) else None


_AGREES: dict[str, bool] = {}
"""Digest of a tokenizer -> whether its words were the tokenizer's own in the trial."""


class WordSplitter:
    """Splits the words of ASCII text.

    Args:
        backend: a tokenizer of the tokenizers library.
        pattern: finds its words in ASCII text.
    """

    def __init__(self, backend: Any, pattern: re.Pattern[str]) -> None:
        from tokenizers.pre_tokenizers import ByteLevel

        self._bytes = ByteLevel(add_prefix_space=False, use_regex=False)
        self._model = backend.model
        self._find = pattern.findall
        # Bytes of 32-bit integers: to join them is several times as fast as to go over numbers.
        self._ids: dict[str, bytes] = {}
        self._sizes: dict[str, bytes] = {}
        self._characters = 0

    @classmethod
    def of(cls, backend: Any, tokenizer: dict[str, Any], digest: str) -> WordSplitter | None:
        """For a tokenizer; None when it is none of those that this can do.

        Args:
            backend: the tokenizer.
            tokenizer: content of its ``tokenizer.json``.
            digest: names that content; the trial of a tokenizer is done once a process.
        """
        expression = _expression(tokenizer)
        pattern = None if expression is None else ascii_pattern(expression)
        if pattern is None:
            return None
        words = cls(backend, pattern)
        if digest not in _AGREES:
            _AGREES[digest] = words._agrees(backend)
        return words if _AGREES[digest] else None

    def _agrees(self, backend: Any) -> bool:
        """Whatever an expression may hold that was misunderstood: then it shows here."""
        text = _trial()
        result = self.placed(text)
        if result is None:
            return False
        right = backend.encode(text, add_special_tokens=False)
        ids, sizes = result
        ends = np.cumsum(sizes)
        places = list(zip((ends - sizes).tolist(), ends.tolist(), strict=True))
        return bool(ids.tolist() == right.ids and places == right.offsets)

    def ids(self, text: str) -> Ints | None:
        """Token ids of an ASCII text; None when it cannot be done."""
        words = self._cut(text)
        return None if words is None else _joined(self._ids, words)

    def placed(self, text: str) -> tuple[Ints, Ints] | None:
        """Token ids, and how many characters each token stands for."""
        words = self._cut(text)
        return None if words is None else (_joined(self._ids, words), _joined(self._sizes, words))

    def _cut(self, text: str) -> list[str] | None:
        """The words, which are known then; None when they or their tokens are not all of it."""
        words: list[str] = self._find(text)
        if sum(map(len, words)) != len(text):
            return None
        if len(self._ids) > KNOWN_WORDS or self._characters > KNOWN_CHARACTERS:
            self._ids.clear()
            self._sizes.clear()
            self._characters = 0
        new = filterfalse(self._ids.__contains__, set(words))
        return words if all(map(self._learn, new)) else None

    def _learn(self, word: str) -> bool:
        """Split a word. A character of a token stands for a byte, and so for one of the word.

        Returns:
            Whether the tokens are all of the word; a model may lack a character.
        """
        (mapped, _), *_ = self._bytes.pre_tokenize_str(word)
        tokens = self._model.tokenize(mapped)
        sizes = [len(token.value) for token in tokens]
        if sum(sizes) != len(word):
            return False
        self._ids[word] = array("i", [token.id for token in tokens]).tobytes()
        self._sizes[word] = array("i", sizes).tobytes()
        self._characters += len(word)
        return True


def _trial() -> str:
    """All ASCII characters after one another, and what expressions make exceptions for."""
    characters = [*map(chr, range(32, 127)), "\n", "\t", "\r", "\x00", "\x1f"]
    pairs = [character + other for character in characters for other in characters]
    words = ["I'll we've THEY'RE it's 'd 'M 1234567 12,345.678 a  b   c\n\n  d \r\n\t\te  "]
    return "".join([*pairs, *words, "".join(f" {pair}x" for pair in pairs)])


def _joined(known: dict[str, bytes], words: list[str]) -> Ints:
    return np.frombuffer(b"".join(map(known.__getitem__, words)), np.int32)
