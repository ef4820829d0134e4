"""Logs whose entries point to the one that they follow: the main line, and what leaves it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class EntryLine:
    """A run of entries that follow each other.

    Attributes:
        entries: places of its entries in the log.
        after: place of the entry that it follows; None at the beginning of the log.
        branches: lines that leave it.
        kind: ``branch_kind`` of its trajectory; empty for the usual one of the format.
    """

    entries: list[int] = field(default_factory=list)
    after: int | None = None
    branches: list[EntryLine] = field(default_factory=list)
    kind: str = ""


def split(
    ids: Sequence[str | None],
    parents: Sequence[str | None],
    leaf: int | None = None,
    root: str | None = None,
) -> EntryLine:
    """Cut a tree of entries into the line that leads to a leaf and the lines that leave it.

    An entry without an id, or with a parent that is not there, follows the entry before it. So
    what follows that one comes after both, and no entry without an id is a branch. A circle of
    parents is cut where it would close.

    Args:
        ids: the id of each entry, in the order of the log.
        parents: the id of the entry that each one follows.
        leaf: place of the entry that the main line ends with; None is the last one.
        root: the parent of an entry that follows none, even when others stand before it.

    Returns:
        The main line; its branches, theirs, and so on, in the order of the log.
    """
    if not ids:
        return EntryLine()
    places: dict[str, int] = {}
    before: list[int | None] = []
    named = 0
    ends: dict[int, int] = {}  # of an entry, the last one without an id that stands behind it
    for place, (name, parent) in enumerate(zip(ids, parents, strict=True)):
        known = places.get(parent) if parent is not None else None
        known = None if known is None else ends.get(known, known)
        is_root = not place or (root is not None and parent == root)
        before.append(known if known is not None else (None if is_root else place - 1))
        if name is not None:
            places.setdefault(name, place)
            named = place
        elif known is None and place:
            ends[named] = place
    children: list[list[int]] = [[] for _ in ids]
    for place, previous in enumerate(before):
        if previous is not None:
            children[previous].append(place)
    main = _path_to(len(ids) - 1 if leaf is None else leaf, before)
    line, taken = EntryLine(main), set(main)
    for place, previous in enumerate(before):
        if previous is None and place not in taken:
            line.branches.append(_line_from(place, None, children, taken))
    for start in (line, *line.branches):
        _add_branches(start, children, taken)
    return line


def _path_to(place: int, before: Sequence[int | None]) -> list[int]:
    path: list[int] = []
    at: int | None = place
    while at is not None:
        path.append(at)
        at = before[at]
    return path[::-1]


def _line_from(
    start: int, after: int | None, children: Sequence[Sequence[int]], taken: set[int]
) -> EntryLine:
    """The line that begins with an entry, along the last children that are on no line yet."""
    line = EntryLine([start], after=after)
    taken.add(start)
    while following := [child for child in children[line.entries[-1]] if child not in taken]:
        line.entries.append(following[-1])
        taken.add(following[-1])
    return line


def _add_branches(main: EntryLine, children: Sequence[Sequence[int]], taken: set[int]) -> None:
    """Hang what is not on a line to the line that it leaves."""
    todo = [main]
    while todo:
        line = todo.pop()
        for place in line.entries:
            for start in children[place]:
                if start not in taken:
                    branch = _line_from(start, place, children, taken)
                    line.branches.append(branch)
                    todo.append(branch)
