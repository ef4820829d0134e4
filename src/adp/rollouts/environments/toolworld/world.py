"""Names, relations and attributes, and the values behind them.

A value is a hash of world, entity and key. So a world needs no memory, and the order of calls
changes nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import Literal

from adp_schema.ids import digest

Split = Literal["train", "test"]

RELATIONS = ("owner", "maker", "parent", "neighbour", "teacher", "rival", "partner", "leader")
WORDS = {
    "colour": ("red", "blue", "green", "black", "white", "yellow", "brown", "grey"),
    "material": ("wood", "stone", "glass", "iron", "paper", "silk", "clay", "gold"),
    "shape": ("round", "square", "flat", "long", "thin", "wide", "bent", "sharp"),
    "mood": ("calm", "angry", "happy", "sad", "proud", "shy", "tired", "bold"),
}
NUMBERS = ("age", "size", "weight", "price")
ATTRIBUTES = (*WORDS, *NUMBERS)
KEYS = (*RELATIONS, *ATTRIBUTES)

SYLLABLES = tuple(first + second for first in "BDFGHKLMNPRSTVWZ" for second in "aeiou")
_NAME = re.compile(r"(?:[BDFGHKLMNPRSTVWZ][aeiou]){3}")


def number_of(*parts: object) -> int:
    """A number of 64 bits that depends on nothing but the parts."""
    return int(digest("/".join(map(str, parts)).encode("utf-8", "surrogatepass"))[:16], 16)


def is_name(text: str) -> bool:
    """Whether a text is a name of three syllables, such as ``ZaRuKe``."""
    return _NAME.fullmatch(text) is not None


@lru_cache(maxsize=1 << 16)
def split_of_name(name: str) -> Split:
    """The split that a name belongs to: by its hash, one of five is for ``test``."""
    return "test" if number_of("name", name) % 5 == 0 else "train"


def name_of(split: Split, *parts: object) -> str:
    """A name of a split; it depends on nothing but the parts."""
    for attempt in count():
        number = number_of(*parts, attempt)
        name = ""
        for _ in range(3):
            number, index = divmod(number, len(SYLLABLES))
            name += SYLLABLES[index]
        if split_of_name(name) == split:
            return name
    raise AssertionError  # pragma: no cover


@dataclass(frozen=True, slots=True)
class World:
    """The world of one task.

    Attributes:
        seed: what its values are made from.
        split: whose names occur in it.
    """

    seed: int
    split: Split

    def value(self, entity: str, key: str) -> str | int:
        """What an entity has under a key: a name, a word, or a number from 10 to 99."""
        if key in RELATIONS:
            return name_of(self.split, self.seed, entity, key)
        number = number_of(self.seed, entity, key)
        words = WORDS.get(key)
        return 10 + number % 90 if words is None else words[number % len(words)]

    def greater(self, first: str, second: str, attribute: str) -> str:
        """The entity with the greater number; the first one when they are equal."""
        result, two = self.value(first, attribute), self.value(second, attribute)
        return first if int(result) >= int(two) else second
