"""The numbers of a store, as plain data: what its data card and its report show."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from adp.stores.completeness import CompletenessFigures
from adp.stores.stats import Recorded, ToolStats


@dataclass(frozen=True)
class Count:
    """How many rows have a name.

    Attributes:
        name: the name; None for rows without one.
        count: rows.
    """

    name: str | None
    count: int


@dataclass(frozen=True)
class Ranking:
    """The most frequent names, then by name.

    Attributes:
        rows: the names, at most as many as the options say.
        names: how many different names there are.
        total: rows of all names together.
    """

    rows: tuple[Count, ...]
    names: int
    total: int


@dataclass(frozen=True)
class Share:
    """A part of a whole: ``count`` of ``of``."""

    count: int
    of: int


@dataclass(frozen=True)
class Rate:
    """A success rate and how sure it is.

    Attributes:
        name: what it is the rate of.
        of: trajectories.
        known: trajectories that record success.
        good: trajectories with success true.
        rate: good / known; None when nothing is known.
        low: lower end of the 95 % interval of Wilson.
        high: its upper end.
    """

    name: str | None
    of: int
    known: int
    good: int
    rate: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Bin:
    """A bar of a histogram: the values from ``low`` to ``high``, both included."""

    low: int
    high: int
    count: int


@dataclass(frozen=True)
class Distribution:
    """How large something is.

    A quantile is a value that occurs: the smallest one that p % of the values do not exceed.

    Attributes:
        name: what is measured.
        n: values.
        of: rows that could have one.
        total: sum of the values.
        mean: total / n.
        bins: the histogram, without gaps.
    """

    name: str
    n: int
    of: int
    total: int
    mean: float | None = None
    min: int | None = None
    p10: int | None = None
    p50: int | None = None
    p90: int | None = None
    p99: int | None = None
    max: int | None = None
    bins: tuple[Bin, ...] = ()


@dataclass(frozen=True)
class TableSize:
    """A table of the store; files and bytes are those of its finished shards."""

    name: str
    rows: int
    files: int
    bytes: int


@dataclass(frozen=True)
class DataSet:
    """One data set of a store.

    Attributes:
        name: its name; None for trajectories without one.
        trajectories: main lines.
        share: their share of all main lines.
        branches: trajectories that branch off.
        steps: steps of the main lines.
        calls: calls of the main lines.
        characters: characters of the main lines.
        tokens_in: prompt tokens of the runs that record them.
        tokens_out: tokens that the model wrote, of the runs that record them.
        success: success of the main lines.
        reward: sum of the rewards; divide it by ``recorded`` for the mean.
        licenses: licenses of all trajectories, branches included.
        may_publish: the same for the column may_publish: true, false or None.
        formats: formats they were read from.
        splits: splits.
    """

    name: str | None
    trajectories: int
    share: float
    branches: int
    steps: int
    calls: int
    characters: int
    tokens_in: Recorded
    tokens_out: Recorded
    success: Rate
    reward: Recorded
    licenses: Ranking
    may_publish: Ranking
    formats: Ranking
    splits: Ranking


@dataclass(frozen=True)
class Licensed:
    """Trajectories of one data set under one license, branches included.

    Attributes:
        dataset: name of the data set.
        license: the license as the trajectories state it.
        may_publish: what they say about publishing.
        trajectories: how many there are.
        kind: what the license counts as, such as ``permissive``; see `adp.stores.licenses`.
        verdict: ``ok``, ``note``, or ``refuse`` when it stands in the way of publishing.
        reasons: what is to be said about it.
    """

    dataset: str | None
    license: str | None
    may_publish: bool | None
    trajectories: int
    kind: str
    verdict: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class MediaKind:
    """Blobs of one media type.

    Attributes:
        mime: the type.
        count: blobs.
        bytes: size of those that are stored.
        outside: blobs that are an address only.
    """

    mime: str | None
    count: int
    bytes: int
    outside: int


@dataclass(frozen=True)
class Errors:
    """What went wrong, in the main lines.

    Attributes:
        results: calls with a result.
        known: results that say whether they are errors.
        wrong: results that are errors.
        types: error types of results.
        exit_codes: exit codes of results, 0 included.
        run_types: error types that ended a run.
        stop_reasons: why runs stopped.
        truncated: runs that a limit cut.
        terminated: runs that reached an end of their own.
    """

    results: int
    known: int
    wrong: int
    types: Ranking
    exit_codes: Ranking
    run_types: Ranking
    stop_reasons: Ranking
    truncated: Recorded
    terminated: Recorded


@dataclass(frozen=True)
class ToolCounts:
    """The tools that are called most in the main lines; ``names`` counts all of them."""

    rows: tuple[ToolStats, ...]
    names: int
    calls: int


@dataclass(frozen=True)
class FirstTexts:
    """How often runs begin with the same words.

    Attributes:
        recorded: main lines with a text of the user.
        distinct: different first texts of the user, to the character.
    """

    recorded: int
    distinct: int

    @property
    def repeated(self) -> int:
        """Main lines whose first text an earlier one has too."""
        return self.recorded - self.distinct


@dataclass(frozen=True)
class ExampleTrajectory:
    """One trajectory to look at.

    Attributes:
        trajectory_id: its id.
        dataset: its data set.
        why: why it was chosen.
        text: the beginning of its transcript; control characters are shown as signs.
        cut: whether the transcript goes on.
    """

    trajectory_id: str
    dataset: str | None
    why: str
    text: str
    cut: bool


@dataclass(frozen=True)
class Composition:
    """All numbers that the data card and the report of a store show.

    Unless it says otherwise, a number is over the main lines: trajectories that are no branch.
    """

    name: str
    schema_version: str
    growing: bool
    records: int
    used: int
    skipped: int
    rejected: int
    trajectories: int
    branches: int
    steps: int
    llm_turns: int
    calls: int
    characters: int
    bytes: int
    tables: tuple[TableSize, ...]
    reasons: Ranking
    losses: Ranking
    datasets: tuple[DataSet, ...]
    licenses: tuple[Licensed, ...]
    lengths: tuple[Distribution, ...]
    parts: tuple[Distribution, ...]
    tools: ToolCounts
    success: Rate
    reward: Recorded
    tokens_in: Recorded
    tokens_out: Recorded
    by_model: tuple[Rate, ...]
    by_length: tuple[Rate, ...]
    errors: Errors
    agents: Ranking
    models: Ranking
    languages: Ranking
    reasoning: Share
    branch_kinds: Ranking
    links: Ranking
    pairs: Ranking
    media: tuple[MediaKind, ...]
    first_texts: FirstTexts
    lineage: tuple[dict[str, Any], ...]
    completeness: tuple[CompletenessFigures, ...]
    unknown: Ranking
    examples: tuple[ExampleTrajectory, ...]

    @property
    def main_lines(self) -> int:
        """Trajectories that are no branch."""
        return self.trajectories - self.branches

    def plain(self) -> dict[str, Any]:
        """The numbers as JSON has them: lists for tuples, null for numbers that are not finite."""
        plain = as_plain(asdict(self))
        plain["first_texts"]["repeated"] = self.first_texts.repeated
        return dict(plain)


def as_plain(value: Any) -> Any:
    """A value as JSON has it: lists for tuples, null for numbers that are not finite."""
    match value:
        case dict():
            return {str(key): as_plain(item) for key, item in value.items()}
        case list() | tuple():
            return [as_plain(item) for item in value]
        case float():
            return value if math.isfinite(value) else None
    return value
