"""Names of tools in rows: those of the Agent Data Protocol, and back to those of the source.

What a row had before is kept under ``$tool_names`` of ``extra``: ``name``, the new name;
``before``, the columns that were changed; ``written``, a hash of the new arguments, by which edits
are seen. So the names of the source come back with the same characters, and an edit made since is
kept.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from msgspec import Raw

from adp.core.json_values import json_or_none
from adp.core.tool_names.mapping import NamedCall, tool_names
from adp_schema import jsontext
from adp_schema.extra_column import TOOL_NAMES, unpack, with_reserved, without_reserved
from adp_schema.ids import digest
from adp_schema.model import Columns

_ARGUMENTS = ("arguments", "arguments_raw", "arguments_kind")
_CALL = ("name", "kind", "language", *_ARGUMENTS)
_DEEPEST = 100


def is_renamed(row: Mapping[str, Any]) -> bool:
    """Whether a row has other names than its source."""
    extra = row.get("extra")
    if extra is None or f'"{TOOL_NAMES}"' not in extra:
        return False
    return bool(unpack(extra).tool_names)


def protocol_call(call: Mapping[str, Any]) -> Columns | None:
    """The changed columns of a call under the names of the Agent Data Protocol.

    Args:
        call: columns of a row of ``tool_calls``.

    Returns:
        Column -> value; None when the call keeps its names.
    """
    if is_renamed(call):
        return None
    named = _named(call)
    renamed = None if named is None else tool_names().rename(named)
    if named is None or renamed is None or renamed.arguments is None:
        return None
    new: Columns = {"name": renamed.name}
    if call.get("kind") == "code":
        new |= {"kind": "function", "language": None}
    if named.arguments is None or not _same(named.arguments, renamed.arguments):
        text = _text(call, named.arguments or {}, renamed.arguments)
        new |= {"arguments": text, "arguments_raw": None}
        if call.get("arguments") is None:
            new["arguments_kind"] = "object"
    return _noted(call, {key: value for key, value in new.items() if value != call.get(key)})


def _noted(row: Mapping[str, Any], new: Columns) -> Columns | None:
    """Changed columns, with what they were before in ``extra``."""
    if not new:
        return None
    note: dict[str, Any] = {"name": new.get("name", row.get("name"))}
    note["before"] = {key: row.get(key) for key in new}
    if row.get("extra") == "{}":
        note["before"]["extra"] = "{}"
    if "arguments" in new:
        note["written"] = digest(new["arguments"].encode("utf-8", "surrogatepass"))
    return {**new, "extra": with_reserved(row.get("extra"), TOOL_NAMES, note)}


def source_call(call: Mapping[str, Any]) -> Columns | None:
    """The changed columns of a call under the names of its source; None when it has them.

    Args:
        call: columns of a row of ``tool_calls``.
    """
    if not is_renamed(call):
        return None
    note = unpack(call["extra"]).tool_names
    before: Columns = dict(note["before"])
    extra = without_reserved(call["extra"], TOOL_NAMES)
    if call.get("name") != note["name"]:
        before.pop("name", None)  # the call was renamed since
    if "arguments" in before and not _is_written(call, note):
        was = {**call, **before}
        before = {
            key: before[key] for key in before if key not in ("kind", "language", *_ARGUMENTS)
        }
        before |= _edited(call, was)
    return {"extra": extra, **before}


def _is_written(call: Mapping[str, Any], note: Mapping[str, Any]) -> bool:
    """Whether the arguments are those that were written."""
    text = call.get("arguments")
    if text is None or call.get("arguments_raw") is not None:
        return False
    return digest(text.encode("utf-8", "surrogatepass")) == note.get("written")


def _edited(call: Mapping[str, Any], was: Mapping[str, Any]) -> Columns:
    """Edited arguments under the names of the source.

    Args:
        call: the call.
        was: the call before it was renamed.
    """
    shape = {key: was.get(key) for key in ("kind", "language")}
    named = _named(was)
    renamed = None if named is None else tool_names().rename(named)
    now = json_or_none(call.get("arguments"))
    if named is None or renamed is None or renamed.arguments is None or not isinstance(now, dict):
        return shape
    if named.arguments is None:
        main = tool_names().tools[str(renamed.name)].main
        if set(now) != {main} or not isinstance(now[main], str):
            return {}  # it is no text alone any more
        kept = {key: was.get(key) for key in ("kind", "language", "arguments_kind")}
        return {**kept, "arguments": None, "arguments_raw": now[main]}
    names = _origins(named.arguments, renamed.arguments)
    members = jsontext.decode_exact(jsontext.raw(call["arguments"]))
    added = {key: value for key, value in renamed.arguments.items() if key not in names}
    new = {
        names.get(key, key): value
        for key, value in members.items()
        if key not in added or now[key] != added[key]
    }
    gone = set(named.arguments) - set(names.values())
    rest = {key: value for key, value in named.arguments.items() if key in gone}
    return {**shape, "arguments": jsontext.text_of({**rest, **new}),
            "arguments_kind": was.get("arguments_kind")}  # fmt: skip


def _named(call: Mapping[str, Any]) -> NamedCall | None:
    """A call as values; None when its arguments are no object and no text."""
    name = call.get("name")
    language = (call.get("language") or name) if call.get("kind") == "code" else None
    text = call.get("arguments")
    if text is None:
        raw = call.get("arguments_raw")
        if raw is not None and call.get("arguments_kind") == "text":
            return NamedCall(name, None, raw, language)
        return NamedCall(name, {}, None, language) if raw is None else None
    if jsontext.depth(text.encode("utf-8", "surrogatepass")) > _DEEPEST:
        return None
    value = json_or_none(text)
    if not isinstance(value, dict) or jsontext.lost_keys(
        jsontext.raw(text), jsontext.decode_exact(jsontext.raw(text))
    ):
        return None
    return NamedCall(name, value, None, language)


def _origins(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, str]:
    """New key -> old key of the arguments that are the same, or made of one another."""
    names: dict[str, str] = {}
    free = list(old)
    for key, value in new.items():
        origin = next((name for name in free if old[name] is value), None)
        if origin is not None:
            names[key] = origin
            free.remove(origin)
    lists = [name for name in free if isinstance(old[name], list)]
    made = [key for key, value in new.items() if key not in names and isinstance(value, str)]
    return {**names, **dict(zip(made[:1], lists[:1], strict=False))}


def _same(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether arguments kept their names and values."""
    return list(old) == list(new) and all(old[key] is new[key] for key in old)


