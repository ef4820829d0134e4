"""Settings of the environment ``m3``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from adp.rollouts.environment import Settings
from adp.rollouts.environments import m3_scenario as scenario


class M3Settings(Settings):
    """Settings of the environment ``m3``."""

    store: str | None = Field(
        default=None, description="Store of converted reference data, for its tasks."
    )
    inner: str | None = Field(
        default=None, description="Spec of an environment whose tools are called instead."
    )
    availability: scenario.Availability | None = Field(
        default=None, description="Which tools are on offer; none: what the task says."
    )
    enforce: bool = Field(
        default=False, description="Refuse calls of tools that are not on offer; M3 does not."
    )
    usage: str | None = Field(
        default=None, description="What is said about the use of tools; none: the task's words."
    )
    ordering: scenario.Ordering | None = Field(
        default=None, description="Which sort of tools is to be called first."
    )
    retrievers: tuple[str, ...] = Field(
        default=(scenario.RETRIEVE,), description="Tools that retrieve documents."
    )
    horizon: int = Field(default=10, ge=1, description="Steps over all turns.")
    collapse: bool = Field(
        default=True, description="Replace what was done in a turn by its golden answer."
    )
    refusals: bool = Field(
        default=True, description="Giving up is right when a tool that is needed is missing."
    )
    results: Literal["m3", "plain"] = Field(
        default="m3", description="Whether results begin with M3's words, such as ToolCallError."
    )
