"""The section of a training configuration about rows of earlier trainings."""

from __future__ import annotations

from pydantic import Field

from adp.trainers.config_section import ConfigSection


class ReplaySection(ConfigSection):
    """Rows of another store that are mixed into each step of SFT, against forgetting."""

    store: str
    """The replay store, such as the data of an earlier round; relative to the configuration."""
    splits: tuple[str, ...] | None = None
    """Only its trajectories of these splits; null: all."""
    ratio: float = Field(default=0.25, gt=0, le=16)
    """Replayed rows for each new one of a step, rounded down, at least one. The rows of a step stay
    as many as without: fewer of them are new."""
    reservoir: bool = False
    """Let the rows that are replayed be a reservoir, which takes up new rows as they are trained on
    (Vitter's algorithm R); it is written beside the model."""
    size: int | None = Field(default=None, ge=1)
    """reservoir: most rows that it holds; null: as many as the replay store has."""
