"""SWE-chat: turns of a coding agent's session: of people, thoughts, calls and results."""

from __future__ import annotations

from collections.abc import Iterator

from adp.converters.datasets.families.messages import item_object
from adp.converters.datasets.turns import DatasetRow, DatasetTurn, TurnCall
from adp.converters.kit.source_object import SourceObject
from adp_schema.model import Columns

_ARGUMENTS = ("command", "file_path", "pattern")
_COUNTS = {"input_tokens": "tokens_in", "output_tokens": "tokens_out",
           "cache_read_input_tokens": "tokens_cached",
           "cache_creation_input_tokens": "tokens_cache_write"}  # fmt: skip


def turns(row: DatasetRow) -> Iterator[DatasetTurn]:
    """The turns of a session, which is one row or the rows of a file."""
    sources, row.rows = row.rows, []
    for number, raw in enumerate(row.items("turns")):
        sources.append(item_object(raw, f"$.turns[{number}]", row))
    for source in sources:
        yield _turn(source)


def _turn(source: SourceObject) -> DatasetTurn:
    text, role, kind = source.text("content"), source.word("role"), source.word("turn_type")
    is_call = role not in ("user", "human", "system") and bool(source.word("tool_name"))
    is_result = role in ("tool", "tool_result") or "result" in kind
    name = call_id = None
    if is_call or is_result:
        name, call_id = source.text("tool_name"), source.text("tool_call_id")
    if is_result:
        return DatasetTurn("result", text, name=name, answers=call_id, extra=source.rest())
    if role in ("user", "human", "system"):
        return DatasetTurn("system" if role == "system" else "user", text, extra=source.rest())
    columns: Columns = {column: count for key, column in _COUNTS.items()
               if (count := source.integer(key)) is not None}  # fmt: skip
    model = source.text("model")
    if model is not None:
        columns["model"] = model
    if name is not None:
        call = TurnCall(name, _arguments(source), call_id)
        return DatasetTurn("agent", text, [call], columns=columns, extra=source.rest())
    if "thinking" in kind:
        return DatasetTurn("agent", None, reasoning=text, columns=columns, extra=source.rest())
    return DatasetTurn("agent", text, columns=columns, extra=source.rest())


def _arguments(source: SourceObject) -> object:
    """The arguments as they were given; else the few that stand in columns."""
    given = source.take("tool_input_json")
    if given is not None and bytes(given) not in (b"null", b'""'):
        return given
    return {key: source.word(key) for key in _ARGUMENTS if source.word(key)}
