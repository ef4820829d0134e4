"""What files hold: format, version, counts, how complete the runs are, what nobody understands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from adp.converters.run import ConvertOptions, convert
from adp.core.progress import Progress
from adp.stores.completeness import CompletenessFigures, completeness_figures
from adp_schema.manifest import Counts
from adp_schema.scratch import ScratchFolder
from adp_schema.store import Store

_FILES = """
    SELECT s.source_file, s.source_format AS format, s.framing, s.records, s.used, s.skipped,
        s.rejected, s.trajectories, string_agg(DISTINCT t.version, ', ') AS version,
        string_agg(DISTINCT t.agent, ', ') AS agent,
        coalesce(sum(t.steps), 0)::BIGINT AS steps,
        coalesce(sum(t.reasoning), 0)::BIGINT AS reasoning,
        coalesce(sum(t.calls), 0)::BIGINT AS calls, coalesce(sum(t.results), 0)::BIGINT AS results,
        coalesce(sum(t.answered), 0)::BIGINT AS answered,
        coalesce(sum(t.errors), 0)::BIGINT AS errors,
        (SELECT min(reason) FROM rejects r WHERE r.source_file = s.source_file) AS reason
    FROM sources s
    LEFT JOIN (
        SELECT seq, source_file, source_version AS version,
            nullif(concat_ws(' ', agent_name, agent_version), '') AS agent,
            (SELECT count(*) FROM steps x WHERE x.seq = a.seq) AS steps,
            (SELECT count(reasoning) FROM steps x WHERE x.seq = a.seq) AS reasoning,
            (SELECT count(*) FROM tool_calls x WHERE x.seq = a.seq) AS calls,
            (SELECT count(*) FROM observations x WHERE x.seq = a.seq) AS results,
            (SELECT count(DISTINCT (call_step, call)) FROM observations x
                WHERE x.seq = a.seq AND call IS NOT NULL) AS answered,
            (SELECT count(*) FROM errors x WHERE x.seq = a.seq) AS errors
        FROM all_trajectories a
    ) t ON t.source_file = s.source_file
    GROUP BY ALL ORDER BY s.source_file"""


@dataclass
class FileDiagnosis:
    """What one file holds.

    Attributes:
        source_file: its path, relative to the root of the conversion.
        format: format that it was read as; None when none recognises it.
        framing: how it is cut into records; ``side`` for one that belongs to another file.
        version: versions of the format that it names.
        agent: agents that it names, with their versions.
        records: its records; ``used``, ``skipped`` and ``rejected`` add up to it.
        trajectories: trajectories in it, branches included.
        steps: their steps; ``reasoning`` of these have reasoning.
        calls: their calls; ``answered`` of these have a result, or several.
        results: their observations, those that answer no call included.
        errors: what failed, see the view ``errors``.
        reason: why a record of it was put aside.
        figures: how complete its trajectories are; None without any.
    """

    source_file: str
    format: str | None
    framing: str
    version: str | None
    agent: str | None
    records: int
    used: int
    skipped: int
    rejected: int
    trajectories: int
    steps: int
    reasoning: int
    calls: int
    results: int
    answered: int
    errors: int
    reason: str | None
    figures: CompletenessFigures | None = None


@dataclass
class Diagnosis:
    """What some files hold.

    Attributes:
        files: a row a file.
        counts: what became of all records.
        unknown: kinds of records and blocks that were kept unread -> how many.
        losses: what could not be kept -> how often.
        formats: how complete the runs of each format are.
    """

    files: list[FileDiagnosis]
    counts: Counts
    unknown: dict[str, int] = field(default_factory=dict)
    losses: dict[str, int] = field(default_factory=dict)
    formats: list[CompletenessFigures] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """As plain values."""
        return {**asdict(self), "counts": self.counts.model_dump()}


def diagnose(
    sources: Sequence[str],
    *,
    options: ConvertOptions | None = None,
    progress: Progress | None = None,
) -> Diagnosis:
    """Convert files into a scratch store, and say what they hold; nothing of it stays.

    Args:
        sources: files and folders.
        options: how to convert them.
        progress: told how far the conversion is.

    Raises:
        InputError: a source is missing, or none is of a known format.
    """
    with ScratchFolder("doctor") as folder:
        out = str(Path(folder) / "store")
        manifest = convert(list(sources), out, options=options, progress=progress)
        store = Store.open(out)
        figures = {row.group: row for row in completeness_figures(store, "source_file")}
        files = [
            FileDiagnosis(**row, figures=figures.get(row["source_file"]))
            for row in store.query(_FILES).to_pylist()
        ]
        formats = completeness_figures(store)
    return Diagnosis(files, manifest.counts, manifest.unknown, manifest.losses, formats)
