"""Tables of column -> key: which values of an object of the source go to which columns of a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from adp.converters.kit.source_object import SourceObject
from adp.converters.kit.times import take_end, take_start, take_time
from adp.converters.reading import tools_text
from adp_schema.model import Columns

KeyTable = Mapping[str, str | tuple[str, ...]]
"""Column -> the key of its value, or several, of which the first that has one is taken."""

EXIT_CODES = ("exit_code", "exitCode", "exitCodeV2", "returnCode", "exit")
"""Keys of the exit status of a command."""
_TIMES: dict[str, Callable[..., None]] = {
    "timestamp": take_time,
    "started_at": take_start,
    "ended_at": take_end,
}


def take_columns(source: SourceObject, columns: Columns, table: KeyTable) -> None:
    """Move values to columns, each as the type of its column wants it.

    A value of another type stays in the object. A column whose value is not there stays as it is.

    Args:
        source: the object.
        columns: of a row.
        table: column -> keys.
    """
    for column, key in table.items():
        keys = (key,) if isinstance(key, str) else key
        if keys[0] not in source.values and len(keys) == 1:
            continue
        if column in _TIMES:
            _TIMES[column](source, columns, *keys)
            continue
        value = _TAKE.get(column, SourceObject.text)(source, *keys)
        if value is not None:
            columns[column] = value


def take_tools(source: SourceObject, columns: Columns) -> None:
    """Fill the tools on offer from ``tools``, or from the older ``functions``.

    Args:
        source: what has them, such as a request.
        columns: the row of the trajectory; other tools than those that it has stay in the source.
    """
    for key in ("tools", "functions"):
        text = tools_text(source.values.get(key))
        if text is None or text == "[]" or columns.get("tools") not in (None, text):
            continue
        source.drop(key)
        columns["tools"], columns["tools_origin"] = text, "recorded"


def copy_words(source: SourceObject, columns: Columns, table: Mapping[str, str]) -> None:
    """Fill columns with strings that stay in the object; without a string a column is null.

    A dot in a key leads into an object.
    """
    for column, path in table.items():
        *names, key = path.split(".")
        place = source
        for name in names:
            place = place.peek(name)
        columns[column] = place.word(key) or None


def exit_code(*sources: SourceObject) -> int | None:
    """The exit status that the first of some objects has; it stays there."""
    for source in sources:
        for key in EXIT_CODES:
            if key in source.values and (code := source.integer_at(key, bits=32)) is not None:
                return code
    return None


_TAKE: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(("native_id", "source_id", "session_id", "task_id", "source_version"),
                    SourceObject.name),
    **dict.fromkeys(("duration_ms", "cost_usd", "total_cost_usd"), SourceObject.number),
    **dict.fromkeys(("tokens_in", "tokens_out", "total_tokens_in", "total_tokens_out",
                     "total_tokens_cached"), SourceObject.integer),
    "is_error": SourceObject.flag,
}  # fmt: skip
