"""Options of the op `filter`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from pydantic import Field, FiniteFloat, model_validator

from adp.curation.op import OpOptions

Preset = Literal["success", "actor", "sage", "sage_doc", "toucan", "et_agent_v1", "et_agent_v2"]

_SAGE = (
    *("min_reward", "require_success", "min_steps", "max_steps", "min_tool_usage"),
    "exclude_actions",
)
TAKES: Mapping[str | None, tuple[str, ...]] = {
    "success": (),
    "actor": ("actor", "min_steps"),
    "sage": _SAGE,
    "sage_doc": _SAGE,
    "toucan": ("later_turns",),
    "et_agent_v1": ("repair",),
    "et_agent_v2": ("repair",),
    None: (),
}
"""Preset -> options that it takes besides the general ones."""

_SPECIAL = tuple(dict.fromkeys(name for names in TAKES.values() for name in names))
_ORDER = re.compile(r"^\w+( asc| desc)?$")


class Filter(OpOptions):
    """Options of `filter`: at least one of sql, min, max, preset and per_task_cap."""

    sql: str | None = None
    """Condition over the view pool; a trajectory stays where it is true."""
    min: dict[str, FiniteFloat] = Field(default_factory=dict)
    """Column -> least value that stays."""
    max: dict[str, FiniteFloat] = Field(default_factory=dict)
    """Column -> greatest value that stays."""
    preset: Preset | None = None
    """Rules of a known filter."""
    unknown: Literal["keep", "drop"] = "drop"
    """What becomes of a trajectory whose success, reward or limited column is null."""
    per_task_cap: int | None = Field(None, ge=1)
    """How many trajectories of a task stay, of those that pass the rest."""
    order: tuple[str, ...] = ()
    """Which of them: columns, each with asc or desc, such as 'reward desc'; nulls come last, and
    the place in the input breaks ties. Without it: the highest reward, then the fewest tokens
    where measure counted them, else the fewest rows."""
    actor: str = "expert"
    """Preset actor: the actor."""
    min_reward: float | None = None
    """Preset sage: least reward. 0 in the code, 0.5 in the documentation."""
    require_success: bool | None = None
    """Preset sage: whether the task must be solved. True in both."""
    min_steps: int | None = Field(None, ge=0)
    """Preset sage: fewest steps of the agent, 1 in the code. Preset actor: fewest steps that the
    actor made; without it, all of the agent's."""
    max_steps: int | None = Field(None, ge=0)
    """Preset sage: most steps of the agent. No limit in both."""
    min_tool_usage: int | None = Field(None, ge=0)
    """Preset sage: fewest different tools, finish and error not counted; 1 in the code."""
    exclude_actions: tuple[str, ...] = ()
    """Preset sage: tools that no step may call."""
    later_turns: bool = True
    """Preset toucan: whether, of several turns of the user, only results from the second on
    count. False is what Toucan does for its set of split questions."""
    repair: bool = False
    """Presets et_agent: whether to mend tags before giving a trajectory up."""

    @model_validator(mode="after")
    def _fit(self) -> Filter:
        given = self.given()
        if not given & {"sql", "min", "max", "preset", "per_task_cap"}:
            raise ValueError("filter needs at least one of sql, min, max, preset, per_task_cap")
        allowed = TAKES[self.preset]
        for name in _SPECIAL:
            if name in given and name not in allowed:
                takes = f"it takes {', '.join(allowed)}" if allowed else "it takes no such options"
                which = (
                    f"the preset {self.preset} does"
                    if self.preset
                    else "filter without a preset does"
                )
                raise ValueError(f"{which} not take {name}; {takes}")
        if self.order and self.per_task_cap is None:
            raise ValueError("order says which trajectories per_task_cap keeps; give it a cap")
        for text in self.order:
            if not _ORDER.match(text):
                raise ValueError(f"'{text}' is no order; write a column and asc or desc")
        for name in self.min.keys() & self.max.keys():
            if self.min[name] > self.max[name]:
                raise ValueError(
                    f"no {name} is at least {self.min[name]} and at most {self.max[name]}"
                )
        return self
