"""Changes of the structure: two records that say different things and must not become one file.

A change that leaves the target as it was must be reported: by a report that one of the two records
has and the other has not, or that goes when the list itself is taken away.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tests.fidelity import exact
from tests.fidelity.check import Trial, is_form
from tests.fidelity.exact import (
    DELETE,
    INSIDE,
    JsonText,
    Keys,
    Number,
    at,
    containers,
    leaves,
    pattern,
    replaced,
)
from tests.fidelity.marks import is_word
from tests.fidelity.product import Reading, Written

JOINTS = ("\n\n", "\n", " ", "")
"""What a writer may put between two texts that it makes one of."""

_TAGS = re.compile(r"</?tool_")
_IDS = re.compile(r"(native_id|call_id):")
"""Reports that a call's id is not kept."""

ARGUMENTS = frozenset({"arguments", "kwargs", "action_arguments"})
"""Keys below which a number's type is part of what was said to a tool."""

TAKEN = "key taken away"
BORDERS = "borders"

TEXT_KEYS = ("content", "message", "value", "text")


DERIVED = {
    "tool_call_id": "a result without an id is paired by its place, and written with the call's id",
    "source_call_id": "the same",
    "toolCallId": "the same",
}
"""Keys that say nothing new where they stand in order; their values are marked elsewhere."""


@dataclass
class Change:
    """A record and a changed one, which a target must tell apart.

    Attributes:
        kind: what was changed.
        keys: where.
        tree: the record with the change.
        bare: a version in which neither is possible; a report that it lacks is about them.
        in_source: the place is one of the source, whose reports may be asked for.
    """

    kind: str
    keys: Keys
    tree: Any
    bare: Any = None
    in_source: bool = True


def check_structure(trial: Trial) -> None:
    """Try every change of structure, one of each kind of place."""
    wanted = [change for change in changes(trial.source.tree) if _is_wanted(trial, change)]
    for change, different in zip(wanted, trial.differ([item.tree for item in wanted]), strict=True):
        if different is None:
            continue
        alike = [target for target in trial.targets if target not in different]
        for target in trial.bounds.some(alike, change.kind, pattern(change.keys)):
            if not trial.bounds.is_late():
                _alike(trial, change, target)
    _repeated(trial)


def _is_wanted(trial: Trial, change: Change) -> bool:
    kind = (change.kind, pattern(change.keys))
    always = change.kind.startswith(BORDERS)
    return (always or trial.bounds.chooses(*kind)) and trial.bounds.goes_on(*kind)


def _alike(trial: Trial, change: Change, target: str) -> None:
    """Two records became the same target: something must be reported."""
    changed = trial.read(change.tree)
    base = trial.base.written(target)
    if change.kind == TAKEN and _is_id_of_session(trial.source.tree, change.keys):
        return
    if change.kind == TAKEN and _is_there(at(trial.source.tree, change.keys), base):
        return
    if changed is None or changed.written(target).reports != base.reports:
        return
    if change.bare is not None and _is_about(base, trial.read(change.bare), target):
        return
    if not (change.in_source and trial.is_reported(target, change.keys, base)):
        trial.add(change.kind, target, change.keys, "the same file, no report")


def _is_id_of_session(tree: Any, keys: Keys) -> bool:
    """Whether the id of a run repeats that of its session, which stands in for a missing one."""
    holder = at(tree, keys[:-1])
    return keys[-1] == "trajectory_id" and holder.get("session_id") == holder["trajectory_id"]


def _is_there(value: Any, written: Written) -> bool:
    """Whether all texts of a part of the source stand in a target: another part repeats them."""
    texts = [text for keys, text in leaves(value) if not is_word(keys, text)]
    return bool(texts) and all(
        isinstance(text, str)
        and (exact.text(text)[1:-1] if len(text) > 3 else exact.text(text)) in written.text
        for text in texts
    )


def _is_about(written: Written, bare: Reading | None, target: str) -> bool:
    return bare is not None and bool(written.reports - bare.written(target).reports)


def changes(tree: Any) -> Iterator[Change]:
    """The changes of a record."""
    yield from _spellings(tree)
    for keys, holder in list(containers(tree)):
        if isinstance(holder, list):
            yield from _of_list(tree, keys, holder)
        else:
            yield from _of_object(tree, keys, holder)


def _spellings(tree: Any) -> Iterator[Change]:
    """A text with other white space around it; in arguments of calls a number of another type."""
    for keys, value in leaves(tree):
        if isinstance(value, Number):
            other = f"{value}.0" if re.fullmatch(r"-?\d{1,15}", value) else ""
            if other and ARGUMENTS.intersection(keys):
                yield Change("type of a number", keys, replaced(tree, {keys: Number(other)}))
        elif _is_plain(keys, value):
            for spaced in (f"{value}\n", f"\n {value}  "):
                yield Change(f"white space {spaced!r:.8}", keys, replaced(tree, {keys: spaced}))


def _is_plain(keys: Keys, value: Any) -> bool:
    """Whether the white space around a text is part of it: beside the tags of calls it is form."""
    is_text = _free(str(keys[-1]) if keys else "", value) and " " in value
    return is_text and not _TAGS.search(value)


