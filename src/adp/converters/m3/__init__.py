"""Runs and reference data of M3 (m3-train-eval), which trains agents beside an expert.

A run is one JSON object with its ``interactions``. Each says what it saw, did and got: the input is
rebuilt from the steps before it (see `context`), the output is a step with its ``actor``, the
categories of its reward are labels without braces, and an alternate is a branch of one step. The
outcome is in ``metadata_{i}.json``, beside the run, in a folder ``metadata``, or above the folder
``trajectories``.

A record of reference data is a task: it becomes a row of the table ``tasks``, and its reference
run, with the actors that the source names, is the trajectory that the row hangs from.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from adp.converters.format import Format
from adp.converters.m3 import keys as k
from adp.converters.m3 import metadata_file
from adp.converters.m3.gold import is_gold, read_gold
from adp.converters.session_writers.names import NamedRun
from adp_schema import jsontext
from adp_schema.losses import Losses
from adp_schema.model import Trajectory
from adp_schema.protocols import Match, RawRecord

_BRACE = 0x7B

if TYPE_CHECKING:
    from adp_schema.builder import RowBuilder


class M3(Format):
    """The format ``m3``."""

    name = k.NAME
    title = "M3 runs with alternates of agent and expert, and M3 reference data"
    container = "json"
    recognised = (
        "`interactions` by number, each with an `input` or `metadata` and an `output`; or a "
        "`sample_id` and a `trajectory` with `turns`, `doc_collections`, `merged_query` or "
        "`num_hops`."
    )
    versions = (
        "Reads runs in the three layouts of folders, with `metadata_{i}.json` joined, and "
        "reference data: the old form with one turn, the form with several, and that form before "
        "thoughts were added. Writes what was read in its own form, and other formats as runs."
    )

    def side_files(self, source_file: str) -> tuple[str, ...]:
        """The file with the outcome of a run."""
        return metadata_file.side_files(source_file)

    def embeds(self, branch: Trajectory) -> bool:
        """Alternates stand inside the interaction that they are an alternate of."""
        return branch.branch_kind == "alternate"

    def sniff(self, record: Mapping[str, Raw]) -> Match:
        """Both kinds of record are known by their keys."""
        if is_gold(record):
            return Match.SHAPE
        listed = record.get("interactions", Raw())
        if jsontext.first_byte(listed) != _BRACE:
            return Match.NO
        try:
            first = next(iter(jsontext.decode_object(listed).values()), Raw())
            turn = jsontext.decode_object(first) if jsontext.first_byte(first) == _BRACE else {}
        except (ValueError, RecursionError):
            return Match.NO
        result = "output" in turn and ("input" in turn or "metadata" in turn)
        return Match.SHAPE if result else Match.NO

    def read(self, record: RawRecord, builder: RowBuilder, losses: Losses) -> None:
        """Convert a run with its alternates, or a record of reference data."""
        from adp.converters.m3.read import read_run

        if not read_gold(record, builder, losses):
            read_run(record, builder, losses)

    def write(
        self, trajectory: Trajectory, losses: Losses, flavour: str | None = None
    ) -> dict[str, Any]:
        """Convert a trajectory with its alternates into a record."""
        from adp.converters.m3.gold_write import was_gold, write_gold
        from adp.converters.m3.write import M3Writer

        if was_gold(trajectory):
            return write_gold(trajectory, losses)
        return M3Writer(trajectory, losses).record()

    def numbered_file(self, run: NamedRun, number: int) -> str:
        """The file of a run of another format: ``trajectory_{i}.json``, in a folder a data set.

        A folder has the name of the scenario, as far as the run says it, or of its source file.
        """
        folder = PurePosixPath(run.source_file or "").with_suffix("") if run.source_file else None
        if folder is None and run.policy_tool_availability in k.AVAILABILITIES:
            folder = PurePosixPath(run.policy_tool_availability)
        name = f"trajectory_{number}.json"
        return name if folder is None else str(folder / name)

    def outcome_file(
        self, trajectory: Trajectory, record: dict[str, Any], name: str
    ) -> tuple[str, bytes, tuple[str, ...]] | None:
        """The file with the outcome of a run of another format: name, bytes, paths that it says."""
        return metadata_file.outcome_of(trajectory, record, name)

    def write_side_files(self, trajectory: Trajectory) -> dict[str, bytes]:
        """The file with the outcome, by its path."""
        return metadata_file.write_side(trajectory)


CONVERTER = M3()
