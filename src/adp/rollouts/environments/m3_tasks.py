"""Tasks of M3: a converted store of reference data, and what an episode needs of a task."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adp.core.json_values import json_list, json_object
from adp.rollouts.turns import Tool
from adp_schema.errors import EmptyResultError, UsageError
from adp_schema.model import Task
from adp_schema.reader import to_models
from adp_schema.store import Store


@dataclass(frozen=True)
class M3TaskConfig:
    """What a task says about its episode.

    Attributes:
        tools: the tools in the OpenAI shape; empty where the task does not tell.
        collections: collections of documents.
        availability: policy of availability; None where the task does not tell.
        usage: policy of use.
        cutoff: a further instruction for the answer.
    """

    tools: tuple[Tool, ...] = ()
    collections: tuple[str, ...] = ()
    availability: str | None = None
    usage: str | None = None
    cutoff: str | None = None


def config_of(task: Task) -> M3TaskConfig:
    """Read the column ``environment_config`` of a task; what cannot be read is left out."""
    result = json_object(task.environment_config)
    tools = result.get("tools")
    collections = result.get("doc_collections")
    return M3TaskConfig(
        tools=tuple(map(_repaired, filter(_is_tool, tools))) if isinstance(tools, list) else (),
        collections=tuple(map(str, collections)) if isinstance(collections, list) else (),
        availability=_text(result.get("tool_availability_policy")),
        usage=_text(result.get("tool_usage_policy")),
        cutoff=_text(result.get("resp_cutoff_inst")),
    )


def tasks_of(path: str) -> list[Task]:
    """The tasks of a store of reference data, with their tools and policies.

    They come from the trajectories that the tasks hang from; ``environment_config`` has them.

    Args:
        path: a store that `adp convert` made of M3's reference data.

    Raises:
        StoreError: there is no store.
        EmptyResultError: it has no task with a reference run.
    """
    store = Store.open(path)
    columns = ["trajectory_id", "tools", "policy_tool_availability", "policy_tool_usage", "extra"]
    runs = {
        row["trajectory_id"]: row
        for row in store.scan("trajectories").select(columns).collect().iter_rows(named=True)
    }
    rows = store.scan("tasks").sort("seq", "task_id").collect()
    names = rows["trajectory_id"].to_list()
    tasks = to_models(rows.to_arrow(), Task)
    with_configs = [
        _with_config(task, runs.get(name, {}))
        for task, name in zip(tasks, names, strict=True)
        if task.gold_trajectory or task.expected_calls
    ]
    if not with_configs:
        raise EmptyResultError(
            f"{path} has no task with a reference run; convert M3's reference data into it"
        )
    return with_configs


def split_of(tasks: Sequence[Task], split: str, count: int | None) -> list[Task]:
    """Tasks of a split: those that name it, and all where none names any."""
    named = [task for task in tasks if task.split is not None]
    chosen = [task for task in tasks if task.split == split] if named else list(tasks)
    if not chosen:
        raise UsageError(f"no task is of the split '{split}'")
    return chosen if count is None else chosen[:count]


def _with_config(task: Task, run: Mapping[str, Any]) -> Task:
    config = json_object(task.environment_config)
    extra = json_object(run.get("extra"))
    tools = json_list(run.get("tools"))
    if tools:
        config.setdefault("tools", tools)
    for key, column in (
        ("tool_availability_policy", "policy_tool_availability"),
        ("tool_usage_policy", "policy_tool_usage"),
    ):
        if run.get(column) is not None:
            config.setdefault(key, run[column])
    turns = extra.get("turns")
    objects = [extra, *(turns if isinstance(turns, list) else [])]
    cutoffs = [item.get("resp_cutoff_inst") for item in objects if isinstance(item, Mapping)]
    cutoff = next((text for text in cutoffs if isinstance(text, str) and text), None)
    if cutoff is not None:
        config.setdefault("resp_cutoff_inst", cutoff)
    return task.model_copy(update={"environment": "m3", "environment_config": json.dumps(config)})


def _repaired(tool: Tool) -> Tool:
    """The tool with its schema as it was meant.

    M3 lists the properties alone as ``parameters``, but for `retrieve_documents` the whole schema,
    which then stands where the properties should.
    """
    function = tool["function"]
    parameters = function.get("parameters")
    properties = parameters.get("properties") if isinstance(parameters, Mapping) else None
    if (
        isinstance(properties, Mapping)
        and properties.get("type") == "object"
        and "properties" in properties
    ):
        return {**tool, "function": {**function, "parameters": properties}}
    return tool


def _is_tool(tool: Any) -> bool:
    function = tool.get("function") if isinstance(tool, Mapping) else None
    return isinstance(function, Mapping) and isinstance(function.get("name"), str)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
