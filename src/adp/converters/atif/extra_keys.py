"""What ATIF has no key for, kept in ``extra``: upstream's ``web`` and ``reward``, and ``adp``.

ATIF allows free keys in ``extra`` at every level. Columns without a key of their own go into
``extra.adp``, an object of column names, and come back from there.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import msgspec
import pyarrow as pa
from msgspec import Raw

from adp.converters.atif import keys as k
from adp.converters.atif.column_values import read_value, same_json, write_value
from adp.converters.atif.extra_columns import EXTRA_COLUMNS, take_elsewhere
from adp.converters.atif.origin import drop_origin, read_origin
from adp.converters.json_objects import JsonObject, arrange, members
from adp.converters.reading import BRACE, BRACKET
from adp.converters.scalars import number_text, write_number
from adp.converters.unwritten_columns import BOOKKEEPING, DEFAULTS
from adp_schema import jsontext, media
from adp_schema.extra_column import Extra, original
from adp_schema.losses import Losses
from adp_schema.model import Columns, Observation, Row
from adp_schema.tables import ENUMS, TABLES, columns_of

_TABLES = {table.row: table.name for table in TABLES.values()}


def read_beside(
    source: JsonObject, table: str, columns: Columns, usual: Mapping[str, Any], losses: Losses
) -> None:
    """Move what columns can hold out of the ``extra`` of an object.

    Args:
        source: the object; its ``extra`` loses the keys that columns take.
        table: table of the row.
        columns: takes the values.
        usual: column -> value that it has when ``extra.adp`` does not name it.
        losses: takes keys that occur twice.
    """
    raw = source.values.get("extra")
    if raw is None or jsontext.first_byte(raw) != BRACE or source.first("extra") != BRACE:
        return
    names = jsontext.decode_object(raw)
    if jsontext.lost_keys(raw, names) or any(jsontext.has_mark(name) for name in names):
        return
    atif_object = JsonObject(raw, f"{source.path}.extra", losses)
    results: Columns = {}
    if table in ("steps", "observations"):
        results["reward"] = atif_object.number("reward")
    if table == "observations" and atif_object.first("web") == BRACE:
        _read_web(atif_object, results, losses)
    if atif_object.first("adp") == BRACE:
        raw = atif_object.values["adp"]
        if table == "trajectories":
            raw = read_origin(raw, source.form, usual.get("embedded"))
        kept_columns = {} if raw is None else read_adp(raw, table, usual)
        if kept_columns is not None and take_elsewhere(
            kept_columns, columns, source.form, usual, table
        ):
            atif_object.take("adp")
            results |= kept_columns
        else:
            drop_origin(source.form)
    if not atif_object.taken:
        return
    columns.update({name: value for name, value in results.items() if value is not None})
    source.form["extra"] = atif_object.names
    if atif_object.exact:
        source.exact |= atif_object.exact
    if "web" in atif_object.form:
        source.form["web"] = atif_object.form["web"]
    if atif_object.values:
        source.values["extra"] = Raw(jsontext.encode(atif_object.values))
    else:
        source.take("extra")


def _read_web(atif_object: JsonObject, columns: Columns, losses: Losses) -> None:
    raw = atif_object.values["web"]
    if jsontext.lost_keys(raw, jsontext.decode_object(raw)):
        return
    web = atif_object.inner("web", losses)
    assert web is not None
    for name in ("html", "axtree", "url"):
        columns[name] = web.text(name)
    sizes = _read_sizes(web.values.get("viewport_size", Raw()))
    if sizes is not None:
        web.take("viewport_size")
        columns["viewport_width"], columns["viewport_height"] = sizes
    atif_object.close("web", web, k.WEB)
    atif_object.form.setdefault("web", {})


def _read_sizes(raw: Raw) -> list[float | None] | None:
    """Width and height, one of them perhaps null; None for anything that is spelled otherwise."""
    if jsontext.first_byte(raw) != BRACKET:
        return None
    out: list[float | None] = []
    for size in jsontext.decode_array(raw):
        text = bytes(size).decode("utf-8")
        number = text[0] in "-0123456789"
        if text != "null" and not (number and number_text(float(text)) == text):
            return None
        out.append(float(text) if number else None)
    return out if len(out) == 2 and out != [None, None] else None


def write_beside(
    row: Row, kept: Raw | dict[str, Any] | None, extra: Extra, adp: dict[str, Any], blobs: Any
) -> Any:
    """The ``extra`` of an object, with what columns hold of it.

    Args:
        row: the row.
        kept: what is left of the source's ``extra``, or keys of another format.
        extra: the row's unpacked column ``extra``.
        adp: the columns for ``extra.adp``.
        blobs: media by id.
    """
    known: dict[str, Any] = {}
    if _TABLES[type(row)] in ("steps", "observations"):
        known["reward"] = write_number(getattr(row, "reward", None), "reward", extra.shape)
    rest = dict(members(kept) or {})
    before = list(rest)
    if isinstance(row, Observation):
        known["web"] = _write_web(row, rest.get("web"), extra, blobs)
        if known["web"] is not None:
            rest.pop("web", None)
    known["adp"] = adp or None
    known = {name: value for name, value in known.items() if value is not None}
    names = extra.shape.get("extra")
    if not known:
        return kept
    if kept is not None and members(kept) is None:
        rest = {"value": kept}
    if names is None:
        names = before
    taken = {f"{name}_": rest.pop(name) for name in known if name in rest}
    full = {**rest, **known, **taken}
    ordered = {name: full.pop(name) for name in names if name in full}
    return {**ordered, **full}


def _write_web(row: Observation, kept: Any, extra: Extra, blobs: Any) -> Any:
    texts = {name: original(row, name, extra) for name in ("html", "axtree", "url")}
    known: dict[str, Any] = {
        name: None if text is None else jsontext.string(media.restore(text, blobs))
        for name, text in texts.items()
    }
    sizes = [row.viewport_width, row.viewport_height]
    if sizes != [None, None]:
        known["viewport_size"] = [
            None if s is None else jsontext.raw(number_text(s)) for s in sizes
        ]
    form = extra.shape.get("web")
    if form is None and all(value is None for value in known.values()):
        return None
    rest = members(kept)
    if kept is not None and rest is None:
        rest = {"value": kept}
    return arrange(known, rest or {}, form or {}, k.WEB)


# ---- extra.adp -----------------------------------------------------------------------------------


@functools.cache
def _columns(table: str) -> dict[str, pa.Field]:
    """The columns of a table that may stand in ``extra.adp``, in order."""
    carried = k.CARRIED[table] - {"source", "kind"} | BOOKKEEPING.keys()
    carried -= EXTRA_COLUMNS.get(table, frozenset())
    if table == "trajectories":
        carried -= {"parent_step", "branch_kind"}
    fields = columns_of(TABLES[table].row)
    return {name: field for name, field in fields.items() if name not in carried}


def adp_columns(
    row: Row,
    extra: Extra,
    usual: Mapping[str, Any],
    blobs: Any,
    without: frozenset[str] = frozenset(),
    extra_keys: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    """The filled columns of a row that no key of ATIF holds.

    Args:
        row: the row.
        extra: its unpacked column ``extra``.
        usual: column -> value that says nothing.
        blobs: media by id.
        without: columns that are written elsewhere.
        extra_keys: columns that stand here although they have a place.
    """
    out: dict[str, Any] = {}
    table = _TABLES[type(row)]
    without |= EXTRA_COLUMNS.get(table, frozenset()) - extra_keys
    for name, field in _columns(table).items():
        value = getattr(row, name)
        if value is None or name in without or DEFAULTS.get(name) == value:
            continue
        if usual.get(name) != value:
            out[name] = write_value(original(row, name, extra), field, blobs)
    return out


def read_adp(raw: Raw, table: str, usual: Mapping[str, Any]) -> Columns | None:
    """The columns that an ``extra.adp`` names; None when it is not what `adp_columns` writes."""
    child = jsontext.decode_object(raw)
    fields = _columns(table)
    if not child or list(child) != [name for name in fields if name in child]:
        return None
    out: Columns = {}
    for name, value in child.items():
        try:
            out[name] = read_value(value, fields[name], ENUMS.get((table, name)))
        except (msgspec.DecodeError, ValueError, OverflowError):
            return None
        if out[name] is None or out[name] in (usual.get(name), DEFAULTS.get(name)):
            return None
    if table == "steps" and not _is_told(out, usual):
        return None
    if table == "trajectories" and not _is_branch(out, usual):
        return None
    again = {name: write_value(value, fields[name], {}) for name, value in out.items()}
    return out if same_json(jsontext.encode(again), bytes(raw)) else None


def _is_told(step: Columns, usual: Mapping[str, Any]) -> bool:
    """Whether ``extra.adp`` says of a step what the step itself cannot say."""
    environment = step.get("source") in (None, "environment")
    system = "source" not in step or usual["source"] == "system"
    return environment and system and step.get("kind") != "context_edit"


def _is_branch(run: Columns, usual: Mapping[str, Any]) -> bool:
    """Whether ``extra.adp`` says nothing of a parent, or something that an embedded run can be."""
    if "parent_step" not in run:
        return "branch_kind" not in run or "branch_kind" in usual
    return "branch_kind" in usual and 0 <= run["parent_step"] <= usual["limit"]
