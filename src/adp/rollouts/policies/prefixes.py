"""What a model has read already: keys and values of the beginnings of earlier prompts.

The next prompt of an episode begins with the last one and its answer, and the prompts of all
episodes begin with the same system message and tools. Beginnings are found block by block, as in
vLLM's automatic prefix caching (Kwon et al. 2023, arXiv:2309.06180, section 4.4, by hashes). Those
that were used longest ago are dropped when memory runs out.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

BLOCK = 16
"""Tokens of a block."""

SPARE = 64
"""Tokens for which a layer has room when it grows."""

Layers = list[tuple[Any, Any]]
"""Keys and values of each layer, tensors of shape [heads, tokens, width of a head]."""


@dataclass(eq=False, slots=True)
class Known:
    """A beginning that was read.

    Attributes:
        ids: its tokens.
        layers: its keys and values.
        size: their bytes.
        names: hashes of the beginnings that are looked up here.
    """

    ids: tuple[int, ...]
    layers: Layers
    size: int
    names: set[int] = field(default_factory=set)


class Prefixes:
    """Beginnings of prompts, the ones that were used last.

    Args:
        limit: bytes that they may take up; 0 keeps none.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._by_name: dict[int, Known] = {}
        self._used: OrderedDict[int, Known] = OrderedDict()
        self._size = 0

    @property
    def size(self) -> int:
        """Bytes that are taken up."""
        return self._size

    def find(self, ids: Sequence[int]) -> tuple[int, Known | None]:
        """The longest known beginning of a prompt.

        Returns:
            Its length, at most all tokens but the last, and where it is kept.
        """
        names = list(_names(ids[: len(ids) - 1]))
        for count in range(len(names), 0, -1):
            value = self._by_name.get(names[count - 1])
            length = count * BLOCK
            if value is not None and value.ids[:length] == tuple(ids[:length]):
                self._used.move_to_end(id(value))
                return length, value
        return 0, None

    def keep(self, ids: Sequence[int], layers: Layers) -> None:
        """Keep what was read of a prompt and its answer."""
        size = sum(part.numel() * part.element_size() for pair in layers for part in pair)
        names = list(_names(ids))
        if not names or size > self._limit:
            return
        known = Known(tuple(ids), layers, size)
        self._used[id(known)] = known
        self._size += size
        for name in names:
            self._release(self._by_name.get(name), name)
            self._by_name[name] = known
            known.names.add(name)
        while self._size > self._limit:
            self._drop(next(iter(self._used.values())))

    def _release(self, known: Known | None, name: int) -> None:
        """A newer one is looked up by this name; one without a name is of no use."""
        if known is not None:
            known.names.discard(name)
            if not known.names:
                self._drop(known)

    def _drop(self, known: Known) -> None:
        del self._used[id(known)]
        self._size -= known.size
        for name in known.names:
            del self._by_name[name]


def _names(ids: Sequence[int]) -> Iterator[int]:
    """Hashes of the first block, the first two blocks, and so on."""
    name = 0
    for start in range(0, len(ids) - BLOCK + 1, BLOCK):
        name = hash((name, *ids[start : start + BLOCK]))
        yield name


@functools.cache
def growing_layer() -> type:
    """A layer of a cache that has spare room; that of transformers is copied at each token."""
    from transformers.cache_utils import DynamicLayer

    class GrowingLayer(DynamicLayer):  # type: ignore[misc]
        """Keys and values are views of two larger tensors."""

        def update(self, keys: Any, values: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
            """Append keys and values; return all of them."""
            if not self.is_initialized:
                self.lazy_initialization(keys, values)
                self.room: list[Any] = [part[:, :, :0] for part in (keys, values)]
                self.filled = 0
            before, after = self.filled, self.filled + keys.shape[2]
            for side, part in enumerate((keys, values)):
                if self.room[side].shape[2] < after:
                    shape = (*part.shape[:2], after + SPARE, part.shape[3])
                    larger = part.new_empty(shape)
                    larger[:, :, :before] = self.room[side][:, :, :before]
                    self.room[side] = larger
                self.room[side][:, :, before:after] = part
            self.filled = after
            self.keys, self.values = (part[:, :, :after] for part in self.room)
            return self.keys, self.values

        def batch_select_indices(self, indices: Any) -> None:
            """Keep some rows."""
            self.room = [part[indices] for part in self.room]
            self.keys, self.values = (part[:, :, : self.filled] for part in self.room)

    return GrowingLayer
