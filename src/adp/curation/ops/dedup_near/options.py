"""Options of `dedup_near`."""

from __future__ import annotations

from pydantic import Field, field_validator, model_validator

from adp.curation.clusters import ClusterOptions
from adp.curation.texts.views import Kind, check_kinds


class DedupNear(ClusterOptions):
    """Options of `dedup_near`."""

    views: tuple[Kind, ...] = ("agent", "actions")
    """Texts that are compared: some of system, task, user, agent, actions, observations, patch,
    all."""
    threshold: float = Field(0.8, ge=0.3, le=1)
    """Least Jaccard similarity of a near duplicate."""
    words: int = Field(5, ge=1, le=32)
    """Words of a shingle."""
    common: float = Field(0.01, gt=0, le=1)
    """Shingles of more than this share of documents are left out."""
    common_least: int = Field(10, ge=1)
    """But none that so few documents or fewer have, as in small sets."""
    least_shingles: int = Field(8, ge=1)
    """Documents with fewer shingles left are only compared as whole texts."""
    permutations: int = Field(128, ge=16, le=1024)
    """Numbers of a MinHash signature."""
    bands: int | None = Field(None, ge=1)
    """Bands; null chooses by the threshold."""
    rows: int | None = Field(None, ge=1)
    """Numbers of a band; given with bands."""

    @field_validator("views")
    @classmethod
    def _views(cls, value: tuple[Kind, ...]) -> tuple[Kind, ...]:
        check_kinds(value)
        return value

    @model_validator(mode="after")
    def _bands(self) -> DedupNear:
        if (self.bands is None) != (self.rows is None):
            raise ValueError("give both bands and rows, or neither")
        if self.bands and self.rows and self.bands * self.rows > self.permutations:
            raise ValueError("bands times rows is more than permutations; raise permutations")
        return self
