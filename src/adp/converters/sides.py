"""Files that belong to another one, such as a result beside a run.

A format says which they may be (`Converter.side_files`). Those that are there are read together
with their owner. They have rows in the table of sources and count as one used record each, but
make no trajectories of their own.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePosixPath

from adp.converters.files.limits import Limits
from adp.converters.files.streams import Place
from adp.converters.framing import Piece, Side
from adp.converters.inputs import InputFile, Inputs
from adp.converters.plan import PlannedFile
from adp.converters.registry import formats
from adp_schema.errors import InputError


def attach(
    inputs: Inputs, planned: list[PlannedFile | InputError], limits: Limits
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
        sides: list[Side] = []
        for name in formats.get(file.format).side_files(file.source_file):
            other = numbers.get(name)
            place = _place(inputs.files, inputs.files[number], name, other)
            if place is None or other == number or other in owned:
                continue
            if place.packed <= limits.record_bytes:
                sides.append(Side(name, place))
            if name not in taken:
                taken.add(name)
                owned.setdefault(number, []).append(_planned(name, place, file, limits))
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


def _place(items: list[InputFile], owner: InputFile, name: str, number: int | None) -> Place | None:
    """Where a candidate lies; None when it is not there."""
    if number is not None:
        item = items[number]
        return None if item.fault else item.place
    path, own = PurePosixPath(name), owner.place.path
    outside = path.is_absolute() or ".." in path.parts
    if owner.place.member is not None or outside or not own.endswith(f"/{owner.source_file}"):
        return None
    file = Path(own.removesuffix(owner.source_file)) / path
    try:
        stat = file.stat()
    except (OSError, ValueError):
        return None
    if not file.is_file():
        return None
    return Place(str(file), stat.st_size, stat.st_mtime_ns, packed=stat.st_size)


def _planned(name: str, place: Place, owner: PlannedFile, limits: Limits) -> PlannedFile:
    fits = place.packed <= limits.record_bytes
    return PlannedFile(
        source_file=name,
        place=place,
        dataset=owner.dataset,
        format=owner.format if fits else None,
        why=f"it belongs to {'a file of this format' if fits else owner.source_file}"
        + ("" if fits else f" but is larger than the limit of {limits.record_bytes:,} bytes"),
        framing="side",
        style={},
        pieces=[Piece(place, name, "side", 0, place.packed)],
    )