def _text(call: Mapping[str, Any], old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """New arguments as JSON text; values that did not change keep their characters."""
    members: dict[str, Raw] = {}
    if call.get("arguments") is not None:
        members = jsontext.decode_exact(jsontext.raw(call["arguments"]))
    names = {key: name for key, name in _origins(old, new).items() if old[name] is new[key]}
    parts = [
        f"{_json(key)}: {bytes(members[names[key]]).decode('utf-8')}"
        if key in names
        else f"{_json(key)}: {_json(value)}"
        for key, value in new.items()
    ]
    return "{" + ", ".join(parts) + "}"


def _json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value)
    return text


def protocol_tools(trajectory: Mapping[str, Any]) -> Columns | None:
    """The changed columns of a trajectory whose tools on offer are renamed; None when none is.

    Of tools that share their new name the first is on offer.

    Args:
        trajectory: columns of a row of ``trajectories``.
    """
    text = trajectory.get("tools")
    if text is None or is_renamed(trajectory):
        return None
    tools = json_or_none(text)
    if not isinstance(tools, list):
        return None
    written: list[Any] = []
    taken: set[str] = set()
    for tool, raw in zip(tools, jsontext.decode_array(text.encode("utf-8")), strict=True):
        renamed = tool_names().rename_schema(tool) if isinstance(tool, dict) else None
        name = None if renamed is None else renamed.get("function", renamed).get("name")
        if name is not None and name in taken:
            continue
        taken |= set() if name is None else {name}
        written.append(raw if renamed is None or renamed == tool else renamed)
    if all(isinstance(item, Raw) for item in written) and len(written) == len(tools):
        return None
    new = jsontext.text_of(written)
    note = {"before": {"tools": text}, "written": digest(new.encode("utf-8"))}
    return {"tools": new, "extra": with_reserved(trajectory.get("extra"), TOOL_NAMES, note)}


def source_tools(trajectory: Mapping[str, Any]) -> Columns | None:
    """The changed columns of a trajectory whose tools get the names of the source again.

    Tools that were edited since stay as they are.

    Args:
        trajectory: columns of a row of ``trajectories``.
    """
    if not is_renamed(trajectory):
        return None
    note = unpack(trajectory["extra"]).tool_names
    changed: Columns = {"extra": without_reserved(trajectory["extra"], TOOL_NAMES)}
    text = trajectory.get("tools")
    if text is not None and digest(text.encode("utf-8")) == note.get("written"):
        changed["tools"] = note["before"]["tools"]
    return changed


def protocol_result(result: Mapping[str, Any], old: str | None, new: str | None) -> Columns | None:
    """The changed columns of a result that names its tool.

    Args:
        result: columns of a row of ``observations``.
        old: name of the tool that was called, before it was renamed.
        new: its name now.
    """
    if old is None or old == new or result.get("name") != old or is_renamed(result):
        return None
    return _noted(result, {"name": new})


source_result = source_call
"""The changed columns of a result that names its tool as the source does; None when it does."""
