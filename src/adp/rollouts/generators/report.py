"""What a run of a generator kept, what it did not keep and why, and which tools it covers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from adp.core.json_values import json_object
from adp.rollouts.generators.values import properties_of
from adp.rollouts.turns import Tool
from adp_schema.store import Store


@dataclass
class ToolCoverage:
    """How a tool occurs in the samples.

    Attributes:
        calls: calls of it.
        parameters: parameter -> calls that give it.
        values: parameter -> number of different values.
    """

    calls: int = 0
    parameters: dict[str, int] = field(default_factory=dict)
    values: dict[str, int] = field(default_factory=dict)


@dataclass
class MakeReport:
    """What became of a run: ``tried = kept + sum(failures)``.

    Attributes:
        asked: samples that were asked for; None: as many as there are.
        tried: candidates that were carried out, or found to be there already.
        kept: samples in the store.
        kept_before: those of them that the store held when the call began.
        failed_beside: calls that failed and stand beside one that went well, as branches.
        failures: why candidates were not kept -> how many.
        tools: tool -> how it occurs.
        exhausted: streams that brought nothing new any more.
        sealed: whether the store was ended.
        seconds: wall time of the call.
        notes: what else to say.
    """

    asked: int | None = None
    tried: int = 0
    kept: int = 0
    kept_before: int = 0
    failed_beside: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    tools: dict[str, ToolCoverage] = field(default_factory=dict)
    exhausted: list[str] = field(default_factory=list)
    sealed: bool = False
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)

    def covered(self) -> dict[str, int]:
        """How many tools and parameters occur, and how many there are."""
        parameters = [count for tool in self.tools.values() for count in tool.parameters.values()]
        return {
            "tools": len(self.tools),
            "tools_covered": sum(tool.calls > 0 for tool in self.tools.values()),
            "parameters": len(parameters),
            "parameters_covered": sum(count > 0 for count in parameters),
        }

    def plain(self) -> dict[str, Any]:
        """As JSON."""
        names = ("asked", "tried", "kept", "kept_before", "failed_beside", "exhausted", "sealed")
        return {
            **{name: getattr(self, name) for name in names},
            "notes": self.notes,
            "failures": dict(self.failures.most_common()),
            "seconds": round(self.seconds, 3),
            "coverage": {
                **self.covered(),
                "by_tool": {
                    name: {"calls": tool.calls, "parameters": tool.parameters,
                           "distinct_values": tool.values}
                    for name, tool in self.tools.items()
                },
            },
        }  # fmt: skip


def coverage_of(store: Store, tools: Sequence[Tool]) -> dict[str, ToolCoverage]:
    """Which tools and parameters the calls of a store cover; those of branches do not count.

    Args:
        store: the store.
        tools: the tools on offer.
    """
    result = {
        str(tool["function"]["name"]): ToolCoverage(
            0, dict.fromkeys(properties_of(tool), 0), dict.fromkeys(properties_of(tool), 0)
        )
        for tool in tools
    }
    values: dict[tuple[str, str], set[str]] = {}
    runs = store.scan("trajectories").filter(pl.col("parent_id").is_null()).select("seq")
    calls = store.scan("tool_calls").join(runs, on="seq").select("name", "arguments").collect()
    for name, arguments in calls.iter_rows():
        tool = result.setdefault(name, ToolCoverage())
        tool.calls += 1
        for key, value in _members(arguments).items():
            tool.parameters[key] = tool.parameters.get(key, 0) + 1
            values.setdefault((name, key), set()).add(json.dumps(value, sort_keys=True))
    for (name, key), different in values.items():
        result[name].values[key] = len(different)
    return result


def _members(arguments: str | None) -> Mapping[str, Any]:
    return json_object(arguments)
