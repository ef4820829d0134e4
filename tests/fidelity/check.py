"""What must hold for a record and a target: each value is in the target, or reported as lost."""

from __future__ import annotations

import time
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.fidelity import exact
from tests.fidelity.exact import DELETE, Keys, Number, at, leaves, pattern, place, replaced
from tests.fidelity.marks import WORDS, Marker, is_word
from tests.fidelity.product import Product, Reading, Written


@dataclass
class Finding:
    """Something that is silent, or a false alarm.

    Attributes:
        kind: what was tried.
        target: the format written.
        where: the place in the source.
        detail: what was seen.
    """

    kind: str
    source: str
    target: str
    where: str
    detail: str

    def line(self) -> str:
        """One line for a report."""
        return f"{self.source} -> {self.target}: {self.kind} at {self.where}: {self.detail}"


class Bounds:
    """How much is tried of places of the same kind, over all records of a file.

    Args:
        limit: how many of a kind.
        deadline: when to stop, as `time.monotonic` tells it.
        sample: of so many kinds of places one is tried, and in one of the targets that lack it.
    """

    def __init__(self, limit: int = 2, deadline: float | None = None, sample: int = 1) -> None:
        self.limit = limit
        self.sample = sample
        self.deadline = deadline
        self.cut = 0
        self._tried: Counter[tuple[str, ...]] = Counter()

    def goes_on(self, *kind: str) -> bool:
        """Whether one more place of a kind is tried."""
        self._tried[kind] += 1
        return self._tried[kind] <= self.limit and not self.is_late()

    def chooses(self, *kind: str) -> bool:
        """Whether a kind of place is in the sample."""
        return zlib.crc32("".join(kind).encode()) % self.sample == 0

    def some(self, targets: list[str], *kind: str) -> list[str]:
        """Those targets of a place whose reports are asked for."""
        if self.sample == 1 or len(targets) < 2:
            return targets
        return [targets[zlib.crc32("".join(kind).encode()) % len(targets)]]

    def is_late(self) -> bool:
        """Whether the time is up; one more place is noted as not tried."""
        late = self.deadline is not None and time.monotonic() > self.deadline
        self.cut += late
        return late


@dataclass
class Source:
    """A record, as a file of its own.

    Attributes:
        format: its format.
        tree: the record; of a format with a session a file the list of its lines.
        suffix: how the file's name ends.
        raw: the file as it lies on the disk; None for one that is made of the tree.
    """

    format: str
    tree: Any
    suffix: str = ".json"
    raw: str | None = None

    def text(self, tree: Any) -> str:
        """The file with a tree in place of the record."""
        if self.suffix == ".jsonl":
            lines = tree if isinstance(tree, list) else [tree]
            return "".join(exact.dump(line) + "\n" for line in lines)
        return exact.dump(tree) + "\n"


