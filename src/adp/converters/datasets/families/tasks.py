"""Rows that are tasks: a question with its answer, its tools or its tests, and no run."""

from __future__ import annotations

from typing import Any

from adp.converters.datasets.expected import expected_calls
from adp.converters.datasets.paths import opened
from adp.converters.datasets.recipe import PartOfTask
from adp.converters.datasets.tools import normal_tool
from adp.converters.datasets.turns import DatasetRow
from adp.converters.datasets.values import column_type, value_of
from adp.converters.reading import BRACKET, NULL
from adp_schema import extra_column, jsontext
from adp_schema.errors import RecordError
from adp_schema.model import Columns, Task


def read(row: DatasetRow) -> None:
    """Add the task that a row is.

    Raises:
        RecordError: it asks for nothing.
    """
    columns = task_columns(row)
    if columns.get("instruction") is None and columns.get("turns") is None:
        raise RecordError("there is no instruction of a task in it")
    if columns.get("task_id") is None:
        name = row.recipe.constants.get("dataset") or row.recipe.name
        columns["task_id"] = f"{name}_{row.number}" + (f"_{row.key}" if row.key else "")
    if extra := extra_column.pack({**row.run.extra, **row.source.rest()}):
        columns["extra"] = extra
    row.builder.task(columns)


def task_columns(row: DatasetRow) -> Columns:
    """The columns of the task that a recipe says where to find."""
    columns: Columns = {}
    # Expected calls are a copy: they are made before another column takes the value.
    before = row.source.copy()
    for name, spec in sorted(row.recipe.tasks.items(), key=lambda it: it[0] != "expected_calls"):
        columns[name] = _column(name, spec, row)
        if columns[name] is None:  # another column may have taken it
            rest, row.source = row.source, before.copy()
            columns[name] = _column(name, spec, row)
            row.source = rest
    tools = row.recipe.tools
    if tools is not None and row.recipe.reader == "tasks":
        _add_tools(columns, row)
    return {name: value for name, value in columns.items() if value is not None}


def _column(name: str, spec: PartOfTask, row: DatasetRow) -> Any:
    if spec.value is not None:
        return _constant(spec.value, column_type(Task, name))
    if name == "expected_calls":
        return _expected(row, spec)
    if name == "instruction" and (text := _instruction(row, spec.path)):
        return text
    return value_of(spec, row, column_type(Task, name))


def _expected(row: DatasetRow, spec: PartOfTask) -> str | None:
    """Calls in one shape, with the names of arguments that the tools of the recipe say."""
    tools = row.recipe.tools
    given = [] if tools is None else [normal_tool(tool)["function"] for tool in tools.given]
    names = {it["name"]: tuple(it["parameters"].get("properties", ())) for it in given}
    if spec.format is not None:
        made = value_of(spec, row, "json")
        return None if made is None else expected_calls(jsontext.decode_value(made), names)
    for path in spec.path:
        raw = row.look(path)
        if raw is not None and spec.regex is not None:
            text = value_of(spec.model_copy(update={"path": (path,)}), row, "text")
            raw = None if text is None else jsontext.raw(jsontext.text_of(text))
        if raw is not None:
            calls = expected_calls(jsontext.decode_value(opened(raw)), names)
            if calls is not None:
                return calls
    return None


def _constant(value: Any, kind: str) -> Any:
    return jsontext.text_of(value) if kind == "json" else value


def _instruction(row: DatasetRow, paths: tuple[str, ...]) -> str | None:
    """What the user says in a list of messages, also of a list in it; the row keeps the list."""
    for path in paths:
        raw = row.look(path)
        value = None if raw is None else opened(raw)
        if value is None or jsontext.first_byte(value) == NULL:
            continue
        if jsontext.first_byte(value) != BRACKET:
            return None  # a text, which is looked up as any other value
        texts = _user_texts(jsontext.decode_value(value))
        if texts:
            return "\n\n".join(texts)
    return None


def _user_texts(messages: Any) -> list[str]:
    texts: list[str] = []
    for message in messages if isinstance(messages, list) else []:
        if isinstance(message, list):
            texts += _user_texts(message)
        elif isinstance(message, dict) and message.get("role", message.get("from")) in (
            "user", "human"
        ):  # fmt: skip
            content = message.get("content", message.get("value"))
            texts += [content] if isinstance(content, str) else []
        elif isinstance(message, str):
            texts.append(message)
    return texts


def _add_tools(columns: Columns, row: DatasetRow) -> None:
    """The tools on offer are part of what a task runs in."""
    from adp.converters.datasets.tools import find_tools

    assert row.recipe.tools is not None
    tools = find_tools(row.recipe.tools, row)
    if tools is not None and columns.get("environment_config") is None:
        columns["environment_config"] = f'{{"tools":{tools[0]}}}'
