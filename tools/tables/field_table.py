"""What becomes of each field of a format: found out by trying, not written by hand.

For every format there is a probe in ``probes/<format>.json``: records with every field filled. Each
value is changed in turn, and the record read again. What changes in the rows is where the
value is kept. Then both versions are written in every other format: when they come out alike, the
change got lost on the way, and the report of losses must say so. A loss that it does not say is an
error here.

A probe file holds ``records`` and ``changes``: text of a value -> values that may stand in its
place. An empty list marks a word that says what an object is. Any other value is changed by itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adp.converters.leaves import (
    Leaf,
    Reading,
    covers,
    encode_record,
    read_records,
    source_path,
    with_value,
)
from adp.converters.pairs import RecordPairs
from adp.converters.records import RecordWriter
from adp.converters.registry import BUILTIN, formats
from adp.converters.row_differences import (
    EXTRA,
    FORM,
    LOST,
    NATIVE,
    RANK,
    STRUCTURE,
    VERDICTS,
    Place,
    differences,
    hub_paths,
    kept_in,
    verdict_of,
)
from adp.converters.unwritten_columns import BOOKKEEPING
from adp_schema import errors, jsontext
from adp_schema.losses import Losses, general_path
from adp_schema.protocols import Converter

_MEDIA_ID = re.compile(r"\b[0-9a-f]{32}\b")
_KINDS = ("class_", "role", "from", "type")


class SilentLossError(Exception):
    """A field is neither kept nor reported as lost: a bug in a converter."""


def leaves(value: Any, keys: tuple[str | int, ...], path: str) -> Iterator[Leaf]:
    """The values of a record that are no objects, lists or nulls."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*keys, key), f"{path}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from leaves(item, (*keys, index), f"{path}[{_kind(item, index)}]")
    elif value is not None:
        yield Leaf(keys, path, value)


def _kind(item: Any, index: int) -> str:
    """Name of a list item: its class, role or type, if it says one."""
    if not isinstance(item, dict):
        return str(index)
    words = [item[key] for key in _KINDS if isinstance(item.get(key), str)]
    if "class_" in item and "source" in item:
        words.append(item["source"])
    if "step_id" in item and isinstance(item.get("source"), str):
        words.append(item["source"])
    message = item.get("message")
    if isinstance(message, dict) and isinstance(message.get("role"), str):
        words.append(message["role"])
    return ", ".join(words) or "*"


@dataclass
class FieldRow:
    """What becomes of one field.

    Attributes:
        path: where it is in the source; a list item is named by what it says it is.
        verdict: what becomes of it in the store: a key of `VERDICTS`.
        columns: where it is kept, as ``table.column``; a key of ``extra`` as ``table.extra.key``.
        targets: other format -> what becomes of it there.
    """

    path: str
    verdict: str
    columns: list[str] = field(default_factory=list)
    targets: dict[str, str] = field(default_factory=dict)


@dataclass
class FieldTable:
    """What becomes of a format's records.

    Attributes:
        rows: a row a field, in the order of the probe.
        further: other format -> what is reported besides those fields: path in a trajectory,
            such as ``$.pairs[*]``, and reason.
    """

    rows: list[FieldRow]
    further: dict[str, list[tuple[str, str]]]


def field_rows(name: str, converters: Mapping[str, Converter] | None = None) -> list[FieldRow]:
    """The rows of `field_table`."""
    return field_table(name, converters).rows


def field_table(name: str, converters: Mapping[str, Converter] | None = None) -> FieldTable:
    """Try every field of a format.

    Args:
        name: name of the format.
        converters: the formats by name; all registered ones by default.

    Raises:
        SilentLossError: a field is lost, and no report says so.
    """
    known = converters if converters is not None else {item: formats.get(item) for item in BUILTIN}
    probe = load_probe(name)
    results: dict[str, FieldRow] = {}
    further: dict[str, set[tuple[str, str]]] = {key: set() for key in sorted(set(known) - {name})}
    for record in probe["records"]:
        trial = _Trial(name, known, record, probe["changes"])
        for leaf in leaves(record, (), "$"):
            row = trial.row(leaf)
            _merge(results.setdefault(row.path, row), row)
        for target, paths in trial.further().items():
            further[target] |= paths
    return FieldTable(
        list(results.values()), {key: sorted(paths) for key, paths in further.items()}
    )


def load_probe(name: str) -> dict[str, Any]:
    """The probe of a format.

    Raises:
        FileNotFoundError: the format has none.
    """
    file = Path(__file__).parent / "probes" / f"{name}.json"
    probe: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return probe


def _merge(row: FieldRow, other: FieldRow) -> None:
    """Two objects of the same kind have the same field: say both, where they differ."""
    row.verdict = _both(row.verdict, other.verdict)
    row.columns += [column for column in other.columns if column not in row.columns]
    for target, verdict in other.targets.items():
        row.targets[target] = _both(row.targets[target], verdict)


def _both(first: str, second: str) -> str:
    return ", ".join(dict.fromkeys([*first.split(", "), *second.split(", ")]))