class Notes:
    """What was found about a source.

    Args:
        source: the record, or a whole file.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.findings: list[Finding] = []
        self.alarms: list[Finding] = []

    def add(self, kind: str, target: str, keys: Keys, detail: str) -> None:
        """Note what is silent."""
        self.findings.append(Finding(kind, self.source.format, target, place(keys), detail))

    def alarm(self, kind: str, target: str, keys: Keys, detail: str) -> None:
        """Note a report of a loss that is none."""
        self.alarms.append(Finding(kind, self.source.format, target, place(keys), detail))


class Trial(Notes):
    """Tries one record against all targets.

    Args:
        product: reads and writes.
        source: the record.
        targets: the formats to write.
        bounds: how much is tried; those of the file that the record is of.
    """

    def __init__(
        self, product: Product, source: Source, targets: list[str], bounds: Bounds | None = None
    ) -> None:
        super().__init__(source)
        self.product = product
        self.targets = targets
        self.bounds = bounds or Bounds()
        self._readings: dict[str, Reading | None] = {}
        self.base = self.read(source.tree)

    def read(self, tree: Any) -> Reading | None:
        """Convert a version of the record."""
        text = self.source.text(tree)
        if text not in self._readings:
            made = self.product.read(text, self.source.format, self.source.suffix)
            self._readings[text] = made
        return self._readings[text]

    def close(self) -> None:
        """Take the files of all versions away."""
        for reading in self._readings.values():
            self.product.forget(reading)
        self._readings.clear()

    # ---- values -----------------------------------------------------------------------------

    def values(self) -> None:
        """Mark all values at once; what is in no target is tried alone."""
        marked = Marker().mark(self.source.tree)
        reading = self.read(marked.tree)
        suspects: list[tuple[Keys, Any, list[str]]] = []
        for mark in marked.marks:
            missing = [
                target
                for target in self.targets
                if reading is None or not mark.is_in(reading.written(target).text)
            ]
            suspects.append((mark.keys, mark.value, missing))
        suspects += [
            (keys, value, self.targets)
            for keys, value in marked.words
            if value is not None and value != ""
        ]
        self.alone(suspects)

    def alone(self, suspects: list[tuple[Keys, Any, list[str]]]) -> None:
        """Try values one by one: change each, and see it change in the target, or reported."""
        tried: list[tuple[Keys, Any, Any, list[str]]] = []
        for keys, value, targets in suspects:
            wanted = [target for target in targets if self._follow(target, keys)]
            if wanted and not is_form(keys):
                tried += [(keys, value, new, wanted) for new in _others(keys, value)]
        trees = [replaced(self.source.tree, {keys: new}) for keys, _, new, _ in tried]
        differ = self.differ(trees)
        done: set[tuple[Keys, str]] = set()
        for (keys, value, new, targets), different in zip(tried, differ, strict=True):
            alike = [] if different is None else [item for item in targets if item not in different]
            for target in self.bounds.some(alike, pattern(keys)):
                if (keys, target) in done or self.bounds.is_late():
                    continue
                done.add((keys, target))
                changed = replaced(self.source.tree, {keys: new})
                if self._is_silent(target, keys, changed):
                    what = f"{value!r:.60} or {new!r:.60}: the same file, no report"
                    self.add("value", target, keys, what)

    def _is_silent(self, target: str, keys: Keys, changed: Any) -> bool:
        """Whether a change that left the target as it was is in no report either."""
        base, reading = self._written(self.base, target), self.read(changed)
        if reading is None or reading.written(target).reports != base.reports:
            return False
        return not self.is_reported(target, keys, base)

    def differ(self, trees: list[Any]) -> list[set[str] | None]:
        """The targets in which versions of the record come out otherwise than the record.

        Returns:
            For each version the names of the targets; None where the product refuses it.
        """
        if not trees:
            return []
        texts = [self.source.text(tree) for tree in [self.source.tree, *trees]]
        base, *result = self.product.contents(texts, self.source.format, self.source.suffix)
        return [
            {target for target in self.targets if made.get(target) != base.get(target)}
            if made
            else None
            for made in result
        ]

    def _follow(self, target: str, keys: Keys) -> bool:
        kind = pattern(keys)
        return self.bounds.chooses(kind) and self.bounds.goes_on("value", target, kind)

    def _written(self, reading: Reading | None, target: str) -> Written:
        assert reading is not None
        return reading.written(target)

    # ---- reports ----------------------------------------------------------------------------

    def is_reported(self, target: str, keys: Keys, base: Written) -> bool:
        """Whether a report is about a value: without the value there is less of it."""
        tree = self.source.tree
        for depth in range(len(keys), 0, -1):
            whole = alone(tree, keys, depth)
            gone = without(tree, keys, depth)
            if whole is None or gone is None:
                continue
            with_it = base.reports if depth == len(keys) else self.reports(whole, target)
            without_it = self.reports(gone, target)
            if with_it is None or without_it is None:
                continue
            if with_it - without_it:
                return True
        return (
            self._list_is_reported(target, keys, base)
            or self._whole_is_reported(target, keys, base)
            or self._by_name(keys, base)
        )

    def _whole_is_reported(self, target: str, keys: Keys, base: Written) -> bool:
        """Whether a branch that holds a value is not in the target at all, and reported."""
        if not BRANCHES.intersection(keys):
            return False
        everything = Counter(value for _, value in leaves(self.source.tree))
        for depth in range(len(keys) - 1, 0, -1):
            for gone in self._holders(keys[:depth]):
                below = [pair for pair in leaves(self.source.tree) if pair[0][:depth] in gone]
                counts = Counter(value for _, value in below)
                texts = {
                    value
                    for where, value in below
                    if _is_telling(where, value) and counts[value] == everything[value]
                }
                if any(exact.text(text)[1:-1] in base.text for text in texts):
                    continue
                less = self.reports(replaced(self.source.tree, dict.fromkeys(gone, DELETE)), target)
                if less is not None and base.reports - less:
                    return True
        return False

    def _holders(self, keys: Keys) -> Iterator[list[Keys]]:
        """What may go with a value: one thing that holds it, or the end of a list."""
        yield [keys]
        if isinstance(keys[-1], int):
            length = len(at(self.source.tree, keys[:-1]))
            for first in range(keys[-1], 0, -1):
                yield [(*keys[:-1], index) for index in range(first, length)]

    def _list_is_reported(self, target: str, keys: Keys, base: Written) -> bool:
        """Whether a list of plain values is reported as one: both sides of a picture, say."""
        holder = at(self.source.tree, keys[:-1]) if keys else None
        if not isinstance(holder, list) or any(isinstance(item, dict | list) for item in holder):
            return False
        gone = self.reports(replaced(self.source.tree, {keys[:-1]: DELETE}), target)
        return gone is not None and bool(base.reports - gone)

    def _by_name(self, keys: Keys, base: Written) -> bool:
        """Whether a report names the key, where the value cannot be left out."""
        if keys[-1] in IDS and any(".source_id:" in report for report in base.reports):
            return True
        if self.read(without(self.source.tree, keys, len(keys))) is not None:
            return False
        name = [str(key) for key in keys if isinstance(key, str)][-1]
        return any(f".{name}" in report for report in base.reports)

    def reports(self, tree: Any, target: str) -> Counter[str] | None:
        """What is reported for a version of the record."""
        reading = self.read(tree)
        if reading is None:
            return None
        reports = reading.written(target).reports
        return reports


def _others(keys: Keys, value: Any) -> Iterator[Any]:
    """Values that may stand in the place of one."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, Number):
        made = Marker(700).mark([value]).tree[0]
        if made != value:
            yield made
        yield Number("2") if value != "2" else Number("3")
        yield Number("0")
    elif is_word(keys, value):
        yield from OTHER_WORDS.get(value, [] if value in WORDS else [f"{value}x"])
    elif isinstance(value, str):
        if value[:5] == "data:":
            yield value.replace("AAAA", "AAAB", 1)
        made = Marker(800).mark([value]).tree[0]
        if made != value:
            yield made
        yield f"{value}x"


