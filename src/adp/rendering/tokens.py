"""Text into token ids, with the characters that each token stands for.

A tokenizer looks for its added tokens first, in the raw text, and treats what stands between two of
them on its own. So a text can be cut before an added token, and the pieces be encoded one by one:
the ids are the same. Pieces repeat (system prompts, lists of tools, the beginnings of windows), so
they are remembered; and where nobody asks which characters a piece's tokens stand for, they are not
worked out, which takes a third of the time. A tokenizer whose added tokens take up what is beside
them is given the whole text.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from adp.rendering.bpe_words import WordSplitter
from adp_schema.errors import UsageError
from adp_schema.ids import digest

Ints = np.ndarray[Any, np.dtype[np.int32]]

CACHED_CHARACTERS = 8_000_000
"""Characters of the pieces that are remembered; about 50 MB with their tokens."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """A text as tokens. All arrays are int32, one entry a token.

    Attributes:
        ids: token ids.
        starts: first character of each token.
        ends: character after the last one of each token; several tokens of one character have the
            same.
    """

    ids: Ints
    starts: Ints
    ends: Ints

    def within(self, start: int, end: int) -> tuple[int, int, int]:
        """The tokens whose characters all lie in a span.

        Returns:
            The first of them, the one after the last, and how many tokens lie across an end of
            the span.
        """
        first = int(np.searchsorted(self.starts, start, "left"))
        stop = int(np.searchsorted(self.starts, end, "left"))
        across = int(first > 0 and self.ends[first - 1] > start)
        while stop > first and self.ends[stop - 1] > end:
            stop -= 1
            across += 1
        return first, stop, across


class Encoder:
    """The tokenizer of a model, for whole rendered chats.

    Args:
        tokenizer: a fast tokenizer of transformers.

    Attributes:
        digest: names the tokenizer.

    Raises:
        UsageError: it is not one that knows the characters of its tokens.
    """

    def __init__(self, tokenizer: Any) -> None:
        from tokenizers import Tokenizer

        backend = getattr(tokenizer, "backend_tokenizer", None)
        if not isinstance(backend, Tokenizer):
            raise UsageError(
                "exact masks need a fast tokenizer (a tokenizer.json), which this model does not "
                "have; convert it with transformers first"
            )
        text = backend.to_str()
        self.digest = digest(text.encode("utf-8", "surrogatepass"))
        # A copy: what comes after the model must not shift the characters that tokens stand for.
        self._backend = Tokenizer.from_str(text)
        self._backend.post_processor = None
        self._backend.no_padding()
        self._backend.no_truncation()
        content = json.loads(text)
        self._cuts = cut_pattern(content)
        self._pieces = _Pieces(self._backend, content, self._cuts, self.digest)

    def encode(self, text: str, edges: Iterable[int] | None = None) -> Tokens:
        """Encode a rendered chat; the template wrote all special tokens already.

        Args:
            text: the chat.
            edges: the characters at which spans begin and end. Around these alone it is worked
                out which characters a token stands for; the other tokens get those of the piece
                that they lie in, so `Tokens.within` is right for these edges. None: all are
                worked out.
        """
        if self._cuts is None or not text:
            data = self._backend.encode(text, add_special_tokens=False)
            return _tokens(data)
        bounds = self._bounds(text)
        marks = None if edges is None else sorted(edges)
        parts: list[Ints] = []
        placed: list[tuple[int, Tokens]] = []
        for number, (first, end) in enumerate(pairwise(bounds)):
            if marks is None or _inside(marks, first, end):
                piece = self._pieces.placed(text[first:end])
                placed.append((number, piece))
                parts.append(piece.ids)
            else:
                parts.append(self._pieces.ids(text[first:end]))
        sizes = np.fromiter(map(len, parts), np.int64, len(parts))
        places = np.array(bounds, np.int32)
        starts, ends = np.repeat(places[:-1], sizes), np.repeat(places[1:], sizes)
        borders = np.cumsum(sizes)
        for number, piece in placed:
            span = slice(int(borders[number] - sizes[number]), int(borders[number]))
            starts[span] = piece.starts + bounds[number]
            ends[span] = piece.ends + bounds[number]
        return Tokens(np.concatenate(parts), starts, ends)

    def text(self, number: int) -> str:
        """What a token stands for."""
        return str(self._backend.decode([number], skip_special_tokens=False))

    def count(self, text: str) -> int:
        """Number of tokens of a text."""
        if self._cuts is None:
            return len(self._backend.encode_batch_fast([text], add_special_tokens=False)[0].ids)
        return sum(len(self._pieces.ids(text[a:b])) for a, b in pairwise(self._bounds(text)))

    def _bounds(self, text: str) -> list[int]:
        """Where pieces begin, and where the last one ends."""
        assert self._cuts is not None
        cuts = [match.start() for match in self._cuts.finditer(text)]
        return [*([] if cuts and not cuts[0] else [0]), *cuts, len(text)]


def _inside(marks: Sequence[int], first: int, end: int) -> bool:
    """Whether one of the sorted marks lies in a piece, and not at an end of it."""
    place = bisect_right(marks, first)
    return place < len(marks) and marks[place] < end


def _tokens(value: Any) -> Tokens:
    """What the tokenizers library gives, as arrays."""
    places = np.array(value.offsets, np.int32).reshape(-1, 2)
    return Tokens(np.array(value.ids, np.int32), places[:, 0].copy(), places[:, 1].copy())


class _Pieces:
    """Encodes pieces of text that begin with an added token, or with the text itself.

    Those that were used last are remembered.
    """

    def __init__(
        self, backend: Any, content: dict[str, Any], cuts: re.Pattern[str] | None, digest: str
    ) -> None:
        self._backend = backend
        self._cuts = cuts
        self._known: dict[str, Ints] = {}
        self._known_places: dict[str, Tokens] = {}
        self._size = 0
        tokens = content.get("added_tokens") or []
        plain = not any(token["normalized"] or token["rstrip"] for token in tokens)
        self._words = WordSplitter.of(backend, content, digest) if plain else None

    def ids(self, piece: str) -> Ints:
        """Token ids alone."""
        value = self._known.pop(piece, None)
        if value is None:
            value = self._new_ids(piece)
            self._size += len(piece)
        self._known[piece] = value
        self._forget()
        return value

    def placed(self, piece: str) -> Tokens:
        """Token ids, and the characters that they stand for."""
        known_place = self._known_places.pop(piece, None)
        if known_place is None:
            known_place = self._new_places(piece)
            self._size += len(piece)
        self._known_places[piece] = known_place
        self._forget()
        return known_place

    def _head(self, piece: str) -> int:
        """Characters of the added token that a piece begins with; 0 without one."""
        assert self._cuts is not None
        match = self._cuts.match(piece)
        return match.end() if match else 0

    def _new_ids(self, piece: str) -> Ints:
        head = self._head(piece)
        if self._words is not None and piece.isascii():
            ids = self._words.ids(piece[head:])
            if ids is not None:
                head_ids = [self._backend.token_to_id(piece[:head])] if head else []
                return np.concatenate([np.array(head_ids, np.int32), ids])
        encoded = self._backend.encode_batch_fast([piece], add_special_tokens=False)
        return np.array(encoded[0].ids, np.int32)

    def _new_places(self, piece: str) -> Tokens:
        head = self._head(piece)
        result = None
        if self._words is not None and piece.isascii():
            result = self._words.placed(piece[head:])
        if result is None:
            return _tokens(self._backend.encode(piece, add_special_tokens=False))
        head_ids = [self._backend.token_to_id(piece[:head])] if head else []
        ids = np.concatenate([np.array(head_ids, np.int32), result[0]])
        sizes = np.concatenate([np.array([head] if head else [], np.int32), result[1]])
        ends = np.cumsum(sizes, dtype=np.int32)
        return Tokens(ids, ends - sizes, ends)

    def _forget(self) -> None:
        while self._size > CACHED_CHARACTERS:
            more = len(self._known) >= len(self._known_places)
            known: dict[str, Any] = self._known if more else self._known_places
            piece = next(iter(known))
            del known[piece]
            self._size -= len(piece)


def cut_pattern(tokenizer: dict[str, Any]) -> re.Pattern[str] | None:
    """Finds the added tokens before which a text may be cut.

    Args:
        tokenizer: content of a ``tokenizer.json``.

    Returns:
        The pattern; None when the pieces would not give the same ids as the whole text: when an
        added token takes up the white space before it or asks what stands beside it, when one that
        takes up the white space after it could meet one that begins with white space, or when
        the model draws by chance.
    """
    tokens = tokenizer.get("added_tokens") or []
    model = tokenizer.get("model") or {}
    if model.get("dropout") or any(token["lstrip"] or token["single_word"] for token in tokens):
        return None
    raw = [token for token in tokens if not token["normalized"] and token["content"]]
    blank = any(token["content"][0].isspace() for token in tokens if token["content"])
    if not raw or (blank and any(token["rstrip"] for token in tokens)):
        return None
    words = sorted((token["content"] for token in raw), key=lambda word: (-len(word), word))
    return re.compile("|".join(map(re.escape, words)))
