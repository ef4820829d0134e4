"""What a recipe says of whole runs, once the calls in their texts are known."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

import msgspec

from adp.converters.datasets.recipe import DatasetRecipe, FinishSpec
from adp.converters.datasets.tools import inferred_tools
from adp.converters.null_members import without_nulls
from adp_schema.builder import RowBuilder
from adp_schema.extra_column import with_changed_columns
from adp_schema.model import Columns
from adp_schema.row_changes import TrajectoryRows


def complete_record(recipe: DatasetRecipe, builder: RowBuilder) -> None:
    """Fill in how runs ended, and tools that are made of calls.

    Args:
        recipe: what says so.
        builder: has the rows of the record at hand.
    """
    infers = recipe.tools is not None and recipe.tools.infer
    drops_nulls = recipe.overlaid is not None and recipe.messages.drop_nulls
    if recipe.finish is None and not infers and not drops_nulls:
        return

    def change(run: TrajectoryRows) -> None:
        columns: Columns = {}
        for call in run.tool_calls if drops_nulls else ():
            _drop_nulls(call)
        if recipe.finish is not None:
            columns |= _ending(recipe.finish, run)
        if infers and run.columns.get("tools") is None:
            tools = inferred_tools(run.tool_calls)
            columns |= {} if tools is None else {"tools": tools, "tools_origin": "inferred"}
        set_columns(run.columns, columns)

    builder.change(change)


def _drop_nulls(call: Columns) -> None:
    """Leave out the arguments of a call that are null, as those of other tools are."""
    text = call.get("arguments")
    kept = without_nulls(text)
    if kept != text:
        call["arguments"] = kept
        call["extra"] = with_changed_columns(call.get("extra"), {"arguments": text})


def set_columns(row: Columns, columns: Columns) -> None:
    """Fill columns of a trajectory that are empty, and note that the source did not.

    Args:
        row: the trajectory.
        columns: the values.
    """
    new = {name: value for name, value in columns.items() if row.get(name) is None}
    if new:
        row.update(new)
        row["extra"] = with_changed_columns(row.get("extra"), dict.fromkeys(new))


def _ending(spec: FinishSpec, run: TrajectoryRows) -> Columns:
    for call in reversed(run.tool_calls):
        if call.get("name") in spec.calls:
            answer = _argument(call, spec.calls[call["name"]])
            return {"terminated": True} | ({} if answer is None else {"final_answer": answer})
    if spec.text is not None:
        texts = [
            step["text"] for step in run.steps if step["source"] == "agent" and step.get("text")
        ]
        match = re.search(spec.text, texts[-1]) if texts else None
        if match:
            answer = match[1] if match.re.groups else None
            return {"terminated": True} | ({} if answer is None else {"final_answer": answer})
    return {} if run.columns.get("final_answer") is None else {"terminated": True}


def _argument(call: Columns, name: str | None) -> str | None:
    """The argument of a call that is the answer, or the only words of one without arguments."""
    if name is None:
        return None
    text = call.get("arguments")
    values: Any = None
    with suppress(msgspec.DecodeError, RecursionError):  # nested too deep to look into
        values = msgspec.json.decode(text) if text else None
    value = values.get(name) if isinstance(values, dict) else call.get("arguments_raw")
    return value if value is None or isinstance(value, str) else json.dumps(value)
