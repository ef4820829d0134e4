"""Options of the op coreset."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict, Field, model_validator

from adp.curation.ops.coreset.sage import BY_LOSS
from adp.curation.pool import COLUMNS
from adp.curation.texts.vectors import VectorOptions

Method = Literal[
    "random",
    "top",
    "loss_topk",
    "k_center",
    "diversity",
    "facility_location",
    "hybrid",
    "stratified",
    "mmr",
]

SAGE_METHODS = ("random", "loss_topk", "diversity", "hybrid")


class Coreset(VectorOptions):
    """Options of `coreset`; one of ``size`` and ``share``."""

    model_config = ConfigDict(populate_by_name=True)

    method: Method
    """How to select; see above. loss_topk is another name for top, diversity for k_center."""
    size: int | None = None
    """How many to keep. When there are not more, all are kept."""
    share: float | None = Field(None, gt=0, le=1)
    """How many to keep, as a share of all; at least one."""
    by: str | None = None
    """Column with the score, for top, hybrid, mmr and stratified with inner top; else loss, which
    the op score gives.
    Trajectories without a score come last."""
    descending: bool = True
    """Whether a high score is good."""
    loss_ratio: float = Field(0.6, ge=0, le=1)
    """hybrid: the share that is taken by score, rounded down."""
    strata: str | None = None
    """stratified: a column, or an SQL expression over the view pool."""
    allocation: Literal["proportional", "equal"] = "proportional"
    """stratified: as many of each stratum as its size asks for, or the same number of each; by
    largest remainder."""
    inner: Literal["random", "top"] = "random"
    """stratified: how to select within a stratum."""
    lambda_: float = Field(0.5, alias="lambda", ge=0, le=1)
    """mmr: weight of the score against that of being unlike the others."""
    coverage: bool = True
    """Measure how well the selection covers all, beside a random one and the longest ones. It
    needs vectors, so for random, top and stratified it is most of the time."""
    compat: Literal["sage"] | None = None
    """sage: the arithmetic of SAGE's CoresetSelector for random, loss_topk, diversity and
    hybrid; see above. Without by and without a column loss, the loss is computed from the
    texts."""
    random_seed: int = 13
    """compat sage: seed of its random numbers."""

    @model_validator(mode="after")
    def _fits(self) -> Coreset:
        if self.compat == "sage":
            if self.method not in SAGE_METHODS:
                raise ValueError(
                    f"compat sage has the methods {', '.join(SAGE_METHODS)}, not {self.method}"
                )
            if self.share is not None:
                raise ValueError("compat sage takes a size, not a share")
            if self.loss_ratio != 0.6 or not self.descending:
                raise ValueError("compat sage always takes 0.6 by the highest losses; leave it out")
        elif (self.size is None) == (self.share is None):
            raise ValueError("give exactly one of size and share")
        elif self.size is not None and self.size < 1:
            raise ValueError("size must be 1 or more")
        if (self.method == "stratified") != (self.strata is not None):
            raise ValueError("strata belongs to the method stratified, which needs it")
        return self

    @property
    def score(self) -> str | None:
        """The column with the score, if the method needs one."""
        if self.compat == "sage":
            return self.by if self.method in BY_LOSS else None
        if self.method in ("top", "loss_topk", "hybrid", "mmr") or (
            self.method == "stratified" and self.inner == "top"
        ):
            return self.by or "loss"
        return None

    def needs(self) -> list[str]:
        """Columns that no pool has by itself."""
        wanted = [name for name in (self.score, self.embedding) if name is not None]
        return [name for name in wanted if name not in COLUMNS]
