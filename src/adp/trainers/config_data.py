"""The section of a training configuration about what is trained on."""

from __future__ import annotations

from pydantic import Field

from adp.trainers.config_make import MakeSection
from adp.trainers.config_replay import ReplaySection
from adp.trainers.config_section import ConfigSection


class DataSection(ConfigSection):
    """Stores, and which of their trajectories."""

    store: str | None = None
    """The store; relative to the configuration. Paths and URLs."""
    splits: tuple[str, ...] | None = None
    """Only trajectories of these splits; null: all."""
    eval_store: str | None = None
    """A store to measure the loss on."""
    eval_splits: tuple[str, ...] | None = None
    """Splits to measure the loss on; of eval_store, or without it of the store."""
    eval_share: float = Field(default=0.0, ge=0, lt=1)
    """Share of the trajectories to measure the loss on, when there is no eval_store. Chosen by
    the hash of the task, so that no task is on both sides."""
    max_rows: int | None = Field(default=None, ge=1)
    """Train on so many rows at most, chosen by the seed."""
    replay: ReplaySection | None = None
    """SFT: rows of an earlier training, mixed into each step; null: none."""
    make: MakeSection | None = None
    """Make the data into OUT/data before the training, when no store is named; null: do not."""
    trained_tokens: int | None = Field(default=None, ge=1)
    """SFT: train on so many tokens under the loss, in place of epochs and steps. Rows are taken
    again, or left out by the seed, until there are as many, to half a row."""
    workers: int | None = Field(default=None, ge=1)
    """Processes that render; null: one a core."""
