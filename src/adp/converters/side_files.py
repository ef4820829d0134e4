"""Files that belong to another one, such as a result beside a run.

A format says which they may be (`Converter.side_files`). Those that are there are read together
with their owner. They have rows in the table of sources and count as one used record each, but
make no trajectories of their own. Several owners may share one; it still counts once.

A name with ``*`` in it stands for inputs of the run: ``*`` for any characters but a slash, ``**``
for any folders. So a file can own a folder of one file a message. A format with a method
``linked_files(source_file, data)`` says them by the contents of a file, and of the files that
those lead to; ``may_link(source_file)`` can say by the name alone that a file leads to none.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path, PurePosixPath

from adp.converters.files.limits import ConvertLimits
from adp.converters.files.streams import InputPlace, InputStream
from adp.converters.frames import SideFile
from adp.converters.framing import ByteRange
from adp.converters.harbor_trials import MAIN, RESULT, is_result, outcome_files, trial_folder
from adp.converters.inputs import InputFile, Inputs, place_of
from adp.converters.planned_file import PlannedFile
from adp.converters.registry import formats
from adp_schema.errors import InputError


def attach(
    inputs: Inputs, planned: list[PlannedFile | InputError], limits: ConvertLimits
) -> list[PlannedFile]:
    """Put the files that belong to another one directly after it.

    A file that belongs to another one owns none, and one that owns others belongs to none.

    Args:
        inputs: the inputs.
        planned: for each of them its plan, or why it has none.
        limits: a side file over the limit of a record is rejected, not attached.

    Raises:
        InputError: a file that belongs to no other one has no plan.
    """
    names = _InputNames(inputs)
    links = _Links(names, planned, limits)
    outcomes = _Outcomes(names, limits)
    taken: set[str] = set()
    owned: dict[int, list[PlannedFile]] = {}
    for number in sorted(range(len(planned)), key=lambda it: _depth(inputs.files[it])):
        file = planned[number]
        if isinstance(file, InputError) or file.format is None:
            continue
        if file.source_file in taken or file.source_file in links.targets:
            continue
        sides: list[SideFile] = []
        for side, fault in _sides_of(file, number, names, links, outcomes, limits):
            if names.numbers.get(side.source_file) in owned:
                continue
            if not fault:
                sides.append(side)
            if side.source_file not in taken:
                taken.add(side.source_file)
                owned.setdefault(number, []).append(_planned(side, file, fault))
        if sides:
            owned.setdefault(number, [])
            file.pieces[0] = replace(file.pieces[0], sides=tuple(sides))
    files: list[PlannedFile] = []
    for number, item in enumerate(planned):
        if inputs.files[number].source_file in taken:
            continue
        if isinstance(item, InputError):
            raise item
        files += [item, *owned.get(number, [])]
    return files


def _depth(file: InputFile) -> int:
    """How deep a file lies: what is further out owns what is further in, with all that has."""
    return file.source_file.count("/")


class _InputNames:
    """The names of the inputs, and those that a pattern stands for."""

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs
        self.numbers = {item.source_file: number for number, item in enumerate(inputs.files)}
        self._sorted = sorted(self.numbers)
        self._matches: dict[str, list[str]] = {}

    def expand(self, candidates: Iterable[str]) -> Iterator[str]:
        """The candidates, once each, with what the patterns among them stand for, sorted."""
        names: dict[str, None] = {}
        for candidate in candidates:
            name = candidate.removeprefix("./")  # the folder of a file without one is a dot
            is_pattern = "*" in name and name not in self.numbers
            names.update(dict.fromkeys(self._matching(name) if is_pattern else [name]))
        return iter(names)

    def _matching(self, pattern: str) -> list[str]:
        # Of several owners that share files, each asks for the same pattern.
        if pattern not in self._matches:
            regex = _regex(pattern)
            start = pattern.partition("*")[0]
            names: list[str] = []
            for name in self._sorted[bisect_left(self._sorted, start) :]:
                if not name.startswith(start):
                    break
                if regex.fullmatch(name):
                    names.append(name)
            self._matches[pattern] = names
        return self._matches[pattern]


def _regex(pattern: str) -> re.Pattern[str]:
    """A pattern as a regular expression; only the star means anything, for names hold brackets."""
    words = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*"}
    parts = re.split(r"(\*\*/|\*\*|\*)", pattern)
    return re.compile("".join(words.get(part, re.escape(part)) for part in parts), re.DOTALL)


def _sides_of(
    file: PlannedFile,
    number: int,
    names: _InputNames,
    links: _Links,
    outcomes: _Outcomes,
    limits: ConvertLimits,
) -> Iterator[tuple[SideFile, str]]:
    """The files that belong to a file, each with why it is not given to it, if it is not."""
    item = names.inputs.files[number]
    for side in file.pieces[0].sides:  # what SQLite keeps beside a database
        yield side, ""
    if item.named and item.place.member is None:
        return  # the user meant this file alone
    converter = formats.get(file.format or "")
    by_name = names.expand(converter.side_files(file.source_file))
    outcome = outcomes.of(file.source_file, trial_folder(file.source_file, converter))
    for name in dict.fromkeys(chain(by_name, links.of(file.source_file), outcome)):
        other = names.numbers.get(name)
        find = _find(names.inputs, item, name, other)
        if find is None or other == number:
            continue
        place, fault = find
        yield SideFile(name, place), fault or _too_large(place, file, limits)


class _Links:
    """Which inputs the contents of others lead to, of the formats that say so."""

    def __init__(
        self, names: _InputNames, planned: list[PlannedFile | InputError], limits: ConvertLimits
    ) -> None:
        self._direct: dict[str, list[str]] = {}
        for file in planned:
            if isinstance(file, InputError) or file.format is None:
                continue
            linked = getattr(formats.get(file.format), "linked_files", None)
            if linked is None or file.place.size > limits.record_bytes:
                continue
            may_link = getattr(formats.get(file.format), "may_link", None)
            if may_link is not None and not may_link(file.source_file):
                continue
            try:
                with InputStream(file.place, limits) as source:
                    targets = linked(file.source_file, source.file.read(limits.record_bytes))
            except (OSError, InputError):  # it changed since; reading it says so
                continue
            self._direct[file.source_file] = list(names.expand(targets))
        self.targets = {name for targets in self._direct.values() for name in targets}

    def of(self, source_file: str) -> Iterator[str]:
        """What a file leads to, and what that leads to, once each."""
        queue = [source_file]
        for name in queue:
            queue += [it for it in self._direct.get(name, ()) if it not in queue]
        return iter(queue[1:])


class _Outcomes:
    """The files that say how the run of a log ended, when the log is of a trial of Harbor."""

    def __init__(self, names: _InputNames, limits: ConvertLimits) -> None:
        self._names = names
        self._limits = limits
        self._trials: dict[str, bool] = {}

    def of(self, source_file: str, root: str | None) -> tuple[str, ...]:
        """The files of the trial in a folder; none when there is no trial."""
        if root is None:
            return ()
        if root not in self._trials:
            has_whole = f"{root}{MAIN}" in self._names.numbers  # which takes all of it
            self._trials[root] = not has_whole and self._is_trial(f"{root}{RESULT}")
        return outcome_files(root) if self._trials[root] else ()

    def _is_trial(self, name: str) -> bool:
        number = self._names.numbers.get(name)
        item = None if number is None else self._names.inputs.files[number]
        if item is None or item.fault or item.place.size > self._limits.record_bytes:
            return False
        try:
            with InputStream(item.place, self._limits) as source:
                return is_result(source.file.read(self._limits.record_bytes))
        except (OSError, InputError):
            return False


def _find(
    inputs: Inputs, owner: InputFile, name: str, number: int | None
) -> tuple[InputPlace, str] | None:
    """Where a candidate lies, and why it is not read; None when it is not there."""
    if number is not None:
        item = inputs.files[number]
        return None if item.fault else (item.place, "")
    path, owner_path = PurePosixPath(name), owner.path
    outside = path.is_absolute() or ".." in path.parts
    if (
        owner.place.member is not None
        or not inputs.walked
        or outside
        or not owner_path.endswith(f"/{owner.source_file}")
    ):
        return None
    file = Path(owner_path.removesuffix(owner.source_file)) / path
    if not file.is_symlink() and not file.is_file():
        return None
    place = place_of(inputs.roots.locate(file))
    return (InputPlace("", 0, 0), place) if isinstance(place, str) else (place, "")


def _too_large(place: InputPlace, owner: PlannedFile, limits: ConvertLimits) -> str:
    """Why a file is not given to its owner; empty when it is."""
    if place.packed <= limits.record_bytes:
        return ""
    return (
        f"it belongs to {owner.source_file} but is larger than the limit of "
        f"{limits.record_bytes:,} bytes"
    )


def _planned(side: SideFile, owner: PlannedFile, fault: str) -> PlannedFile:
    """The plan of a file that belongs to another one, or why it is rejected."""
    place, name = side.place, side.source_file
    return PlannedFile(
        source_file=name,
        place=place,
        dataset=owner.dataset,
        format=None if fault else owner.format,
        why=fault or "it belongs to a file of this format",
        framing=side.framing,
        style={},
        pieces=[ByteRange(place, name, side.framing, 0, place.packed)],
    )
