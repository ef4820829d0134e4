"""Text into token ids, with the characters that each token stands for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from adp_schema.errors import UsageError
from adp_schema.ids import digest

Ints = np.ndarray[Any, np.dtype[np.int32]]


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

    def encode(self, text: str) -> Tokens:
        """Encode a rendered chat; the template wrote all special tokens already."""
        found = self._backend.encode(text, add_special_tokens=False)
        places = np.array(found.offsets, np.int32).reshape(-1, 2)
        return Tokens(np.array(found.ids, np.int32), places[:, 0].copy(), places[:, 1].copy())
