"""Trajectories of ATIF in one object, by name, as test suites and exports of traces keep them.

Such as ``{"parent": TRAJECTORY, "child": TRAJECTORY}``. A result says in its
``subagent_trajectory_ref``
which other trajectory is its subagent's; that one becomes a branch, as an embedded one does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Raw

from adp.converters.atif.read import AtifReader
from adp.converters.format import Format
from adp.converters.kit.source_object import SourceObject
from adp.converters.reading import BRACE, BRACKET
from adp_schema import jsontext
from adp_schema.builder import RowBuilder
from adp_schema.errors import RecordError
from adp_schema.losses import Losses
from adp_schema.model import Columns
from adp_schema.protocols import Match, RawRecord

_IDS = ("trajectory_id", "session_id")


class AtifByName(Format):
    """The format ``atif_by_name``."""

    name = "atif_by_name"
    title = "ATIF trajectories in one object, by name"
    container = "json"
    recognised = (
        "an object whose values have a `schema_version` that begins with `ATIF-`, and steps"
    )
    versions = "Reads every version of ATIF, as the format `atif` does."

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """A value, of an object without steps, that is stamped as ATIF."""
        if "steps" in record or "schema_version" in record:
            return Match.NO
        return Match.STAMP if any(map(_is_stamped, record.values())) else Match.NO

    def read(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        """Convert the trajectories, parents before their subagents."""
        data = record.data
        if b"\n" in data:  # see `AtifReader.read`
            data = msgspec.json.format(data, indent=0)
        source = SourceObject(data, "$", losses)
        items = {name: raw for name, raw in source.values.items() if _is_trajectory(raw)}
        if not items:
            raise RecordError("none of its values is a trajectory, with a list of steps")
        source.drop(*items)
        others = {"members": source.rest()} if source else {}
        parents = _parents(items)
        ids: dict[str, str] = {}
        for name in _in_order(items, parents):
            relation: Columns = {}
            if name in parents:
                relation = _relation(ids[parents[name]], items[parents[name]])
            reader = AtifReader(record, builder, losses)
            kept = {"name": jsontext.raw(jsontext.text_of(name)), **others}
            ids[name] = reader.read_item(items[name], f"$.{name}", relation, kept)
            others = {}


def _is_stamped(raw: Raw) -> bool:
    version = _object(raw).get("schema_version", b"")
    return bytes(version).startswith(b'"ATIF-')


def _is_trajectory(raw: Raw) -> bool:
    """Whether a value has steps; those of early versions have no stamp."""
    return jsontext.first_byte(_object(raw).get("steps", b"")) == BRACKET


def _object(raw: Raw | None) -> Mapping[str, Raw]:
    """The keys of an object; none of another value."""
    if raw is None or jsontext.first_byte(raw) != BRACE:
        return {}
    return jsontext.decode_object(raw)


def _relation(parent: str, raw: Raw) -> Columns:
    """The columns of a subagent, whose parent's steps bound the one at which it may begin."""
    steps = len(jsontext.decode_array(_object(raw)["steps"]))
    return {"parent_id": parent, "branch_kind": "subagent", "parent_step": steps}


def _parents(items: Mapping[str, Raw]) -> dict[str, str]:
    """Which trajectory has which other one as a subagent: child -> parent."""
    names: dict[tuple[str, str], str] = {}
    for name, raw in items.items():
        source = _looked_into(raw)
        for key in _IDS:
            if word := source.word(key):
                names.setdefault((key, word), name)
        names |= {("trajectory_path", name): name, ("trajectory_path", f"{name}.json"): name}
    parents: dict[str, str] = {}
    for name, raw in items.items():
        for ref in _references(_looked_into(raw)):
            keys = [(key, ref.word(key)) for key in ("trajectory_id", "trajectory_path", _IDS[1])]
            child = next((names[key] for key in keys if key in names), name)
            if child not in parents and not _is_below(name, child, parents):
                parents[child] = name
    return parents


def _looked_into(raw: Raw) -> SourceObject:
    """A trajectory whose values are looked at, not taken."""
    return SourceObject(raw, "$", Losses())


def _is_below(name: str, other: str, parents: Mapping[str, str]) -> bool:
    """Whether a trajectory is another one, or a subagent of it."""
    at: str | None = name
    while at is not None and at != other:
        at = parents.get(at)
    return at == other


def _references(source: SourceObject) -> Iterator[SourceObject]:
    for step in source.objects("steps"):
        for result in step.child("observation").objects("results"):
            yield from result.objects("subagent_trajectory_ref")


def _in_order(items: Mapping[str, Raw], parents: Mapping[str, str]) -> list[str]:
    """The names, a parent before its subagents, otherwise as they stand."""
    out: dict[str, None] = {}
    for name in items:
        chain = [name]
        while chain[-1] in parents:
            chain.append(parents[chain[-1]])
        out.update(dict.fromkeys(reversed(chain)))
    return list(out)


CONVERTER = AtifByName()