class _Trial:
    """Tries the fields of one record.

    Args:
        name: name of its format.
        converters: all formats by name.
        record: the record.
        changes: text of a value -> values that may stand in its place.
    """

    def __init__(
        self,
        name: str,
        converters: Mapping[str, Converter],
        record: dict[str, Any],
        changes: dict[str, list[Any]],
    ) -> None:
        self._name = name
        self._converters = converters
        self._record = record
        self._changes = changes
        self._base = read_records(converters[name], [encode_record(record)])
        self._others = sorted(set(converters) - {name})
        self._written: dict[str, tuple[list[bytes], list[dict[str, str]]]] = {}
        self._back: dict[str, Reading] = {}
        self._reported: dict[str, set[str]] = {}

    def further(self) -> dict[str, set[tuple[str, str]]]:
        """What each other format reports of the record that is the loss of no field."""
        return {
            target: {
                (_MEDIA_ID.sub("*", general_path(item["path"])), item["reason"])
                for item in items
                if item["path"] not in self._reported.get(target, ())
            }
            for target, (_, items) in self._written.items()
        }

    def row(self, leaf: Leaf) -> FieldRow:
        """Find out what becomes of a field."""
        results: list[tuple[str, list[Place], Reading]] = []
        for value in self._alternatives(leaf):
            changed = self._try([encode_record(with_value(self._record, leaf.keys, value))])
            places = None if changed is None else differences(self._base.rows, changed.rows)
            if changed is not None and places is not None:
                results.append((verdict_of(self._base.rows, changed.rows, places), places, changed))
        if not results:
            return FieldRow(leaf.path, STRUCTURE, [], dict.fromkeys(self._others, STRUCTURE))
        verdict, places, changed = min(
            results, key=lambda item: RANK.index(item[0]) if item[0] in RANK else len(RANK)
        )
        if verdict == LOST:
            self._must_report(leaf.path, self._base.losses, [source_path(leaf.keys)], "store")
            return FieldRow(leaf.path, LOST, [], dict.fromkeys(self._others, LOST))
        columns = kept_in(self._base.rows, changed.rows, places, leaf.value, verdict)
        row = FieldRow(leaf.path, verdict, columns)
        for target in self._others:
            row.targets[target] = self._in_target(leaf, changed, places, target, verdict)
        return row

    def _alternatives(self, leaf: Leaf) -> list[Any]:
        value = leaf.value
        if isinstance(value, str):
            return self._changes.get(value, [f"{value}-2"])
        return [not value] if isinstance(value, bool) else [value + 1]

    def _in_target(
        self, leaf: Leaf, changed: Reading, places: list[Place], target: str, verdict: str
    ) -> str:
        """What becomes of a field in another format."""
        losses = Losses()
        if target not in self._written:
            self._written[target] = self._write(target, self._base, losses), losses.items
        before, items = self._written[target]
        losses.items = list(items)
        after = self._write(target, changed, losses)
        if before == after:
            if verdict == FORM or all(column in BOOKKEEPING for _, _, column in places):
                return FORM
            expected = [path for place in places for path in hub_paths(self._base.rows, place)]
            self._must_report(leaf.path, losses.items, expected, target)
            return LOST
        if target not in self._back:
            self._back[target] = read_records(self._converters[target], before)
        first, second = self._back[target], read_records(self._converters[target], after)
        back = differences(first.rows, second.rows)
        if back is None:
            return STRUCTURE
        if not back:
            raise SilentLossError(f"{self._name}: {leaf.path} is in {target}, but is not read back")
        here = {(table, column) for table, _, column in places}
        if any((table, column) in here for table, _, column in back if column != "extra"):
            return NATIVE
        what = verdict_of(first.rows, second.rows, back)
        columns = kept_in(first.rows, second.rows, back, leaf.value, what)
        return what if what in (EXTRA, FORM) else f"to {' and '.join(columns)}"

    def _must_report(
        self, path: str, losses: list[dict[str, str]], expected: list[str], where: str
    ) -> None:
        """Raise unless the losses name one of the expected places, or what holds it."""
        matching = {loss["path"] for loss in losses if covers(loss["path"], expected)}
        self._reported.setdefault(where, set()).update(matching)
        if matching:
            return
        raise SilentLossError(
            f"{self._name}: {path} is lost in the {where}, and no report says so; "
            f"expected one at {' or '.join(expected)}"
        )

    def _try(self, data: list[bytes]) -> Reading | None:
        """Read a changed record; None when the change made it wrong."""
        try:
            return read_records(self._converters[self._name], data)
        except (errors.RecordError, ValueError):
            return None

    def _write(self, name: str, reading: Reading, losses: Losses) -> list[bytes]:
        """Write the trajectories of a record as an export does."""
        runs = [run.model_copy(update={"branches": []}) for run in reading.trajectories]
        writer = RecordWriter(
            self._converters[name], losses, pairs=RecordPairs(reading.tables["pairs"])
        )
        written = [record for _, record in writer.records(runs)]
        writer.finish()
        return [jsontext.encode(record) for record in written if record is not None]


__all__ = [
    "EXTRA",
    "FORM",
    "LOST",
    "NATIVE",
    "STRUCTURE",
    "VERDICTS",
    "FieldRow",
    "FieldTable",
    "SilentLossError",
    "field_rows",
    "field_table",
    "load_probe",
]
