"""Files that belong to another one, such as a result beside a run.

A format says which they may be (`Converter.side_files`). Those that are there are read together
with their owner. They have rows in the table of sources and count as one used record each, but
make no trajectories of their own.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePosixPath

from adp.converters.files.limits import ConvertLimits
from adp.converters.files.streams import InputPlace
from adp.converters.framing import ByteRange, SideFile
from adp.converters.inputs import InputFile, Inputs, place_of
from adp.converters.planned_file import PlannedFile
from adp.converters.registry import formats
from adp_schema.errors import InputError


def attach(
    inputs: Inputs, planned: list[PlannedFile | InputError], limits: ConvertLimits
) -> list[PlannedFile]:
    """Put the files that belong to another one directly after it.

    Args:
        inputs: the inputs.
        planned: for each of them its plan, or why it has none.
        limits: a side file over the limit of a record is rejected, not attached.

    Raises:
        InputError: a file that belongs to no other one has no plan.
    """
    numbers = {item.source_file: number for number, item in enumerate(inputs.files)}
    owned: dict[int, list[PlannedFile]] = {}
    taken: set[str] = set()
    for number, file in enumerate(planned):
        if isinstance(file, InputError) or file.format is None or file.source_file in taken:
            continue
        if not _may_look_around(inputs, inputs.files[number]):
            continue
        sides: list[SideFile] = []
        for name in formats.get(file.format).side_files(file.source_file):
            other = numbers.get(name)
            find = _find(inputs, inputs.files[number], name, other)
            if find is None or other == number or other in owned:
                continue
            place, fault = find[0], find[1] or _too_large(find[0], file, limits)
            if not fault:
                sides.append(SideFile(name, place))
            if name not in taken:
                taken.add(name)
                owned.setdefault(number, []).append(_planned(name, place, file, fault))
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


def _may_look_around(inputs: Inputs, item: InputFile) -> bool:
    """Whether the user gave the folder or the archive that a file is in, not the file alone."""
    return item.place.member is not None or (inputs.walked and not item.named)


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


def _planned(name: str, place: InputPlace, owner: PlannedFile, fault: str) -> PlannedFile:
    """The plan of a file that belongs to another one, or why it is rejected."""
    return PlannedFile(
        source_file=name,
        place=place,
        dataset=owner.dataset,
        format=None if fault else owner.format,
        why=fault or "it belongs to a file of this format",
        framing="side",
        style={},
        pieces=[ByteRange(place, name, "side", 0, place.packed)],
    )
