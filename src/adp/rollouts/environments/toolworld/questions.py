"""Kinds of questions, and the shortest plan for each.

=====  ======================================================================  ======
kind   question                                                                calls
=====  ======================================================================  ======
c1     what is the colour of ZaRuKe?                                           1
c2     what is the colour of the owner of ZaRuKe?                              2
cN     the same with N keys                                                    N
sum    what is the sum of the age of the owner of A and the size of B?         3 to 5
cmp    which has the greater age, the owner of A or the maker of B?            3
=====  ======================================================================  ======

The answer of ``cmp`` is a name that a tool must bring, not "first" or "second", so that a guess
seldom hits.

Paths end in an attribute, so the last call tells that the answer is there. With ``endings: any``
they may end in a relation too ("what is the maker of the owner of ZaRuKe?"), and the sides of
``cmp`` may have two relations: then an agent has to count.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any, Literal

from adp.rollouts.environments.toolworld.world import (
    ATTRIBUTES,
    KEYS,
    NUMBERS,
    RELATIONS,
    Split,
    World,
    name_of,
    number_of,
)

KIND_PATTERN = re.compile(r"c[1-9]|sum|cmp")
Endings = Literal["attribute", "any"]
COMMUTATIVE = frozenset({"add", "compare"})
LONGEST_SIDE = 2
"""Keys of a side of ``sum`` or ``cmp``, at most."""


@dataclass(frozen=True, slots=True)
class Path:
    """A way through the world: from an entity along keys.

    Attributes:
        start: name of the entity.
        keys: keys in the order in which they are followed; all but the last are relations.
    """

    start: str
    keys: tuple[str, ...]

    @property
    def words(self) -> str:
        """The path as a question names it: the last key first."""
        return "".join(f"the {key} of " for key in reversed(self.keys)) + self.start


@dataclass(frozen=True, slots=True)
class PlannedAction:
    """A call by what it does: the role of a tool, not its name.

    Attributes:
        role: ``follow``, ``lookup``, ``add``, ``compare``, or that of a tool not needed.
        arguments: its arguments.
    """

    role: str
    arguments: Mapping[str, Any]

    @property
    def key(self) -> str:
        """Equal for calls that do the same."""
        arguments = dict(self.arguments)
        if self.role in COMMUTATIVE and isinstance(arguments.get("a"), type(arguments.get("b"))):
            arguments["a"], arguments["b"] = sorted((arguments["a"], arguments["b"]))
        return self.role + json.dumps(arguments, sort_keys=True)


@dataclass(frozen=True, slots=True)
class Question:
    """A question about a world.

    Attributes:
        kind: its kind.
        paths: one path, or the two that are added or compared.
        attribute: the number that ``cmp`` compares.
    """

    kind: str
    paths: tuple[Path, ...]
    attribute: str | None = None

    @property
    def text(self) -> str:
        """The question in words."""
        parts = [path.words for path in self.paths]
        if self.kind == "sum":
            return f"what is the sum of {parts[0]} and {parts[1]}?"
        if self.kind == "cmp":
            return f"which has the greater {self.attribute}, {parts[0]} or {parts[1]}?"
        return f"what is {parts[0]}?"

    def solve(self, world: World) -> tuple[list[PlannedAction], str]:
        """The shortest plan and the answer."""
        plan: list[PlannedAction] = []
        ends = [_walk(path, world, plan) for path in self.paths]
        if self.kind == "sum":
            plan.append(PlannedAction("add", {"a": ends[0], "b": ends[1]}))
            return plan, str(int(ends[0]) + int(ends[1]))
        if self.kind == "cmp":
            attribute = str(self.attribute)
            plan.append(
                PlannedAction("compare", {"a": ends[0], "b": ends[1], "attribute": attribute})
            )
            return plan, world.greater(str(ends[0]), str(ends[1]), attribute)
        return plan, str(ends[0])

    def pairs(self) -> list[list[tuple[str, str]]]:
        """Compositions of each path: neighbouring (outer, inner) keys."""
        pairs = []
        for path in self.paths:
            keys = path.keys if self.attribute is None else (*path.keys, self.attribute)
            pairs.append([(keys[i + 1], keys[i]) for i in range(len(keys) - 1)])
        return pairs

    def as_json(self) -> dict[str, Any]:
        """The question as JSON."""
        paths = [{"start": path.start, "keys": list(path.keys)} for path in self.paths]
        return {"kind": self.kind, "paths": paths, "attribute": self.attribute}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Question:
        """The question behind `as_json`.

        Raises:
            ValueError: it is none: a key is unknown, or a path goes on behind an attribute.
        """
        paths = tuple(Path(str(part["start"]), tuple(part["keys"])) for part in value["paths"])
        kind, attribute = str(value["kind"]), value.get("attribute")
        two, numbers = kind in ("sum", "cmp"), set(NUMBERS)
        right = (
            KIND_PATTERN.fullmatch(kind)
            and len(paths) == 1 + two
            and all(path.keys and set(path.keys[:-1]) <= set(RELATIONS) for path in paths)
            and all(path.keys[-1] in KEYS for path in paths)
            and (kind != "sum" or all(path.keys[-1] in numbers for path in paths))
            and (kind != "cmp" or all(path.keys[-1] in RELATIONS for path in paths))
            and (attribute in numbers if kind == "cmp" else attribute is None)
        )
        if not right:
            raise ValueError("this is no question of toolworld")
        return cls(kind, paths, attribute)


def _walk(path: Path, world: World, plan: list[PlannedAction]) -> str | int:
    """Append the calls of a path to the plan; the value at its end."""
    here: str | int = path.start
    for key in path.keys:
        if key in RELATIONS:
            plan.append(PlannedAction("follow", {"entity": here, "relation": key}))
        else:
            plan.append(PlannedAction("lookup", {"entity": here, "attribute": key}))
        here = world.value(str(here), key)
    return here


@lru_cache(maxsize=1024)
def split_of_pair(outer: str, text: str) -> Split:
    """The split of a composition: one pair of keys in five is for ``test``."""
    return "test" if number_of("pair", outer, text) % 5 == 0 else "train"


def fits(question: Question, split: Split) -> bool:
    """Whether the compositions are those of the split.

    ``train`` has none of the unseen pairs; in ``test`` each path of two keys or more has one.
    """
    for pairs in question.pairs():
        unseen = any(split_of_pair(*pair) == "test" for pair in pairs)
        if pairs and unseen != (split == "test"):
            return False
    return True


def draw(
    kind: str,
    split: Split,
    max_hops: int,
    endings: Endings,
    random: Random,
    *,
    longer: bool = False,
) -> Question:
    """Draw a question.

    Args:
        kind: its kind.
        split: its split.
        max_hops: longest path, in keys.
        endings: what paths end in.
        random: where it is drawn from.
        longer: of a sum, one side is longer by a key than any without this.
    """
    while True:
        question = _draw(kind, split, max_hops, endings, random, longer)
        if fits(question, split):
            return question


def _draw(
    kind: str, split: Split, max_hops: int, endings: Endings, random: Random, longer: bool
) -> Question:
    longest = min(LONGEST_SIDE, max_hops)
    if kind == "sum":
        paths = _two(split, longest + longer, NUMBERS, random)
        while longer and all(len(path.keys) <= longest for path in paths):
            paths = _two(split, longest + longer, NUMBERS, random)
        return Question(kind, paths)
    if kind == "cmp":
        longest = 1 if endings == "attribute" else longest
        return Question(kind, _two(split, longest, RELATIONS, random), random.choice(NUMBERS))
    last = ATTRIBUTES if endings == "attribute" else KEYS
    return Question(kind, (_path(split, int(kind[1:]), last, random),))


def _two(split: Split, longest: int, last: Sequence[str], random: Random) -> tuple[Path, Path]:
    result, two = (_path(split, random.randint(1, longest), last, random) for _ in range(2))
    return result, two


def _path(split: Split, length: int, last: Sequence[str], random: Random) -> Path:
    keys = [random.choice(RELATIONS) for _ in range(length - 1)]
    start = name_of(split, "start", random.getrandbits(64))
    return Path(start, (*keys, random.choice(last)))