def _of_list(tree: Any, keys: Keys, items: list[Any]) -> Iterator[Change]:
    inside = INSIDE in keys
    gone = replaced(tree, {keys: DELETE}) if keys else None
    for index, item in enumerate(items):
        if not inside and len(items) > 1 and _says_something(item):
            without = replaced(tree, {(*keys, index): DELETE})
            yield Change("item taken away", (*keys, index), without, gone)
        double = [*items[: index + 1], item, *items[index + 1 :]]
        if not inside and isinstance(item, dict):
            twice = replaced(tree, {keys: double})
            yield Change("item repeated", (*keys, index), twice, gone)
    for index in range(len(items) - 1):
        result, two = items[index : index + 2]
        if result == two:
            continue
        swapped = [*items[:index], two, result, *items[index + 2 :]]
        yield Change("order", (*keys, index), replaced(tree, {keys: swapped}), gone)
        yield from _joined(tree, keys, items, index)


def _says_something(value: Any) -> bool:
    """Whether there is more than words, nulls and empty texts."""
    return any(
        result is not None and result != "" and not is_word(keys, result)
        for keys, result in leaves(value)
    )


def _joined(tree: Any, keys: Keys, items: list[Any], index: int) -> Iterator[Change]:
    """Two items with the same words and one text each: as two, and as one."""
    result, two = items[index : index + 2]
    place = _only_text(result)
    if place is None or place != _only_text(two) or _words(result) != _words(two):
        return
    if _TAGS.search(at(result, place)):
        return
    for joint in JOINTS:
        text = at(result, place) + joint + at(two, place)
        joined = replaced(
            tree, {keys: [*items[:index], replaced(result, {place: text}), *items[index + 2 :]]}
        )
        kind = f"{BORDERS} ({json.dumps(joint)})"
        yield Change(kind, (*keys, index), joined, None, in_source=False)


def _only_text(item: Any) -> Keys | None:
    """The place of the only text of an item that has no lists and no ids."""
    if not isinstance(item, dict):
        return None
    texts = [
        keys
        for keys, value in leaves(item)
        if isinstance(value, str) and not is_word(keys, value) and not isinstance(value, Number)
    ]
    return texts[0] if len(texts) == 1 and texts[0][-1] in TEXT_KEYS else None


def _words(item: Any) -> list[Any]:
    return [value for keys, value in leaves(item) if is_word(keys, value)]


def _of_object(tree: Any, keys: Keys, holder: dict[str, Any]) -> Iterator[Change]:
    for name, value in holder.items():
        here = (*keys, name)
        if not _says_something(value) or is_form(here) or INSIDE in keys or is_word(here, value):
            continue
        gone = replaced(tree, {here: DELETE})
        if name in DERIVED or {"alternate_trace", "output"} <= set(here):
            continue  # the output of an M3 turn repeats its metadata
        yield Change(TAKEN, here, gone, gone)
    names = [name for name, value in holder.items() if _free(name, value)]
    for result, two in pairwise(names):
        if holder[result] == holder[two]:
            continue
        swapped = {(*keys, result): holder[two], (*keys, two): holder[result]}
        bare = replaced(tree, {(*keys, result): DELETE, (*keys, two): DELETE})
        yield Change("texts of two keys swapped", (*keys, result), replaced(tree, swapped), bare)
    if "chosen" in holder and "rejected" in holder:
        swapped = {(*keys, "chosen"): holder["rejected"], (*keys, "rejected"): holder["chosen"]}
        gone = replaced(tree, {(*keys, "rejected"): DELETE})
        yield Change("chosen and rejected", keys, replaced(tree, swapped), gone)


def _free(name: str, value: Any) -> bool:
    return (
        isinstance(value, str)
        and not isinstance(value, Number | JsonText)
        and not is_word((name,), value)
    )


def _repeated(trial: Trial) -> None:
    """Two values of the same kind made equal: each must still be there, as it is."""
    pairs: dict[str, Keys] = {}
    for keys, value in leaves(trial.source.tree):
        if not _free(str(keys[-1]) if keys else "", value):
            continue
        kind = pattern(keys)
        if kind in pairs:
            _equal(trial, pairs[kind], keys)
        pairs[kind] = keys


def _equal(trial: Trial, keys: Keys, two: Keys) -> None:
    tree = trial.source.tree
    first, second = at(tree, keys), at(tree, two)
    if first == second or not trial.bounds.goes_on("equal", pattern(keys)):
        return
    apart = trial.read(_named(tree, {first: "twin-one", second: "twin-two"}))
    same = trial.read(_named(tree, {first: "twin-same", second: "twin-same"}))
    if apart is None or same is None:
        return
    for target in trial.targets:
        before, after = apart.written(target), same.written(target)
        if after.reports - before.reports or any(_IDS.search(report) for report in after.reports):
            continue
        wanted = _times(before, "twin-one") + _times(before, "twin-two")
        seen = _times(after, "twin-same")
        if seen < wanted:
            trial.add("two equal values", target, two, f"{wanted} times in the target, now {seen}")


def _named(tree: Any, names: dict[str, str]) -> Any:
    """A record with some texts replaced wherever they stand by themselves."""
    return replaced(
        tree,
        {
            keys: names[value]
            for keys, value in leaves(tree)
            if isinstance(value, str) and not isinstance(value, Number) and value in names
        },
    )


def _times(written: Written, text: str) -> int:
    """How often a text stands in a target as a whole value or between borders of words."""
    return sum(
        part[:1] not in ("#", "-", "_")
        for content in written.files.values()
        for part in content.split(text)[1:]
    )
