"""Options of `mix`."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field, model_validator

from adp.curation.op import OpOptions

Method = Literal["weighted", "balanced", "temperature", "curriculum", "agenttuning"]
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Epochs = Annotated[int, Field(ge=1, le=1000)]

SAGE_WEIGHTS = {"tool_selection": 0.35, "planning": 0.30, "timing": 0.20, "general": 0.15}
SAGE_STAGES = (
    {"tool_selection": 0.6, "general": 0.4},
    {"tool_selection": 0.4, "planning": 0.4, "general": 0.2},
    SAGE_WEIGHTS,
)


class CurriculumStage(OpOptions):
    """One stage of a curriculum."""

    weights: dict[str, Weight]
    """Group -> weight; they are normalised."""
    share: float | None = Field(None, gt=0, allow_inf_nan=False)
    """Share of the budget; equal when not given."""
    total: int | None = Field(None, gt=0)
    """Budget of the stage itself, in trajectories, in place of a share."""


class Mix(OpOptions):
    """Options of `mix`."""

    by: str = "dataset"
    """What the groups are: a column, or an SQL expression over the view pool. Trajectories where
    it is null are in the group called null."""
    method: Method = "weighted"
    """weighted: shares by `weights`. balanced: equal shares. temperature: shares in proportion
    to n^(1/T) for a group of n (trajectories, or tokens when the budget is in tokens) and T =
    `temperature`. curriculum: `stages`, each with weights of its own. agenttuning: `eta` for the
    agent groups together, 1 - eta for the others together; within both, in proportion to size."""
    weights: dict[str, Weight] = Field(default_factory=dict)
    """Group -> weight, for weighted; they are normalised. With weight 0 a group is left out."""
    temperature: float = Field(2.0, gt=0)
    """T: 1 keeps the sizes as they are, more evens them out; .inf is balanced."""
    stages: list[CurriculumStage] = Field(default_factory=list)
    """Stages of the curriculum, in order: {weights, share} or {weights, total}. Later stages
    take what earlier ones left."""
    agent: list[str] = Field(default_factory=list)
    """The groups that are agent data, for agenttuning."""
    eta: float = Field(0.2, ge=0, le=1)
    """Share of the agent data in J = eta E[D_agent] + (1 - eta) E[D_general]."""
    total: int | None = Field(None, gt=0)
    """Budget in trajectories, repeats counted. Without total and tokens: as many as there can be
    before the first group runs out."""
    tokens: int | None = Field(None, gt=0)
    """Budget in tokens, repeats counted."""
    token_column: str = "tokens"
    """Column with the tokens of a trajectory. Where it is missing or null, a token is taken for
    4 bytes of text."""
    epochs: Epochs | dict[str, Epochs] = 1
    """How often a trajectory may be in the mixture: for all groups, or group -> number, 1 for
    those that are not named."""
    min_per_group: int = Field(0, ge=0)
    """At least this much of each group that has a weight (or all that it has), in the unit of
    the budget, and in each stage."""
    unknown: Literal["error", "other"] = "error"
    """Groups without a weight: an error, or together the group other, which has a weight of its
    own."""
    short: Literal["redistribute", "stop"] = "redistribute"
    """When a group has less than its share: the rest goes to the others by their weights; or the
    mixture (of a curriculum, the stage) stops there, smaller, with its shares as asked for."""
    order: str | None = None
    """Column: its highest values are taken first, nulls last. Default: at random, by a hash of
    seed and trajectory_id, so that more data changes little."""
    compat: Literal["sage"] | None = None
    """sage: the arithmetic of SAGE's MultiTaskMixer for weighted, balanced and curriculum, with
    its own weights and stages as defaults."""

    @model_validator(mode="after")
    def _possible(self) -> Mix:
        fault = self._fault()
        if fault:
            raise ValueError(fault)
        return self

    def _fault(self) -> str | None:
        """What is wrong with the options together."""
        known_keys = {
            "weights": ("weighted", bool(self.weights)),
            "stages": ("curriculum", bool(self.stages)),
            "agent": ("agenttuning", bool(self.agent)),
        }
        for name, (method, given) in known_keys.items():
            if given and self.method != method:
                return f"{name} belongs to method: {method}, not to {self.method}"
            if not given and self.method == method and self.compat is None:
                return f"method: {method} needs {name}"
        if math.isnan(self.temperature):
            return "temperature is no number; give one above 0"
        if self.total is not None and self.tokens is not None:
            return "give total or tokens, not both"
        weighings = [self.weights] if self.weights else [stage.weights for stage in self.stages]
        if any(not any(weights.values()) for weights in weighings):
            return "the weights are all zero; give at least one group a weight above 0"
        return self._stage_fault() or self._sage_fault()

    def _stage_fault(self) -> str | None:
        totals = [stage.total is not None for stage in self.stages]
        shares = [stage.share is not None for stage in self.stages]
        if any(totals):
            if not all(totals) or any(shares):
                return "give each stage a share, or each a total"
            if self.total is not None or self.tokens is not None:
                return "the stages have totals, so leave out total and tokens"
        if any(shares) and not all(shares):
            return "give each stage a share, or none"
        return None

    def _sage_fault(self) -> str | None:
        if self.compat is None:
            return None
        if self.method not in ("weighted", "balanced", "curriculum"):
            return f"SAGE has no method {self.method}; leave out compat"
        ours = {"tokens", "epochs", "min_per_group", "unknown", "short", "order"}
        if given := sorted(ours & self.given()):
            return f"compat: sage does not know {given[0]}; leave it out"
        if any(stage.share or stage.total for stage in self.stages):
            return "the stages of compat: sage are equal parts; leave out share and total"
        return None