def _is_telling(keys: Keys, value: Any) -> bool:
    """Whether a text is found in a target by itself and not by accident."""
    return isinstance(value, str) and len(value) > 3 and not is_word(keys, value)


OTHER_WORDS = {
    **{"user": ["system"], "system": ["user"], "developer": ["system"], "human": ["gpt"]},
    **{"assistant": ["user"], "agent": ["user", "expert"], "expert": ["agent"], "gpt": ["human"]},
    **{"tool": ["user"], "environment": ["user"], "observation": ["human"]},
    **{"high": ["low"], "wav": ["mp3"], "image/png": ["image/jpeg"], "python": ["bash"]},
    **{"replace": ["append"]},
}
"""Words that may stand in the place of others."""

BRANCHES = frozenset({"rejected", "non_preferred_output", "alternate_trace"})
"""Keys of what is left out as one: then no part of it has a report of its own."""

IDS = ("id", "trajectory_id")
"""Ids of a run: without one another serves as its id, so that the report stays."""

FORM = {
    "schema_version": "it names the layout of the source's file, which the target does not have",
    "step_id": "a number by position; the order is checked by itself",
    "image_observation.source": "the picture of a page comes from where the page comes from",
}
"""Keys whose values are the form of a source and not what it says, each with the reason."""


def is_form(keys: Keys) -> bool:
    """Whether a value is the form of its source."""
    return bool(keys) and (str(keys[-1]) in FORM or ".".join(map(str, keys[-2:])) in FORM)


def alone(tree: Any, keys: Keys, depth: int) -> Any | None:
    """A record in which a value stands alone below one of the containers that hold it.

    Args:
        tree: the record.
        keys: place of the value.
        depth: the container is ``keys[:depth - 1]``; of it only the way to the value stays, and
            what says what an object is.
    """
    changes = _siblings(tree, keys, depth)
    return replaced(tree, changes)


def without(tree: Any, keys: Keys, depth: int) -> Any | None:
    """The same record as `alone` gives, without the value."""
    changes = _siblings(tree, keys, depth)
    cut = depth if depth < len(keys) else len(keys)
    changes = {place: gone for place, gone in changes.items() if place[:cut] != keys[:cut]}
    return replaced(tree, {**changes, keys[:cut]: DELETE})


def _siblings(tree: Any, keys: Keys, depth: int) -> dict[Keys, Any]:
    """The places beside the way to a value, from a depth on."""
    gone: dict[Keys, Any] = {}
    for level in range(depth, len(keys)):
        holder = at(tree, keys[:level])
        holder = holder.value if isinstance(holder, exact.JsonText) else holder
        items = holder.keys() if isinstance(holder, dict) else range(len(holder))
        for key in items if isinstance(holder, dict | list) else ():
            if key != keys[level]:
                gone[(*keys[:level], key)] = DELETE
    return gone
